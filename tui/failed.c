/* Stopped: what happened, what proves it, what to do, what is safe. */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN, READ_LOG, CHANGE, LEAVE, N_CHOICES };

static const char *const choices[N_CHOICES] = { "Try again: goes on from what is done", "Read the log", "Change the plan",
	                                        "Leave" };

static void failed_rows(struct tui_rows *out, const struct tui_model *m)
{
	(void)m;
	for (int i = 0; i < N_CHOICES; i++)
		tui_rows_add(out, 0, i, 0, true);
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	tui_putf(g, at, 3, tui_width(m), TUI_TEXT, "%d  %s", r->index + 1, choices[r->index]);
}

static int failed_height(const struct tui_model *m, const struct tui_rows *rows)
{
	(void)m;
	return (int)rows->n;
}

static void headline(char *out, size_t size, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	int failed = tui_work_checks(w, FA_OUTCOME_FAILED);
	int done = tui_work_count(w, TUI_STEP_DONE) + tui_work_count(w, TUI_STEP_SKIPPED);
	if (w->code == FA_INTERRUPTED)
		snprintf(out, size, "Stopped by you after %d of %zu steps.", done, w->n_steps);
	else if (failed)
		snprintf(out, size, "%d of %d checks %s not hold.", failed, tui_work_checks(w, FA_OUTCOME_NONE),
		         failed == 1 ? "does" : "do");
	else if (w->code == FA_NETWORK)
		snprintf(out, size, "Stopped after %d of %zu steps: the network or a download.", done, w->n_steps);
	else if (w->code == FA_BUILD)
		snprintf(out, size, "Stopped after %d of %zu steps: the build.", done, w->n_steps);
	else if (w->code == FA_INTEGRITY)
		snprintf(out, size, "Stopped after %d of %zu steps: a file is not what it should be.", done, w->n_steps);
	else if (w->code == FA_MACHINE)
		snprintf(out, size, "Stopped after %d of %zu steps: something here must change first.", done, w->n_steps);
	else
		snprintf(out, size, "Stopped after %d of %zu steps.", done, w->n_steps);
}

/* A stage that failed says the same as its first failed case. */
static bool has_failed_case(const struct tui_work *w, const char *stage)
{
	size_t len = strlen(stage);
	for (size_t i = 0; i < w->n_checks; i++)
		if (w->checks[i].status == FA_OUTCOME_FAILED && !strncmp(w->checks[i].id, stage, len) &&
		    w->checks[i].id[len] == '/')
			return true;
	return false;
}

static int draw_checks(struct tui_grid *g, const struct tui_model *m, int row, int last)
{
	for (size_t i = 0; i < m->work.n_checks && row <= last; i++) {
		const struct tui_check *c = &m->work.checks[i];
		if (c->status != FA_OUTCOME_FAILED || (!tui_check_is_case(c) && has_failed_case(&m->work, c->id)))
			continue;
		tui_put_sign(g, row, 3, TUI_SIGN_FAIL);
		int col = tui_put_name(g, row, 5, 45, TUI_TEXT, c->id) + 2;
		tui_put_name(g, row++, col < 24 ? 24 : col, tui_width(m), TUI_MARK, c->text);
	}
	return row;
}

/* The line that diagnose found, as it found it in the log file; else the first line on the screen that speaks of an error. */
static int draw_line(struct tui_grid *g, const struct tui_model *m, int row, int last)
{
	const struct tui_work *w = &m->work;
	long line = w->cause ? (long)w->evidence_line - 1 : tui_work_evidence(w);
	char name[40], number[32];
	if (line < 0 || row > last)
		return row;
	snprintf(name, sizeof name, "log line %s", tui_thousands(number, line + 1));
	tui_put(g, row, 3, 23, TUI_DIM, name);
	return tui_put_wrapped(g, row, last, 24, tui_width(m), TUI_MARK,
	                       w->cause ? w->evidence : tui_work_line(w, (size_t)line));
}

