/* What the reader needs tomorrow, as lines: shown on the last screen and printed on the ordinary one after leaving. */
#ifndef TUI_CLOSING_H
#define TUI_CLOSING_H

#include "model.h"

struct tui_closing_line {
	const char *name; /* "Lock" */
	char *text;
};

struct tui_closing {
	struct tui_closing_line *v;
	size_t n;
};

void tui_closing_make(struct tui_closing *out, const struct tui_model *m);
void tui_closing_release(struct tui_closing *c);
void tui_closing_print(struct fa_buf *out, const struct tui_model *m); /* headline and lines, no colour */

#endif
