#include "build.h"

#include "buf.h"
#include "build_env.h"
#include "expect.h"
#include "file.h"
#include "json.h"
#include "load.h"
#include "proc.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFLIGHT_MS = 180000 };

struct preflight {
	const struct fa_sink *sink;
	int step;
	char *error, *next;
	double cuda_cpu; /* seconds; 0: not told */
};

static void tell_check(struct preflight *p, const struct fa_json *j)
{
	struct fa_event e = fa_event_new(FA_EVENT_CHECK);

	e.step = p->step;
	e.status = FA_OUTCOME_OK;
	e.seconds = fa_json_get_number(j, "seconds", -1);
	snprintf(e.id, sizeof(e.id), "%s", fa_json_get_string(j, "check"));
	fa_emit(p->sink, &e);
	if (!strcmp(e.id, "cuda unit"))
		p->cuda_cpu = fa_json_get_number(j, "cpu", 0);
}

/* How fast this machine compiles: kept for the estimate of the build that follows. The figures of matrix/units.json are for one
 * architecture; each further one costs the CUDA unit a share of that. */
static void keep_speed(const struct preflight *p, const struct fa_load *before, size_t archs)
{
	struct fa_expect e;
	struct fa_load after;
	struct fa_gate_host host = { 0 };
	struct fa_unit_use use = { .cpu = p->cuda_cpu };

	if (p->cuda_cpu <= 0 || !fa_load_read(&after))
		return;
	fa_expect_load(&e);
	host.cores = after.cpus;
	host.company = e.company;
	use.busy = fa_load_between(before, &after);
	use.cpu /= archs > 1 ? 1 + e.preflight_arch * (double)(archs - 1) : 1;
	fa_expect_store_preflight(fa_units_work(&host, &use));
	fa_expect_release(&e);
}

static void on_line(void *ctx, const char *line, bool is_err)
{
	struct preflight *p = ctx;
	struct fa_json *j = NULL;

	if (strncmp(line, "fainstall {", 11) != 0) {
		struct fa_event e = fa_event_new(FA_EVENT_LOG);

		e.step = p->step;
		snprintf(e.id, sizeof(e.id), "%s", is_err ? "err" : "out");
		snprintf(e.text, sizeof(e.text), "%s", line);
		fa_emit(p->sink, &e);
		return;
	}
	if (fa_json_parse(&j, line + 10, strlen(line + 10), "preflight.py", NULL) < 0)
		return;
	if (fa_json_get_string(j, "check"))
		tell_check(p, j);
	if (fa_json_get_string(j, "error") && !p->error) {
		p->error = fa_strdup(fa_json_get_string(j, "error"));
		p->next = fa_strdup(fa_json_get_string(j, "next"));
	}
	fa_json_free(j);
}

static int write_job(const struct fa_build_opts *o, const char *path, struct fa_err *err)
{
	struct fa_json *j = fa_json_new_object();
	char *compiler = fa_build_compiler(o), *text;
	int rc;

	fa_json_set_string(j, "nvcc_path", compiler ? compiler : "/bin/nvcc");
	fa_json_set(j, "archs", fa_json_new_strv(&o->build->archs));
	text = fa_json_print(j, true);
	rc = fa_file_write(path, text, strlen(text), err);
	free(text);
	free(compiler);
	fa_json_free(j);
	return rc;
}

int fa_build_preflight(const struct fa_build_opts *o, const struct fa_sink *sink, int step, struct fa_err *err)
{
	struct preflight p = { .sink = sink, .step = step };
	struct fa_strv env = FA_STRV_INIT;
	char *root = fa_path_join(o->source, "build"), *job = fa_path_join(root, "preflight.json");
	char *program = fa_dir_own("recipes/preflight/preflight.py", err);
	char *log = fa_path_join(o->log_dir ? o->log_dir : root, "preflight.log");
	struct fa_load load;
	int rc = -1;

	fa_load_read(&load);
	if (!program || fa_file_mkdirs(root, err) < 0 || (o->log_dir && fa_file_mkdirs(o->log_dir, err) < 0) ||
	    write_job(o, job, err) < 0 || fa_build_env(&env, o, NULL, NULL, 1, sink, err) < 0)
		goto done;
	{
		const char *argv[] = { o->python, "-u", program, job, NULL };
		struct fa_proc_opts proc = { .argv = argv,
			                     .envp = (const char *const *)env.v,
			                     .log_path = log,
			                     .timeout_ms = PREFLIGHT_MS,
			                     .cancel = o->cancel,
			                     .line = on_line,
			                     .ctx = &p };

		rc = fa_proc_run(NULL, &proc, FA_MACHINE, err);
	}
	if (rc == 0)
		keep_speed(&p, &load, o->build->archs.n);
	if (rc < 0 && p.error && !(o->cancel && *o->cancel)) {
		fa_err_set(err, FA_MACHINE, "%s", p.error);
		fa_err_next(err, "%s", p.next ? p.next : "");
	}
done:
	fa_strv_release(&env);
	free(program);
	free(root);
	free(job);
	free(log);
	free(p.error);
	free(p.next);
	return rc;
}
