/* The decision tree: every question with its answer and reason, every other answer with what refuses it. */
#include "screen.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROW_ACTION,
	ROW_NEAREST,
	ROW_NODE,
	ROW_HEAD,
	ROW_OTHER,
	ROW_SAME,
	ROW_REFUSED,
	ROW_REFUSAL,
	ROW_SERVED,
	ROW_BLANK,
	ROW_WARNING
};
enum { FOLD_FROM = 3 }; /* this many equal refusals after the first one fold into a line */

static const char REFUSED[] = "tree/refused"; /* names of folds that are no question */

/* Would this answer work here? Then only the asking stands against it, or it has no need that was not met. */
static bool fits(const struct fa_other *o)
{
	return !o->needed || !*o->needed || (o->rule && (!strcmp(o->rule, "not_asked") || !strncmp(o->rule, "asked_", 6)));
}

static bool same_reason(const struct fa_other *a, const struct fa_other *b)
{
	return tui_same(a->rule, b->rule) && tui_same(a->needed, b->needed) && tui_same(a->found, b->found);
}

static struct fa_other refusal(const struct fa_plan *p, size_t i)
{
	const struct fa_refusal *r = &p->rejected[i];
	return (struct fa_other){ r->candidate, r->rule, r->needed, r->found };
}

/* Others of node `index`; of the refused candidates with index -1. */
static size_t n_others(const struct fa_plan *p, int index)
{
	return index < 0 ? p->n_rejected : p->tree[index].n_others;
}

static struct fa_other other(const struct fa_plan *p, int index, size_t i)
{
	return index < 0 ? refusal(p, i) : p->tree[index].others[i];
}

static void fold_name(char *out, size_t size, const struct fa_plan *p, int index, int sub)
{
	snprintf(out, size, "%s/%d", index < 0 ? REFUSED : p->tree[index].question, sub);
}

static void other_rows(struct tui_rows *out, const struct tui_model *m, int index)
{
	size_t n = n_others(m->plan, index), same;
	int kind = index < 0 ? ROW_REFUSAL : ROW_OTHER;
	char name[256];
	tui_rows_add(out, ROW_HEAD, index, 0, false);
	for (size_t i = 0; i < n; i += same) {
		struct fa_other first = other(m->plan, index, i);
		for (same = 1; i + same < n && !fits(&first); same++) {
			struct fa_other next = other(m->plan, index, i + same);
			if (!same_reason(&first, &next))
				break;
		}
		tui_rows_add(out, kind, index, (int)i, true);
		fold_name(name, sizeof name, m->plan, index, (int)i);
		bool fold = same > FOLD_FROM;
		if (fold)
			tui_rows_add(out, ROW_SAME, index, (int)i, true);
		for (size_t k = 1; k < same && (!fold || tui_open(m, name)); k++)
			tui_rows_add(out, kind, index, (int)(i + k), true);
	}
}

static void tree_rows(struct tui_rows *out, const struct tui_model *m)
{
	const struct fa_plan *p = m->plan;
	if (!p)
		return;
	for (size_t i = 0; i < p->n_actions; i++)
		tui_rows_add(out, ROW_ACTION, (int)i, 0, true);
	for (size_t i = 0; i < p->n_nearest; i++)
		tui_rows_add(out, ROW_NEAREST, (int)i, 0, true);
	for (size_t i = 0; i < p->n_tree; i++) {
		tui_rows_add(out, ROW_NODE, (int)i, 0, true);
		if (p->tree[i].question && tui_open(m, p->tree[i].question) && p->tree[i].n_others)
			other_rows(out, m, (int)i);
	}
	for (size_t i = 0; i < p->n_per_gpu; i++)
		tui_rows_add(out, ROW_SERVED, (int)i, 0, true);
	if (p->n_rejected) {
		tui_rows_add(out, ROW_REFUSED, -1, 0, true);
		if (tui_open(m, REFUSED))
			other_rows(out, m, -1);
	}
	if (p->n_warnings)
		tui_rows_add(out, ROW_BLANK, 0, 0, false);
	for (size_t i = 0; i < p->n_warnings; i++)
		tui_rows_add(out, ROW_WARNING, (int)i, 0, true);
}

