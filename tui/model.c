/* State and its changes. */
#include "model.h"

#include "screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tui_model_init(struct tui_model *m, const struct tui_start *start, const struct fa_wish *wish)
{
	*m = (struct tui_model){ .rows = 24, .cols = 80 };
	if (start)
		m->start = *start;
	if (wish)
		fa_wish_copy(&m->wish, wish);
	tui_work_init(&m->work);
}

void tui_model_release(struct tui_model *m)
{
	fa_wish_release(&m->wish);
	fa_wish_release(&m->before);
	fa_strv_release(&m->open);
	fa_strv_release(&m->changed);
	free(m->copied);
	free(m->take_wish);
	tui_work_release(&m->work);
	*m = (struct tui_model){ 0 };
}

bool tui_model_small(const struct tui_model *m)
{
	return m->rows < 24 || m->cols < 80;
}

void tui_say(struct tui_model *m, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(m->hint, sizeof m->hint, fmt, ap);
	va_end(ap);
}

void tui_ask(struct tui_model *m, enum tui_question question, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(m->hint, sizeof m->hint, fmt, ap);
	va_end(ap);
	m->question = question;
	m->overlay = TUI_QUESTION_OVERLAY;
}

bool tui_open(const struct tui_model *m, const char *name)
{
	return fa_strv_has(&m->open, name);
}

void tui_set_open(struct tui_model *m, const char *name, bool open)
{
	struct fa_strv rest = FA_STRV_INIT;
	for (size_t i = 0; i < m->open.n; i++)
		if (strcmp(m->open.v[i], name) != 0)
			fa_strv_push(&rest, m->open.v[i]);
	if (open)
		fa_strv_push(&rest, name);
	fa_strv_release(&m->open);
	m->open = rest;
}

/* ---- the cursor and what of a list is shown */

static bool stands(const struct tui_rows *rows, int at)
{
	return at >= 0 && (size_t)at < rows->n && rows->v[at].stop;
}

/* From `at` on in one direction to a row where the cursor may stand; else the nearest in the other; -1 when there is none. */
static int settle(const struct tui_rows *rows, int at, int direction)
{
	int n = (int)rows->n;
	at = at < 0 ? 0 : at >= n ? n - 1 : at;
	for (int i = at; i >= 0 && i < n; i += direction)
		if (stands(rows, i))
			return i;
	for (int i = at; i >= 0 && i < n; i -= direction)
		if (stands(rows, i))
			return i;
	return -1;
}

static void fix_scroll(struct tui_model *m, const struct tui_rows *rows, int height)
{
	int n = (int)rows->n, at = m->cursor[m->screen], *top = &m->top[m->screen];
	if (height < 3 || n <= height) {
		*top = 0;
		return;
	}
	if (at < *top + 1)
		*top = at - 1;
	if (at > *top + height - 2)
		*top = at - height + 2;
	*top = *top > n - height ? n - height : *top;
	*top = *top <= 0 || at == 0 ? 0 : *top;
}

static void fix_list(struct tui_model *m)
{
	const struct tui_screen_def *s = tui_screens[m->screen];
	struct tui_rows rows = { 0 };
	if (!s->rows || !m->facts)
		return;
	s->rows(&rows, m);
	m->cursor[m->screen] = settle(&rows, m->cursor[m->screen], 1);
	fix_scroll(m, &rows, s->list_height ? s->list_height(m, &rows) : tui_body_end(m) - TUI_BODY);
	tui_rows_release(&rows);
}

static void move(struct tui_model *m, const struct tui_rows *rows, int by)
{
	int at = m->cursor[m->screen], step = by < 0 ? -1 : 1;
	int to = settle(rows, at + by, step);
	if (to == at || (by < 0) != (to < at)) /* nothing further in this direction */
		to = settle(rows, by < 0 ? 0 : (int)rows->n - 1, -step);
	if (to >= 0)
		m->cursor[m->screen] = to;
}

