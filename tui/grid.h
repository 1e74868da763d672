/* A screen as cells: what stands where, and in which role. Draw functions fill it, term.c shows it, tests compare it with text.
 * Rows and columns count from 0. A double-width character fills a cell of width 2 and the one to its right, of width 0. */
#ifndef TUI_GRID_H
#define TUI_GRID_H

#include <stdbool.h>
#include <stdint.h>

/* ROLE(id, letter): why a cell looks different; term.c gives each a colour or attribute, tests the letter. */
#define TUI_ROLES(ROLE) \
	ROLE(TEXT, '.') \
	ROLE(OK, 'o') \
	ROLE(WARN, 'w') \
	ROLE(FAIL, 'f') \
	ROLE(ACCENT, 'a')  /* key names, filled part of a bar */ \
	ROLE(STRONG, 's')  /* the headline */ \
	ROLE(DIM, 'd')     /* heads of tables, rest of a bar */ \
	ROLE(CURSOR, 'c')  /* the row under the cursor */ \
	ROLE(BAR, 'b')     /* header and footer */ \
	ROLE(MARK, 'm')    /* evidence */ \
	ROLE(CHANGED, 'n') /* a value that the last key changed */

enum tui_role {
#define ROLE(id, letter) TUI_##id,
	TUI_ROLES(ROLE)
#undef ROLE
	        TUI_ROLE_COUNT,
};

/* The state of something, by sign; a word stands beside it in every row. */
enum tui_sign {
	TUI_SIGN_NONE,
	TUI_SIGN_OK,
	TUI_SIGN_FAIL,
	TUI_SIGN_WARN,
	TUI_SIGN_UNKNOWN,
	TUI_SIGN_ABSENT,
	TUI_SIGN_RUNNING,
	TUI_SIGN_CLOSED,
	TUI_SIGN_OPEN,
};

struct tui_cell {
	uint32_t ch;
	uint8_t width; /* 1, 2; 0: covered by its left neighbour */
	uint8_t role;
};

struct tui_grid {
	int rows, cols;
	bool ascii; /* every glyph by its one-cell stand-in, other characters by '?' */
	struct tui_cell *cells;
	int caret_row, caret_col; /* where text is typed; -1: nowhere */
};

#define TUI_GRID_INIT \
	{ \
		0, 0, false, 0, -1, -1 \
	}

/* Sets the size and clears. 0 rows or columns is a valid grid that nothing is drawn on. */
void tui_grid_resize(struct tui_grid *g, int rows, int cols);
void tui_grid_clear(struct tui_grid *g);
void tui_grid_release(struct tui_grid *g);

/* Writes text from `col` up to, not including, column `end`; what does not fit is left out, never half a character. Control
 * characters become '?', marks without a width are dropped, typographic quotes and dashes become ASCII, since some terminals
 * draw those two cells wide. Returns the column after the text. Outside of the grid nothing happens. */
int tui_put(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *text);
/* What is too long ends in "...". */
int tui_putf(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *fmt, ...)
        __attribute__((format(printf, 6, 7)));
/* The same for a text; tui_put_path takes the middle out. */
int tui_put_name(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *text);
int tui_put_path(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *text);
/* Ends before column `end`: numbers. */
void tui_put_right(struct tui_grid *g, int row, int end, enum tui_role role, const char *text);
int tui_put_sign(struct tui_grid *g, int row, int col, enum tui_sign sign);
void tui_put_char(struct tui_grid *g, int row, int col, enum tui_role role, uint32_t ch);
/* Gives the cells from col up to end a role, text unchanged; TUI_CURSOR and TUI_BAR so cover whole rows. */
void tui_paint(struct tui_grid *g, int row, int col, int end, enum tui_role role);
/* A bar over cells [col, end): done of total filled, then `more` (0 mostly) of it as to come, then the rest. */
void tui_put_bar(struct tui_grid *g, int row, int col, int end, double share, double more);
/* Text broken at blanks over rows [row, last]; returns the first row after it. */
int tui_put_wrapped(struct tui_grid *g, int row, int last, int col, int end, enum tui_role role, const char *text);

/* Rows that tui_put_wrapped needs in `width` columns. */
int tui_wrapped_rows(const char *text, int width);
int tui_text_width(const char *text);
/* One character of UTF-8; damaged bytes give U+FFFD one by one. Returns the bytes read, 0 at the end. */
int tui_utf8_next(uint32_t *ch, const char *text);
/* Writes ch as UTF-8 and a NUL; returns the bytes without it. */
int tui_utf8_put(char out[5], uint32_t ch);

#endif