/* ---- lines */

struct columns { /* where the columns of the others begin */
	int rule, needed, found, end;
};

static struct columns columns_of(const struct tui_model *m)
{
	int end = tui_width(m), room = end - 9; /* 70 at 80 columns */
	return (struct columns){ end - 36 - (room - 70) / 3, end - 21 - (room - 70) / 5, end - 10, end };
}

static void draw_node(struct tui_grid *g, const struct tui_model *m, const struct fa_node *n, int at)
{
	int end = tui_width(m);
	char count[32];
	bool changed = fa_strv_has(&m->changed, n->question ? n->question : "");
	if (n->n_others)
		tui_put_sign(g, at, 3, tui_open(m, n->question) ? TUI_SIGN_OPEN : TUI_SIGN_CLOSED);
	if (n->question)
		tui_putf(g, at, 5, 22, TUI_TEXT, "%c%s", toupper((unsigned char)n->question[0]),
		         *n->question ? n->question + 1 : "");
	tui_put_name(g, at, 23, 38, changed ? TUI_CHANGED : TUI_TEXT, n->taken);
	tui_put_name(g, at, 39, end - 7, TUI_TEXT, n->because);
	if (n->n_others) {
		snprintf(count, sizeof count, "%zu", n->n_others);
		tui_put_right(g, at, end - 1, TUI_TEXT, count);
	}
}

static void draw_other(struct tui_grid *g, const struct tui_model *m, const struct fa_other *o, int at)
{
	struct columns c = columns_of(m);
	tui_put_sign(g, at, 7, fits(o) ? TUI_SIGN_OK : TUI_SIGN_FAIL);
	tui_put_name(g, at, 9, c.rule - 1, TUI_TEXT, o->value);
	tui_put_name(g, at, c.rule, c.needed - 1, TUI_TEXT, o->rule);
	tui_put_name(g, at, c.needed, c.found - 1, TUI_TEXT, fits(o) ? "nothing" : o->needed);
	tui_put_name(g, at, c.found, c.end, TUI_TEXT, fits(o) ? "fits" : o->found ? o->found : "not known");
}

static void draw_head(struct tui_grid *g, const struct tui_model *m, int at)
{
	struct columns c = columns_of(m);
	tui_put(g, at, 9, c.rule, TUI_DIM, "Candidate");
	tui_put(g, at, c.rule, c.needed, TUI_DIM, "Rule");
	tui_put(g, at, c.needed, c.found, TUI_DIM, "Needed");
	tui_put(g, at, c.found, c.end, TUI_DIM, "Found");
}

static size_t equal_after(const struct fa_plan *p, int index, size_t i)
{
	struct fa_other first = other(p, index, i);
	size_t n = 0;
	while (i + n + 1 < n_others(p, index)) {
		struct fa_other next = other(p, index, i + n + 1);
		if (!same_reason(&first, &next))
			break;
		n++;
	}
	return n;
}

static void draw_same(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	char name[256];
	fold_name(name, sizeof name, m->plan, r->index, r->sub);
	tui_put_sign(g, at, 7, tui_open(m, name) ? TUI_SIGN_OPEN : TUI_SIGN_CLOSED);
	tui_putf(g, at, 9, g->cols, TUI_TEXT, "%zu more for the same reason", equal_after(m->plan, r->index, (size_t)r->sub));
}

static void draw_nearest(struct tui_grid *g, const struct tui_model *m, const struct fa_nearest *n, int at)
{
	char *words = fa_strv_join(&n->wish, " ");
	tui_put_sign(g, at, 3, TUI_SIGN_OK);
	tui_putf(g, at, 5, tui_width(m), TUI_TEXT, "works: %s  (%s %s by %s, torch %s)", words,
	         n->choice.line ? n->choice.line : "", n->choice.flash_attn ? n->choice.flash_attn : "",
	         n->choice.route ? n->choice.route : "?", n->choice.torch ? n->choice.torch : "?");
	free(words);
}

