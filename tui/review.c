/* The last look before anything changes: steps with MB and minutes, totals, the command that does the same. */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_ACTION, ROW_STEP, ROW_DETAIL, ROW_WARNING };
enum { ANEW_MS = 200 };  /* an Enter that follows faster is held down, or typed ahead: it starts nothing */
enum { FOOT_LINES = 7 }; /* totals and command, with the blanks around them; its last line may take the blank above the hint */

/* The arguments of a step as lines of JSON, without the outer braces. The caller's. */
static void detail_lines(struct fa_strv *out, const struct fa_step *s)
{
	char *text = s->args ? fa_json_print(s->args, true) : NULL;
	for (char *line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n"))
		if (strcmp(line, "{") != 0 && strcmp(line, "}") != 0)
			fa_strv_push(out, line);
	free(text);
}

static void step_name(char out[32], int i)
{
	snprintf(out, 32, "step/%d", i);
}

static void review_rows(struct tui_rows *out, const struct tui_model *m)
{
	const struct fa_plan *p = m->plan;
	char name[32];
	for (size_t i = 0; p && i < p->n_actions; i++)
		tui_rows_add(out, ROW_ACTION, (int)i, 0, true);
	for (size_t i = 0; p && i < p->n_steps; i++) {
		struct fa_strv lines = FA_STRV_INIT;
		tui_rows_add(out, ROW_STEP, (int)i, 0, true);
		step_name(name, (int)i);
		if (tui_open(m, name))
			detail_lines(&lines, &p->steps[i]);
		for (size_t k = 0; k < lines.n; k++)
			tui_rows_add(out, ROW_DETAIL, (int)i, (int)k, true);
		fa_strv_release(&lines);
	}
	for (size_t i = 0; p && i < p->n_warnings; i++)
		tui_rows_add(out, ROW_WARNING, (int)i, 0, true);
}

static void put_minutes(struct tui_grid *g, int at, int end, int seconds)
{
	char text[32];
	if (seconds < 0)
		return;
	snprintf(text, sizeof text, "%.1f", seconds / 60.0);
	tui_put_right(g, at, end, TUI_TEXT, text);
}

static void draw_step(struct tui_grid *g, const struct tui_model *m, int i, int at)
{
	const struct fa_step *s = &m->plan->steps[i];
	int end = tui_width(m);
	char text[32];
	snprintf(text, sizeof text, "%d", i + 1);
	tui_put_right(g, at, 4, TUI_TEXT, text);
	tui_put_name(g, at, 5, end - 28, TUI_TEXT, s->title ? s->title : fa_step_word(s->kind));
	tui_put(g, at, end - 27, end - 16, TUI_TEXT, fa_step_word(s->kind));
	if (s->bytes >= 0) {
		snprintf(text, sizeof text, "%.1f", (double)s->bytes / 1e6);
		tui_put_right(g, at, end - 8, TUI_TEXT, text);
	}
	put_minutes(g, at, end - 1, s->estimate_s);
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	struct fa_strv lines = FA_STRV_INIT;
	if (r->kind == ROW_ACTION) {
		tui_put_sign(g, at, 3, TUI_SIGN_FAIL);
		tui_putf(g, at, 5, tui_width(m), TUI_TEXT, "first: %s", m->plan->actions[r->index].text);
	} else if (r->kind == ROW_WARNING) {
		tui_put_sign(g, at, 3, TUI_SIGN_WARN);
		tui_put_name(g, at, 5, tui_width(m), TUI_TEXT, m->plan->warnings[r->index].text);
	} else if (r->kind == ROW_STEP) {
		draw_step(g, m, r->index, at);
	} else {
		detail_lines(&lines, &m->plan->steps[r->index]);
		if ((size_t)r->sub < lines.n)
			tui_put_path(g, at, 7, tui_width(m), TUI_DIM, lines.v[r->sub]);
		fa_strv_release(&lines);
	}
}

static bool downloads(enum fa_step_kind k)
{
	return k == FA_STEP_FETCH || k == FA_STEP_CLONE || k == FA_STEP_PIP || k == FA_STEP_TOOLKIT;
}

static void draw_total(struct tui_grid *g, const struct tui_model *m, int row, const char *name, const char *text)
{
	tui_put(g, row, 3, 14, TUI_DIM, name);
	tui_put_name(g, row, 14, tui_width(m), TUI_TEXT, text);
}

/* Sums over the steps; what has no figure is counted. */
struct sums {
	int64_t bytes;
	int seconds, downloads, without_bytes, without_time;
};

static struct sums sum_up(const struct fa_plan *p)
{
	struct sums s = { 0 };
	for (size_t i = 0; i < p->n_steps; i++) {
		const struct fa_step *step = &p->steps[i];
		s.without_time += step->estimate_s < 0;
		s.seconds += step->estimate_s > 0 ? step->estimate_s : 0;
		if (!downloads(step->kind))
			continue;
		s.downloads++;
		s.without_bytes += step->bytes < 0;
		s.bytes += step->bytes > 0 ? step->bytes : 0;
	}
	return s;
}

static void say_download(char *out, size_t size, const struct tui_model *m)
{
	struct sums s = sum_up(m->plan);
	int64_t disk = fa_facts_number(m->facts, FA_FACT_DISK_FREE_MIB, -1);
	char sum[32], have[32], text[128];
	if (!s.downloads)
		snprintf(text, sizeof text, "nothing");
	else if (s.without_bytes == s.downloads)
		snprintf(text, sizeof text, "size not known before the index answers");
	else
		snprintf(text, sizeof text, "%s%s", tui_bytes(sum, s.bytes),
		         s.without_bytes ? " and what the index names" : "");
	if (disk >= 0)
		snprintf(out, size, "%s; %s GiB of disk are free", text, tui_gib(have, disk));
	else
		snprintf(out, size, "%s; free disk not known", text);
}

static void say_time(char *out, size_t size, const struct tui_model *m)
{
	struct sums s = sum_up(m->plan);
	const struct fa_plan_build *b = &m->plan->choice.build;
	int64_t there = fa_facts_number(m->facts, FA_FACT_RAM_AVAILABLE_MIB, -1);
	char sum[32], need[32], have[32] = "?";
	if (!s.seconds)
		snprintf(out, size, "not known yet");
	else
		snprintf(out, size, "about %s%s", tui_duration(sum, s.seconds),
		         s.without_time ? " and the steps without a figure" : "");
	size_t len = strlen(out);
	if (there >= 0)
		tui_gib(have, there);
	if (b->wanted && b->peak_mib > 0)
		snprintf(out + len, size - len, "; %s of %s GiB of memory at the peak", tui_gib(need, b->peak_mib), have);
}

/* Is the torch of the choice the one that is there? Versions there carry a label that the choice has not. */
static bool keeps_torch(const struct tui_model *m)
{
	const char *torch = fa_facts_text(m->facts, FA_FACT_TORCH), *chosen = m->plan->choice.torch;
	size_t len = chosen ? strlen(chosen) : 0;
	return torch && *torch && chosen && !strncmp(torch, chosen, len) && (!torch[len] || torch[len] == '+');
}

static void say_change(char *out, size_t size, const struct tui_model *m)
{
	const struct fa_choice *c = &m->plan->choice;
	bool kept = tui_same(c->route, "keep");
	if (c->package && c->flash_attn)
		snprintf(out, size, kept ? "nothing: %s %s is there" : "%s %s is added", c->package, c->flash_attn);
	else
		snprintf(out, size, "no package is added");
	size_t len = strlen(out);
	if (keeps_torch(m))
		snprintf(out + len, size - len, "; torch %s and the system stay", fa_facts_text(m->facts, FA_FACT_TORCH));
	else if (c->torch)
		snprintf(out + len, size - len, ", with torch %s%s%s; the system stays", c->torch, c->torch_build ? "+" : "",
		         c->torch_build ? c->torch_build : "");
}

static void say_lock(char *out, size_t size, const struct tui_model *m)
{
	if (m->start.lock_path)
		snprintf(out, size, "%s is reproduced when it exists, else written", m->start.lock_path);
	else if (m->start.write_lock_path)
		snprintf(out, size, "%s is written unless a check does not hold", m->start.write_lock_path);
	else
		snprintf(out, size, "none is written");
}

static int review_height(const struct tui_model *m, const struct tui_rows *rows)
{
	int room = tui_body_end(m) - TUI_BODY - 1 - FOOT_LINES;
	return (int)rows->n < room ? (int)rows->n : room;
}

static void draw_foot(struct tui_grid *g, const struct tui_model *m, int row)
{
	static const struct {
		const char *name;
		void (*say)(char *, size_t, const struct tui_model *);
	} totals[] = { { "Download", say_download }, { "Time", say_time }, { "Change", say_change }, { "Lock", say_lock } };
	char text[256], *command = tui_command(m);
	for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
		totals[i].say(text, sizeof text, m);
		draw_total(g, m, row++, totals[i].name, text);
	}
	tui_put_wrapped(g, row + 1, row + 2, 3, tui_width(m), TUI_STRONG, command);
	free(command);
}

