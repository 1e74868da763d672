/* The frame around a screen: header, headline, hint, footer, overlays, the small terminal. */
#include "draw.h"

#include "screen.h"

#include <stdio.h>
#include <string.h>

int tui_body_end(const struct tui_model *m)
{
	return m->rows - 4;
}

enum { PANE_FROM = 110, PANE_COLS = 41, LIST_COLS = 79, TEXT_COLS = 101 };

static bool has_pane(const struct tui_model *m)
{
	return m->cols >= PANE_FROM && tui_screens[m->screen]->pane;
}

int tui_width(const struct tui_model *m)
{
	if (has_pane(m))
		return m->cols - PANE_COLS < LIST_COLS   ? LIST_COLS
		       : m->cols - PANE_COLS > TEXT_COLS ? TEXT_COLS
		                                         : m->cols - PANE_COLS;
	return m->cols <= TEXT_COLS ? m->cols - 1 : TEXT_COLS;
}

/* Lines beside the list, each cut: a row of it may have more to say in the hint. */
static void draw_pane(struct tui_grid *g, const struct tui_model *m, const struct tui_row *at)
{
	struct fa_strv lines = FA_STRV_INIT;
	int row = TUI_BODY, col = tui_width(m) + 2;
	if (!has_pane(m))
		return;
	tui_screens[m->screen]->pane(&lines, m, at);
	for (size_t i = 0; i < lines.n && row < tui_body_end(m); i++)
		row = *lines.v[i] ? tui_put_wrapped(g, row, tui_body_end(m) - 1, col, g->cols - 1, i ? TUI_TEXT : TUI_DIM,
		                                    lines.v[i])
		                  : row + 1;
	fa_strv_release(&lines);
}

void tui_headline(struct tui_grid *g, const struct tui_model *m, const char *text)
{
	tui_put_name(g, TUI_HEADLINE, 1, tui_width(m), TUI_STRONG, text);
}

void tui_second(struct tui_grid *g, const struct tui_model *m, const char *text)
{
	tui_put_name(g, TUI_SECOND, 1, tui_width(m), TUI_TEXT, text);
}

static enum tui_screen stage_of(enum tui_screen screen, const struct tui_model *m)
{
	if (screen != TUI_FAILED_SCREEN)
		return screen;
	return m->work.verifying ? TUI_VERIFY_SCREEN : TUI_INSTALL_SCREEN;
}

static void draw_header(struct tui_grid *g, const struct tui_model *m)
{
	static const char *const titles[] = {
#define STAGE(id, title) title,
		TUI_STAGES(STAGE)
#undef STAGE
	};
	int here = stage_of(m->screen, m), gap = g->cols >= 110 ? 3 : 1;
	int col = tui_put(g, 0, 1, g->cols, TUI_BAR, "fainstall") + 1 + gap;
	for (int i = 0; i < (int)(sizeof titles / sizeof *titles); i++) {
		tui_put_char(g, 0, col, TUI_BAR, i < here ? 0x2713 : i == here ? '[' : ' ');
		int end = tui_put(g, 0, col + 2 - (i == here), g->cols, TUI_BAR, titles[i]);
		tui_put_char(g, 0, end, TUI_BAR, i == here ? ']' : ' ');
		col += tui_text_width(titles[i]) + 2 + gap;
	}
	tui_paint(g, 0, 0, g->cols, TUI_BAR);
}

static bool blank_row(const struct tui_grid *g, int row)
{
	for (int col = 0; col < g->cols; col++)
		if (g->cells[row * g->cols + col].ch != ' ')
			return false;
	return true;
}

/* In row 22; more than one line take rows above it, a third only where nothing stands. */
static void draw_hint(struct tui_grid *g, const struct tui_model *m, const struct tui_row *at)
{
	const struct tui_screen_def *s = tui_screens[m->screen];
	char text[1200] = "";
	int row = m->rows - 3, width = tui_width(m) - 1, lines;
	if (m->hint[0])
		snprintf(text, sizeof text, "%s", m->hint);
	else if (s->hint)
		s->hint(text, sizeof text, m, at);
	lines = tui_wrapped_rows(text, width);
	lines = lines > 3 ? 3 : lines;
	if (lines == 3 && !blank_row(g, row - 2))
		lines = 2;
	tui_put_wrapped(g, row - (lines ? lines - 1 : 0), row, 1, 1 + width, TUI_TEXT, text);
}