/* One of several unlike cards: what serves it. */
static void draw_served(struct tui_grid *g, const struct tui_model *m, const struct fa_served *s, int at)
{
	tui_putf(g, at, 5, 22, TUI_TEXT, "Card %d, %s", s->index, s->arch ? s->arch : "?");
	tui_put_name(g, at, 23, 38, TUI_TEXT, s->served_by);
	tui_put_name(g, at, 39, tui_width(m), TUI_TEXT, s->because);
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	const struct fa_plan *p = m->plan;
	struct fa_other o;
	switch (r->kind) {
	case ROW_ACTION:
		tui_put_sign(g, at, 3, TUI_SIGN_FAIL);
		tui_putf(g, at, 5, tui_width(m), TUI_TEXT, "first: %s", p->actions[r->index].text);
		break;
	case ROW_NEAREST: draw_nearest(g, m, &p->nearest[r->index], at); break;
	case ROW_NODE: draw_node(g, m, &p->tree[r->index], at); break;
	case ROW_HEAD: draw_head(g, m, at); break;
	case ROW_OTHER:
	case ROW_REFUSAL:
		o = other(p, r->index, (size_t)r->sub);
		draw_other(g, m, &o, at);
		break;
	case ROW_SAME: draw_same(g, m, r, at); break;
	case ROW_SERVED: draw_served(g, m, &p->per_gpu[r->index], at); break;
	case ROW_REFUSED:
		tui_put_sign(g, at, 3, tui_open(m, REFUSED) ? TUI_SIGN_OPEN : TUI_SIGN_CLOSED);
		tui_put(g, at, 5, 22, TUI_TEXT, "Refused");
		tui_putf(g, at, 23, g->cols, TUI_TEXT, "%zu candidate%s, each with its reason", p->n_rejected,
		         p->n_rejected == 1 ? "" : "s");
		break;
	case ROW_WARNING:
		tui_put_sign(g, at, 3, TUI_SIGN_WARN);
		tui_put_name(g, at, 5, tui_width(m), TUI_TEXT, p->warnings[r->index].text);
		break;
	default: break;
	}
}

static void tree_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	struct fa_strv words = FA_STRV_INIT;
	const struct fa_plan *p = m->plan;
	fa_wish_argv(&m->wish, &words);
	char *asked = fa_strv_join(&words, " ");
	if (!p)
		tui_headline(g, m, m->plan_err.text[0] ? m->plan_err.text : "There is no plan yet.");
	else if (p->status == FA_PLAN_IMPOSSIBLE)
		tui_headline(g, m,
		             p->n_nearest ? "Nothing fits. Each answer marked \"works\" does."
		                          : "Nothing fits; every refusal has its reason.");
	else
		tui_headline(g, m, "Every decision with its reason. A change is planned again at once.");
	tui_putf(g, TUI_SECOND, 1, tui_width(m), TUI_TEXT,
	         *asked ? "Asked for: %s" : "Nothing was asked for: all answers follow from the machine.", asked);
	tui_put(g, TUI_BODY + 1, 5, 22, TUI_DIM, "Question");
	tui_put(g, TUI_BODY + 1, 23, 38, TUI_DIM, "Taken");
	tui_put(g, TUI_BODY + 1, 39, 60, TUI_DIM, "Because");
	tui_put_right(g, TUI_BODY + 1, tui_width(m), TUI_DIM, "Others");
	tui_draw_list(g, m, rows, TUI_BODY + 2, tui_body_end(m), draw_row);
	free(asked);
	fa_strv_release(&words);
}

static int tree_height(const struct tui_model *m, const struct tui_rows *rows)
{
	(void)rows;
	return tui_body_end(m) - TUI_BODY - 2;
}

