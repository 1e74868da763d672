/* The work while it runs: how long still, what runs, what was said. */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_COL = 13, BAR_END = 53 };

static const char *step_title(const struct tui_model *m, int i)
{
	if (!m->plan || i < 0 || (size_t)i >= m->plan->n_steps)
		return NULL;
	return m->plan->steps[i].title ? m->plan->steps[i].title : fa_step_word(m->plan->steps[i].kind);
}

static void headline(struct tui_grid *g, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	char text[400], left[32];
	const char *title = step_title(m, w->step);
	if (w->stopping)
		snprintf(text, sizeof text, "Stopping what runs. What is finished is kept.");
	else if (w->draining)
		snprintf(text, sizeof text, "Nothing new starts; %zu %s still run%s%s%s.", w->n_units,
		         w->n_units == 1 ? "unit" : "units", w->n_units == 1 ? "s" : "", w->rest_s > 0 ? ", about " : "",
		         w->rest_s > 0 ? tui_duration(left, w->rest_s) : "");
	else if (!title)
		snprintf(text, sizeof text, w->verifying ? "Verifying what was installed." : "Starting.");
	else if (w->left_s > 0)
		snprintf(text, sizeof text, "%.300s. About %s left.", title, tui_duration(left, w->left_s));
	else
		snprintf(text, sizeof text, "%.300s.", title);
	tui_headline(g, m, text);
}

static enum tui_sign sign_of(enum tui_step_state s)
{
	static const enum tui_sign signs[] = { [TUI_STEP_WAITS] = TUI_SIGN_NONE,
		                               [TUI_STEP_RUNS] = TUI_SIGN_RUNNING,
		                               [TUI_STEP_DONE] = TUI_SIGN_OK,
		                               [TUI_STEP_SKIPPED] = TUI_SIGN_ABSENT,
		                               [TUI_STEP_FAILED] = TUI_SIGN_FAIL };
	return signs[s];
}

/* The steps by their kinds in one or two lines. Returns the row after them. */
static int draw_steps(struct tui_grid *g, const struct tui_model *m, int row)
{
	int col = 3, end = tui_width(m);
	for (size_t i = 0; i < m->work.n_steps; i++) {
		const char *word = m->plan && i < m->plan->n_steps ? fa_step_word(m->plan->steps[i].kind) : "more";
		if (col + 2 + (int)strlen(word) > end && row == TUI_BODY) {
			row++;
			col = 3;
		}
		tui_put_sign(g, row, col, sign_of(m->work.steps[i].state));
		col = tui_put(g, row, col + 2, end, m->work.steps[i].state == TUI_STEP_RUNS ? TUI_STRONG : TUI_TEXT, word) + 3;
	}
	return row + 1;
}

static void say_work(char *out, size_t size, const struct tui_work *w)
{
	char a[32], b[32], rate[32];
	double share = w->total > 0 ? (double)w->done / (double)w->total : 0;
	if (strcmp(w->unit, "bytes") != 0) {
		if (w->total > 0)
			snprintf(out, size, "%.0f %%, %lld of %lld %s", share * 100, (long long)w->done, (long long)w->total,
			         w->unit);
		else
			snprintf(out, size, "%lld %s", (long long)w->done, w->unit);
		return;
	}
	tui_bytes(rate, (int64_t)w->rate);
	if (w->total > 0)
		snprintf(out, size, "%s of %s%s%s%s", tui_bytes(a, w->done), tui_bytes(b, w->total), w->rate > 0 ? ", " : "",
		         w->rate > 0 ? rate : "", w->rate > 0 ? "/s" : "");
	else
		snprintf(out, size, "%s so far", tui_bytes(a, w->done));
}

static int draw_bars(struct tui_grid *g, const struct tui_model *m, int row)
{
	const struct tui_work *w = &m->work;
	char text[200], a[32];
	int bar_end = BAR_END + (tui_width(m) - 79);
	if (w->done >= 0) {
		say_work(text, sizeof text, w);
		tui_put(g, row, 3, BAR_COL, TUI_DIM, "Work");
		tui_put_bar(g, row, BAR_COL, bar_end,
		            w->total > 0 && w->done <= w->total ? (double)w->done / (double)w->total : 0, 0);
		tui_put_name(g, row++, bar_end + 2, tui_width(m), TUI_TEXT, text);
	}
	if (w->peak_mib >= 0) {
		tui_put(g, row, 3, BAR_COL, TUI_DIM, "Memory");
		tui_putf(g, row++, BAR_COL, tui_width(m), TUI_TEXT, "%s GiB at most for one unit: %s", tui_gib(a, w->peak_mib),
		         w->peak_unit);
	}
	tui_put(g, row, 3, BAR_COL, TUI_DIM, "Time");
	tui_duration(a, (double)(m->now_ms - w->began_ms) / 1000);
	if (w->step >= 0)
		tui_putf(g, row++, BAR_COL, tui_width(m), TUI_TEXT, "%s so far; this is step %d of %zu", a, w->step + 1,
		         w->n_steps);
	else
		tui_putf(g, row++, BAR_COL, tui_width(m), TUI_TEXT, "%s so far", a);
	return row;
}