static void draw_entry(struct tui_grid *g, const struct tui_model *m)
{
	const struct fa_wish_row *w = fa_wish_row(m->entry_wish);
	int row = m->rows - 3;
	if (m->hint[0])
		tui_put_name(g, row - 1, 1, tui_width(m), TUI_TEXT, m->hint);
	else
		tui_putf(g, row - 1, 1, tui_width(m), TUI_TEXT, "%s%s%s; empty: not asked for", w->argument,
		         w->argument[0] ? ": " : "", w->help);
	int col = tui_putf(g, row, 1, m->cols / 2, TUI_STRONG, "--%s ", w->option);
	tui_paint(g, row, col, m->cols - 1, TUI_MARK);
	g->caret_row = row;
	g->caret_col = tui_put(g, row, col, m->cols - 2, TUI_MARK, m->entry);
}

static void draw_log(struct tui_grid *g, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	int lines = tui_body_end(m) + 1 - TUI_SECOND;
	size_t end = w->log_n > (size_t)m->overlay_top ? w->log_n - (size_t)m->overlay_top : 0;
	size_t first = end > (size_t)lines ? end - (size_t)lines : 0;
	int col = tui_putf(g, TUI_HEADLINE, 1, m->cols - 1, TUI_STRONG,
	                   w->log_n ? "Log, lines %zu to %zu of %zu" : "Log: nothing was said yet.", first + 1, end, w->log_n);
	tui_put(g, TUI_HEADLINE, col + 3, m->cols - 1, TUI_TEXT, m->hint);
	for (size_t i = first; i < end; i++) {
		int row = TUI_SECOND + (int)(i - first);
		bool marked = (long)i == m->log_mark;
		if (marked)
			tui_put(g, row, 0, 1, TUI_MARK, ">");
		tui_put_name(g, row, 1, m->cols - 1, marked ? TUI_MARK : TUI_TEXT, tui_work_line(w, i));
	}
}

/* What fits, in this order: the size wanted and found; the state of the work; keys. */
static void draw_small(struct tui_grid *g, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	char state[128] = "", gone[32];
	int row = 0;
	if (g->cols < 10 || g->rows < 3)
		return;
	if (w->running && w->units_total > 0)
		snprintf(state, sizeof state, "%lld of %lld units, %s so far", (long long)w->units_done,
		         (long long)w->units_total, tui_duration(gone, (double)(m->now_ms - w->began_ms) / 1000));
	else if (w->running)
		snprintf(state, sizeof state, "Step %d of %zu, %s so far", w->step + 1, w->n_steps,
		         tui_duration(gone, (double)(m->now_ms - w->began_ms) / 1000));
	if (g->cols >= 45 && g->rows >= 6) {
		tui_put(g, row++, 1, g->cols, TUI_STRONG, "fainstall needs 80 columns and 24 rows.");
		tui_putf(g, row++, 1, g->cols, TUI_TEXT, "This terminal has %d and %d: make it larger.", m->cols, m->rows);
		row++;
	} else if (g->cols >= 28) {
		tui_putf(g, row++, 1, g->cols, TUI_STRONG, "Too small: %dx%d, needs 80x24", m->cols, m->rows);
	} else {
		tui_put(g, row++, 1, g->cols, TUI_STRONG, "Too small");
	}
	if (m->hint[0] && m->overlay == TUI_QUESTION_OVERLAY)
		tui_put_wrapped(g, row, g->rows - 2, 1, g->cols - 1, TUI_TEXT, m->hint);
	else
		tui_put_name(g, row, 1, g->cols, TUI_TEXT, state);
	if (m->overlay == TUI_QUESTION_OVERLAY || g->cols >= 28)
		tui_draw_footer(g, m);
	else
		tui_put(g, g->rows - 1, 1, g->cols, TUI_BAR, "q Quit");
}

static void draw_screen(struct tui_grid *g, const struct tui_model *m)
{
	const struct tui_screen_def *s = tui_screens[m->screen];
	struct tui_rows rows = { 0 };
	if (s->rows)
		s->rows(&rows, m);
	s->draw(g, m, &rows);
	draw_pane(g, m, tui_at(m, &rows));
	draw_hint(g, m, tui_at(m, &rows));
	tui_rows_release(&rows);
}

void tui_draw(struct tui_grid *g, const struct tui_model *m)
{
	tui_grid_resize(g, m->rows, m->cols);
	if (tui_model_small(m)) {
		draw_small(g, m);
		return;
	}
	draw_header(g, m);
	if (m->overlay == TUI_LOG_OVERLAY)
		draw_log(g, m);
	else
		draw_screen(g, m);
	if (m->overlay == TUI_HELP_OVERLAY)
		tui_draw_help(g, m);
	if (m->overlay == TUI_ENTRY_OVERLAY) {
		for (int row = m->rows - 5; row < m->rows - 1; row++)
			tui_putf(g, row, 0, m->cols, TUI_TEXT, "%*s", m->cols, "");
		draw_entry(g, m);
	}
	tui_draw_footer(g, m);
}