static void hint_other(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	struct fa_other o = other(m->plan, at->index, (size_t)at->sub);
	const char *wish = at->index < 0 ? NULL : m->plan->tree[at->index].wish;
	if (!fits(&o))
		snprintf(out, size, "%s: rule %s needs %s, found %s.", o.value, o.rule, o.needed,
		         o.found ? o.found : "nothing known");
	else if (wish && o.needed && *o.needed)
		snprintf(out, size, "%s (%s) fits and was not asked for: Space takes it and plans again.", o.value, o.needed);
	else
		snprintf(out, size, wish ? "%s fits and was not asked for: Space takes it and plans again." : "%s fits.",
		         o.value);
}

static void tree_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	const struct fa_plan *p = m->plan;
	if (!at) {
		snprintf(out, size, "%s", m->plan_err.next);
	} else if (at->kind == ROW_OTHER || at->kind == ROW_REFUSAL) {
		hint_other(out, size, m, at);
	} else if (at->kind == ROW_NODE) {
		const struct fa_node *n = &p->tree[at->index];
		snprintf(out, size, "%s: %s, because %s.", n->question, n->taken,
		         n->because ? n->because : "nothing else fits");
	} else if (at->kind == ROW_ACTION) {
		snprintf(out, size, "%s %s", p->actions[at->index].text,
		         p->actions[at->index].command ? p->actions[at->index].command : "");
	} else if (at->kind == ROW_WARNING) {
		const struct fa_warning *w = &p->warnings[at->index];
		snprintf(out, size, "%s%s%s%s", w->text, w->source ? " (" : "", w->source ? w->source : "",
		         w->source ? ")" : "");
	} else if (at->kind == ROW_SERVED) {
		const struct fa_served *s = &p->per_gpu[at->index];
		snprintf(out, size, "Card %d: %s, because %s.", s->index, s->served_by,
		         s->because ? s->because : "nothing else serves it");
	} else if (at->kind == ROW_NEAREST) {
		snprintf(out, size, "Space asks for this instead and plans again.");
	}
}

static void tree_pane(struct fa_strv *out, const struct tui_model *m, const struct tui_row *at)
{
	const struct fa_plan *p = m->plan;
	if (!at)
		return;
	if (at->kind == ROW_OTHER || at->kind == ROW_REFUSAL) {
		struct fa_other o = other(p, at->index, (size_t)at->sub);
		fa_strv_push(out, fits(&o) ? "Fits, not asked for" : "Refused");
		fa_strv_push(out, o.value ? o.value : "");
		if (!fits(&o)) {
			fa_strv_push(out, "");
			fa_strv_pushf(out, "by rule %s", o.rule);
			fa_strv_pushf(out, "needs %s", o.needed);
			fa_strv_pushf(out, "found %s", o.found ? o.found : "nothing known");
		}
	} else if (at->kind == ROW_NODE) {
		const struct fa_node *n = &p->tree[at->index];
		fa_strv_push(out, n->question);
		fa_strv_push(out, n->taken ? n->taken : "nothing");
		fa_strv_push(out, n->because ? n->because : "");
		fa_strv_push(out, "");
		if (n->wish)
			fa_strv_pushf(out, "set by --%s", n->wish);
	}
}

/* ---- keys */

static bool accepts(enum fa_wish_id id, const char *value)
{
	struct fa_wish w = FA_WISH_INIT;
	bool ok = value && fa_wish_set(&w, id, value, NULL) == 0;
	fa_wish_release(&w);
	return ok;
}

/* The option that asks for an answer: that of its question, or --route, since torch's own attention is no line. */
static bool option_for(enum fa_wish_id *id, const struct fa_node *n, const char *value)
{
	if (!n || !n->wish || fa_wish_find(id, n->wish) < 0)
		return false;
	if (!accepts(*id, value))
		*id = FA_WISH_ROUTE;
	return accepts(*id, value);
}

