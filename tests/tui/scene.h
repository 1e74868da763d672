/* A scene is a text file that plays the wizard without a terminal: facts, plan, keys and events in, state and screen out. One line
 * does one thing; the words are in `scene_words` below. Used by the tests of tui/. */
#ifndef TESTS_TUI_SCENE_H
#define TESTS_TUI_SCENE_H

#include "fainstall.h"
#include "tui/draw.h"
#include "tui/screen.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
	struct tui_model m;
	struct fa_facts facts;
	struct fa_plan plans[16]; /* every plan that was shown: the model borrows them */
	int n_plans;
	char *replan;         /* file of the plan that the next TUI_WANT_PLAN gets */
	struct fa_strv texts; /* owns what tui_start borrows */
	char error[1024];
};

static inline void scene_fail(struct scene *s, const char *what, const char *found)
{
	snprintf(s->error, sizeof s->error, "%s: found \"%.900s\"", what, found ? found : "");
}

static inline struct fa_json *scene_json(struct scene *s, const char *file)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	char *path = fa_path_join("tests/data/tui", file);
	if (fa_json_read_file(&j, path, &err) < 0)
		scene_fail(s, "reading", err.text);
	free(path);
	return j;
}

static inline void scene_facts(struct scene *s, const char *file)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = scene_json(s, file);
	fa_facts_release(&s->facts);
	if (j && fa_facts_from_json(&s->facts, j, file, &err) < 0)
		scene_fail(s, "facts", err.text);
	tui_model_set_facts(&s->m, &s->facts);
	fa_json_free(j);
}

static inline void scene_plan(struct scene *s, const char *file)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = scene_json(s, file);
	struct fa_plan *p = &s->plans[s->n_plans++ % 16];
	if (j && fa_plan_from_json(p, j, file, &err) < 0)
		scene_fail(s, "plan", err.text);
	tui_model_set_plan(&s->m, p, NULL);
	fa_json_free(j);
}

static inline void scene_no_plan(struct scene *s, const char *text)
{
	struct fa_err err = FA_ERR_INIT;
	fa_err_set(&err, FA_INTERNAL, "%s", text);
	fa_err_next(&err, "take the release's own matrix/ folder");
	tui_model_set_plan(&s->m, NULL, &err);
}

static inline void scene_wish(struct scene *s, const char *text)
{
	struct fa_strv words = FA_STRV_INIT;
	fa_strv_split(&words, text, " ");
	tui_wish_words(&s->m, &words);
	s->m.want = 0;
	s->m.undoable = false;
	s->m.reading = false;
	fa_strv_release(&words);
}

static inline uint32_t scene_key(const char *word)
{
	static const struct {
		const char *name;
		uint32_t key;
	} names[] = { { "Enter", '\r' },
		      { "Space", ' ' },
		      { "Esc", 27 },
		      { "Tab", '\t' },
		      { "Up", TUI_KEY_UP },
		      { "Down", TUI_KEY_DOWN },
		      { "Left", TUI_KEY_LEFT },
		      { "Right", TUI_KEY_RIGHT },
		      { "Home", TUI_KEY_HOME },
		      { "End", TUI_KEY_END },
		      { "PgUp", TUI_KEY_PAGE_UP },
		      { "PgDn", TUI_KEY_PAGE_DOWN },
		      { "Backspace", TUI_KEY_BACKSPACE },
		      { "F1", TUI_KEY_F1 },
		      { "F10", TUI_KEY_F10 },
		      { "Ctrl-C", 3 },
		      { "Ctrl-L", 12 },
		      { "Ctrl-U", 21 },
		      { "Ctrl-Z", 26 } };
	uint32_t ch = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i].name, word))
			return names[i].key;
	tui_utf8_next(&ch, word);
	return ch;
}

/* A person takes a while between two keys. */
static inline void scene_press(struct scene *s, uint32_t key)
{
	tui_model_tick(&s->m, s->m.now_ms + 300);
	tui_model_key(&s->m, key);
	if ((s->m.want & TUI_WANT_PLAN) && s->replan) {
		char *file = s->replan;
		s->replan = NULL;
		scene_plan(s, file);
		s->m.want &= ~(unsigned)TUI_WANT_PLAN;
		free(file);
	}
}

/* "Down*3" presses it three times. */
static inline void scene_keys(struct scene *s, const char *text)
{
	struct fa_strv words = FA_STRV_INIT;
	fa_strv_split(&words, text, " ");
	for (size_t i = 0; i < words.n; i++) {
		char *star = strchr(words.v[i] + 1, '*');
		int times = star ? atoi(star + 1) : 1;
		if (star)
			*star = '\0';
		for (int k = 0; k < times; k++)
			scene_press(s, scene_key(words.v[i]));
	}
	fa_strv_release(&words);
}

static inline void scene_type(struct scene *s, const char *text)
{
	uint32_t ch;
	for (int len; (len = tui_utf8_next(&ch, text)) > 0; text += len)
		scene_press(s, ch);
}

static inline void scene_event(struct scene *s, const char *text)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	struct fa_event e;
	if (fa_json_parse(&j, text, strlen(text), "event", &err) < 0 || fa_event_from_json(&e, j, &err) < 0)
		scene_fail(s, "event", err.text);
	else
		tui_model_event(&s->m, &e);
	fa_json_free(j);
}

static inline void scene_tick(struct scene *s, const char *text)
{
	tui_model_tick(&s->m, atoll(text));
}

static inline void scene_size(struct scene *s, const char *text)
{
	tui_model_resize(&s->m, atoi(text), atoi(strchr(text, ' ') ? strchr(text, ' ') : "0"));
}