static bool move_cursor(struct tui_model *m, enum tui_action action)
{
	struct tui_rows rows = { 0 };
	int page = tui_body_end(m) - TUI_BODY - 2, by = 0;
	switch (action) {
	case TUI_ACT_UP: by = -1; break;
	case TUI_ACT_DOWN: by = 1; break;
	case TUI_ACT_PAGE_UP: by = -page; break;
	case TUI_ACT_PAGE_DOWN: by = page; break;
	case TUI_ACT_FIRST: by = -100000; break;
	case TUI_ACT_LAST: by = 100000; break;
	default: return false;
	}
	if (tui_screens[m->screen]->rows) {
		tui_screens[m->screen]->rows(&rows, m);
		move(m, &rows, by);
		tui_rows_release(&rows);
	}
	return true;
}

/* ---- changes from outside */

void tui_go(struct tui_model *m, enum tui_screen screen)
{
	m->screen = screen;
	if (screen != TUI_FAILED_SCREEN && screen > m->furthest)
		m->furthest = screen;
	m->overlay = TUI_NO_OVERLAY;
	m->overlay_top = 0;
	fix_list(m);
}

void tui_model_set_facts(struct tui_model *m, const struct fa_facts *facts)
{
	m->facts = facts;
	m->reading = false;
}

static const struct fa_node *find_node(const struct fa_plan *p, const char *question)
{
	for (size_t i = 0; p && i < p->n_tree; i++)
		if (tui_same(p->tree[i].question, question))
			return &p->tree[i];
	return NULL;
}

static void mark_changes(struct tui_model *m, const struct fa_plan *old, const struct fa_plan *now)
{
	fa_strv_release(&m->changed);
	for (size_t i = 0; old && now && i < now->n_tree; i++) {
		const struct fa_node *before = find_node(old, now->tree[i].question);
		if (now->tree[i].question && (!before || !tui_same(before->taken, now->tree[i].taken)))
			fa_strv_push(&m->changed, now->tree[i].question);
	}
}

void tui_model_set_plan(struct tui_model *m, const struct fa_plan *plan, const struct fa_err *err)
{
	mark_changes(m, m->plan, plan);
	m->plan = plan;
	m->plan_err = err && !plan ? *err : (struct fa_err)FA_ERR_INIT;
	fix_list(m);
}

void tui_model_resize(struct tui_model *m, int rows, int cols)
{
	m->rows = rows;
	m->cols = cols;
	fix_list(m);
}

void tui_model_tick(struct tui_model *m, int64_t now_ms)
{
	m->now_ms = now_ms;
}

static void work_over(struct tui_model *m)
{
	const struct tui_work *w = &m->work;
	bool quitting = m->question == TUI_ASK_QUIT && (w->stopping || w->draining);
	m->exit = (int)w->code;
	m->hint[0] = '\0';
	if (m->overlay == TUI_QUESTION_OVERLAY)
		m->overlay = TUI_NO_OVERLAY;
	if (quitting)
		m->want |= TUI_WANT_QUIT;
	else if (w->code != FA_OK)
		tui_go(m, TUI_FAILED_SCREEN);
	else
		tui_go(m, w->n_checks ? TUI_VERIFY_SCREEN : TUI_DONE_SCREEN);
}

void tui_model_event(struct tui_model *m, const struct fa_event *e)
{
	struct tui_work *w = &m->work;
	if (!w->started || !w->running)
		return;
	size_t before = w->log_n;
	tui_work_event(w, e, m->now_ms);
	if (m->overlay == TUI_LOG_OVERLAY && m->overlay_top > 0) /* lines that are being read stay where they are */
		m->overlay_top += (int)(w->log_n - before);
	if (!w->running)
		work_over(m);
	else if (w->verifying && m->screen == TUI_INSTALL_SCREEN && m->overlay == TUI_NO_OVERLAY)
		tui_go(m, TUI_VERIFY_SCREEN);
}

void tui_edit(struct tui_model *m, enum fa_wish_id id)
{
	const char *value = fa_wish_get(&m->wish, id);
	m->entry_wish = id;
	snprintf(m->entry, sizeof m->entry, "%s", value ? value : "");
	m->overlay = TUI_ENTRY_OVERLAY;
}

/* The wish before a change becomes what Undo returns to. */
static void changed(struct tui_model *m, struct fa_wish *was)
{
	bool env = !tui_same(fa_wish_get(was, FA_WISH_ENV), fa_wish_get(&m->wish, FA_WISH_ENV));
	fa_wish_release(&m->before);
	m->before = *was;
	m->undoable = true;
	m->want |= TUI_WANT_PLAN | (env ? TUI_WANT_FACTS : 0);
	m->reading = m->reading || env;
}

