/* Puts the terminal in order when the program dies of a signal while the full screen is on: leaves the other screen, shows the
 * cursor, gives back the line settings. Everything that a handler needs is made beforehand. */
#ifndef TUI_RESTORE_H
#define TUI_RESTORE_H

/* The terminal's own sequences; called before curses changes its settings. */
void tui_restore_prepare(const char *leave, const char *keys_off, const char *cursor_on, const char *plain);
void tui_restore_arm(void);    /* from now on */
void tui_restore_disarm(void); /* the terminal is in order again */

#endif
