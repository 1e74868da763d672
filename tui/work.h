/* The work as its events tell it: steps, units, bytes, memory, log, checks. What INSTALL, VERIFY, DONE and the failure screen
 * show. Pure; times are the caller's clock in ms. */
#ifndef TUI_WORK_H
#define TUI_WORK_H

#include "fainstall.h"

#include <stdbool.h>
#include <stdint.h>

enum { TUI_LOG_LINES = 4000 }; /* kept; the full log is a file */

enum tui_step_state { TUI_STEP_WAITS, TUI_STEP_RUNS, TUI_STEP_DONE, TUI_STEP_SKIPPED, TUI_STEP_FAILED };

struct tui_step {
	enum tui_step_state state;
	int64_t began_ms;
	double seconds;   /* -1 unknown */
	int64_t peak_mib; /* -1 unknown */
	char *text;       /* what came out, or why not; NULL none */
};

struct tui_unit { /* a translation unit that is compiled now */
	char *id;
	int64_t began_ms;
};

struct tui_finished { /* one that is done */
	char *id;
	double seconds;
	int64_t peak_mib;
};

struct tui_check { /* a stage of the verification ("numbers"), or one case of it ("numbers/bf16 d128") */
	char *id;
	enum fa_outcome status;
	char *text;
	double value; /* with unit "" none */
	char unit[16];
	double seconds; /* -1 unknown */
};

struct tui_work {
	bool started, running, verifying, stopping;
	bool draining; /* told to let the running units finish */
	int64_t began_ms;
	double seconds; /* in all, once over */
	enum fa_status code;
	char *last;                      /* last sentence of DONE; NULL none */
	struct fa_err err;               /* of the first ERROR event; status FA_OK: none */
	char *cause, *evidence, *repair; /* of the first CAUSE event; NULL: none is known */
	int64_t evidence_line;           /* in the log file */

	struct tui_step *steps; /* as many as the plan has */
	size_t n_steps;
	int step; /* running or last one; -1 none */
	int64_t done, total;
	char unit[16];
	char *stage;         /* of the verification, that runs or ran last; NULL none */
	char *not_undone;    /* what could not be put back after a failure; NULL: all was */
	char *verdict;       /* its sentence; NULL none */
	double left_s;       /* -1 unknown */
	double rest_s;       /* until the units that run are done; -1 unknown */
	int64_t progress_ms; /* when done was told last */
	double rate;         /* bytes a second, smoothed; 0 unknown */
	struct tui_unit *units;
	size_t n_units;
	struct tui_finished *finished;
	size_t n_finished;
	int64_t units_done, units_total; /* total -1 unknown */
	int64_t peak_mib;                /* largest of one unit; -1 none yet */
	char *peak_unit;
	struct fa_strv warnings, notes; /* texts, in order, each once */
	struct tui_check *checks;
	size_t n_checks;

	char **log;   /* ring of TUI_LOG_LINES; NULL until the first line */
	size_t log_n; /* lines ever told; line i is log[i % TUI_LOG_LINES] */
};

void tui_work_init(struct tui_work *w);
void tui_work_release(struct tui_work *w);
void tui_work_start(struct tui_work *w, const struct fa_plan *plan, int64_t now_ms); /* forgets what was before */
void tui_work_event(struct tui_work *w, const struct fa_event *e, int64_t now_ms);
bool tui_work_speaks_of_error(const char *line);
/* The kept line that proves the cause: the one diagnose named, else the first that speaks of an error, else the last; -1 none. */
long tui_work_evidence(const struct tui_work *w);
const char *tui_work_line(const struct tui_work *w, size_t i); /* NULL: not kept any more, or not there yet */
size_t tui_work_first_line(const struct tui_work *w);          /* the oldest kept */
int tui_work_count(const struct tui_work *w, enum tui_step_state state);
bool tui_check_is_case(const struct tui_check *c);
int tui_work_checks(const struct tui_work *w, enum fa_outcome status); /* stages; all that ended with FA_OUTCOME_NONE */

#endif