/* Units that run, oldest first; at most `most` lines. */
static int draw_units(struct tui_grid *g, const struct tui_model *m, int row, int most)
{
	const struct tui_work *w = &m->work;
	int end = tui_width(m);
	if (!w->n_units || most < 3)
		return row;
	tui_put(g, row, 5, end, TUI_DIM, "Unit");
	tui_put_right(g, row++, end - 1, TUI_DIM, "now");
	for (size_t i = 0; i < w->n_units; i++) {
		int s = (int)((m->now_ms - w->units[i].began_ms) / 1000);
		char text[32];
		if ((int)i == most - 2 && w->n_units - i > 1) {
			tui_putf(g, row++, 5, end, TUI_TEXT, "%zu more run", w->n_units - i);
			break;
		}
		tui_put_sign(g, row, 3, TUI_SIGN_RUNNING);
		tui_put_path(g, row, 5, end - 9, TUI_TEXT, w->units[i].id);
		snprintf(text, sizeof text, "%d:%02d", s / 60, s % 60);
		tui_put_right(g, row++, end - 1, TUI_TEXT, text);
	}
	return row + 1;
}

static void draw_tail(struct tui_grid *g, const struct tui_model *m, int row)
{
	const struct tui_work *w = &m->work;
	int lines = tui_body_end(m) - row - 1;
	size_t from = lines > 0 && w->log_n > (size_t)lines ? w->log_n - (size_t)lines : 0;
	if (lines <= 0 || !w->log_n)
		return;
	tui_put(g, row++, 3, 20, TUI_DIM, "Log");
	for (size_t i = from; i < w->log_n; i++)
		tui_put_name(g, row++, 5, tui_width(m), TUI_TEXT, tui_work_line(w, i));
}

static void install_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	(void)rows;
	headline(g, m);
	int row = draw_steps(g, m, TUI_BODY) + 1;
	row = draw_bars(g, m, row) + 1;
	row = draw_units(g, m, row, (tui_body_end(m) - row) / 2);
	draw_tail(g, m, row);
}

static void add_steps(struct fa_strv *out, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	char time[32];
	fa_strv_push(out, "Steps so far");
	for (size_t i = 0; i < w->n_steps; i++) {
		const struct tui_step *s = &w->steps[i];
		const char *word = m->plan && i < m->plan->n_steps ? fa_step_word(m->plan->steps[i].kind) : "more";
		if (s->state == TUI_STEP_SKIPPED)
			fa_strv_pushf(out, "     -  %s: %s", word, s->text ? s->text : "was done already");
		else if (s->state == TUI_STEP_DONE && s->seconds >= 0)
			fa_strv_pushf(out, "%s  %s", tui_duration(time, s->seconds), word);
	}
}

static int longer(const void *a, const void *b)
{
	double x = ((const struct tui_finished *)a)->seconds, y = ((const struct tui_finished *)b)->seconds;
	return (x < y) - (x > y);
}

static void add_longest(struct fa_strv *out, const struct tui_work *w)
{
	struct tui_finished *order = fa_calloc(w->n_finished + 1, sizeof *order);
	memcpy(order, w->finished, w->n_finished * sizeof *order);
	qsort(order, w->n_finished, sizeof *order, longer);
	fa_strv_push(out, "");
	fa_strv_push(out, "Longest units so far");
	for (size_t i = 0; i < w->n_finished && i < 8; i++)
		fa_strv_pushf(out, "%5.1f s  %.29s", order[i].seconds, order[i].id);
	free(order);
}

static void install_pane(struct fa_strv *out, const struct tui_model *m, const struct tui_row *at)
{
	(void)at;
	add_steps(out, m);
	if (m->work.n_finished)
		add_longest(out, &m->work);
}

static void install_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	(void)at;
	const struct fa_strv *said = m->work.warnings.n ? &m->work.warnings : &m->work.notes;
	snprintf(out, size, "%s",
	         said->n ? said->v[said->n - 1] : "What is finished is kept: a second run goes on from there.");
}

static void install_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	(void)at;
	if (action == TUI_ACT_NEXT)
		tui_open_log(m);
}

static const char *install_enter(const struct tui_model *m)
{
	(void)m;
	return "Log";
}

const struct tui_screen_def tui_install_screen = {
	.title = "Install",
	.draw = install_draw,
	.act = install_act,
	.enter = install_enter,
	.hint = install_hint,
	.pane = install_pane,
};
