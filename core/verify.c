#include "verify.h"

#include "buf.h"
#include "child.h"
#include "file.h"
#include "json.h"
#include "matrix_data.h"
#include "proc.h"
#include "report.h"
#include "strv.h"
#include "xray.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct verify {
	const struct fa_verify_opts *o;
	const struct fa_sink *sink;
	int step;
	struct fa_json *checks, *stages, *figures; /* of the report, borrowed */
	struct fa_strv binaries;
	char *torch_file; /* …/site-packages/torch/__init__.py; NULL: torch was not imported */
	char *card;       /* its architecture; NULL: no card */
	char *first_bad;  /* "numbers, dense bf16 d128 …: error …" */
	char *shrunk;     /* its simplest case as JSON */
	char *stage;      /* the one that is open */
	int64_t done;
	struct fa_json *counts; /* {"numbers": 24, …} */
	bool xrayed, over, not_run;
	char *last, *verdict;
	double seconds;
};

static const char *const mode_words[] = { "quick", "normal", "full", "upstream" };

static enum fa_outcome outcome_of(const char *word)
{
	for (int i = FA_OUTCOME_OK; i <= FA_OUTCOME_NOT_RUN; i++)
		if (word && !strcmp(word, fa_outcome_word((enum fa_outcome)i)))
			return (enum fa_outcome)i;
	return FA_OUTCOME_NONE;
}

static void replace(char **at, char *text)
{
	free(*at);
	*at = text;
}

/* ---- telling */

static void tell_progress(struct verify *v)
{
	struct fa_event e = fa_event_new(FA_EVENT_PROGRESS);

	e.step = v->step;
	e.done = v->done;
	e.total = (int64_t)fa_json_get_number(v->counts, v->stage, -1);
	snprintf(e.unit, sizeof(e.unit), "cases");
	snprintf(e.id, sizeof(e.id), "%s", v->stage);
	fa_emit(v->sink, &e);
}

static void tell_check(struct verify *v, const char *id, enum fa_outcome status, const char *text, double seconds)
{
	struct fa_event e = fa_event_new(FA_EVENT_CHECK);

	e.step = v->step;
	e.status = status;
	e.seconds = seconds;
	snprintf(e.id, sizeof(e.id), "%s", id);
	snprintf(e.text, sizeof(e.text), "%s", text);
	fa_emit(v->sink, &e);
}

static void tell_finding(struct verify *v, const struct fa_json *j, const char *stage)
{
	const struct fa_json *data = fa_json_get(j, "data");
	const char *unit = fa_json_get_string(data, "unit"), *text = fa_json_get_string(j, "text");
	struct fa_event e = fa_event_new(FA_EVENT_CHECK);

	e.step = v->step;
	e.status = outcome_of(fa_json_get_string(j, "status"));
	e.seconds = fa_json_get_number(j, "seconds", -1);
	snprintf(e.id, sizeof(e.id), "%s/%s", stage, fa_json_get_string(j, "id") ? fa_json_get_string(j, "id") : "");
	snprintf(e.text, sizeof(e.text), "%s", text ? text : "");
	if (unit || fa_json_get(data, "ratio")) {
		e.value = fa_json_get_number(data, unit ? "value" : "ratio", 0);
		snprintf(e.unit, sizeof(e.unit), "%s", unit ? unit : "x");
	}
	fa_emit(v->sink, &e);
}

/* ---- keeping */

static void note_bad(struct verify *v, const char *stage, const struct fa_json *j)
{
	const struct fa_json *shrunk = fa_json_get(fa_json_get(j, "data"), "shrunk");
	const char *id = fa_json_get_string(j, "id"), *text = fa_json_get_string(j, "text");

	if (v->first_bad)
		return;
	v->first_bad = fa_strf("%s, %s: %s", stage, id ? id : "?", text ? text : "failed");
	if (shrunk)
		v->shrunk = fa_json_print(shrunk, false);
}

static struct fa_json *without_kind(const struct fa_json *j)
{
	struct fa_json *out = fa_json_new_object();

