/* `fainstall detect`: facts with their origin, faults with their repair. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 26, VALUE = 34 };

static char *value_text(const struct fa_facts *f, enum fa_fact id)
{
	const struct fa_fact_value *v = &f->v[id];
	const char *key = fa_fact_key(id);
	size_t len = strlen(key);
	char *list;

	switch (fa_fact_type(id)) {
	case FA_FACT_NUMBER:
		return fa_strf("%lld%s", (long long)v->number, len > 4 && !strcmp(key + len - 4, "_mib") ? " MiB" : "");
	case FA_FACT_BOOL: return fa_strdup(v->number ? "yes" : "no");
	case FA_FACT_LIST: list = fa_strv_join(&v->list, " "); break;
	case FA_FACT_TEXT:
	default: list = fa_strdup(v->text ? v->text : ""); break;
	}
	if (list[0])
		return list;
	free(list);
	return fa_strdup("none");
}

static void print_facts(struct fa_buf *out, const struct fa_facts *f)
{
	for (int i = 0; i < FA_FACT_COUNT; i++) {
		const struct fa_fact_value *v = &f->v[i];
		char *text;

		if (!v->known)
			continue;
		text = value_text(f, (enum fa_fact)i);
		fa_buf_addf(out, "%-*s%-*s%s%s\n", LABEL, fa_fact_label((enum fa_fact)i), v->origin ? VALUE : 0, text,
		            v->origin && strlen(text) >= VALUE ? "  " : "", v->origin ? v->origin : "");
		if (v->doubt)
			fa_buf_addf(out, "%-*s? %s\n", LABEL, "", v->doubt);
		free(text);
	}
}

static void print_cards(struct fa_buf *out, const struct fa_facts *f)
{
	if (f->gpus_known && !f->n_gpus)
		fa_buf_addf(out, "%-*s%-*s%s\n", LABEL, "Cards", f->gpus_origin ? VALUE : 0, "none",
		            f->gpus_origin ? f->gpus_origin : "");
	for (size_t i = 0; i < f->n_gpus; i++) {
		const struct fa_gpu *g = &f->gpus[i];

		fa_buf_addf(out, "Card %-*d%s", LABEL - 5, g->index, g->name ? g->name : "name unknown");
		fa_buf_addf(out, ", %s", g->arch ? g->arch : "architecture unknown");
		if (g->memory_mib >= 0)
			fa_buf_addf(out, ", %lld MiB", (long long)g->memory_mib);
		fa_buf_addf(out, "%s%s\n", g->pci ? ", " : "", g->pci ? g->pci : "");
	}
	if (f->toolkits_known && !f->n_toolkits)
		fa_buf_addf(out, "%-*s%s\n", LABEL, "Toolkits", "none");
	for (size_t i = 0; i < f->n_toolkits; i++)
		fa_buf_addf(out, "%-*s%s %s  %s\n", LABEL, "Toolkit", f->toolkits[i].kind ? f->toolkits[i].kind : "",
		            f->toolkits[i].version ? f->toolkits[i].version : "version unknown",
		            f->toolkits[i].home ? f->toolkits[i].home : "");
	for (size_t i = 0; i < f->n_env; i++)
		fa_buf_addf(out, "%-*s%s\n", LABEL, f->env[i].name, f->env[i].value ? f->env[i].value : "");
}

static void print_unknown(struct fa_buf *out, const struct fa_facts *f)
{
	struct fa_strv names = FA_STRV_INIT;
	char *all;

	for (int i = 0; i < FA_FACT_COUNT; i++)
		if (!f->v[i].known)
			fa_strv_push(&names, fa_fact_key((enum fa_fact)i));
	if (!f->gpus_known)
		fa_strv_push(&names, "gpus");
	if (!f->toolkits_known)
		fa_strv_push(&names, "toolkits");
	all = fa_strv_join(&names, ", ");
	if (names.n)
		fa_buf_addf(out, "\nNot known: %s\n", all);
	fa_strv_release(&names);
	free(all);
}

static void print_problems(struct fa_buf *out, const struct fa_facts *f)
{
	for (size_t i = 0; i < f->n_problems; i++) {
		const struct fa_problem *p = &f->problems[i];

		fa_buf_addf(out, "\n! %s (%s)\n", p->text ? p->text : "", p->id ? p->id : "");
		if (p->repair && p->repair[0])
			fa_buf_addf(out, "  next: %s\n", p->repair);
	}
}

int cli_detect(const struct cli *c, int *status, struct fa_err *err)
{
	struct fa_facts f = FA_FACTS_INIT;
	struct fa_buf out = FA_BUF_INIT;
	struct fa_json *j = NULL;
	char *text = NULL;
	int rc = -1;

	if (cli_facts(&f, c, err) < 0)
		goto done;
	if (c->v[CLI_OPT_JSON]) {
		j = fa_facts_to_json(&f);
		text = fa_json_print(j, true);
		fa_buf_adds(&out, text);
	} else if (!c->v[CLI_OPT_QUIET]) {
		print_facts(&out, &f);
		print_cards(&out, &f);
		print_unknown(&out, &f);
		print_problems(&out, &f);
		if (c->v[CLI_OPT_RECORD])
			fa_buf_addf(&out, "\nRecorded in %s; replay with --host %s\n", c->v[CLI_OPT_RECORD],
			            c->v[CLI_OPT_RECORD]);
	}
	fputs(fa_buf_str(&out), stdout);
	*status = FA_OK;
	rc = 0;
done:
	fa_json_free(j);
	free(text);
	fa_buf_release(&out);
	fa_facts_release(&f);
	return rc;
}