void tui_wish(struct tui_model *m, enum fa_wish_id id, const char *value)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_wish was = FA_WISH_INIT;
	if (tui_same(fa_wish_get(&m->wish, id), value))
		return;
	fa_wish_copy(&was, &m->wish);
	if (value && fa_wish_set(&m->wish, id, value, &err) < 0) {
		tui_say(m, "%.500s", err.text);
		fa_wish_release(&was);
		return;
	}
	if (!value) {
		free(m->wish.v[id]);
		m->wish.v[id] = NULL;
	}
	changed(m, &was);
}

void tui_wish_words(struct tui_model *m, const struct fa_strv *words)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_wish was = m->wish;
	m->wish = (struct fa_wish)FA_WISH_INIT;
	for (size_t i = 0; i < words->n; i++) {
		enum fa_wish_id id;
		if (strncmp(words->v[i], "--", 2) != 0 || fa_wish_find(&id, words->v[i] + 2) < 0)
			continue;
		bool flag = fa_wish_row(id)->kind == FA_WISH_FLAG;
		if (!flag && i + 1 == words->n)
			break;
		if (fa_wish_set(&m->wish, id, flag ? "yes" : words->v[++i], &err) < 0)
			tui_say(m, "%.500s", err.text);
	}
	changed(m, &was);
}

void tui_undo(struct tui_model *m)
{
	struct fa_wish was = m->wish;
	if (!m->undoable)
		return;
	m->wish = m->before;
	m->before = (struct fa_wish)FA_WISH_INIT;
	changed(m, &was);
}

void tui_copy(struct tui_model *m, char *text)
{
	free(m->copied);
	m->copied = text;
	m->want |= TUI_WANT_COPY;
	tui_say(m, "Copied, where the terminal allows it: %.400s", text);
}

static void add_word(struct fa_buf *out, const char *word)
{
	bool plain = word[0] != '\0' &&
	             !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+~@%")];
	fa_buf_addc(out, ' ');
	if (plain) {
		fa_buf_adds(out, word);
		return;
	}
	fa_buf_addc(out, '\'');
	for (; *word; word++)
		*word == '\'' ? fa_buf_adds(out, "'\\''") : fa_buf_addc(out, *word);
	fa_buf_addc(out, '\'');
}

char *tui_command(const struct tui_model *m)
{
	struct fa_strv words = FA_STRV_INIT;
	struct fa_buf out = FA_BUF_INIT;
	fa_buf_adds(&out, "fainstall install");
	fa_wish_argv(&m->wish, &words);
	if (m->start.lock_path || m->start.write_lock_path) {
		fa_strv_push(&words, m->start.lock_path ? "--lock" : "--write-lock");
		fa_strv_push(&words, m->start.lock_path ? m->start.lock_path : m->start.write_lock_path);
	}
	if (m->start.rebuild)
		fa_strv_push(&words, "--rebuild");
	if (m->start.strict)
		fa_strv_push(&words, "--strict");
	for (size_t i = 0; i < words.n; i++)
		add_word(&out, words.v[i]);
	fa_strv_release(&words);
	return fa_buf_detach(&out);
}

/* ---- keys */

static void answer(struct tui_model *m, bool yes)
{
	enum tui_question q = m->question;
	m->overlay = TUI_NO_OVERLAY;
	m->hint[0] = '\0';
	if (q == TUI_ASK_TAKE && yes && m->take_wish) {
		char *value = strchr(m->take_wish, '=');
		enum fa_wish_id id;
		*value++ = '\0';
		if (fa_wish_find(&id, m->take_wish) == 0)
			tui_wish(m, id, value);
	}
	if (!yes || (q != TUI_ASK_QUIT && q != TUI_ASK_STOP)) {
		m->question = TUI_ASK_NOTHING;
		return;
	}
	m->exit = FA_INTERRUPTED;
	if (m->work.running) {
		m->work.stopping = true;
		m->want |= TUI_WANT_STOP;
		tui_say(m, "Stopping what runs ...");
	} else {
		m->want |= TUI_WANT_QUIT;
	}
}

