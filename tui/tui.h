/* The wizard: the same facts, plan and events as the plain lines, full screen. It decides nothing: every answer is a word of
 * the wish, every plan comes from fa_resolve and fa_plan_steps, all work from a fa_job.
 *
 *   keys, events -> model (state) -> draw (a grid of cells) -> term (curses)
 *
 * Only tui/term.c knows curses; model and draw are plain functions that tests call without a terminal. */
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include "fainstall.h"

#include <stdbool.h>

enum tui_color { TUI_COLOR_AUTO, TUI_COLOR_ALWAYS, TUI_COLOR_NEVER };

/* What the command line said beside the wish. NULL for all of it is the same as all zero. */
struct tui_opts {
	enum tui_color color;  /* AUTO: none with NO_COLOR or fewer than 8 colours */
	bool foreign;          /* the facts are not of this machine (--host, --read, --set): plan only, nothing is started */
	const char *lock_path; /* --lock: reproduced when it exists */
	const char *write_lock_path; /* --write-lock; NULL: requirements.lock here */
	bool rebuild, strict;
};

/* The terminal cannot be drawn on (no terminal, TERM=dumb, none of its description): one sentence was written to stderr and
 * nothing else was done; the caller goes on in plain lines. */
enum { TUI_PLAIN = -1 };

/* Runs the wizard from the machine screen to the end. Returns the exit status of the program, or TUI_PLAIN. What the reader
 * needs tomorrow (where things are, the command that does the same) is printed on the ordinary screen on leaving. */
int tui_run(const struct fa_facts *facts, const struct fa_wish *wish, struct fa_matrix *matrix, const struct tui_opts *opts);

#endif
