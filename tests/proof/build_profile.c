/* Builds a wheel with the build engine alone: no resolve, no network. See the script of the same name. */
#include "buf.h"
#include "build.h"
#include "file.h"
#include "json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int cancel;

static void on_signal(int sig)
{
	cancel = sig == SIGUSR1 ? FA_BUILD_DRAIN : 1;
}

static void show(void *ctx, const struct fa_event *e)
{
	struct fa_json *j;
	char *text;

	(void)ctx;
	if (e->kind == FA_EVENT_LOG)
		return;
	j = fa_event_to_json(e);
	text = fa_json_print(j, false);
	puts(text);
	fflush(stdout);
	free(text);
	fa_json_free(j);
}

/* What the source archive says it is. The caller's. */
static char *release_of(const char *source)
{
	char *path = fa_path_join(source, "PKG-INFO"), *version;
	struct fa_buf text = FA_BUF_INIT;
	const char *line;

	fa_file_read(&text, path, 1 << 20, NULL);
	line = strstr(fa_buf_str(&text), "\nVersion: ");
	version = line ? fa_strndup(line + 10, strcspn(line + 10, "\r\n")) : fa_strdup("unknown");
	fa_buf_release(&text);
	free(path);
	return version;
}

/* SOURCE PYTHON CUDA_HOME WHEEL_DIR PROFILE DTYPES HEAD_DIMS FEATURES ARCHS JOBS; "" or "all" for everything */
int main(int argc, char **argv)
{
	struct fa_plan_build plan = { .wanted = true };
	struct fa_build_opts opts = { .build = &plan, .cancel = &cancel };
	const struct fa_sink sink = { .emit = show };
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL, *log, *version, *hipcc;
	int rc;

	if (argc != 11)
		return FA_USAGE;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	opts.source = argv[1];
	opts.version = version = release_of(argv[1]);
	opts.python = argv[2];
	hipcc = fa_path_join(argv[3], "bin/hipcc");
	*(fa_file_exists(hipcc) ? &opts.rocm_home : &opts.cuda_home) = argv[3];
	opts.wheel_dir = argv[4];
	opts.tools = getenv("TOOLS");
	plan.profile = argv[5];
	fa_strv_split(&plan.dtypes, strcmp(argv[6], "all") != 0 ? argv[6] : "", ",");
	fa_strv_split(&plan.head_dims, strcmp(argv[7], "all") != 0 ? argv[7] : "", ",");
	fa_strv_split(&plan.features, strcmp(argv[8], "all") != 0 ? argv[8] : "", ",");
	fa_strv_split(&plan.archs, argv[9], ",");
	plan.backward = !strcmp(argv[5], "training");
	plan.jobs = atoi(argv[10]);
	if (getenv("KERNEL_CXX"))
		fa_strv_pushf(&plan.env, "FAINSTALL_KERNEL_CXX=%s", getenv("KERNEL_CXX"));
	log = fa_strf("%s/log", opts.wheel_dir);
	opts.log_dir = log;
	rc = getenv("NO_PREFLIGHT") ? 0 : fa_build_preflight(&opts, &sink, 0, &err);
	if (rc == 0)
		rc = fa_build_wheel(&wheel, NULL, &opts, &sink, 1, &err);
	if (rc < 0)
		fprintf(stderr, "%s\n%s\n", err.text, err.next);
	else
		puts(wheel);
	free(wheel);
	free(log);
	free(version);
	free(hipcc);
	fa_strv_release(&plan.dtypes);
	fa_strv_release(&plan.head_dims);
	fa_strv_release(&plan.features);
	fa_strv_release(&plan.archs);
	fa_strv_release(&plan.env);
	return rc < 0 ? (int)err.status : 0;
}