bool tui_may_drain(const struct tui_model *m)
{
	return (m->question == TUI_ASK_STOP || m->question == TUI_ASK_QUIT) && m->work.running && m->work.n_units &&
	       !m->work.draining;
}

static void drain(struct tui_model *m)
{
	m->overlay = TUI_NO_OVERLAY;
	m->hint[0] = '\0';
	m->exit = FA_INTERRUPTED;
	m->work.draining = true;
	m->want |= TUI_WANT_DRAIN;
}

static void question_key(struct tui_model *m, uint32_t key)
{
	if (key == 'y' || key == 'Y')
		answer(m, true);
	else if ((key == 'f' || key == 'F') && tui_may_drain(m))
		drain(m);
	else if (key == 'n' || key == 'N' || key == '\r' || key == '\n' || key == 27 || key == 'q')
		answer(m, false);
}

static void erase_last(char *text)
{
	size_t len = strlen(text);
	while (len > 0 && ((unsigned char)text[len - 1] & 0xC0) == 0x80)
		len--;
	text[len ? len - 1 : 0] = '\0';
}

static void entry_key(struct tui_model *m, uint32_t key)
{
	char bytes[5];
	m->hint[0] = '\0';
	if (key == 27) {
		m->overlay = TUI_NO_OVERLAY;
	} else if (key == '\r' || key == '\n') {
		tui_wish(m, m->entry_wish, m->entry[0] ? m->entry : NULL);
		if (!m->hint[0])
			m->overlay = TUI_NO_OVERLAY;
	} else if (key == TUI_KEY_BACKSPACE || key == 8 || key == 127) {
		erase_last(m->entry);
	} else if (key == 21) { /* Ctrl-U */
		m->entry[0] = '\0';
	} else if (key >= ' ' && key < TUI_KEY_UP && strlen(m->entry) + 5 < sizeof m->entry) {
		tui_utf8_put(bytes, key);
		strcat(m->entry, bytes);
	}
}

/* Units that compile are lost when they are stopped: where there are some, there is a third answer. */
static void ask_to_stop(struct tui_model *m, bool leave)
{
	const struct tui_work *w = &m->work;
	enum tui_question q = leave ? TUI_ASK_QUIT : TUI_ASK_STOP;
	const char *and_leave = leave ? " and leave" : "";
	char time[32] = "";
	if (!w->n_units || w->draining) {
		tui_ask(m, q, "Stop the work%s? What is finished is kept and not done again. y/N", and_leave);
		return;
	}
	if (w->rest_s > 0)
		tui_duration(time, w->rest_s);
	tui_ask(m, q, "Stop the work%s? The %zu %s that compile%s can finish first%s%s%s. What is finished is kept.", and_leave,
	        w->n_units, w->n_units == 1 ? "unit" : "units", w->n_units == 1 ? "s" : "", time[0] ? ", about " : "", time,
	        "");
}

static void quit(struct tui_model *m, enum tui_action action)
{
	if (m->work.stopping && m->work.running)
		tui_say(m, "Stopping what runs ...");
	else if (m->work.running)
		ask_to_stop(m, action == TUI_ACT_QUIT);
	else if (action == TUI_ACT_CANCEL)
		tui_ask(m, TUI_ASK_QUIT,
		        m->work.started ? "Leave fainstall? y/N" : "Leave fainstall? Nothing was changed. y/N");
	else
		m->want |= TUI_WANT_QUIT;
}

/* The log with this line in the middle. */
static void show_log_line(struct tui_model *m, long line)
{
	long half = (tui_body_end(m) + 1 - TUI_SECOND) / 2, below = (long)m->work.log_n - line - half;
	m->log_mark = line;
	m->overlay_top = below > 0 ? (int)below : 0;
}

void tui_open_log(struct tui_model *m)
{
	long line =
	        m->work.running || m->work.code == FA_OK || m->work.code == FA_INTERRUPTED ? -1 : tui_work_evidence(&m->work);
	m->overlay = TUI_LOG_OVERLAY;
	m->overlay_top = 0;
	m->log_mark = -1;
	if (line >= 0)
		show_log_line(m, line);
}

