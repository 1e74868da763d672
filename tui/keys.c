/* Keys: one list for handling, footer and help. */
#include "screen.h"

#include <stdio.h>
#include <string.h>

enum {
	AT_MACHINE = 1 << TUI_MACHINE_SCREEN,
	AT_GOAL = 1 << TUI_GOAL_SCREEN,
	AT_TREE = 1 << TUI_TREE_SCREEN,
	AT_REVIEW = 1 << TUI_REVIEW_SCREEN,
	AT_INSTALL = 1 << TUI_INSTALL_SCREEN,
	AT_VERIFY = 1 << TUI_VERIFY_SCREEN,
	AT_DONE = 1 << TUI_DONE_SCREEN,
	AT_FAILED = 1 << TUI_FAILED_SCREEN,
	AT_ALL_SCREENS = (1 << TUI_SCREEN_COUNT) - 1,
	AT_LOG = 1 << 16,
	AT_HELP = 1 << 17,
	AT_SMALL = 1 << 18,
	AT_INPUT = 1 << 19, /* a question or an entry: only what holds everywhere */
	AT_LISTS = AT_ALL_SCREENS | AT_LOG | AT_HELP,
	AT_EVERYWHERE = AT_LISTS | AT_SMALL | AT_INPUT,
};

/* The words of keys.def. */
#define MACHINE AT_MACHINE
#define GOAL AT_GOAL
#define TREE AT_TREE
#define REVIEW AT_REVIEW
#define INSTALL AT_INSTALL
#define VERIFY AT_VERIFY
#define DONE AT_DONE
#define FAILED AT_FAILED
#define LOG AT_LOG
#define HELP AT_HELP
#define SMALL AT_SMALL
#define LISTS AT_LISTS
#define ALL_SCREENS AT_ALL_SCREENS
#define EVERYWHERE AT_EVERYWHERE

struct key_row {
	int where;
	uint32_t key;
	const char *name;
	enum tui_action action;
	const char *label, *help;
};

#define ACT(action) TUI_ACT_##action
#define KEY(where, key, name, action, label, help) { (where), (key), (name), TUI_ACT_##action, (label), (help) },
static const struct key_row keys[] = {
#include "keys.def"
};
#undef KEY

enum { N_KEYS = sizeof keys / sizeof *keys };

static int where(const struct tui_model *m)
{
	if (m->overlay == TUI_QUESTION_OVERLAY || m->overlay == TUI_ENTRY_OVERLAY)
		return AT_INPUT;
	if (tui_model_small(m))
		return AT_SMALL;
	if (m->overlay == TUI_LOG_OVERLAY)
		return AT_LOG;
	return m->overlay == TUI_HELP_OVERLAY ? AT_HELP : 1 << m->screen;
}

enum tui_action tui_key_action(const struct tui_model *m, uint32_t key)
{
	int here = where(m);
	if (key == '\n')
		key = '\r';
	for (int i = 0; i < N_KEYS; i++)
		if (keys[i].key == key && (keys[i].where & here))
			return keys[i].action;
	return TUI_ACT_NONE;
}

bool tui_key_possible(const struct tui_model *m, enum tui_action action)
{
	switch (action) {
	case TUI_ACT_NEXT: return tui_screens[m->screen]->enter(m) != NULL;
	case TUI_ACT_PLAN_ON: return tui_blocked(m) && !m->plan_on;
	case TUI_ACT_UNDO: return m->undoable;
	case TUI_ACT_CANCEL: return m->work.running;
	case TUI_ACT_PLAIN: return !m->work.running;
	case TUI_ACT_READ_AGAIN: return !m->reading && !m->start.foreign;
	default: return true;
	}
}

static const char *label_of(const struct tui_model *m, const struct key_row *k)
{
	return k->action == TUI_ACT_NEXT ? tui_screens[m->screen]->enter(m) : k->label;
}

static bool on_the_right(const struct key_row *k)
{
	return k->action == TUI_ACT_BACK || k->action == TUI_ACT_HELP || k->action == TUI_ACT_QUIT;
}

/* Not what Enter does here already. */
static bool in_footer(const struct tui_model *m, const struct key_row *k)
{
	const char *enter = tui_screens[m->screen]->enter(m);
	if (!(k->where & where(m)) || !k->label || !tui_key_possible(m, k->action))
		return false;
	if (k->action == TUI_ACT_READ_AGAIN)
		return !tui_same(enter, "Check again");
	return k->action != TUI_ACT_LOG || !tui_same(enter, k->label);
}

static int put_key(struct tui_grid *g, int row, int col, const char *name, const char *label)
{
	col = tui_put(g, row, col, g->cols - 1, TUI_BAR, name);
	return tui_put(g, row, col + 1, g->cols - 1, TUI_BAR, label);
}