static void review_headline(struct tui_grid *g, const struct tui_model *m)
{
	const struct fa_plan *p = m->plan;
	if (m->reading)
		tui_headline(g, m, "The machine is being read again ...");
	else if (!p)
		tui_headline(g, m, "There is no plan.");
	else if (p->status == FA_PLAN_ACTION)
		tui_headline(g, m, "Nothing has been changed yet. What is marked comes first, then this is done.");
	else if (!p->n_steps)
		tui_headline(g, m, "Nothing has to be installed. Start verifies what is there.");
	else
		tui_headline(g, m, "Nothing has been changed yet. This is all that will be done.");
}

static void review_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	int end = tui_width(m), height = review_height(m, rows);
	review_headline(g, m);
	if (!m->plan)
		return;
	tui_put(g, TUI_BODY, 5, 30, TUI_DIM, "Step");
	tui_put(g, TUI_BODY, end - 27, end, TUI_DIM, "Kind");
	tui_put_right(g, TUI_BODY, end - 8, TUI_DIM, "MB");
	tui_put_right(g, TUI_BODY, end - 1, TUI_DIM, "min");
	tui_draw_list(g, m, rows, TUI_BODY + 1, TUI_BODY + 1 + height, draw_row);
	draw_foot(g, m, TUI_BODY + 2 + height);
}