	fa_json_each (m, j)
		if (strcmp(fa_json_key(m), "kind") != 0)
			fa_json_set(out, fa_json_key(m), fa_json_copy(m));
	return out;
}

static void take_check(struct verify *v, const struct fa_json *j)
{
	const char *stage = fa_json_get_string(j, "stage"), *id = fa_json_get_string(j, "id");
	const struct fa_json *data = fa_json_get(j, "data");

	if (!stage || !id)
		return;
	fa_json_push(v->checks, without_kind(j));
	fa_json_get_strv(data, "binaries", &v->binaries);
	if (!strcmp(stage, "import") && !strcmp(id, "torch") && fa_json_get_string(data, "file"))
		replace(&v->torch_file, fa_strdup(fa_json_get_string(data, "file")));
	if (outcome_of(fa_json_get_string(j, "status")) == FA_OUTCOME_FAILED)
		note_bad(v, stage, j);
	tell_finding(v, j, stage);
	v->done++;
	if (v->stage && !strcmp(v->stage, stage))
		tell_progress(v);
}

static void end_stage(struct verify *v, const char *id, enum fa_outcome status, const char *text, double seconds)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_string(j, "id", id);
	fa_json_set_string(j, "status", fa_outcome_word(status));
	fa_json_set_number(j, "seconds", seconds);
	fa_json_set_string(j, "text", text);
	fa_json_push(v->stages, j);
	v->not_run |= status == FA_OUTCOME_NOT_RUN;
	tell_check(v, id, status, text, seconds);
}

/* ---- symbols and architectures: by the X-ray, here */

bool fa_verify_serves(const struct fa_strv *archs, const char *card)
{
	int have = atoi(card);

	for (size_t i = 0; i < archs->n; i++) {
		const char *a = archs->v[i];
		bool ptx = !strncmp(a, "ptx", 3);
		char *end;
		long n = strtol(ptx ? a + 3 : a, &end, 10);

		if (!strncmp(a, "gfx", 3) || !strncmp(card, "gfx", 3)) {
			if (!strcmp(a, card) || !strcmp(a, "gfx?"))
				return true;
		} else if (*end == 'a' ? n == have : ptx ? n <= have : n / 10 == have / 10 && n <= have) {
			return true;
		}
	}
	return false;
}

static struct fa_json *symbol_check(const char *id, enum fa_outcome status, const char *text, double seconds)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_string(j, "kind", "check");
	fa_json_set_string(j, "stage", "symbols");
	fa_json_set_string(j, "id", id);
	fa_json_set_string(j, "status", fa_outcome_word(status));
	fa_json_set_string(j, "text", text);
	fa_json_set_number(j, "seconds", seconds);
	return j;
}

/* One binary; its sentence goes into text. False: something is wrong with it. */
static bool xray_one(struct verify *v, const char *path, const char *site, struct fa_buf *text)
{
	struct fa_xray x = FA_XRAY_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j;
	bool fits = true, serves = true;
	char *sentence;

	if (fa_xray(&x, path, site, v->o->cuda_home, &err) < 0) {
		sentence = fa_strdup(err.text);
		fits = false;
	} else {
		fits = fa_xray_fits(&x);
		serves = !v->card || !x.archs.n || fa_verify_serves(&x.archs, v->card);
		sentence = fa_xray_sentence(&x);
	}
	if (!serves)
		replace(&sentence, fa_strf("%s: none of them runs on this card (%s)", sentence, v->card));
	j = symbol_check(fa_path_base(path), fits && serves ? FA_OUTCOME_OK : FA_OUTCOME_FAILED, sentence, 0);
	fa_json_set(j, "data", fa_xray_to_json(&x));
	take_check(v, j);
	fa_json_free(j);
	fa_buf_addf(text, "%s%s", text->len ? "; " : "", sentence);
	free(sentence);
	fa_xray_release(&x);
	return fits && serves;
}