/* Returns the column where they begin. */
static int put_right_keys(struct tui_grid *g, const struct tui_model *m, int row)
{
	int end = g->cols - 1;
	for (int i = N_KEYS - 1; i >= 0; i--) {
		const struct key_row *k = &keys[i];
		if (!on_the_right(k) || !in_footer(m, k))
			continue;
		int width = tui_text_width(k->name) + 1 + tui_text_width(k->label);
		put_key(g, row, end - width, k->name, k->label);
		end -= width + 3;
	}
	return end + 3;
}

/* From the left in the order of the list, as far as there is room. */
static void put_left_keys(struct tui_grid *g, const struct tui_model *m, int row, int end)
{
	int col = 1;
	for (int i = 0; i < N_KEYS; i++) {
		if (on_the_right(&keys[i]) || !in_footer(m, &keys[i]) || !label_of(m, &keys[i]))
			continue;
		if (col + tui_text_width(keys[i].name) + 1 + tui_text_width(label_of(m, &keys[i])) + 2 <= end)
			col = put_key(g, row, col, keys[i].name, label_of(m, &keys[i])) + 3;
	}
}

void tui_draw_footer(struct tui_grid *g, const struct tui_model *m)
{
	int row = g->rows - 1, col = 1;
	tui_paint(g, row, 0, g->cols, TUI_BAR);
	if (m->overlay == TUI_QUESTION_OVERLAY) {
		bool drains = tui_may_drain(m);
		col = put_key(g, row, col, "y", drains ? "Stop now" : "Yes") + 3;
		if (drains)
			col = put_key(g, row, col, "f", "Finish what compiles") + 3;
		put_key(g, row, col, "n", drains ? "Go on (also Enter, Esc)" : "No (also Enter, Esc)");
		return;
	}
	if (m->overlay == TUI_ENTRY_OVERLAY) {
		put_key(g, row, put_key(g, row, col, "Enter", "Take") + 3, "Esc", "Leave as it was");
		return;
	}
	put_left_keys(g, m, row, put_right_keys(g, m, row));
}

/* ---- help: keys of this screen, then those that hold everywhere */

static bool helps(const struct tui_model *m, const struct key_row *k, bool everywhere)
{
	bool all = (k->where & AT_ALL_SCREENS) == AT_ALL_SCREENS;
	return k->help && (k->where & (1 << m->screen)) && all == everywhere;
}

int tui_help_lines(const struct tui_model *m)
{
	int n = 3; /* two headings and the blank between */
	for (int i = 0; i < N_KEYS; i++)
		n += helps(m, &keys[i], false) || helps(m, &keys[i], true);
	return n;
}

struct help_page {
	struct tui_grid *g;
	int line, top, first, end; /* line: of the whole text; first, end: rows of the panel */
};

static void help_line(struct help_page *p, const char *name, const char *text)
{
	int row = p->first + p->line++ - p->top;
	if (row < p->first || row >= p->end)
		return;
	if (!name) {
		tui_put(p->g, row, 1, p->g->cols - 1, TUI_DIM, text);
		return;
	}
	tui_put(p->g, row, 3, 16, TUI_ACCENT, name);
	tui_put_name(p->g, row, 16, p->g->cols - 1, TUI_TEXT, text);
}

static void rule(struct tui_grid *g, int row, const char *title)
{
	for (int col = 0; col < g->cols; col++)
		tui_put_char(g, row, col, TUI_DIM, 0x254C);
	if (title)
		tui_putf(g, row, 0, g->cols, TUI_STRONG, " %s ", title);
}

void tui_draw_help(struct tui_grid *g, const struct tui_model *m)
{
	struct help_page p = { g, 0, m->overlay_top, 4, g->rows - 5 };
	for (int row = 3; row < g->rows - 4; row++)
		for (int col = 0; col < g->cols; col++)
			tui_put(g, row, col, col + 1, TUI_TEXT, " ");
	rule(g, 3, "Keys");
	rule(g, g->rows - 5, NULL);
	for (int everywhere = 0; everywhere < 2; everywhere++) {
		if (everywhere)
			help_line(&p, NULL, "");
		help_line(&p, NULL, everywhere ? "Everywhere" : "This screen");
		for (int i = 0; i < N_KEYS; i++)
			if (helps(m, &keys[i], everywhere))
				help_line(&p, keys[i].name, keys[i].help);
	}
	if (p.line - p.top > p.end - p.first)
		tui_putf(g, p.end, 2, g->cols - 1, TUI_DIM, " \xE2\x96\xBE %d more ", p.line - p.top - (p.end - p.first));
}