static void take(struct tui_model *m, const struct tui_row *at)
{
	struct fa_other o = other(m->plan, at->index, (size_t)at->sub);
	const struct fa_node *n = at->index < 0 ? NULL : &m->plan->tree[at->index];
	enum fa_wish_id id;
	if (!option_for(&id, n, o.value)) {
		tui_say(m, n && n->wish ? "No single answer: these are several candidates, or what is there already."
		                        : "No option sets this: it follows from the machine and the answers above.");
	} else if (fits(&o)) {
		tui_wish(m, id, o.value);
	} else {
		free(m->take_wish);
		m->take_wish = fa_strf("%s=%s", fa_wish_row(id)->option, o.value);
		tui_ask(m, TUI_ASK_TAKE, "%s needs %s, found %s. Plan with --%s %s all the same? y/N", o.value, o.needed,
		        o.found ? o.found : "nothing known", fa_wish_row(id)->option, o.value);
	}
}

static void fold(struct tui_model *m, const struct tui_row *at, int way) /* 1 open, -1 close, 0 the other */
{
	char name[256] = "";
	if (at->kind == ROW_NODE)
		snprintf(name, sizeof name, "%s", m->plan->tree[at->index].question);
	else if (at->kind == ROW_REFUSED)
		snprintf(name, sizeof name, "%s", REFUSED);
	else if (at->kind == ROW_SAME)
		fold_name(name, sizeof name, m->plan, at->index, at->sub);
	if (name[0])
		tui_set_open(m, name, way ? way > 0 : !tui_open(m, name));
}

/* Left on an answer: close its question and go there. */
static void close_parent(struct tui_model *m, const struct tui_row *at)
{
	struct tui_rows rows = { 0 };
	tree_rows(&rows, m);
	for (size_t i = 0; i < rows.n; i++)
		if ((rows.v[i].kind == ROW_NODE && rows.v[i].index == at->index) ||
		    (rows.v[i].kind == ROW_REFUSED && at->index < 0))
			m->cursor[m->screen] = (int)i;
	tui_rows_release(&rows);
	tui_set_open(m, at->index < 0 ? REFUSED : m->plan->tree[at->index].question, false);
}

static void next(struct tui_model *m)
{
	if (!m->plan)
		tui_say(m, "There is no plan to go on with: %.300s", m->plan_err.text);
	else if (m->plan->status == FA_PLAN_IMPOSSIBLE)
		tui_say(m, "Nothing fits: take an answer that works, or u to undo the last one.");
	else
		tui_go(m, TUI_REVIEW_SCREEN);
}

static void choose(struct tui_model *m, const struct tui_row *at)
{
	if (at->kind == ROW_OTHER || at->kind == ROW_REFUSAL)
		take(m, at);
	else if (at->kind == ROW_NEAREST)
		tui_wish_words(m, &m->plan->nearest[at->index].wish);
	else
		fold(m, at, 0);
}

static void tree_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	if (action == TUI_ACT_NEXT)
		next(m);
	else if (action == TUI_ACT_BACK)
		tui_go(m, TUI_GOAL_SCREEN);
	else if (action == TUI_ACT_UNDO)
		tui_undo(m);
	else if (at && action == TUI_ACT_CHOOSE)
		choose(m, at);
	else if (at && action == TUI_ACT_OPEN)
		fold(m, at, 1);
	else if (at && action == TUI_ACT_CLOSE && (at->kind == ROW_OTHER || at->kind == ROW_REFUSAL))
		close_parent(m, at);
	else if (at && action == TUI_ACT_CLOSE)
		fold(m, at, -1);
}

static const char *tree_enter(const struct tui_model *m)
{
	(void)m;
	return "Continue";
}

const struct tui_screen_def tui_tree_screen = {
	.title = "Tree",
	.rows = tree_rows,
	.list_height = tree_height,
	.draw = tree_draw,
	.act = tree_act,
	.enter = tree_enter,
	.hint = tree_hint,
	.pane = tree_pane,
};
