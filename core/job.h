/* The worker as the front ends see it: started with a job, tells events, can be stopped at any moment. A crash of the worker is
 * an ERROR event, not a broken terminal. */
#ifndef FA_JOB_H
#define FA_JOB_H

#include "err.h"
#include "event.h"
#include "facts.h"
#include "plan.h"
#include "verify.h"

#include <stdbool.h>

struct fa_job;

enum fa_job_kind { FA_JOB_INSTALL, FA_JOB_VERIFY };

struct fa_job_opts {
	enum fa_job_kind kind;
	const struct fa_plan *plan;
	const struct fa_facts *facts;
	const char *lock_path;       /* INSTALL: reproduce when it exists; NULL: none */
	const char *write_lock_path; /* INSTALL: written unless verification failed; NULL: none */
	const char *report_path;     /* NULL: in the state folder */
	bool frozen, rebuild, strict;
	enum fa_verify_mode verify;
	const char *upstream_source; /* VERIFY: folder with upstream's repository; NULL: the plan's clone steps bring it */
	const char *upstream_tests; /* VERIFY: how many of upstream's parameter sets, or "all"; NULL: the script's own number */
};

int fa_job_start(struct fa_job **out, const struct fa_job_opts *opts, struct fa_err *err);
int fa_job_fd(const struct fa_job *j); /* readable: call next */

/* 1: an event; 0: none yet; -1: no more (a DONE came before, made here if the worker died without one). */
int fa_job_next(struct fa_job *j, struct fa_event *event);

/* Stop the whole process tree; DONE with FA_INTERRUPTED follows within 2 s. */
void fa_job_cancel(struct fa_job *j);
/* Units that compile finish, nothing new starts; DONE with FA_INTERRUPTED follows. Outside of a build the same as cancel. A cancel after
 * it stops at once. */
void fa_job_drain(struct fa_job *j);
void fa_job_free(struct fa_job *j); /* kills what is left */

/* The other side: main() of fainstall-worker hands over; reads the job from stdin, writes events to stdout. */
int fa_job_worker_main(void);

#endif