/* …/site-packages of …/site-packages/torch/__init__.py; NULL: torch is not known. The caller's. */
static char *site_of(const struct verify *v)
{
	char *torch = v->torch_file ? fa_path_dir(v->torch_file) : NULL, *site = torch ? fa_path_dir(torch) : NULL;

	free(torch);
	return site;
}

static void symbols(struct verify *v)
{
	struct fa_buf text = FA_BUF_INIT;
	char *site = site_of(v);
	bool good = true;

	v->xrayed = true;
	if (!site)
		end_stage(v, "symbols", FA_OUTCOME_NOT_RUN, "torch, whose symbols are looked for, is not there", 0);
	else if (!v->binaries.n)
		end_stage(v, "symbols", FA_OUTCOME_SKIPPED, "nothing compiled is in the package: it compiles at first use", 0);
	else {
		for (size_t i = 0; i < v->binaries.n; i++)
			good &= xray_one(v, v->binaries.v[i], site, &text);
		end_stage(v, "symbols", good ? FA_OUTCOME_OK : FA_OUTCOME_FAILED, fa_buf_str(&text), 0);
	}
	free(site);
	fa_buf_release(&text);
}

/* ---- the lines of recipes/verify.py */

static void take_stage(struct verify *v, const struct fa_json *j)
{
	const char *id = fa_json_get_string(j, "id"), *status = fa_json_get_string(j, "status");
	const char *text = fa_json_get_string(j, "text");

	if (!id || !status)
		return;
	if (!strcmp(status, "begin")) {
		replace(&v->stage, fa_strdup(id));
		v->done = 0;
		tell_progress(v);
		return;
	}
	end_stage(v, id, outcome_of(status), text ? text : "", fa_json_get_number(j, "seconds", -1));
	if (!strcmp(id, "import") && !v->xrayed)
		symbols(v);
}

static void take_figures(struct verify *v, const struct fa_json *j)
{
	if (fa_json_get(j, "rows"))
		fa_json_set(v->figures, "rows", fa_json_copy(fa_json_get(j, "rows")));
	if (fa_json_get(j, "card"))
		fa_json_set(v->figures, "card", fa_json_copy(fa_json_get(j, "card")));
	if (fa_json_get(j, "upstream"))
		fa_json_set(v->figures, "upstream", fa_json_copy(fa_json_get(j, "upstream")));
}

static void take_done(struct verify *v, const struct fa_json *j)
{
	v->over = true;
	v->seconds = fa_json_get_number(j, "seconds", -1);
	replace(&v->last, fa_strdup(fa_json_get_string(j, "text")));
}

/* Of a stage whose single steps are no findings. */
static void take_progress(struct verify *v, const struct fa_json *j)
{
	struct fa_event e = fa_event_new(FA_EVENT_PROGRESS);

	e.step = v->step;
	e.done = (int64_t)fa_json_get_number(j, "done", 0);
	e.total = (int64_t)fa_json_get_number(j, "total", -1);
	snprintf(e.unit, sizeof(e.unit), "cases");
	snprintf(e.id, sizeof(e.id), "%s", fa_json_get_string(j, "stage") ? fa_json_get_string(j, "stage") : "");
	fa_emit(v->sink, &e);
}

static void take(struct verify *v, const struct fa_json *j)
{
	const char *kind = fa_json_get_string(j, "kind"), *text = fa_json_get_string(j, "text"),
	           *id = fa_json_get_string(j, "id");

	if (!kind)
		return;
	if (!strcmp(kind, "check"))
		take_check(v, j);
	else if (!strcmp(kind, "stage"))
		take_stage(v, j);
	else if (!strcmp(kind, "count")) {
		fa_json_free(v->counts);
		v->counts = fa_json_copy(fa_json_get(j, "stages"));
	} else if (!strcmp(kind, "card")) {
		replace(&v->card, fa_strdup(fa_json_get_string(fa_json_get(j, "data"), "arch")));
		fa_json_set(v->figures, "card", fa_json_copy(fa_json_get(j, "data")));
	} else if (!strcmp(kind, "figures"))
		take_figures(v, j);
	else if (!strcmp(kind, "progress"))
		take_progress(v, j);
	else if (!strcmp(kind, "done"))
		take_done(v, j);
	else if (!strcmp(kind, "verdict") && text && *text) {
		replace(&v->verdict, fa_strdup(text));
		fa_emit_text(v->sink, FA_EVENT_NOTE, "verdict", "%s", text);
	} else if (!strcmp(kind, "note") || !strcmp(kind, "warning"))
		fa_emit_text(v->sink, kind[0] == 'n' ? FA_EVENT_NOTE : FA_EVENT_WARNING, id ? id : "", "%s", text ? text : "");
}