static void review_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	if (at && at->kind == ROW_ACTION && m->plan->actions[at->index].command)
		snprintf(out, size, "Command: %s", m->plan->actions[at->index].command);
	else if (at && at->kind == ROW_WARNING)
		snprintf(out, size, "%s", m->plan->warnings[at->index].text);
	else if (m->start.foreign)
		snprintf(out, size, "The plan is for another machine: nothing is started here. Run the command there.");
	else
		snprintf(out, size, "The command does the same without the wizard.");
}

static void review_pane(struct fa_strv *out, const struct tui_model *m, const struct tui_row *at)
{
	if (!at || (at->kind != ROW_STEP && at->kind != ROW_DETAIL))
		return;
	fa_strv_pushf(out, "Step %d: %s", at->index + 1, fa_step_word(m->plan->steps[at->index].kind));
	detail_lines(out, &m->plan->steps[at->index]);
	for (size_t i = 1; i < out->n; i++) /* tabs of the JSON */
		memmove(out->v[i], out->v[i] + strspn(out->v[i], "\t"), strlen(out->v[i] + strspn(out->v[i], "\t")) + 1);
}

static void start(struct tui_model *m)
{
	if (m->now_ms - m->enter_ms < ANEW_MS) {
		tui_say(m, "Look at it first, then press Enter again: it starts the work.");
	} else if (m->start.foreign) {
		m->want |= TUI_WANT_QUIT;
	} else if (tui_blocked(m)) {
		m->want |= TUI_WANT_FACTS | TUI_WANT_PLAN;
		m->reading = true;
	} else if (m->plan && m->plan->status == FA_PLAN_READY) {
		m->want |= TUI_WANT_START;
		tui_work_start(&m->work, m->plan, m->now_ms);
		tui_go(m, TUI_INSTALL_SCREEN);
	}
}

static void toggle(struct tui_model *m, const struct tui_row *at, int way)
{
	char name[32];
	if (!at || (at->kind != ROW_STEP && at->kind != ROW_DETAIL))
		return;
	step_name(name, at->index);
	bool open = way ? way > 0 : !tui_open(m, name);
	if (!open && at->kind == ROW_DETAIL)
		m->cursor[m->screen] -= at->sub + 1;
	tui_set_open(m, name, open);
}

static void review_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	switch (action) {
	case TUI_ACT_NEXT: start(m); break;
	case TUI_ACT_BACK: tui_go(m, TUI_TREE_SCREEN); break;
	case TUI_ACT_CHOOSE: toggle(m, at, 0); break;
	case TUI_ACT_OPEN: toggle(m, at, 1); break;
	case TUI_ACT_CLOSE: toggle(m, at, -1); break;
	case TUI_ACT_COPY: tui_copy(m, tui_command(m)); break;
	default: break;
	}
}

static const char *review_enter(const struct tui_model *m)
{
	if (m->reading || !m->plan)
		return NULL;
	return m->start.foreign ? "Finish" : tui_blocked(m) ? "Check again" : "Start";
}

const struct tui_screen_def tui_review_screen = {
	.title = "Review",
	.rows = review_rows,
	.list_height = review_height,
	.draw = review_draw,
	.act = review_act,
	.enter = review_enter,
	.hint = review_hint,
	.pane = review_pane,
};
