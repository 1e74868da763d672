/* A front end without a screen: gets events, prints them. */
#ifndef CLI_FRONT_H
#define CLI_FRONT_H

#include "cli.h"

struct cli_front {
	void (*show)(struct cli_front *f, const struct fa_event *e);
	double (*now)(void); /* seconds that only grow; tests bring their own */
	const struct fa_plan *plan;
	bool terminal, color, quiet; /* color: of stdout for lines, of stderr for JSON */
	bool open_line;              /* a progress line stands without its end */
	double last_progress;        /* when the last one was printed, by now(); 0 never */
};

void cli_front_plain(struct cli_front *out, const struct cli *c, const struct fa_plan *plan); /* calm lines */
void cli_front_jsonl(struct cli_front *out, const struct cli *c, const struct fa_plan *plan); /* one JSON object a line */

/* What went wrong before a job could start, as its events would have told it. */
void cli_jsonl_error(const struct fa_err *err);

/* "3 min 12 s", "0.4 s"; "12.3 MB" */
void cli_add_seconds(struct fa_buf *out, double seconds);
void cli_add_bytes(struct fa_buf *out, int64_t bytes);

/* Starts the job, shows its events until the end, cancels it when the user says stop. The exit status of the job, or -1. */
int cli_run_job(struct cli_front *f, const struct fa_job_opts *opts, int *status, struct fa_err *err);

#endif
