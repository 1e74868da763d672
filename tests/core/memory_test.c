#include "buf.h"
#include "memory.h"
#include "proc.h"
#include "strv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A machine as "path=text" entries. */
static bool read_entry(void *ctx, const char *path, struct fa_buf *out)
{
	size_t len = strlen(path);

	for (const char *const *e = ctx; *e; e++)
		if (!strncmp(*e, path, len) && (*e)[len] == '=') {
			fa_buf_adds(out, *e + len + 1);
			return true;
		}
	return false;
}

static void assert_memory(const char *const *entries, int64_t available, int64_t total)
{
	struct fa_memory_reader r = { .read = read_entry, .ctx = (void *)(uintptr_t)entries };

	assert_int_equal(fa_memory_available_mib(&r), available);
	assert_int_equal(fa_memory_total_mib(&r), total);
}

#define MEMINFO "/proc/meminfo=MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n"

static void without_groups_the_machine_counts(void **state)
{
	static const char *const plain[] = { MEMINFO, NULL }, *const nothing[] = { NULL };

	(void)state;
	assert_memory(plain, 8192, 16384);
	assert_memory(nothing, -1, -1);
}

/* The tightest limit may be any ancestor's; page cache that can go does not count as used. */
static void every_ancestor_of_version_2_counts(void **state)
{
	static const char *const m[] = {
		MEMINFO,
		"/proc/self/cgroup=0::/user.slice/job/step\n",
		"/proc/self/mountinfo=30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/user.slice/job/step/memory.max=max\n",
		"/sys/fs/cgroup/user.slice/job/memory.max=4294967296\n",
		"/sys/fs/cgroup/user.slice/job/memory.current=2147483648\n",
		"/sys/fs/cgroup/user.slice/job/memory.stat=anon 1\nfile 2\ninactive_file 1073741824\n",
		"/sys/fs/cgroup/user.slice/memory.max=max\n",
		NULL
	};

	(void)state;
	assert_memory(m, 3072, 4096);
}

static void a_container_sees_its_own_top(void **state)
{
	static const char *const private[] = { MEMINFO,
		                               "/proc/self/cgroup=0::/\n",
		                               "/proc/self/mountinfo=30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
		                               "/sys/fs/cgroup/memory.max=2147483648\n",
		                               "/sys/fs/cgroup/memory.high=1073741824\n",
		                               "/sys/fs/cgroup/memory.current=536870912\n",
		                               NULL };
	static const char *const bound[] = {
		MEMINFO,
		"/proc/self/cgroup=5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/x\n",
		"/proc/self/mountinfo=31 23 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes=3221225472\n",
		"/sys/fs/cgroup/memory/memory.usage_in_bytes=4294967296\n",
		NULL
	};

	(void)state;
	assert_memory(private, 512, 1024);
	assert_memory(bound, 0, 3072);
}

static void no_limit_of_version_1_is_none(void **state)
{
	static const char *const m[] = {
		MEMINFO,
		"/proc/self/cgroup=4:memory:/a\n",
		"/proc/self/mountinfo=31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
		"/sys/fs/cgroup/memory/a/memory.limit_in_bytes=9223372036854771712\n",
		"/sys/fs/cgroup/memory/a/memory.usage_in_bytes=1\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes=9223372036854771712\n",
		NULL
	};
	static const char *const damaged[] = { "/proc/meminfo=MemAvailable:\nMemTotal: x\n",
		                               "/proc/self/cgroup=::::\n0\n\n:", "/proc/self/mountinfo=- - -\n1 2 3", NULL };

	(void)state;
	assert_memory(m, 8192, 16384);
	assert_memory(damaged, -1, -1);
}

static void this_machine_has_some(void **state)
{
	(void)state;
	assert_true(fa_proc_memory_available_mib() > 0);
	assert_true(fa_memory_total_mib(NULL) >= fa_memory_available_mib(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_groups_the_machine_counts),
		cmocka_unit_test(every_ancestor_of_version_2_counts),
		cmocka_unit_test(a_container_sees_its_own_top),
		cmocka_unit_test(no_limit_of_version_1_is_none),
		cmocka_unit_test(this_machine_has_some),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL) ? 1 : 0;
}
