/* The goal: where, what for, anything special. The answers are words of the wish. */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_QUESTION, ROW_ANSWER, ROW_WISH, ROW_BLANK };
enum { Q_WHERE, Q_USE, Q_SPECIAL, Q_COUNT };

struct answer {
	const char *title, *text, *hint;
	const char *value; /* of the wish; NULL: not asked */
};

static const char *const questions[Q_COUNT] = { "Where should it go?", "What will you do with it?", "Anything special?" };

static const struct answer where[] = {
	{ "The active environment", "",
	  "What is there stays; flash-attn is added, and taken out again when a check does not hold.", NULL },
	{ "A new environment", "named default, made and kept by fainstall", "Nothing that is there already is touched.",
	  "default" },
	{ "Another one", "a name, or a folder with a slash in it", "Space asks for the name or the folder.", NULL },
};

static const struct answer uses[] = {
	{ "Training", "forward and backward, bf16, head dim 128",
	  "Compiles in less time; for a wheel this only says what it must hold.", "training" },
	{ "Inference", "forward only, bf16, head dim 128",
	  "Compiles in the least time; for a wheel this only says what it must hold.", "inference" },
	{ "Both", "all that upstream builds", "Every data type, head dim and feature.", NULL },
	{ "Something else", "data types, head dims, features: named below",
	  "Only what is named is compiled; what is left out says so when it is called.", "custom" },
};

/* What of it is told when there is something to compile: the figures need the room. */
static const char *const uses_short[] = { "with backward, bf16 d128", "forward only, bf16 d128", "all that upstream builds",
	                                  "as named below" };
static const char *const offers[] = { "training", "inference", "full", "custom" };

static const struct answer special[] = {
	{ "No", "fainstall decides and shows why", "Every decision can still be changed in the tree.", NULL },
	{ "Yes", "versions, wheel or source, cards, no network", "Opens the list of everything that can be asked for.", NULL },
};

static const struct {
	const struct answer *v;
	int n;
} answers[Q_COUNT] = { { where, 3 }, { uses, 4 }, { special, 2 } };

static bool is_content(int wish)
{
	return wish == FA_WISH_DTYPE || wish == FA_WISH_HEAD_DIM || wish == FA_WISH_FEATURES;
}

static bool is_about_use(int wish)
{
	return wish == FA_WISH_PROFILE || is_content(wish);
}

static bool is_no_special(int wish)
{
	return wish == FA_WISH_ENV || is_about_use(wish);
}

static bool is_special(int wish)
{
	return !is_no_special(wish);
}

static bool asks_special(const struct tui_model *m)
{
	bool any = m->special;
	for (int i = 0; i < FA_WISH_COUNT; i++)
		any |= is_special(i) && fa_wish_get(&m->wish, i);
	return any;
}

/* Without an active environment the first answer is not offered. */
static bool offered(const struct tui_model *m, int question, int i)
{
	return question != Q_WHERE || i != 0 || m->start.active_env;
}

static bool names_content(const struct tui_model *m)
{
	return fa_wish_get(&m->wish, FA_WISH_DTYPE) || fa_wish_get(&m->wish, FA_WISH_HEAD_DIM) ||
	       fa_wish_get(&m->wish, FA_WISH_FEATURES);
}

static int marked(const struct tui_model *m, int question)
{
	const char *env = fa_wish_get(&m->wish, FA_WISH_ENV), *use = fa_wish_get(&m->wish, FA_WISH_PROFILE);
	switch (question) {
	case Q_WHERE:
		if (!env)
			return m->start.active_env ? 0 : 1;
		return strcmp(env, "default") == 0 ? 1 : 2;
	case Q_USE:
		if (tui_same(use, "training") || tui_same(use, "inference"))
			return tui_same(use, "inference");
		return tui_same(use, "custom") || names_content(m) ? 3 : 2;
	default: return asks_special(m);
	}
}

static void add_wishes(struct tui_rows *out, const struct tui_model *m, bool (*of)(int wish), bool all)
{
	for (int i = 0; i < FA_WISH_COUNT; i++)
		if (of(i) && (all || fa_wish_get(&m->wish, i)))
			tui_rows_add(out, ROW_WISH, i, 0, true);
}