static void on_line(void *ctx, const char *line, bool is_err)
{
	struct verify *v = ctx;
	struct fa_json *j = NULL;

	if (is_err || line[0] != '{')
		return; /* words of torch and others: they are in the log */
	if (fa_json_parse(&j, line, strlen(line), "verify.py", NULL) == 0)
		take(v, j);
	fa_json_free(j);
}

/* ---- the child */

/* What else a program on the card needs of the user's environment: which cards, which backend. */
static const char *const also_passed[] = {
	"CUDA_", "HIP_", "ROCR_", "HSA_", "NVIDIA_", "FLASH_ATTENTION_", "TRITON_", "TORCH"
};

static void push_environment(struct fa_strv *env, const struct fa_verify_opts *o)
{
	fa_child_environment(env);
	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < sizeof(also_passed) / sizeof(*also_passed); i++)
			if (!strncmp(*e, also_passed[i], strlen(also_passed[i])) &&
			    !(o->cuda_home && !strncmp(*e, "CUDA_HOME=", 10)))
				fa_strv_push(env, *e);
	if (o->cuda_home)
		fa_strv_pushf(env, "CUDA_HOME=%s", o->cuda_home);
	fa_strv_push(env, "PYTHONDONTWRITEBYTECODE=1");
}

static void push_option(struct fa_strv *argv, const char *option, const char *value)
{
	if (!value || !*value)
		return;
	fa_strv_push(argv, option);
	fa_strv_push(argv, value);
}

/* The folder of a file of ours, which lies in one of two places. */
static void push_folder(struct fa_strv *argv, const char *option, const char *name, const char *otherwise)
{
	char *path = fa_dir_own(name, NULL), *folder;

	if (!path)
		path = fa_dir_own(otherwise, NULL);
	folder = path ? fa_path_dir(path) : NULL;
	push_option(argv, option, folder);
	free(path);
	free(folder);
}

static void push_argv(struct fa_strv *argv, const struct fa_verify_opts *o, const char *script)
{
	const struct fa_choice *c = o->choice;
	char *here = getcwd(NULL, 0), *speeds = fa_matrix_file("speed.json", NULL);

	fa_strv_push(argv, o->python);
	fa_strv_push(argv, script);
	if (o->mode == FA_VERIFY_QUICK)
		fa_strv_push(argv, "--quick");
	else if (o->mode != FA_VERIFY_NORMAL)
		fa_strv_push(argv, "--full");
	if (c) {
		push_option(argv, "--line", c->line && strcmp(c->line, "none") ? c->line : NULL);
		push_option(argv, "--expect-torch", c->torch);
		push_option(argv, "--expect-flash-attn", c->flash_attn);
	}
	if (o->mode == FA_VERIFY_UPSTREAM) {
		fa_strv_push(argv, "--upstream");
		fa_strv_push(argv, o->upstream_dir ? o->upstream_dir : "");
		push_option(argv, "--upstream-from", o->upstream_from);
		push_option(argv, "--upstream-why", o->upstream_why);
		push_option(argv, "--upstream-tests", o->upstream_tests);
	}
	push_folder(argv, "--kernels", "kernels/roofline", "build/kernels/roofline");
	push_option(argv, "--expected", speeds);
	push_option(argv, "--caller-path", getenv("PYTHONPATH"));
	push_option(argv, "--caller-dir", here);
	free(speeds);
	free(here);
}

