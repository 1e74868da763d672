/* Verification: right, in use, fast; each check with its finding. Figures of one unit share a scale, so bars may be compared. */
#include "screen.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_COL = 24 };

static void verify_rows(struct tui_rows *out, const struct tui_model *m)
{
	for (size_t i = 0; i < m->work.n_checks; i++)
		tui_rows_add(out, 0, (int)i, 0, true);
}

static enum tui_sign sign_of(enum fa_outcome o)
{
	switch (o) {
	case FA_OUTCOME_OK: return TUI_SIGN_OK;
	case FA_OUTCOME_FAILED: return TUI_SIGN_FAIL;
	case FA_OUTCOME_SKIPPED:
	case FA_OUTCOME_NOT_RUN: return TUI_SIGN_ABSENT;
	default: return TUI_SIGN_WARN;
	}
}

/* The largest figure in this unit; 0 when there is only one: a bar compares. */
static double scale_of(const struct tui_work *w, const char *unit)
{
	double most = 0;
	int n = 0;
	for (size_t i = 0; i < w->n_checks; i++) {
		if (strcmp(w->checks[i].unit, unit) != 0)
			continue;
		n++;
		most = w->checks[i].value > most ? w->checks[i].value : most;
	}
	return n > 1 ? most : 0;
}

static void draw_figure(struct tui_grid *g, const struct tui_model *m, const struct tui_check *c, double scale, int at)
{
	char value[64];
	int end = tui_width(m), bar_end = end - 22;
	tui_put_bar(g, at, TEXT_COL, bar_end, c->value / scale, 0);
	snprintf(value, sizeof value, scale >= 100 ? "%.0f" : "%.2f", c->value);
	tui_put_right(g, at, bar_end + 10, TUI_TEXT, value);
	tui_put_name(g, at, bar_end + 11, end, TUI_TEXT, c->unit);
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	const struct tui_check *c = &m->work.checks[r->index];
	double scale = c->unit[0] ? scale_of(&m->work, c->unit) : 0;
	int end = tui_width(m);
	char text[32];
	tui_put_sign(g, at, 3, sign_of(c->status));
	tui_put_name(g, at, 5, TEXT_COL - 1, TUI_TEXT, c->id);
	if (scale > 0 && c->status == FA_OUTCOME_OK) {
		draw_figure(g, m, c, scale, at);
		return;
	}
	if (c->seconds >= 0)
		tui_put_right(g, at, end - 1, TUI_TEXT, tui_duration(text, c->seconds));
	tui_putf(g, at, TEXT_COL, end - 10, TUI_TEXT, "%s%s", c->status == FA_OUTCOME_NOT_RUN ? "not run: " : "", c->text);
}

static void headline(char *out, size_t size, const struct tui_work *w)
{
	int failed = tui_work_checks(w, FA_OUTCOME_FAILED), not_run = tui_work_checks(w, FA_OUTCOME_NOT_RUN);
	if (w->running && failed)
		snprintf(out, size, "Verifying. %d of %zu checks so far %s not hold.", failed, w->n_checks,
		         failed == 1 ? "does" : "do");
	else if (w->running)
		snprintf(out, size, "Verifying. %zu check%s so far, all right.", w->n_checks, w->n_checks == 1 ? "" : "s");
	else if (failed)
		snprintf(out, size, "%d of %zu checks %s not hold.", failed, w->n_checks, failed == 1 ? "does" : "do");
	else if (not_run)
		snprintf(out, size, "%d of %zu checks hold; %d could not run here.", tui_work_checks(w, FA_OUTCOME_OK),
		         w->n_checks, not_run);
	else
		snprintf(out, size, w->n_checks == 1 ? "The check holds." : "All %zu checks hold.", w->n_checks);
}

static int verify_height(const struct tui_model *m, const struct tui_rows *rows)
{
	(void)rows;
	return tui_body_end(m) - TUI_BODY - 1;
}

static void verify_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	char text[200];
	headline(text, sizeof text, &m->work);
	tui_headline(g, m, text);
	if (m->work.warnings.n)
		tui_second(g, m, m->work.warnings.v[m->work.warnings.n - 1]);
	tui_put(g, TUI_BODY, 5, TEXT_COL, TUI_DIM, "Check");
	tui_put(g, TUI_BODY, TEXT_COL, 60, TUI_DIM, "Finding");
	tui_draw_list(g, m, rows, TUI_BODY + 1, TUI_BODY + 1 + verify_height(m, rows), draw_row);
}

static void verify_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	if (at)
		snprintf(out, size, "%s: %s", m->work.checks[at->index].id, m->work.checks[at->index].text);
}

static void verify_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	(void)at;
	if (action != TUI_ACT_NEXT)
		return;
	if (!m->work.running) {
		tui_go(m, m->work.code == FA_OK ? TUI_DONE_SCREEN : TUI_FAILED_SCREEN);
		return;
	}
	m->overlay = TUI_LOG_OVERLAY;
	m->overlay_top = 0;
}

static const char *verify_enter(const struct tui_model *m)
{
	return m->work.running ? "Log" : "Continue";
}

const struct tui_screen_def tui_verify_screen = {
	.title = "Verify",
	.rows = verify_rows,
	.list_height = verify_height,
	.draw = verify_draw,
	.act = verify_act,
	.enter = verify_enter,
	.hint = verify_hint,
};
