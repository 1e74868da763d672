/* The terminal: opens, shows grids, reads keys. The only file that knows curses. One terminal a program. */
#ifndef TUI_TERM_H
#define TUI_TERM_H

#include "grid.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes the terminal on stdin and stdout. 0, or -1 with one sentence in `why`: it cannot be drawn on. From now on until
 * tui_term_close the terminal is put in order also when the program dies of a signal. */
int tui_term_open(char *why, unsigned long size, bool color);
void tui_term_close(void);

bool tui_term_ascii(void); /* no UTF-8, or a font without our glyphs */
void tui_term_size(int *rows, int *cols);

/* Shows what differs from the grid before; `anew`: every cell. */
void tui_term_show(const struct tui_grid *g, bool anew);

/* The next key, without waiting. 0: none; TUI_TERM_RESIZED: ask the size. */
enum { TUI_TERM_RESIZED = 0x120000 };
uint32_t tui_term_key(void);

void tui_term_suspend(void);               /* to the shell; returns when continued */
void tui_term_clipboard(const char *text); /* OSC 52 */

#endif