static void goal_rows(struct tui_rows *out, const struct tui_model *m)
{
	for (int q = 0; q < Q_COUNT; q++) {
		if (q)
			tui_rows_add(out, ROW_BLANK, q, 0, false);
		tui_rows_add(out, ROW_QUESTION, q, 0, false);
		for (int i = 0; i < answers[q].n; i++)
			if (offered(m, q, i))
				tui_rows_add(out, ROW_ANSWER, q, i, true);
		if (q == Q_USE)
			add_wishes(out, m, is_content, m->special || marked(m, Q_USE) == 3);
	}
	add_wishes(out, m, is_special, m->special);
}

/* "with backward, bf16 d128: 3 min, 89 GiB, 5 MB", by the plan for this machine; false: nothing is to be compiled. */
static bool figures_of(const struct tui_model *m, int use, char *out, size_t size)
{
	const struct fa_plan_build *b = m->plan ? &m->plan->choice.build : NULL;
	for (size_t i = 0; b && b->wanted && i < b->n_offers; i++) {
		const struct fa_plan_offer *o = &b->offers[i];
		int min = (o->estimate_s + 59) / 60;
		char time[32];
		if (!tui_same(o->profile, offers[use]) || o->estimate_s <= 0)
			continue;
		if (min < 100)
			snprintf(time, sizeof time, "%d min", min);
		else
			snprintf(time, sizeof time, "%.1f h", min / 60.0);
		snprintf(out, size, "%s: %s, %d GiB, %d MB", uses_short[use], time, (o->peak_mib + 1023) / 1024, o->wheel_mb);
		return true;
	}
	return false;
}

static const char *text_of(const struct tui_model *m, int question, int i, char *space, size_t size)
{
	const char *torch = m->facts ? fa_facts_text(m->facts, FA_FACT_TORCH) : NULL, *env = fa_wish_get(&m->wish, FA_WISH_ENV);
	if (question == Q_USE && figures_of(m, i, space, size))
		return space;
	if (question != Q_WHERE || (i == 2 && marked(m, Q_WHERE) != 2) || i == 1)
		return answers[question].v[i].text;
	if (i == 2)
		snprintf(space, size, "%s", env);
	else if (torch && *torch && !env)
		snprintf(space, size, "torch %s stays; %s", torch, m->start.active_env);
	else
		snprintf(space, size, "%s", m->start.active_env);
	return space;
}

static void draw_answer(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	char space[512];
	const struct answer *a = &answers[r->index].v[r->sub];
	tui_put(g, at, 3, 7, TUI_TEXT, marked(m, r->index) == r->sub ? "(*)" : "( )");
	tui_put(g, at, 7, 31, TUI_TEXT, a->title);
	tui_put_path(g, at, 31, tui_width(m), TUI_TEXT, text_of(m, r->index, r->sub, space, sizeof space));
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	if (r->kind == ROW_QUESTION) {
		tui_putf(g, at, 1, g->cols, TUI_STRONG, "%d  %s", r->index + 1, questions[r->index]);
	} else if (r->kind == ROW_ANSWER) {
		draw_answer(g, m, r, at);
	} else if (r->kind == ROW_WISH) {
		const struct fa_wish_row *w = fa_wish_row(r->index);
		const char *value = fa_wish_get(&m->wish, r->index);
		tui_put(g, at, 7, 20, TUI_TEXT, w->option);
		tui_put_name(g, at, 20, 42, value ? TUI_STRONG : TUI_DIM, value ? value : "-");
		tui_put_name(g, at, 43, tui_width(m), TUI_TEXT, w->argument[0] ? w->argument : "yes or -");
	}
}

static int goal_height(const struct tui_model *m, const struct tui_rows *rows)
{
	(void)rows;
	return tui_body_end(m) - TUI_BODY - 3;
}

static void goal_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	char *command = tui_command(m);
	int end = TUI_BODY + goal_height(m, rows);
	tui_headline(g, m, "Three questions. Enter takes the marked answers.");
	tui_draw_list(g, m, rows, TUI_BODY, end, draw_row);
	tui_put(g, end + 1, 1, 10, TUI_DIM, "Command");
	tui_put_wrapped(g, end + 1, end + 2, 10, tui_width(m), TUI_TEXT, command);
	free(command);
}