static int run(struct verify *v, const char *script, struct fa_err *err)
{
	static const unsigned minutes[] = { 5, 20, 40, 120 };
	bool all = v->o->upstream_tests && !strcmp(v->o->upstream_tests, "all");
	struct fa_strv argv = FA_STRV_INIT, env = FA_STRV_INIT;
	struct fa_proc_result r;
	struct fa_proc_opts p = { .log_path = v->o->log_path,
		                  .timeout_ms = all ? 0 : minutes[v->o->mode] * 60 * 1000,
		                  .cancel = v->o->cancel,
		                  .line = on_line,
		                  .ctx = v };
	int rc;

	push_argv(&argv, v->o, script);
	push_environment(&env, v->o);
	p.argv = (const char *const *)argv.v;
	p.envp = (const char *const *)env.v;
	rc = fa_proc_run(&r, &p, FA_CHECK, err);
	if (v->over && r.end == FA_PROC_EXITED && r.exit_status <= 1)
		rc = 0; /* it came to its end; what it found is in v */
	fa_strv_release(&argv);
	fa_strv_release(&env);
	return rc;
}

/* ---- the verdict */

static void keep_verification(struct verify *v, struct fa_report *report, const char *status)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_string(j, "mode", mode_words[v->o->mode]);
	fa_json_set_string(j, "status", status);
	fa_json_set_string(j, "text", v->last);
	fa_json_set_string(j, "verdict", v->verdict);
	fa_json_set_number(j, "seconds", v->seconds);
	fa_json_set(fa_report_json(report), "verification", j);
	fa_json_set_string(fa_report_json(report), "verdict", status);
}

static int judge(struct verify *v, struct fa_report *report, struct fa_err *err)
{
	bool bad = v->first_bad || (v->o->strict && v->not_run);

	keep_verification(v, report, bad ? "failed" : v->not_run ? "not_run" : "ok");
	if (v->first_bad) {
		fa_err_set(err, FA_CHECK, "verification: %s", v->first_bad);
		if (v->shrunk)
			return fa_err_next(err, "the simplest case that fails: verify.py --case '%s'", v->shrunk);
		return fa_err_next(err, "every finding is in the report; fainstall diagnose reads the log");
	}
	if (!bad)
		return 0;
	fa_err_set(err, FA_CHECK, "verification: a stage could not be run: %s", v->last ? v->last : "");
	return fa_err_next(err, "run it where a card is, or without --strict");
}

static void begin(struct verify *v, struct fa_report *report)
{
	struct fa_json *j = fa_report_json(report);

	v->checks = fa_json_new_array();
	v->stages = fa_json_new_array();
	v->figures = fa_json_new_object();
	fa_json_set(j, "checks", v->checks);
	fa_json_set(j, "stages", v->stages);
	fa_json_set(j, "figures", v->figures);
}

static void release(struct verify *v)
{
	fa_strv_release(&v->binaries);
	free(v->torch_file);
	free(v->card);
	free(v->first_bad);
	free(v->shrunk);
	free(v->stage);
	free(v->last);
	free(v->verdict);
	fa_json_free(v->counts);
}

int fa_verify(struct fa_report *report, const struct fa_verify_opts *opts, const struct fa_sink *sink, int step,
              struct fa_err *err)
{
	struct verify v = { .o = opts, .sink = sink, .step = step, .seconds = -1 };
	char *script = fa_dir_own("recipes/verify.py", err);
	int rc = -1;

	if (!script)
		goto done;
	begin(&v, report);
	if (opts->choice && opts->choice->line && !strcmp(opts->choice->line, "none")) {
		end_stage(&v, "environment", FA_OUTCOME_NOT_RUN,
		          "torch's own attention serves this machine: no flash-attn to verify", 0);
		rc = judge(&v, report, err);
		goto done;
	}
	if (run(&v, script, err) < 0) {
		keep_verification(&v, report, "failed");
		goto done;
	}
	rc = judge(&v, report, err);
done:
	free(script);
	release(&v);
	return rc;
}
