/* Done: what is where, how to use and repeat it. */
#include "closing.h"
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINISH, CHECKS, LOG, N_CHOICES };

static const char *const choices[N_CHOICES] = { "Finish", "Look at the checks again", "Read the log" };

static void add(struct tui_closing *c, const char *name, char *text)
{
	c->v = fa_realloc(c->v, c->n + 1, sizeof *c->v);
	c->v[c->n++] = (struct tui_closing_line){ name, text };
}

/* "lock: PATH" is a line of its own with a name; other notes are told as they are. */
static void add_note(struct tui_closing *c, const char *note)
{
	static const struct {
		const char *word, *name;
	} named[] = { { "lock: ", "Lock" }, { "report: ", "Report" }, { "environment: ", "Environment" }, { "log: ", "Log" } };
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		size_t len = strlen(named[i].word);
		if (!strncmp(note, named[i].word, len)) {
			add(c, named[i].name, fa_strdup(note + len));
			return;
		}
	}
	add(c, "Note", fa_strdup(note));
}

void tui_closing_make(struct tui_closing *out, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	const char *lock = m->start.lock_path ? m->start.lock_path : m->start.write_lock_path;
	*out = (struct tui_closing){ 0 };
	if (w->started && !w->running && w->code != FA_OK && w->err.next[0])
		add(out, "Next step", fa_strdup(w->err.next));
	if (w->verdict)
		add(out, "Verdict", fa_strdup(w->verdict));
	for (size_t i = 0; i < w->notes.n; i++)
		add_note(out, w->notes.v[i]);
	if (w->started && w->code == FA_OK && lock)
		add(out, "Again", fa_strf("fainstall --non-interactive --lock %s", lock));
	else
		add(out, w->started ? "Go on" : "Same plan", tui_command(m));
	if (m->copied)
		add(out, "Copied", fa_strdup(m->copied));
}

void tui_closing_release(struct tui_closing *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].text);
	free(c->v);
	*c = (struct tui_closing){ 0 };
}

/* What the work came to: its own last sentence where that says more than "done". */
static const char *result(char *out, size_t size, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	const struct fa_choice *c = m->plan ? &m->plan->choice : NULL;
	int not_run = tui_work_checks(w, FA_OUTCOME_NOT_RUN), all = tui_work_checks(w, FA_OUTCOME_NONE);
	if (w->last && strcmp(w->last, "done") != 0)
		return w->last;
	if (c && c->package && c->flash_attn)
		snprintf(out, size, "%s %s is installed", c->package, c->flash_attn);
	else
		snprintf(out, size, "Everything is in place");
	size_t len = strlen(out);
	if (not_run)
		snprintf(out + len, size - len, "; %d of %d checks could not run here.", not_run, all);
	else
		snprintf(out + len, size - len, all ? " and verified." : ".");
	return out;
}

static void headline(char *out, size_t size, const struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	char time[32], text[256];
	if (!w->started)
		snprintf(out, size, "Nothing was changed.");
	else if (w->code == FA_OK)
		snprintf(out, size, "Done in %s. %.400s", tui_duration(time, w->seconds), result(text, sizeof text, m));
	else if (w->code == FA_INTERRUPTED)
		snprintf(out, size, "Stopped by you after %s.", tui_duration(time, w->seconds));
	else
		snprintf(out, size, "Stopped after %s: %.400s", tui_duration(time, w->seconds),
		         w->err.text[0] ? w->err.text
		         : w->last      ? w->last
		                        : "the cause is not known");
}

void tui_closing_print(struct fa_buf *out, const struct tui_model *m)
{
	struct tui_closing c;
	char text[512];
	headline(text, sizeof text, m);
	fa_buf_addf(out, "%s\n", text);
	tui_closing_make(&c, m);
	for (size_t i = 0; i < c.n; i++)
		fa_buf_addf(out, "  %-11s %s\n", c.v[i].name, c.v[i].text);
	tui_closing_release(&c);
}

static void done_rows(struct tui_rows *out, const struct tui_model *m)
{
	for (int i = 0; i < N_CHOICES; i++)
		if (i != CHECKS || m->work.n_checks)
			tui_rows_add(out, 0, i, (int)out->n + 1, true);
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	tui_putf(g, at, 3, tui_width(m), TUI_TEXT, "%d  %s", r->sub, choices[r->index]);
}

static int done_height(const struct tui_model *m, const struct tui_rows *rows)
{
	(void)m;
	return (int)rows->n;
}

static void done_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	struct tui_closing c;
	char text[512];
	int row = TUI_BODY, last = tui_body_end(m) - 1 - (int)rows->n - 2;
	headline(text, sizeof text, m);
	tui_headline(g, m, text);
	tui_closing_make(&c, m);
	for (size_t i = 0; i < c.n && row <= last; i++) {
		tui_put(g, row, 3, 15, TUI_DIM, c.v[i].name);
		row = tui_put_wrapped(g, row, last, 15, tui_width(m), TUI_TEXT, c.v[i].text);
	}
	tui_closing_release(&c);
	tui_put(g, row + 1, 1, 40, TUI_STRONG, "What next?");
	tui_draw_list(g, m, rows, row + 2, row + 2 + (int)rows->n, draw_row);
}

static void done_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	(void)m;
	(void)at;
	snprintf(out, size, "These lines are printed again when fainstall ends.");
}

static void done_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	if (action == TUI_ACT_COPY) {
		const char *lock = m->start.lock_path ? m->start.lock_path : m->start.write_lock_path;
		tui_copy(m, lock ? fa_strf("fainstall --non-interactive --lock %s", lock) : tui_command(m));
	} else if (action == TUI_ACT_NEXT && at && at->index == CHECKS) {
		tui_go(m, TUI_VERIFY_SCREEN);
	} else if (action == TUI_ACT_NEXT && at && at->index == LOG) {
		tui_open_log(m);
	} else if (action == TUI_ACT_NEXT) {
		m->want |= TUI_WANT_QUIT;
	}
}

static const char *done_enter(const struct tui_model *m)
{
	static const char *const verbs[] = { "Finish", "Look", "Read" };
	struct tui_rows rows = { 0 };
	done_rows(&rows, m);
	const struct tui_row *at = tui_at(m, &rows);
	const char *verb = verbs[at ? at->index : FINISH];
	tui_rows_release(&rows);
	return verb;
}

const struct tui_screen_def tui_done_screen = {
	.title = "Done",
	.rows = done_rows,
	.list_height = done_height,
	.draw = done_draw,
	.act = done_act,
	.enter = done_enter,
	.hint = done_hint,
};
