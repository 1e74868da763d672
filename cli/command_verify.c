/* `fainstall verify`: hands what is installed to the worker's checks. */
#include "front.h"

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

/* What is installed, as a choice. -1: no Flash-Attention is there. */
static int installed(struct fa_choice *out, const struct fa_facts *f)
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
		if (!fa_facts_has(f, lines[i].fact))
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

int cli_verify(const struct cli *c, int *status, struct fa_err *err)
{
	const char *env = fa_wish_get(&c->wish, FA_WISH_ENV);
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_plan plan = FA_PLAN_INIT;
	struct fa_job_opts opts = { .kind = FA_JOB_VERIFY, .plan = &plan, .facts = &facts };
	struct cli_front f;
	int rc = -1;

	if (mode(c, &opts.verify, err) < 0 || cli_facts(&facts, c, err) < 0)
		goto done;
	if (installed(&plan.choice, &facts) < 0) {
		fa_err_set(err, FA_CHECK, "there is no Flash-Attention in %s", env ? env : "this environment");
		fa_err_next(err, "fainstall install%s%s", env ? " --env " : "", env ? env : "");
		goto done;
	}
	fa_wish_copy(&plan.wish, &c->wish);
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
