/* Verification: right, in use, fast; each stage with its finding, its cases below it. Figures of one unit in one stage share a
 * scale, so their bars may be compared. */
#include "screen.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_COL = 24, SHOWN_CASES = 8 };
enum { ROW_STAGE, ROW_CASE, ROW_RUNNING }; /* index: of the stage's first check, of the case */

static size_t stage_len(const char *id)
{
	return strcspn(id, "/");
}

static bool same_stage(const char *a, const char *b)
{
	return stage_len(a) == stage_len(b) && !strncmp(a, b, stage_len(a));
}

/* The finding of the stage as a whole; NULL while it runs. */
static const struct tui_check *stage_end(const struct tui_work *w, const char *id)
{
	for (size_t i = 0; i < w->n_checks; i++)
		if (!tui_check_is_case(&w->checks[i]) && same_stage(w->checks[i].id, id))
			return &w->checks[i];
	return NULL;
}

static bool first_of_stage(const struct tui_work *w, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (same_stage(w->checks[i].id, w->checks[at].id))
			return false;
	return true;
}

/* A figure that a bar can show; ratios of errors ("x") are no prices to compare. */
static bool is_figure(const struct tui_check *c)
{
	return tui_check_is_case(c) && c->unit[0] && strcmp(c->unit, "x") != 0 && c->status == FA_OUTCOME_OK;
}

static bool has_figures(const struct tui_work *w, const char *id)
{
	for (size_t i = 0; i < w->n_checks; i++)
		if (same_stage(w->checks[i].id, id) && is_figure(&w->checks[i]))
			return true;
	return false;
}

static void fold_name(char out[160], const char *id)
{
	snprintf(out, 160, "verify/%.*s", (int)stage_len(id), id);
}

/* Cases of the stage that is opened, of one with figures, and the last ones of the stage that runs; a failed case always. */
static void case_rows(struct tui_rows *out, const struct tui_model *m, const char *id)
{
	const struct tui_work *w = &m->work;
	bool ended = stage_end(w, id), all;
	char name[160];
	int left = 0;
	fold_name(name, id);
	all = tui_open(m, name) || has_figures(w, id);
	for (size_t i = 0; i < w->n_checks; i++)
		left += tui_check_is_case(&w->checks[i]) && same_stage(w->checks[i].id, id);
	for (size_t i = 0; i < w->n_checks; i++) {
		const struct tui_check *c = &w->checks[i];
		if (!tui_check_is_case(c) || !same_stage(c->id, id))
			continue;
		if (all || (!ended && left <= SHOWN_CASES) || c->status == FA_OUTCOME_FAILED)
			tui_rows_add(out, ROW_CASE, (int)i, 0, true);
		left--;
	}
}

