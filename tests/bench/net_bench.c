/* Speed of what brings and starts things: hash, download against curl(1), unpacking against tar(1), cost of a child, reading its
 * output. Run by tests/bench/net_bench.sh. */
#include "archive.h"
#include "buf.h"
#include "fetch.h"
#include "file.h"
#include "proc.h"
#include "sha256.h"

#include "tests/core/loopback.h"

#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { RUNS = 5, FILE_MIB = 512, CHILDREN = 100 };

extern char **environ;
static char work[64];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct cost {
	double wall, cpu; /* s, of us and of children that ended */
};

static double cpu_now(void)
{
	struct rusage us, them;

	getrusage(RUSAGE_SELF, &us);
	getrusage(RUSAGE_CHILDREN, &them);
	return (double)(us.ru_utime.tv_sec + us.ru_stime.tv_sec + them.ru_utime.tv_sec + them.ru_stime.tv_sec) +
	       (double)(us.ru_utime.tv_usec + us.ru_stime.tv_usec + them.ru_utime.tv_usec + them.ru_stime.tv_usec) / 1e6;
}

/* Least wall and least CPU time of some runs: on a busy machine only the second can be compared. */
static struct cost least(void (*run)(void *ctx), void *ctx)
{
	struct cost best = { 1e9, 1e9 };

	for (int i = 0; i < RUNS; i++) {
		double begin = now(), cpu = cpu_now();

		run(ctx);
		begin = now() - begin;
		cpu = cpu_now() - cpu;
		best.wall = begin < best.wall ? begin : best.wall;
		best.cpu = cpu < best.cpu ? cpu : best.cpu;
	}
	return best;
}

static void show(const char *what, struct cost c)
{
	printf("%-34s wall %8.3f s   CPU %8.3f s\n", what, c.wall, c.cpu);
}

static void hash(void *data)
{
	char hex[FA_SHA256_HEX];
	struct fa_sha256 s;

	fa_sha256_init(&s);
	fa_sha256_add(&s, data, (size_t)256 << 20);
	fa_sha256_hex(&s, hex);
}

static void our_fetch(void *url)
{
	char *path = fa_path_join(work, "ours");
	struct fa_fetch_opts o = { .url = url, .path = path, .size = -1 };
	struct fa_err err = FA_ERR_INIT;

	if (fa_fetch(NULL, &o, &err) < 0)
		fprintf(stderr, "%s\n", err.text);
	unlink(path);
	free(path);
}

static void shell(void *command)
{
	if (system(command) != 0)
		fprintf(stderr, "%s\n", (char *)command);
}

static void our_unpack(void *archive)
{
	char *dir = fa_path_join(work, "unpacked");
	struct fa_err err = FA_ERR_INIT;

	if (fa_archive_unpack(archive, dir, 0, (int64_t)4 << 30, NULL, &err) < 0)
		fprintf(stderr, "%s\n", err.text);
	fa_file_remove_tree(dir, NULL);
	free(dir);
}

static void our_children(void *unused)
{
	static const char *const argv[] = { "/bin/true", NULL };
	struct fa_proc_opts o = { .argv = argv };

	(void)unused;
	for (int i = 0; i < CHILDREN; i++)
		fa_proc_run(NULL, &o, FA_BUILD, NULL);
}

static void bare_children(void *unused)
{
	char name[] = "/bin/true", *argv[] = { name, NULL };

	(void)unused;
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid;

		if (posix_spawn(&pid, name, NULL, NULL, argv, environ) == 0)
			waitpid(pid, NULL, 0);
	}
}

static void count(void *ctx, const char *line, bool is_err)
{
	(void)line;
	(void)is_err;
	++*(long *)ctx;
}

static void lines(void *n)
{
	static const char *const argv[] = { "seq", "1", "5000000", NULL };
	struct fa_proc_opts o = { .argv = argv, .line = count, .ctx = n };

	fa_proc_run(NULL, &o, FA_BUILD, NULL);
}

static void bench_memory(void)
{
	char *data = fa_calloc((size_t)256 << 20, 1);

	memset(data, 7, (size_t)256 << 20);
	show("sha256 of 256 MiB", least(hash, data));
	free(data);
}

static void bench_children(void)
{
	long n = 0;

	show("100 children, fa_proc_run", least(our_children, NULL));
	show("100 children, posix_spawn, waitpid", least(bare_children, NULL));
	show("5,000,000 lines of a child", least(lines, &n));
}

static void bench_fetch(void)
{
	char *make = fa_strf("head -c %dM /dev/zero >%s/big", FILE_MIB, work), *url, *curl, *alone;
	struct loopback server;

	shell(make);
	if (loopback_start(&server, "tests/bench/file_server.py", work, NULL) == 0) {
		url = fa_strf("http://127.0.0.1:%d/big", server.port);
		curl = fa_strf("curl -s -o %s/theirs %s && sha256sum %s/theirs >/dev/null && rm %s/theirs", work, url, work,
		               work);
		alone = fa_strf("curl -s -o %s/theirs %s && rm %s/theirs", work, url, work);
		show("512 MiB: fa_fetch", least(our_fetch, url));
		show("512 MiB: curl, sha256sum", least(shell, curl));
		show("512 MiB: curl", least(shell, alone));
		loopback_stop(&server);
		free(url);
		free(curl);
		free(alone);
	}
	free(make);
}

static void bench_archive(void)
{
	char *archive = fa_path_join(work, "a.tar.gz"), *make, *tar;

	make = fa_strf(
	        "mkdir %s/t && cd %s/t && seq 1 5000000 | split -l 2000 -a 4 && tar czf ../a.tar.gz . && cd .. && rm -r t",
	        work, work);
	shell(make);
	tar = fa_strf("mkdir %s/u && tar xzf %s -C %s/u && rm -r %s/u", work, archive, work, work);
	show("2,500 files: fa_archive_unpack, rm", least(our_unpack, archive));
	show("2,500 files: tar, rm", least(shell, tar));
	free(archive);
	free(make);
	free(tar);
}

int main(void)
{
	snprintf(work, sizeof(work), "/dev/shm/fa-bench-XXXXXX");
	if (!mkdtemp(work))
		return 1;
	bench_memory();
	bench_children();
	bench_fetch();
	bench_archive();
	fa_file_remove_tree(work, NULL);
	return 0;
}