static inline void scene_start(struct scene *s, const char *text)
{
	char *value = strchr(text, ' ') ? strchr(text, ' ') + 1 : NULL;
	if (!strcmp(text, "foreign"))
		s->m.start.foreign = true;
	if (!value)
		return;
	fa_strv_push(&s->texts, value);
	const char *kept = s->texts.v[s->texts.n - 1];
	if (!strncmp(text, "active ", 7))
		s->m.start.active_env = kept;
	else if (!strncmp(text, "lock ", 5))
		s->m.start.lock_path = kept;
	else
		s->m.start.write_lock_path = kept;
}

static inline void scene_replan(struct scene *s, const char *text)
{
	free(s->replan);
	s->replan = fa_strdup(text);
}

/* ---- what must be */

static inline void scene_is_screen(struct scene *s, const char *text)
{
	const char *found = tui_screens[s->m.screen]->title;
	if (strcmp(found, text) != 0)
		scene_fail(s, "screen", found);
}

static inline void scene_is_want(struct scene *s, const char *text)
{
	static const char *const words[] = { "plan", "facts", "start", "stop", "quit", "plain", "redraw", "suspend", "copy" };
	struct fa_strv found = FA_STRV_INIT;
	for (int i = 0; i < 9; i++)
		if (s->m.want & 1u << i)
			fa_strv_push(&found, words[i]);
	char *joined = fa_strv_join(&found, " ");
	if (strcmp(joined, text) != 0)
		scene_fail(s, "want", joined);
	s->m.want = 0;
	free(joined);
	fa_strv_release(&found);
}

static inline void scene_is_command(struct scene *s, const char *text)
{
	char *found = tui_command(&s->m);
	if (strcmp(found, text) != 0)
		scene_fail(s, "command", found);
	free(found);
}

static inline void scene_is_hint(struct scene *s, const char *text)
{
	if (strcmp(s->m.hint, text) != 0)
		scene_fail(s, "hint", s->m.hint);
}

static inline void scene_is_exit(struct scene *s, const char *text)
{
	char found[16];
	snprintf(found, sizeof found, "%d", s->m.exit);
	if (strcmp(found, text) != 0)
		scene_fail(s, "exit", found);
}

/* Is the text anywhere on the screen? */
static inline void scene_shows(struct scene *s, const char *text, bool wanted)
{
	struct tui_grid g = TUI_GRID_INIT;
	struct fa_buf row = FA_BUF_INIT;
	bool found = false;
	tui_draw(&g, &s->m);
	for (int r = 0; r < g.rows; r++) {
		fa_buf_reset(&row);
		for (int c = 0; c < g.cols; c++) {
			char bytes[5];
			if (g.cells[r * g.cols + c].width)
				fa_buf_add(&row, bytes, (size_t)tui_utf8_put(bytes, g.cells[r * g.cols + c].ch));
		}
		found |= strstr(fa_buf_str(&row), text) != NULL;
	}
	if (found != wanted)
		scene_fail(s, wanted ? "not on the screen" : "on the screen", text);
	fa_buf_release(&row);
	tui_grid_release(&g);
}

static inline void scene_sees(struct scene *s, const char *text)
{
	scene_shows(s, text, true);
}

static inline void scene_hides(struct scene *s, const char *text)
{
	scene_shows(s, text, false);
}

static inline void scene_mode(struct scene *s, const char *text)
{
	(void)s;
	(void)text; /* read by the screens test */
}

static const struct scene_word {
	const char *word;
	void (*run)(struct scene *s, const char *text);
} scene_words[] = {
	{ "facts", scene_facts },     { "plan", scene_plan },
	{ "no-plan", scene_no_plan }, { "replan", scene_replan },
	{ "wish", scene_wish },       { "start", scene_start },
	{ "keys", scene_keys },       { "type", scene_type },
	{ "event", scene_event },     { "tick", scene_tick },
	{ "size", scene_size },       { "screen-is", scene_is_screen },
	{ "want-is", scene_is_want }, { "command-is", scene_is_command },
	{ "hint-is", scene_is_hint }, { "exit-is", scene_is_exit },
	{ "sees", scene_sees },       { "hides", scene_hides },
	{ "roles", scene_mode },
};

static inline void scene_init(struct scene *s)
{
	memset(s, 0, sizeof *s);
	tui_model_init(&s->m, NULL, NULL);
	tui_model_set_facts(&s->m, &s->facts);
}

static inline void scene_release(struct scene *s)
{
	tui_model_release(&s->m);
	fa_facts_release(&s->facts);
	for (int i = 0; i < 16; i++)
		fa_plan_release(&s->plans[i]);
	fa_strv_release(&s->texts);
	free(s->replan);
}

static inline void scene_line(struct scene *s, char *line)
{
	size_t len = strcspn(line, " ");
	for (size_t i = 0; i < sizeof scene_words / sizeof *scene_words; i++) {
		if (strlen(scene_words[i].word) == len && !strncmp(scene_words[i].word, line, len)) {
			scene_words[i].run(s, line + len + (line[len] == ' '));
			return;
		}
	}
	scene_fail(s, "unknown word", line);
}

/* Plays a file; 0, or the number of the line that did not hold, said in s->error. */
static inline int scene_play(struct scene *s, const char *path)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	int n = 0, bad = 0;
	if (fa_file_read(&text, path, FA_FILE_MAX, &err) < 0) {
		scene_fail(s, "reading", err.text);
		return 1;
	}
	for (char *line = text.data, *next; line && *line && !bad; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		n++;
		if (*line && *line != '#')
			scene_line(s, line);
		bad = s->error[0] ? n : 0;
	}
	fa_buf_release(&text);
	return bad;
}

#endif
