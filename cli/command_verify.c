/* `fainstall verify`: hands what is installed to the worker's checks. */
#include "file.h"
#include "front.h"
#include "json.h"
#include "kb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "cu128" from "2.8.0+cu128", or from the CUDA or HIP that torch names. The caller's; NULL unknown. */
static char *torch_build(const struct fa_facts *f)
{
	const char *torch = fa_facts_text(f, FA_FACT_TORCH), *plus = torch ? strchr(torch, '+') : NULL;
	const char *cuda = fa_facts_text(f, FA_FACT_TORCH_CUDA), *hip = fa_facts_text(f, FA_FACT_TORCH_HIP);
	struct fa_buf b = FA_BUF_INIT;

	if (plus)
		return fa_strdup(plus + 1);
	if (hip && hip[0])
		return fa_strf("rocm%s", hip);
	if (!cuda)
		return NULL;
	fa_buf_adds(&b, cuda[0] ? "cu" : "cpu");
	for (; *cuda; cuda++)
		if (*cuda != '.')
			fa_buf_addc(&b, *cuda);
	return fa_buf_detach(&b);
}

/* What is installed, as a choice: the line that was named, else the first. -1: it is not there. */
static int installed(struct fa_choice *out, const struct fa_facts *f, const char *line)
{
	static const struct {
		enum fa_fact fact;
		const char *line, *package;
	} lines[] = {
		{ FA_FACT_FLASH_ATTN, "fa2", "flash-attn" },
		{ FA_FACT_FLASH_ATTN_3, "fa3", "flash-attn-3" },
		{ FA_FACT_FLASH_ATTN_4, "fa4", "flash-attn-4" },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines) && !out->line; i++) {
		if (!fa_facts_has(f, lines[i].fact) || (line && strcmp(line, lines[i].line) != 0))
			continue;
		out->line = fa_strdup(lines[i].line);
		out->package = fa_strdup(lines[i].package);
		out->flash_attn = fa_version_public(fa_facts_text(f, lines[i].fact));
	}
	if (!out->line)
		return -1;
	out->route = fa_strdup("keep");
	if (fa_facts_has(f, FA_FACT_TORCH))
		out->torch = fa_version_public(fa_facts_text(f, FA_FACT_TORCH));
	out->torch_build = torch_build(f);
	if (fa_facts_has(f, FA_FACT_TORCH_CUDA))
		out->cuda = fa_version_head(fa_facts_text(f, FA_FACT_TORCH_CUDA), 2);
	if (fa_facts_has(f, FA_FACT_PYTHON))
		out->python = fa_version_head(fa_facts_text(f, FA_FACT_PYTHON), 2);
	for (size_t i = 0; i < f->n_gpus; i++)
		if (f->gpus[i].arch && !fa_strv_has(&out->archs, f->gpus[i].arch))
			fa_strv_push(&out->archs, f->gpus[i].arch);
	return 0;
}

static int mode(const struct cli *c, enum fa_verify_mode *out, struct fa_err *err)
{
	int n = !!c->v[CLI_OPT_QUICK] + !!c->v[CLI_OPT_FULL] + !!c->v[CLI_OPT_UPSTREAM];

	*out = c->v[CLI_OPT_QUICK]      ? FA_VERIFY_QUICK
	       : c->v[CLI_OPT_FULL]     ? FA_VERIFY_FULL
	       : c->v[CLI_OPT_UPSTREAM] ? FA_VERIFY_UPSTREAM
	                                : FA_VERIFY_NORMAL;
	if (n <= 1)
		return 0;
	fa_err_set(err, FA_USAGE, "--quick, --full and --upstream exclude each other");
	return fa_err_next(err, "keep one of them");
}

/* Upstream's repository at the commit of what is installed, as a step. None where no commit is known. */
static int clone_step(struct fa_plan *plan, struct fa_err *err)
{
	struct fa_matrix *m = NULL;
	struct fa_kb *kb = NULL;
	const struct fa_kb_release *r;
	struct fa_json *args;
	char *text;
	int rc = fa_matrix_open(&m, err);

	if (rc == 0)
		rc = fa_matrix_kb(&kb, m, err);
	r = rc == 0 ? fa_kb_release(kb, plan->choice.line, plan->choice.flash_attn) : NULL;
	if (r && r->tag && kb->repository) {
		args = fa_json_new_object();
		text = fa_strf("refs/tags/%s", r->tag);
		fa_json_set_string(args, "id", "source");
		fa_json_set_string(args, "url", kb->repository);
		fa_json_set_string(args, "ref", text);
		fa_json_set_string(args, "commit", r->commit);
		free(text);
		text = fa_strf("Clone flash-attention at %s for its tests", r->tag);
		fa_plan_add_step(plan, FA_STEP_CLONE, text, args);
		free(text);
	}
	fa_matrix_close(m);
	return rc;
}

/* Which repository, and how much of it, where upstream's own are asked for. */
static int upstream_options(struct fa_job_opts *o, const struct cli *c, struct fa_err *err)
{
	const char *tests = c->v[CLI_OPT_UPSTREAM_TESTS];

	o->upstream_source = c->v[CLI_OPT_UPSTREAM_SOURCE];
	o->upstream_tests = tests;
	if (!c->v[CLI_OPT_UPSTREAM] && (tests || o->upstream_source)) {
		fa_err_set(err, FA_USAGE, "--upstream-source and --upstream-tests say how --upstream is run");
		return fa_err_next(err, "add --upstream");
	}
	if (tests && strcmp(tests, "all") != 0 &&
	    (*tests == '0' || !*tests || strlen(tests) > 7 || strspn(tests, "0123456789") != strlen(tests)))
		return fa_err_set(err, FA_USAGE, "--upstream-tests: \"%s\" is neither a number nor all", tests);
	if (o->upstream_source && !fa_file_is_dir(o->upstream_source))
		return fa_err_set(err, FA_USAGE, "--upstream-source: there is no folder %s", o->upstream_source);
	return 0;
}

int cli_verify(const struct cli *c, int *status, struct fa_err *err)
{
	const char *env = fa_wish_get(&c->wish, FA_WISH_ENV), *line = fa_wish_get(&c->wish, FA_WISH_LINE);
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_plan plan = FA_PLAN_INIT;
	struct fa_job_opts opts = { .kind = FA_JOB_VERIFY, .plan = &plan, .facts = &facts };
	struct cli_front f;
	int rc = -1;

	if (mode(c, &opts.verify, err) < 0 || upstream_options(&opts, c, err) < 0 || cli_facts(&facts, c, err) < 0)
		goto done;
	if (installed(&plan.choice, &facts, line) < 0) {
		fa_err_set(err, FA_CHECK, "there is no %s in %s", line ? line : "Flash-Attention",
		           env ? env : "this environment");
		fa_err_next(err, "fainstall install%s%s%s%s", line ? " --line " : "", line ? line : "", env ? " --env " : "",
		            env ? env : "");
		goto done;
	}
	fa_wish_copy(&plan.wish, &c->wish);
	if (opts.verify == FA_VERIFY_UPSTREAM && !opts.upstream_source && clone_step(&plan, err) < 0)
		goto done;
	opts.strict = c->v[CLI_OPT_STRICT] != NULL;
	opts.report_path = c->v[CLI_OPT_REPORT];
	if (c->v[CLI_OPT_JSON])
		cli_front_jsonl(&f, c, &plan);
	else
		cli_front_plain(&f, c, &plan);
	rc = cli_run_job(&f, &opts, status, err);
done:
	fa_plan_release(&plan);
	fa_facts_release(&facts);
	return rc;
}