static void go_to_error(struct tui_model *m, int step)
{
	const struct tui_work *w = &m->work;
	long first = (long)tui_work_first_line(w), line = m->log_mark;
	if (line < first)
		line = step > 0 ? first - 1 : (long)w->log_n;
	for (line += step; line >= first && line < (long)w->log_n; line += step)
		if (tui_work_speaks_of_error(tui_work_line(w, (size_t)line)) || line == tui_work_evidence(w)) {
			show_log_line(m, line);
			return;
		}
	tui_say(m, step > 0 ? "No error further down." : "No error further up.");
}

static void scroll_overlay(struct tui_model *m, enum tui_action action)
{
	int page = tui_body_end(m) - TUI_BODY, sign = m->overlay == TUI_LOG_OVERLAY ? -1 : 1;
	int most = m->overlay == TUI_LOG_OVERLAY ? (int)(m->work.log_n - tui_work_first_line(&m->work)) - page - 2
	                                         : tui_help_lines(m) - (m->rows - 9);
	switch (action) {
	case TUI_ACT_UP: m->overlay_top -= sign; break;
	case TUI_ACT_DOWN: m->overlay_top += sign; break;
	case TUI_ACT_PAGE_UP: m->overlay_top -= sign * page; break;
	case TUI_ACT_PAGE_DOWN: m->overlay_top += sign * page; break;
	case TUI_ACT_FIRST: m->overlay_top = sign > 0 ? 0 : most; break;
	case TUI_ACT_LAST: m->overlay_top = sign > 0 ? most : 0; break;
	case TUI_ACT_NEXT_ERROR: go_to_error(m, 1); break;
	case TUI_ACT_LAST_ERROR: go_to_error(m, -1); break;
	default: break;
	}
	m->overlay_top = m->overlay_top > most ? most : m->overlay_top;
	m->overlay_top = m->overlay_top < 0 ? 0 : m->overlay_top;
}

/* Actions that mean the same on every screen. */
static bool common(struct tui_model *m, enum tui_action action)
{
	switch (action) {
	case TUI_ACT_QUIT:
	case TUI_ACT_CANCEL: quit(m, action); return true;
	case TUI_ACT_REDRAW: m->want |= TUI_WANT_REDRAW; return true;
	case TUI_ACT_SUSPEND: m->want |= TUI_WANT_SUSPEND; return true;
	case TUI_ACT_PLAIN: m->want |= TUI_WANT_PLAIN; return true;
	case TUI_ACT_LOG: tui_open_log(m); return true;
	case TUI_ACT_HELP:
		m->overlay = TUI_HELP_OVERLAY;
		m->overlay_top = 0;
		return true;
	case TUI_ACT_CLOSE_OVERLAY: m->overlay = TUI_NO_OVERLAY; return true;
	default: return false;
	}
}

static void act(struct tui_model *m, enum tui_action action)
{
	const struct tui_screen_def *s = tui_screens[m->screen];
	struct tui_rows rows = { 0 };
	if (!tui_key_possible(m, action) && action != TUI_ACT_CANCEL)
		return;
	if (common(m, action))
		return;
	if (m->overlay == TUI_LOG_OVERLAY || m->overlay == TUI_HELP_OVERLAY) {
		scroll_overlay(m, action);
		return;
	}
	if (move_cursor(m, action))
		return;
	if (s->rows)
		s->rows(&rows, m);
	s->act(m, action, tui_at(m, &rows));
	tui_rows_release(&rows);
}

void tui_model_key(struct tui_model *m, uint32_t key)
{
	enum tui_action action = tui_key_action(m, key);
	if (m->overlay == TUI_QUESTION_OVERLAY && action != TUI_ACT_REDRAW && action != TUI_ACT_SUSPEND) {
		question_key(m, key);
	} else if (m->overlay == TUI_ENTRY_OVERLAY && action == TUI_ACT_NONE) {
		entry_key(m, key);
	} else if (action != TUI_ACT_NONE) {
		m->hint[0] = '\0';
		fa_strv_release(&m->changed);
		act(m, action);
	}
	if (key == '\r' || key == '\n')
		m->enter_ms = m->now_ms;
	fix_list(m);
}
