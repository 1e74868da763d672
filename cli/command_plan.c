/* `fainstall plan`, and the program without a command where there is no terminal. */
#include "command_plan.h"

#include "plan_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An architecture that no card has is a slip of the hand. */
static int check_archs(const struct fa_wish *wish, struct fa_matrix *m, struct fa_err *err)
{
	const struct fa_json *table = fa_matrix_table(m, "archs", err);
	struct fa_strv asked = FA_STRV_INIT, known = FA_STRV_INIT;
	char *all;
	int rc = table ? 0 : -1;

	fa_wish_list(wish, FA_WISH_ARCH, &asked);
	fa_json_each (row, fa_json_get(table, "rows"))
		if (fa_json_get_string(row, "arch"))
			fa_strv_push(&known, fa_json_get_string(row, "arch"));
	all = fa_strv_join(&known, " ");
	for (size_t i = 0; i < asked.n && rc == 0; i++) {
		char *plain = fa_arch_plain(asked.v[i]);

		if (!fa_strv_has(&known, plain ? plain : asked.v[i])) {
			rc = fa_err_set(err, FA_USAGE, "--arch: no card is known of the architecture \"%s\"", asked.v[i]);
			fa_err_next(err, "one of: %s", all);
		}
		free(plain);
	}
	free(all);
	fa_strv_release(&asked);
	fa_strv_release(&known);
	return rc;
}

int cli_make_plan(struct fa_plan *plan, const struct fa_facts *facts, const struct fa_wish *wish, const char *wheels,
                  struct fa_err *err)
{
	struct fa_matrix *m = NULL;
	int rc = -1;

	if (fa_matrix_open(&m, err) < 0)
		return -1;
	if (check_archs(wish, m, err) == 0 && fa_source_add(m, wish, CLI_LIST_MS, err) == 0 &&
	    (!wheels || fa_source_add_folder(m, wheels, wheels, err) >= 0) && fa_resolve(plan, facts, wish, m, err) == 0 &&
	    (plan->status == FA_PLAN_IMPOSSIBLE || fa_plan_steps(plan, facts, m, err) == 0))
		rc = 0;
	fa_matrix_close(m);
	return rc;
}

void cli_print_plan(const struct cli *c, const struct fa_plan *plan)
{
	struct fa_buf out = FA_BUF_INIT;
	struct fa_json *j;
	char *text;

	if (c->v[CLI_OPT_JSON]) {
		j = fa_plan_to_json(plan);
		text = fa_json_print(j, true);
		fa_buf_adds(&out, text);
		free(text);
		fa_json_free(j);
	} else if (!c->v[CLI_OPT_QUIET]) {
		fa_plan_print(&out, plan);
	}
	fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
}

static bool is_not_asked(const struct fa_refusal *r)
{
	return r->rule && !strncmp(r->rule, "asked_", 6);
}

/* The refusal that decides, for the one line: what was asked for and is nowhere comes first in the list; else the first of
 * Flash-Attention, else of torch. */
static const struct fa_refusal *decisive(const struct fa_plan *p)
{
	if (p->n_rejected && is_not_asked(&p->rejected[0]))
		return &p->rejected[0];
	for (int torch = 0; torch < 2; torch++)
		for (size_t i = 0; i < p->n_rejected; i++)
			if (!is_not_asked(&p->rejected[i]) && (torch || strncmp(p->rejected[i].candidate, "torch ", 6) != 0))
				return &p->rejected[i];
	return p->n_rejected ? &p->rejected[0] : NULL;
}

static int say_impossible(const struct fa_plan *p, struct fa_err *err)
{
	const struct fa_refusal *refusal = decisive(p);
	struct fa_strv words = FA_STRV_INIT;
	const char *rule = NULL, *needed = NULL, *found = NULL, *what = NULL;
	char *nearest;

	if (refusal) {
		what = refusal->candidate;
		rule = refusal->rule;
		needed = refusal->needed;
		found = refusal->found;
	}
	for (size_t i = 0; i < p->n_tree && !rule; i++) {
		for (size_t k = 0; k < p->tree[i].n_others && !rule; k++) {
			what = p->tree[i].others[k].value;
			rule = p->tree[i].others[k].rule;
			needed = p->tree[i].others[k].needed;
			found = p->tree[i].others[k].found;
		}
	}
	fa_err_set(err, FA_IMPOSSIBLE, "no combination exists for these facts and this wish%s%s%s%s%s%s%s%s", what ? ": " : "",
	           what ? what : "", rule ? ", " : "", rule ? rule : "", needed ? " needs " : "", needed ? needed : "",
	           found ? ", found " : "", found ? found : "");
	if (p->n_nearest) {
		fa_strv_append(&words, &p->nearest[0].wish);
		nearest = fa_strv_join(&words, " ");
		fa_err_next(err, "this works here: fainstall plan %s", nearest);
		free(nearest);
		fa_strv_release(&words);
	} else {
		fa_err_next(err, "`fainstall plan` without a wish shows what works here");
	}
	return -1;
}

static int say_action(const struct fa_plan *p, struct fa_err *err)
{
	const struct fa_action *a = p->n_actions ? &p->actions[0] : NULL;

	fa_err_set(err, FA_MACHINE, "something must change first%s%s", a && a->text ? ": " : "", a && a->text ? a->text : "");
	if (a && a->command)
		return fa_err_next(err, "%s", a->command);
	return fa_err_next(err, "do that, then run the same command again");
}

int cli_say_plan(const struct fa_plan *plan, struct fa_err *err)
{
	switch (plan->status) {
	case FA_PLAN_ACTION: return say_action(plan, err);
	case FA_PLAN_IMPOSSIBLE: return say_impossible(plan, err);
	case FA_PLAN_READY: break;
	}
	return 0;
}

int cli_plan(const struct cli *c, int *status, struct fa_err *err)
{
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_plan plan = FA_PLAN_INIT;
	int rc = -1;

	if (cli_facts(&facts, c, err) == 0 && cli_make_plan(&plan, &facts, &c->wish, NULL, err) == 0) {
		cli_print_plan(c, &plan);
		*status = (int)fa_plan_exit(&plan);
		rc = cli_say_plan(&plan, err);
	}
	fa_plan_release(&plan);
	fa_facts_release(&facts);
	return rc;
}
