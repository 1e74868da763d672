/* fainstall-worker: what downloads, clones, unpacks, builds and installs. Started by fainstall with a job on stdin; called
 * under the name "nvcc", "hipcc" or "c++" it is the compiler gate. */
#include "archive.h"
#include "fetch.h"
#include "file.h"
#include "gate.h"
#include "index.h"
#include "job.h"

#include <stdio.h>
#include <string.h>

/* `fainstall-worker unpack WHEEL FOLDER`, for inspect: libarchive stays out of the main program. */
static int unpack(const char *wheel, const char *folder)
{
	struct fa_err err = FA_ERR_INIT;

	if (fa_archive_unpack(wheel, folder, 0, (int64_t)16 << 30, NULL, &err) == 0)
		return 0;
	fprintf(stderr, "%s\n", err.text);
	return (int)err.status;
}

/* ---- `fainstall-worker fetch URL FILE`, for matrix update: libcurl stays out of the main program */

enum { FETCH_MAX = 64 * 1024 * 1024 };

static volatile int too_much;

static void watch_size(void *ctx, int64_t done, int64_t total)
{
	(void)ctx;
	too_much = done > FETCH_MAX || total > FETCH_MAX;
}

static int fetch(const char *url, const char *path)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_fetch_opts opts = { .url = url,
		                      .path = path,
		                      .size = -1,
		                      .tries = 3,
		                      .name = fa_path_base(url),
		                      .cancel = &too_much,
		                      .progress = watch_size };

	if (fa_fetch(NULL, &opts, &err) == 0)
		return 0;
	if (too_much)
		fa_err_set(&err, FA_NETWORK, "%s is larger than %d MiB", fa_path_base(url), FETCH_MAX >> 20);
	fprintf(stderr, "%s\n", err.text);
	return (int)err.status;
}

/* `fainstall-worker list URL PACKAGE...`, for --source: a wheel a line. */
static int list(const char *url, const char *const *packages)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_strv wheels = FA_STRV_INIT;

	if (fa_index_list(&wheels, url, packages, NULL, &err) < 0) {
		fprintf(stderr, "%s\n%s\n", err.text, err.next);
		return (int)err.status;
	}
	for (size_t i = 0; i < wheels.n; i++)
		puts(wheels.v[i]);
	fa_strv_release(&wheels);
	return 0;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];

	if (!strcmp(name, "nvcc") || !strcmp(name, "hipcc") || !strcmp(name, "c++"))
		return fa_gate_main(argc, argv);
	if (argc == 4 && !strcmp(argv[1], "unpack"))
		return unpack(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "fetch"))
		return fetch(argv[2], argv[3]);
	if (argc > 3 && !strcmp(argv[1], "list"))
		return list(argv[2], (const char *const *)argv + 3);
	if (argc > 1) {
		fprintf(stderr, "fainstall-worker is started by fainstall\nrun fainstall --help\n");
		return 2;
	}
	return fa_job_worker_main();
}