static void verify_rows(struct tui_rows *out, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	bool running_seen = !w->running || !w->stage;
	for (size_t i = 0; i < w->n_checks; i++) {
		if (!first_of_stage(w, i))
			continue;
		tui_rows_add(out, ROW_STAGE, (int)i, 0, true);
		case_rows(out, m, w->checks[i].id);
		running_seen |= w->stage && same_stage(w->checks[i].id, w->stage);
	}
	if (!running_seen)
		tui_rows_add(out, ROW_RUNNING, 0, 0, true);
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

/* The largest figure of this unit in this stage; 0 when there is only one: a bar compares. */
static double scale_of(const struct tui_work *w, const struct tui_check *c)
{
	double most = 0;
	int n = 0;
	for (size_t i = 0; i < w->n_checks; i++) {
		if (strcmp(w->checks[i].unit, c->unit) != 0 || !same_stage(w->checks[i].id, c->id) || !is_figure(&w->checks[i]))
			continue;
		n++;
		most = w->checks[i].value > most ? w->checks[i].value : most;
	}
	return n > 1 ? most : 0;
}

static void draw_figure(struct tui_grid *g, const struct tui_model *m, const struct tui_check *c, int at)
{
	double scale = scale_of(&m->work, c);
	char value[32];
	int end = tui_width(m), bar_end = end - 22;
	if (scale > 0)
		tui_put_bar(g, at, TEXT_COL + 6, bar_end, c->value / scale, 0);
	else
		tui_put_name(g, at, TEXT_COL + 6, bar_end, TUI_TEXT, c->text);
	if (c->value >= 100 || scale >= 100)
		tui_thousands(value, (int64_t)(c->value + 0.5));
	else
		snprintf(value, sizeof value, "%.2f", c->value);
	tui_put_right(g, at, bar_end + 10, TUI_TEXT, value);
	tui_put_name(g, at, bar_end + 11, end, TUI_TEXT, c->unit);
}

static void draw_case(struct tui_grid *g, const struct tui_model *m, const struct tui_check *c, int at)
{
	int end = tui_width(m);
	const char *name = strchr(c->id, '/') + 1;
	tui_put_sign(g, at, 5, sign_of(c->status));
	if (is_figure(c)) {
		tui_put_name(g, at, 7, TEXT_COL + 5, TUI_TEXT, name);
		draw_figure(g, m, c, at);
		return;
	}
	int col = tui_put_name(g, at, 7, 41, TUI_TEXT, name) + 2;
	tui_put_name(g, at, col < 42 ? 42 : col, end, c->status == FA_OUTCOME_FAILED ? TUI_MARK : TUI_TEXT, c->text);
}

static void draw_running(struct tui_grid *g, const struct tui_model *m, const char *stage, int at)
{
	const struct tui_work *w = &m->work;
	int bar_end = TEXT_COL + 32;
	tui_put_sign(g, at, 3, w->running ? TUI_SIGN_RUNNING : TUI_SIGN_UNKNOWN);
	tui_putf(g, at, 5, TEXT_COL - 1, TUI_TEXT, "%.*s", (int)stage_len(stage), stage);
	if (!w->running) {
		tui_put(g, at, TEXT_COL, g->cols, TUI_TEXT, "did not come to its end");
	} else if (w->total > 0 && w->stage && same_stage(stage, w->stage)) {
		tui_put_bar(g, at, TEXT_COL, bar_end, (double)w->done / (double)w->total, 0);
		tui_putf(g, at, bar_end + 2, g->cols - 1, TUI_TEXT, "%lld of %lld", (long long)w->done, (long long)w->total);
	} else {
		tui_put(g, at, TEXT_COL, g->cols, TUI_TEXT, "running");
	}
}

static void draw_stage(struct tui_grid *g, const struct tui_model *m, const char *id, int at)
{
	const struct tui_check *c = stage_end(&m->work, id);
	int end = tui_width(m);
	char text[32];
	if (!c) {
		draw_running(g, m, id, at);
		return;
	}
	tui_put_sign(g, at, 3, sign_of(c->status));
	tui_put_name(g, at, 5, TEXT_COL - 1, TUI_TEXT, c->id);
	if (c->seconds >= 0 && c->status != FA_OUTCOME_NOT_RUN)
		tui_put_right(g, at, end - 1, TUI_TEXT, tui_duration(text, c->seconds));
	tui_putf(g, at, TEXT_COL, end - 10, TUI_TEXT, "%s%s", c->status == FA_OUTCOME_NOT_RUN ? "not run: " : "", c->text);
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	if (r->kind == ROW_RUNNING)
		draw_running(g, m, m->work.stage, at);
	else if (r->kind == ROW_STAGE)
		draw_stage(g, m, m->work.checks[r->index].id, at);
	else
		draw_case(g, m, &m->work.checks[r->index], at);
}

static void headline(char *out, size_t size, const struct tui_work *w)
{
	int failed = tui_work_checks(w, FA_OUTCOME_FAILED), not_run = tui_work_checks(w, FA_OUTCOME_NOT_RUN);
	int all = tui_work_checks(w, FA_OUTCOME_NONE);
	if (w->running && failed)
		snprintf(out, size, "Verifying. %d of %d checks so far %s not hold.", failed, all, failed == 1 ? "does" : "do");
	else if (w->running)
		snprintf(out, size, "Verifying. %d check%s so far, all right.", all, all == 1 ? "" : "s");
	else if (failed)
		snprintf(out, size, "%d of %d checks %s not hold.", failed, all, failed == 1 ? "does" : "do");
	else if (not_run)
		snprintf(out, size, "%d of %d checks hold; %d could not run here.", tui_work_checks(w, FA_OUTCOME_OK), all,
		         not_run);
	else if (w->verdict)
		snprintf(out, size, "Right and in use: %.300s.", w->verdict);
	else
		snprintf(out, size, all == 1 ? "The check holds." : "All %d checks hold.", all);
}

static int verify_height(const struct tui_model *m, const struct tui_rows *rows)
{
	(void)rows;
	return tui_body_end(m) - TUI_BODY - 2;
}

static void verify_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	char text[400];
	int row = TUI_BODY;
	headline(text, sizeof text, &m->work);
	if (tui_text_width(text) > tui_width(m) - 1) /* a verdict may take the second row too */
		row = tui_put_wrapped(g, TUI_HEADLINE, TUI_SECOND, 1, tui_width(m), TUI_STRONG, text) + 1;
	else
		tui_headline(g, m, text);
	if (row == TUI_BODY && m->work.warnings.n)
		tui_second(g, m, m->work.warnings.v[m->work.warnings.n - 1]);
	tui_put(g, TUI_BODY + 1, 5, TEXT_COL, TUI_DIM, "Check");
	tui_put(g, TUI_BODY + 1, TEXT_COL, 60, TUI_DIM, "Finding");
	tui_draw_list(g, m, rows, TUI_BODY + 2, TUI_BODY + 2 + verify_height(m, rows), draw_row);
}

static void verify_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	if (!at || at->kind == ROW_RUNNING)
		return;
	const struct tui_check *c = &m->work.checks[at->index], *end = stage_end(&m->work, c->id);
	if (at->kind == ROW_STAGE && end)
		c = end;
	if (at->kind == ROW_CASE || end)
		snprintf(out, size, "%s: %s", at->kind == ROW_CASE ? strchr(c->id, '/') + 1 : c->id, c->text);
}

static void fold(struct tui_model *m, const struct tui_row *at, int way)
{
	char name[160];
	if (!at || at->kind == ROW_RUNNING)
		return;
	fold_name(name, m->work.checks[at->index].id);
	tui_set_open(m, name, way ? way > 0 : !tui_open(m, name));
}

static void verify_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	if (action == TUI_ACT_CHOOSE || action == TUI_ACT_OPEN || action == TUI_ACT_CLOSE)
		fold(m, at, action == TUI_ACT_CHOOSE ? 0 : action == TUI_ACT_OPEN ? 1 : -1);
	if (action != TUI_ACT_NEXT)
		return;
	if (!m->work.running) {
		tui_go(m, m->work.code == FA_OK ? TUI_DONE_SCREEN : TUI_FAILED_SCREEN);
		return;
	}
	tui_open_log(m);
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
