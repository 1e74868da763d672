#include "buf.h"
#include "gate.h"
#include "memory.h"
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

	assert_int_equal(fa_memory_available_mib(&r, NULL), available);
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

/* A quota may be any ancestor's, as the memory's; half a core counts as one. */
static void cores_are_those_of_the_tightest_quota(void **state)
{
	static const char *const v2[] = { "/proc/self/cgroup=0::/a/b\n",
		                          "/proc/self/mountinfo=30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
		                          "/sys/fs/cgroup/a/b/cpu.max=max 100000\n",
		                          "/sys/fs/cgroup/a/cpu.max=250000 100000\n",
		                          "/sys/fs/cgroup/cpu.max=800000 100000\n",
		                          NULL };
	static const char *const v1[] = {
		"/proc/self/cgroup=4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n",
		"/proc/self/mountinfo=31 23 0:27 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
		"32 23 0:28 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us=50000\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us=100000\n",
		NULL
	};
	static const char *const unlimited[] = {
		"/proc/self/cgroup=3:cpu:/\n",
		"/proc/self/mountinfo=32 23 0:28 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
		"/sys/fs/cgroup/cpu/cpu.cfs_quota_us=-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us=100000\n", NULL
	};
	char *origin = NULL;

	(void)state;
	assert_int_equal(fa_memory_cores(&(struct fa_memory_reader){ read_entry, (void *)(uintptr_t)v2 }, &origin), 3);
	assert_string_equal(origin, "/sys/fs/cgroup/a");
	free(origin);
	assert_int_equal(fa_memory_cores(&(struct fa_memory_reader){ read_entry, (void *)(uintptr_t)v1 }, NULL), 1);
	assert_int_equal(fa_memory_cores(&(struct fa_memory_reader){ read_entry, (void *)(uintptr_t)unlimited }, &origin), -1);
	assert_null(origin);
}

/* What the gate sees of it, read anew each time. */
static void memory_that_is_plugged_in_counts_at_once(void **state)
{
	static const char *const small[] = { "/proc/meminfo=MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n",
		                             "/proc/pressure/memory=some avg10=9.00 avg60=0.00 avg300=0.00 total=1\n"
		                             "full avg10=12.50 avg60=0.00 avg300=0.00 total=1\n",
		                             NULL };
	static const char *const large[] = { "/proc/meminfo=MemTotal: 67108864 kB\nMemAvailable: 62914560 kB\n", NULL };
	struct fa_gate_room room;

	(void)state;
	unsetenv("FAINSTALL_GATE_MEMORY_MIB");
	unsetenv("FAINSTALL_GATE_RESERVE_MIB");
	fa_gate_room_read(&room, 0, &(struct fa_memory_reader){ read_entry, (void *)(uintptr_t)small });
	assert_int_equal(room.available_mib, 4096);
	assert_int_equal(room.reserve_mib, 1024);
	assert_float_equal(room.pressure, 12.5, 0.001);
	fa_gate_room_read(&room, 0, &(struct fa_memory_reader){ read_entry, (void *)(uintptr_t)large });
	assert_int_equal(room.available_mib, 61440);
	assert_int_equal(room.reserve_mib, 3276);
	assert_float_equal(room.pressure, 0, 0.001);
	setenv("FAINSTALL_GATE_MEMORY_MIB", "10000", 1); /* what units hold already counts against a limit that was said */
	fa_gate_room_read(&room, 4000, NULL);
	assert_int_equal(room.available_mib, 6000);
	unsetenv("FAINSTALL_GATE_MEMORY_MIB");
}

static void this_machine_has_some(void **state)
{
	(void)state;
	assert_true(fa_memory_available_mib(NULL, NULL) > 0);
	assert_true(fa_memory_total_mib(NULL) >= fa_memory_available_mib(NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_groups_the_machine_counts),
		cmocka_unit_test(every_ancestor_of_version_2_counts),
		cmocka_unit_test(a_container_sees_its_own_top),
		cmocka_unit_test(no_limit_of_version_1_is_none),
		cmocka_unit_test(cores_are_those_of_the_tightest_quota),
		cmocka_unit_test(memory_that_is_plugged_in_counts_at_once),
		cmocka_unit_test(this_machine_has_some),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL) ? 1 : 0;
}
