/* The table of screens, and what they share. */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct tui_row *tui_at(const struct tui_model *m, const struct tui_rows *rows)
{
	int at = m->cursor[m->screen];
	return at >= 0 && (size_t)at < rows->n && rows->v[at].stop ? &rows->v[at] : NULL;
}

void tui_rows_add(struct tui_rows *r, int kind, int index, int sub, bool stop)
{
	if (r->n == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 64;
		r->v = fa_realloc(r->v, r->cap, sizeof *r->v);
	}
	r->v[r->n++] = (struct tui_row){ kind, index, sub, stop };
}

void tui_rows_release(struct tui_rows *r)
{
	free(r->v);
	*r = (struct tui_rows){ 0 };
}

void tui_draw_list(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows, int first, int end,
                   void (*line)(struct tui_grid *, const struct tui_model *, const struct tui_row *, int))
{
	int height = end - first, top = m->top[m->screen], cursor = m->cursor[m->screen];
	for (int i = 0; i < height && top + i < (int)rows->n; i++) {
		int below = (int)rows->n - top - height;
		if (i == 0 && top > 0) {
			tui_putf(g, first, 5, g->cols, TUI_DIM, "%d above", top + 1);
		} else if (i == height - 1 && below > 0) {
			tui_putf(g, first + i, 5, g->cols, TUI_DIM, "%d more", below + 1);
		} else {
			line(g, m, &rows->v[top + i], first + i);
			if (top + i == cursor) {
				tui_put_char(g, first + i, 1, TUI_CURSOR, '>');
				tui_paint(g, first + i, 0, g->cols, TUI_CURSOR);
			}
		}
	}
}

const char *tui_thousands(char out[32], int64_t n)
{
	char digits[32];
	int len = snprintf(digits, sizeof digits, "%lld", (long long)(n < 0 ? 0 : n)), at = 0;
	for (int i = 0; i < len && at < 30; i++) {
		if (i && (len - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
	return out;
}

const char *tui_gib(char out[32], int64_t mib)
{
	snprintf(out, 32, "%.1f", (double)mib / 1024);
	return out;
}

const char *tui_bytes(char out[32], int64_t bytes)
{
	double mb = (double)bytes / 1e6;
	if (mb >= 1000)
		snprintf(out, 32, "%.1f GB", mb / 1000);
	else
		snprintf(out, 32, mb >= 0.05 || bytes == 0 ? "%.1f MB" : "%.3f MB", mb);
	return out;
}

const char *tui_duration(char out[32], double seconds)
{
	long s = seconds < 0 ? 0 : seconds > 1e8 ? 100000000 : (long)(seconds + 0.5);
	if (seconds < 9.95)
		snprintf(out, 32, "%.1f s", seconds < 0 ? 0 : seconds);
	else if (s < 60)
		snprintf(out, 32, "%ld s", s);
	else if (s < 3600)
		snprintf(out, 32, "%ld min %ld s", s / 60, s % 60);
	else
		snprintf(out, 32, "%ld h %ld min", s / 3600, s / 60 % 60);
	return out;
}

const char *tui_number_word(char out[32], int n, bool capital)
{
	static const char *const words[] = {
		"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"
	};
	if (n < 0 || n > 10) {
		snprintf(out, 32, "%d", n);
		return out;
	}
	snprintf(out, 32, "%s", words[n]);
	if (capital)
		out[0] = (char)(out[0] - 'a' + 'A');
	return out;
}

bool tui_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool tui_blocked(const struct tui_model *m)
{
	return m->plan && m->plan->status == FA_PLAN_ACTION;
}

const struct tui_screen_def *const tui_screens[TUI_SCREEN_COUNT] = {
	[TUI_MACHINE_SCREEN] = &tui_machine_screen, [TUI_GOAL_SCREEN] = &tui_goal_screen,
	[TUI_TREE_SCREEN] = &tui_tree_screen,       [TUI_REVIEW_SCREEN] = &tui_review_screen,
	[TUI_INSTALL_SCREEN] = &tui_install_screen, [TUI_VERIFY_SCREEN] = &tui_verify_screen,
	[TUI_DONE_SCREEN] = &tui_done_screen,       [TUI_FAILED_SCREEN] = &tui_failed_screen,
};
