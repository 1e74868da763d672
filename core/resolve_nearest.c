/* What would work instead: the wish with one or two of its parts let go, each asked like any other wish. */
#include "buf.h"
#include "resolve.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

enum { NEAREST_MAX = 3 };

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static void put(struct fa_wish *w, enum fa_wish_id id, char *value)
{
	free(w->v[id]);
	w->v[id] = value;
}

/* What was let go is said again as what came out, so that the wish printed is the wish that works. */
static void say_again(struct fa_wish *w, const struct fa_wish *asked, const struct fa_choice *c)
{
	bool own = says(c->line, "none");

	if (asked->v[FA_WISH_FLASH_ATTN] && !w->v[FA_WISH_FLASH_ATTN] && !own && c->flash_attn)
		put(w, FA_WISH_FLASH_ATTN, fa_strdup(c->flash_attn));
	if (asked->v[FA_WISH_TORCH] && !w->v[FA_WISH_TORCH] && c->torch && c->torch_build)
		put(w, FA_WISH_TORCH, fa_strf("%s+%s", c->torch, c->torch_build));
	if (asked->v[FA_WISH_CUDA] && !w->v[FA_WISH_CUDA] && c->cuda)
		put(w, FA_WISH_CUDA, fa_strdup(c->cuda));
	if (asked->v[FA_WISH_LINE] && !w->v[FA_WISH_LINE] && !own)
		put(w, FA_WISH_LINE, fa_strdup(c->line));
	if (own || (asked->v[FA_WISH_ROUTE] && !w->v[FA_WISH_ROUTE] && !says(c->route, "keep")))
		put(w, FA_WISH_ROUTE, fa_strdup(c->route));
}

static bool is_there(const struct fa_plan *plan, const struct fa_nearest *n)
{
	char *a = fa_strv_join(&n->wish, " ");
	bool found = false;

	for (size_t i = 0; i < plan->n_nearest && !found; i++) {
		char *b = fa_strv_join(&plan->nearest[i].wish, " ");

		found = !strcmp(a, b);
		free(b);
	}
	free(a);
	return found;
}

/* Asks; an answer that works becomes a nearest wish. */
static bool ask(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb, struct fa_wish *w, bool free_torch,
                bool action)
{
	struct fa_plan p = FA_PLAN_INIT;
	struct fa_nearest n = { 0 };
	bool good;

	fa_solve_once(&p, facts, w, kb,
	              FA_SOLVE_QUIET | (free_torch ? FA_SOLVE_FREE_TORCH : 0u) | (action ? 0u : FA_SOLVE_READY));
	good = p.status == FA_PLAN_READY || (action && p.status == FA_PLAN_ACTION);
	if (good && says(p.choice.line, "none") && !says(w->v[FA_WISH_ROUTE], "sdpa"))
		good = false; /* torch's own attention is offered last, and by name */
	if (good) {
		say_again(w, &plan->wish, &p.choice);
		if (free_torch && !w->v[FA_WISH_TORCH])
			put(w, FA_WISH_TORCH, fa_strf("%s+%s", p.choice.torch, p.choice.torch_build));
		fa_wish_argv(w, &n.wish);
		good = n.wish.n && !is_there(plan, &n);
	}
	if (good) {
		fa_choice_copy(&n.choice, &p.choice);
		*fa_plan_add_nearest(plan) = n;
	} else {
		fa_strv_release(&n.wish);
	}
	fa_plan_release(&p);
	return good;
}

static void drop(struct fa_wish *w, enum fa_wish_id id)
{
	put(w, id, NULL);
	if (id == FA_WISH_TORCH)
		put(w, FA_WISH_KEEP_TORCH, NULL);
}

static void without(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb, enum fa_wish_id a, enum fa_wish_id b,
                    bool free_torch, bool action)
{
	struct fa_wish w = FA_WISH_INIT;

	if (plan->n_nearest >= NEAREST_MAX)
		return;
	fa_wish_copy(&w, &plan->wish);
	drop(&w, a);
	drop(&w, b);
	if (free_torch)
		put(&w, FA_WISH_KEEP_TORCH, NULL);
	ask(plan, facts, kb, &w, free_torch, action);
	fa_wish_release(&w);
}

