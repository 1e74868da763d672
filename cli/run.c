/* From the start of a job to its last event. */
#include "front.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

static void watch_signals(void)
{
	struct sigaction a = { .sa_handler = stop };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
}

static void cancel(struct fa_job *job, const struct cli_front *f, bool *cancelled)
{
	if (*cancelled)
		return;
	*cancelled = true;
	if (!f->quiet && f->terminal)
		fputs("\nStopping; what is done is kept.\n", stderr);
	fa_job_cancel(job);
}

int cli_run_job(struct cli_front *f, const struct fa_job_opts *opts, int *status, struct fa_err *err)
{
	struct fa_job *job = NULL;
	struct fa_event e;
	bool cancelled = false;
	int got;

	watch_signals();
	if (fa_job_start(&job, opts, err) < 0)
		return -1;
	*status = FA_INTERNAL;
	while ((got = fa_job_next(job, &e)) >= 0) {
		struct pollfd p = { .fd = fa_job_fd(job), .events = POLLIN };

		if (got) {
			f->show(f, &e);
			if (e.kind == FA_EVENT_DONE)
				*status = (int)e.code;
			continue;
		}
		if (poll(&p, 1, 500) < 0 && errno != EINTR)
			stopped = SIGTERM;
		if (stopped)
			cancel(job, f, &cancelled);
	}
	fa_job_free(job);
	return 0;
}
