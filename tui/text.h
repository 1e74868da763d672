/* Measures of text, for grid.c. */
#ifndef TUI_TEXT_H
#define TUI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character shown for ch and its width: 0 for a mark that is dropped. ascii: nothing but ASCII comes out. */
uint32_t tui_shown(uint32_t ch, bool ascii, int *width);

/* Bytes of the longest beginning that fits into `width` columns. */
size_t tui_fitting(const char *text, int width);

/* Bytes of the first line when text is broken at blanks; a word longer than a line is cut. */
size_t tui_line_break(const char *text, int width);

#endif
