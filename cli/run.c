/* From the start of a job to its last event. */
#include "front.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stopped, drained;

static void stop(int signal)
{
	stopped = signal;
}

static void drain(int signal)
{
	drained = signal;
}

/* As make, ninja and cargo: Ctrl-C stops at once. Ctrl-\ lets what compiles finish first. */
static void watch_signals(void)
{
	struct sigaction a = { .sa_handler = stop }, q = { .sa_handler = drain };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
	sigaction(SIGQUIT, &q, NULL);
}

/* Once for each job: while units compile there is something to lose. */
static void tell_how_to_stop(const struct cli_front *f, const struct fa_event *e, bool *told)
{
	if (*told || e->kind != FA_EVENT_UNIT_BEGIN || !f->terminal || f->quiet)
		return;
	*told = true;
	fputs("        Ctrl-C stops at once; Ctrl-\\ lets the units that compile finish first. What is finished is kept.\n",
	      stderr);
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
	bool cancelled = false, draining = false, told = false;
	int got;

	watch_signals();
	if (fa_job_start(&job, opts, err) < 0)
		return -1;
	*status = FA_INTERNAL;
	while ((got = fa_job_next(job, &e)) >= 0) {
		struct pollfd p = { .fd = fa_job_fd(job), .events = POLLIN };

		if (got) {
			tell_how_to_stop(f, &e, &told);
			f->show(f, &e);
			if (e.kind == FA_EVENT_DONE)
				*status = (int)e.code;
			continue;
		}
		if (poll(&p, 1, 500) < 0 && errno != EINTR)
			stopped = SIGTERM;
		if (stopped)
			cancel(job, f, &cancelled);
		if (drained && !draining)
			fa_job_drain(job);
		draining = drained;
	}
	fa_job_free(job);
	return 0;
}