static int draw_evidence(struct tui_grid *g, const struct tui_model *m, int row, int last)
{
	bool any = m->work.cause || tui_work_evidence(&m->work) >= 0 || tui_work_checks(&m->work, FA_OUTCOME_FAILED);
	if (m->work.code == FA_INTERRUPTED || !any)
		return row;
	tui_put(g, row++, 1, 40, TUI_STRONG, "Evidence");
	row = draw_checks(g, m, row, last);
	return draw_line(g, m, row, last) + 1;
}

/* The first fear is for the environment. The worker puts it back before it ends; one that died leaves that to the next run. */
static void say_safe(char *out, size_t size, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	if (w->not_undone)
		snprintf(out, size, "What was finished is kept. Not as before: %s", w->not_undone);
	else if (w->code == FA_INTERNAL)
		snprintf(out, size, "What was finished is kept; the next run first puts the environment back as it was.");
	else
		snprintf(out, size, "What was finished is kept and not done again; the environment is as it was before.");
}

static const char *what_happened(const struct tui_work *w)
{
	if (w->cause)
		return w->cause;
	if (w->err.text[0])
		return w->err.text;
	if (w->code == FA_INTERRUPTED)
		return "What ran was ended, with everything that it had started.";
	return w->last ? w->last : "The cause is not known.";
}

static void failed_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	const struct tui_work *w = &m->work;
	char text[400];
	int row = TUI_BODY, last = tui_body_end(m) - 1;
	headline(text, sizeof text, m);
	tui_headline(g, m, text);
	tui_put(g, row++, 1, 40, TUI_STRONG, "What happened");
	row = tui_put_wrapped(g, row, row + 2, 3, tui_width(m), TUI_TEXT, what_happened(w)) + 1;
	row = draw_evidence(g, m, row, last - 8 > row + 2 ? last - 8 : row + 2);
	tui_put(g, row++, 1, 40, TUI_STRONG, "What to do");
	if (w->cause ? w->repair[0] : w->err.next[0])
		row = tui_put_wrapped(g, row, row + 1, 3, tui_width(m), TUI_TEXT, w->cause ? w->repair : w->err.next);
	tui_draw_list(g, m, rows, row, row + (int)rows->n, draw_row);
	say_safe(text, sizeof text, m);
	tui_put_wrapped(g, row + 1 + (int)rows->n, last + 1, 1, tui_width(m), TUI_TEXT, text);
}

static void try_again(struct tui_model *m)
{
	m->want |= TUI_WANT_START;
	m->exit = 0;
	tui_work_start(&m->work, m->plan, m->now_ms);
	m->question = TUI_ASK_NOTHING;
	tui_go(m, TUI_INSTALL_SCREEN);
}

static void failed_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	const char *next = m->work.cause && m->work.repair[0] ? m->work.repair : m->work.err.next;
	if (action == TUI_ACT_COPY)
		tui_copy(m, next[0] ? fa_strdup(next) : tui_command(m));
	if (action != TUI_ACT_NEXT || !at)
		return;
	switch (at->index) {
	case AGAIN: try_again(m); break;
	case READ_LOG: tui_open_log(m); break;
	case CHANGE: tui_go(m, TUI_TREE_SCREEN); break;
	default: m->want |= TUI_WANT_QUIT; break;
	}
}

static const char *failed_enter(const struct tui_model *m)
{
	static const char *const verbs[N_CHOICES] = { "Try again", "Read the log", "Change the plan", "Leave" };
	int at = m->cursor[TUI_FAILED_SCREEN];
	return verbs[at < 0 || at >= N_CHOICES ? 0 : at];
}

const struct tui_screen_def tui_failed_screen = {
	.title = "Stopped",
	.rows = failed_rows,
	.list_height = failed_height,
	.draw = failed_draw,
	.act = failed_act,
	.enter = failed_enter,
};
