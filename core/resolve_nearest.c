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

/* What the wish comes to; false when that is no answer to offer. */
static bool works(struct fa_plan *p, const struct fa_facts *facts, struct fa_kb *kb, const struct fa_wish *w, bool free_torch,
                  bool action)
{
	fa_solve_once(p, facts, w, kb,
	              FA_SOLVE_QUIET | (free_torch ? FA_SOLVE_FREE_TORCH : 0u) | (action ? 0u : FA_SOLVE_READY));
	if (p->status != FA_PLAN_READY && !(action && p->status == FA_PLAN_ACTION))
		return false;
	/* torch's own attention is offered last, and by name */
	return !says(p->choice.line, "none") || says(fa_wish_get(w, FA_WISH_ROUTE), "sdpa");
}

/* Offers the wish, unless it is there already or is none. */
static bool offer(struct fa_plan *plan, const struct fa_wish *w, const struct fa_choice *c)
{
	struct fa_nearest n = { 0 };

	fa_wish_argv(w, &n.wish);
	if (!n.wish.n || is_there(plan, &n)) {
		fa_strv_release(&n.wish);
		return false;
	}
	fa_choice_copy(&n.choice, c);
	*fa_plan_add_nearest(plan) = n;
	return true;
}

/* Asks; an answer that works becomes a nearest wish. What it is said to be is asked once more, since it must work as it stands;
 * where it does not, the wish as it was asked is offered. */
static bool ask(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb, struct fa_wish *w, bool free_torch,
                bool action)
{
	struct fa_plan first = FA_PLAN_INIT, again = FA_PLAN_INIT;
	struct fa_wish said = FA_WISH_INIT;
	bool good = false;

	if (works(&first, facts, kb, w, free_torch, action)) {
		fa_wish_copy(&said, w);
		say_again(&said, &plan->wish, &first.choice);
		if (free_torch && !said.v[FA_WISH_TORCH])
			put(&said, FA_WISH_TORCH, fa_strf("%s+%s", first.choice.torch, first.choice.torch_build));
		if (works(&again, facts, kb, &said, false, action))
			good = offer(plan, &said, &again.choice);
		else if (!free_torch)
			good = offer(plan, w, &first.choice);
	}
	fa_wish_release(&said);
	fa_plan_release(&first);
	fa_plan_release(&again);
	return good;
}

static void drop(struct fa_wish *w, enum fa_wish_id id)
{
	put(w, id, NULL);
	if (id == FA_WISH_TORCH)
		put(w, FA_WISH_KEEP_TORCH, NULL);
}

/* The largest that the line, or one of them, has; the caller's. */
static char *largest_head_dim(const struct fa_kb *kb, const char *line)
{
	int most = 0;

	for (size_t i = 0; i < kb->n_lines; i++)
		if ((!line || says(line, kb->lines[i].line)) && kb->lines[i].head_dim && atoi(kb->lines[i].head_dim) > most)
			most = atoi(kb->lines[i].head_dim);
	return most ? fa_strf("%d", most) : NULL;
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
	if (a == FA_WISH_HEAD_DIM || b == FA_WISH_HEAD_DIM)
		put(&w, FA_WISH_HEAD_DIM, largest_head_dim(kb, fa_wish_get(&w, FA_WISH_LINE)));
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

/* Where the cards are not known every answer without --arch says so first; torch's own attention on the processor does not. */
static void own_attention_of_processor(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb)
{
	struct fa_wish w = FA_WISH_INIT;
	struct fa_plan p = FA_PLAN_INIT;

	put(&w, FA_WISH_ROUTE, fa_strdup("sdpa"));
	if (plan->wish.v[FA_WISH_ENV])
		put(&w, FA_WISH_ENV, fa_strdup(plan->wish.v[FA_WISH_ENV]));
	if (works(&p, facts, kb, &w, true, true) && p.choice.torch) {
		put(&w, FA_WISH_TORCH, fa_strf("%s+cpu", p.choice.torch));
		ask(plan, facts, kb, &w, false, false);
	}
	fa_plan_release(&p);
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
	if (!plan->n_nearest && !facts->n_gpus)
		own_attention_of_processor(plan, facts, kb);
	if (!plan->n_nearest)
		own_attention(plan, facts, kb, false, true);
	if (!plan->n_nearest)
		with_other_python(plan, facts, kb, true);
}