static void goal_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	char figures[200];
	if (at && at->kind == ROW_ANSWER && at->index == Q_USE && figures_of(m, at->sub, figures, sizeof figures))
		snprintf(out, size, "%s By recorded times, on this machine: time, most memory, wheel.",
		         answers[at->index].v[at->sub].hint);
	else if (at && at->kind == ROW_ANSWER)
		snprintf(out, size, "%s", answers[at->index].v[at->sub].hint);
	else if (at && at->kind == ROW_WISH)
		snprintf(out, size, "--%s: %s", fa_wish_row(at->index)->option, fa_wish_row(at->index)->help);
}

static bool is_not_about_use(int wish)
{
	return !is_about_use(wish);
}

/* Only these wishes stay. */
static void keep_wishes(struct tui_model *m, bool (*stays)(int wish))
{
	struct fa_strv words = FA_STRV_INIT;
	for (int i = 0; i < FA_WISH_COUNT; i++) {
		if (!stays(i) || !fa_wish_get(&m->wish, i))
			continue;
		fa_strv_pushf(&words, "--%s", fa_wish_row(i)->option);
		fa_strv_push(&words, fa_wish_get(&m->wish, i));
	}
	tui_wish_words(m, &words);
	fa_strv_release(&words);
}

static void clear_special(struct tui_model *m)
{
	if (asks_special(m))
		keep_wishes(m, is_no_special);
	m->special = false;
}

static void choose(struct tui_model *m, const struct tui_row *at)
{
	const char *value = at->kind == ROW_ANSWER ? answers[at->index].v[at->sub].value : NULL;
	if (at->kind == ROW_WISH && fa_wish_row(at->index)->kind == FA_WISH_FLAG)
		tui_wish(m, at->index, fa_wish_get(&m->wish, at->index) ? NULL : "yes");
	else if (at->kind == ROW_WISH)
		tui_edit(m, at->index);
	else if (at->index == Q_WHERE && at->sub == 2)
		tui_edit(m, FA_WISH_ENV);
	else if (at->index == Q_WHERE)
		tui_wish(m, FA_WISH_ENV, m->start.active_env ? value : NULL);
	else if (at->index == Q_USE && !value)
		keep_wishes(m, is_not_about_use);
	else if (at->index == Q_USE)
		tui_wish(m, FA_WISH_PROFILE, value);
	else if (at->sub == 0)
		clear_special(m);
	else
		m->special = true;
}

/* Tab: the marked answer of the next question. */
static void next_question(struct tui_model *m, const struct tui_row *at)
{
	struct tui_rows rows = { 0 };
	int question = !at ? 0 : at->kind == ROW_WISH ? 0 : (at->index + 1) % Q_COUNT;
	goal_rows(&rows, m);
	for (size_t i = 0; i < rows.n; i++)
		if (rows.v[i].kind == ROW_ANSWER && rows.v[i].index == question &&
		    (marked(m, question) < 0 || rows.v[i].sub == marked(m, question)))
			m->cursor[m->screen] = (int)i;
	tui_rows_release(&rows);
}

static void goal_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	switch (action) {
	case TUI_ACT_NEXT: tui_go(m, TUI_TREE_SCREEN); break;
	case TUI_ACT_BACK: tui_go(m, TUI_MACHINE_SCREEN); break;
	case TUI_ACT_NEXT_PART: next_question(m, at); break;
	case TUI_ACT_COPY: tui_copy(m, tui_command(m)); break;
	case TUI_ACT_CHOOSE:
		if (at)
			choose(m, at);
		break;
	default: break;
	}
}

static const char *goal_enter(const struct tui_model *m)
{
	return m->reading ? NULL : "Continue";
}

const struct tui_screen_def tui_goal_screen = {
	.title = "Goal",
	.rows = goal_rows,
	.list_height = goal_height,
	.draw = goal_draw,
	.act = goal_act,
	.enter = goal_enter,
	.hint = goal_hint,
};