/* Another build of the torch asked for. */
static void without_build(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb)
{
	const char *torch = plan->wish.v[FA_WISH_TORCH];
	struct fa_wish w = FA_WISH_INIT;

	if (!torch || !strchr(torch, '+'))
		return;
	fa_wish_copy(&w, &plan->wish);
	put(&w, FA_WISH_TORCH, fa_version_public(torch));
	if (ask(plan, facts, kb, &w, false, false)) {
		struct fa_nearest *n = &plan->nearest[plan->n_nearest - 1];
		struct fa_strv better = FA_STRV_INIT;

		put(&w, FA_WISH_TORCH, fa_strf("%s+%s", n->choice.torch, n->choice.torch_build));
		fa_wish_argv(&w, &better);
		fa_strv_release(&n->wish);
		n->wish = better;
	}
	fa_wish_release(&w);
}

/* A Python that torch has wheels for, newest first. */
static void with_other_python(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb, bool own)
{
	struct fa_strv tags = FA_STRV_INIT;

	if (kb->n_torch)
		fa_strv_split(&tags, kb->torch[0].pythons, " ");
	for (size_t i = tags.n; i-- > 0 && plan->n_nearest < NEAREST_MAX;) {
		struct fa_wish w = FA_WISH_INIT;
		bool good = false;

		if (!strchr(tags.v[i], 't')) {
			fa_wish_copy(&w, &plan->wish);
			if (own)
				fa_wish_release(&w);
			if (own)
				put(&w, FA_WISH_ROUTE, fa_strdup("sdpa"));
			put(&w, FA_WISH_PYTHON, fa_strf("%c.%s", tags.v[i][0], tags.v[i] + 1));
			good = ask(plan, facts, kb, &w, false, own);
			fa_wish_release(&w);
		}
		if (good)
			break;
	}
	fa_strv_release(&tags);
}

/* Was some torch refused for its Python? Only then is another Python an answer. */
static bool python_counts(const struct fa_plan *plan)
{
	for (size_t i = 0; i < plan->n_rejected; i++)
		if (says(plan->rejected[i].rule, "python"))
			return true;
	return false;
}

static void own_attention(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb, bool free_torch, bool action)
{
	struct fa_wish w = FA_WISH_INIT;

	put(&w, FA_WISH_ROUTE, fa_strdup("sdpa"));
	if (plan->wish.v[FA_WISH_ENV])
		put(&w, FA_WISH_ENV, fa_strdup(plan->wish.v[FA_WISH_ENV]));
	ask(plan, facts, kb, &w, free_torch, action);
	fa_wish_release(&w);
}

/* From the least to the most that is let go. */
void fa_solve_nearest(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb)
{
	static const enum fa_wish_id PARTS[] = { FA_WISH_FLASH_ATTN, FA_WISH_HEAD_DIM, FA_WISH_DTYPE, FA_WISH_NEEDS,
		                                 FA_WISH_PROFILE,    FA_WISH_CUDA,     FA_WISH_TORCH, FA_WISH_PYTHON,
		                                 FA_WISH_SOURCE,     FA_WISH_ROUTE,    FA_WISH_LINE,  FA_WISH_ARCH };
	size_t n = sizeof(PARTS) / sizeof(PARTS[0]);

	without_build(plan, facts, kb);
	for (size_t i = 0; i < n; i++)
		if (plan->wish.v[PARTS[i]])
			without(plan, facts, kb, PARTS[i], PARTS[i], false, false);
	if (fa_facts_has(facts, FA_FACT_TORCH))
		without(plan, facts, kb, FA_WISH_KEEP_TORCH, FA_WISH_KEEP_TORCH, true, false);
	for (size_t i = 0; i < n && !plan->n_nearest; i++)
		if (plan->wish.v[PARTS[i]] && fa_facts_has(facts, FA_FACT_TORCH))
			without(plan, facts, kb, PARTS[i], PARTS[i], true, false);
	for (size_t i = 0; i < n && !plan->n_nearest; i++)
		for (size_t k = i + 1; k < n && !plan->n_nearest; k++)
			if (plan->wish.v[PARTS[i]] && plan->wish.v[PARTS[k]])
				without(plan, facts, kb, PARTS[i], PARTS[k], false, false);
	if (!plan->n_nearest && python_counts(plan))
		with_other_python(plan, facts, kb, false);
	if (!plan->n_nearest)
		own_attention(plan, facts, kb, false, false);
	if (!plan->n_nearest)
		own_attention(plan, facts, kb, true, false);
	if (!plan->n_nearest)
		own_attention(plan, facts, kb, false, true);
	if (!plan->n_nearest)
		with_other_python(plan, facts, kb, true);
}
