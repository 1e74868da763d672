#include "job_json.h"

#include "buf.h"
#include "file.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = { "install", "verify" };
static const char *const modes[] = { "quick", "normal", "full", "upstream" };

/* The worker may run in another folder: paths cross the pipe absolute. */
static void set_path(struct fa_json *j, const char *key, const char *path)
{
	char *absolute = path ? fa_path_absolute(path) : NULL;

	fa_json_set_string(j, key, absolute);
	free(absolute);
}

struct fa_json *fa_job_to_json(const struct fa_job_opts *o)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_string(j, "schema", "fainstall.job/1");
	fa_json_set_string(j, "kind", kinds[o->kind]);
	fa_json_set(j, "plan", fa_plan_to_json(o->plan));
	fa_json_set(j, "facts", fa_facts_to_json(o->facts));
	set_path(j, "lock_path", o->lock_path);
	set_path(j, "write_lock_path", o->write_lock_path);
	set_path(j, "report_path", o->report_path);
	fa_json_set_bool(j, "frozen", o->frozen);
	fa_json_set_bool(j, "rebuild", o->rebuild);
	fa_json_set_bool(j, "strict", o->strict);
	fa_json_set_string(j, "verify", modes[o->verify]);
	set_path(j, "upstream_source", o->upstream_source);
	fa_json_set_string(j, "upstream_tests", o->upstream_tests);
	return j;
}

/* The place of a word in a list; 0 for none: both lists begin with what is safe to do by mistake. */
static int word_place(const char *const *words, size_t n, const char *word, int otherwise)
{
	for (size_t i = 0; word && i < n; i++)
		if (!strcmp(words[i], word))
			return (int)i;
	return otherwise;
}

int fa_job_from_json(struct fa_job_read *out, const struct fa_json *j, struct fa_err *err)
{
	const char *schema;

	memset(out, 0, sizeof(*out));
	if (fa_json_need_string(&schema, j, "schema", "job", err) < 0)
		return -1;
	if (strcmp(schema, "fainstall.job/1") != 0)
		return fa_err_set(err, FA_INTERNAL, "fainstall and fainstall-worker are of different versions (job %s)",
		                  schema);
	if (fa_plan_from_json(&out->plan, fa_json_get(j, "plan"), "job: plan", err) < 0 ||
	    fa_facts_from_json(&out->facts, fa_json_get(j, "facts"), "job: facts", err) < 0) {
		fa_job_read_release(out);
		return -1;
	}
	out->lock_path = fa_strdup(fa_json_get_string(j, "lock_path"));
	out->write_lock_path = fa_strdup(fa_json_get_string(j, "write_lock_path"));
	out->report_path = fa_strdup(fa_json_get_string(j, "report_path"));
	out->upstream_source = fa_strdup(fa_json_get_string(j, "upstream_source"));
	out->upstream_tests = fa_strdup(fa_json_get_string(j, "upstream_tests"));
	out->opts = (struct fa_job_opts){
		.kind = (enum fa_job_kind)word_place(kinds, 2, fa_json_get_string(j, "kind"), FA_JOB_VERIFY),
		.plan = &out->plan,
		.facts = &out->facts,
		.lock_path = out->lock_path,
		.write_lock_path = out->write_lock_path,
		.report_path = out->report_path,
		.upstream_source = out->upstream_source,
		.upstream_tests = out->upstream_tests,
		.frozen = fa_json_get_bool(j, "frozen"),
		.rebuild = fa_json_get_bool(j, "rebuild"),
		.strict = fa_json_get_bool(j, "strict"),
		.verify = (enum fa_verify_mode)word_place(modes, 4, fa_json_get_string(j, "verify"), FA_VERIFY_NORMAL),
	};
	return 0;
}

void fa_job_read_release(struct fa_job_read *j)
{
	fa_plan_release(&j->plan);
	fa_facts_release(&j->facts);
	free(j->lock_path);
	free(j->write_lock_path);
	free(j->report_path);
	free(j->upstream_source);
	free(j->upstream_tests);
	memset(j, 0, sizeof(*j));
}
