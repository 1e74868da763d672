/* What one screen is to the model and to draw: its lines, what keys do there, how it looks. One table of them, screens.c. */
#ifndef TUI_SCREEN_H
#define TUI_SCREEN_H

#include "grid.h"
#include "model.h"

/* One line of a screen's list. What kind, index and sub mean is the screen's own affair. */
struct tui_row {
	int kind;
	int index, sub;
	bool stop; /* the cursor may stand here */
};

struct tui_rows {
	struct tui_row *v;
	size_t n, cap;
};

void tui_rows_add(struct tui_rows *r, int kind, int index, int sub, bool stop);
void tui_rows_release(struct tui_rows *r);

struct tui_screen_def {
	const char *title;
	void (*rows)(struct tui_rows *out, const struct tui_model *m); /* NULL: no list */
	int (*list_height)(const struct tui_model *m, const struct tui_rows *rows);
	void (*draw)(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows);
	void (*act)(struct tui_model *m, enum tui_action action, const struct tui_row *at); /* at: NULL without list */
	const char *(*enter)(const struct tui_model *m); /* the verb of Enter; NULL: it does nothing now */
	void (*hint)(char *out, size_t size, const struct tui_model *m, const struct tui_row *at); /* row 22 */
	/* Lines for the pane at the right of a wide terminal: what 80 columns fold. The first is its head. NULL: no pane. */
	void (*pane)(struct fa_strv *out, const struct tui_model *m, const struct tui_row *at);
};

extern const struct tui_screen_def *const tui_screens[TUI_SCREEN_COUNT];
extern const struct tui_screen_def tui_machine_screen, tui_goal_screen, tui_tree_screen, tui_review_screen, tui_install_screen,
        tui_verify_screen, tui_done_screen, tui_failed_screen;

/* The row under the cursor; NULL: none. `rows` are those of m->screen. */
const struct tui_row *tui_at(const struct tui_model *m, const struct tui_rows *rows);

/* Lines of the frame, from 0: HEADLINE, BODY and the last line of the body. */
enum { TUI_HEADLINE = 2, TUI_SECOND = 3, TUI_BODY = 4 };
int tui_body_end(const struct tui_model *m); /* one past the last line of the body */
int tui_width(const struct tui_model *m);    /* one past the last column of text; beside a pane, and never more than 101 */
void tui_headline(struct tui_grid *g, const struct tui_model *m, const char *text);
void tui_second(struct tui_grid *g, const struct tui_model *m, const char *text);

/* Draws the lines of rows that fit between `first` and `end`, with `3 above` and `12 more` where some do not; line() draws one
 * of them. The cursor's line is marked. */
void tui_draw_list(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows, int first, int end,
                   void (*line)(struct tui_grid *g, const struct tui_model *m, const struct tui_row *row, int at));

/* Texts. All write into `out` and return it. */
const char *tui_thousands(char out[32], int64_t n);
const char *tui_gib(char out[32], int64_t mib);         /* "125.4" */
const char *tui_bytes(char out[32], int64_t bytes);     /* "8.4 MB" */
const char *tui_duration(char out[32], double seconds); /* "10 min 12 s" */
const char *tui_number_word(char out[32], int n, bool capital);
bool tui_same(const char *a, const char *b); /* NULL equals NULL only */

/* The footer and help: what keys.def says for this place. */
enum tui_action tui_key_action(const struct tui_model *m, uint32_t key);
bool tui_key_possible(const struct tui_model *m, enum tui_action action);
void tui_draw_footer(struct tui_grid *g, const struct tui_model *m);
void tui_draw_help(struct tui_grid *g, const struct tui_model *m);
int tui_help_lines(const struct tui_model *m);

/* What stands in the way before the plan can be executed, on the machine: actions of the plan. */
bool tui_blocked(const struct tui_model *m);

#endif
