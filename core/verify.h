/* Stage 5: is what was installed right, used and fast? Out of process, in the environment made: recipes/verify.py and the
 * programs of kernels/ run as children that print JSON lines. A check that cannot run is `not_run`, said, never passed. */
#ifndef FA_VERIFY_H
#define FA_VERIFY_H

#include "err.h"
#include "event.h"
#include "facts.h"
#include "plan.h"

#include <stdbool.h>

struct fa_report;

enum fa_verify_mode { FA_VERIFY_QUICK, FA_VERIFY_NORMAL, FA_VERIFY_FULL, FA_VERIFY_UPSTREAM };

struct fa_verify_opts {
	const char *python;    /* interpreter of the environment */
	const char *cuda_home; /* NULL: none */
	const struct fa_choice *choice;
	enum fa_verify_mode mode;
	bool strict; /* not_run counts as failed */
	const char *log_path;
	const volatile int *cancel;
};

/* 0: nothing failed. FA_CHECK: a check failed (the first one is named). Figures and findings go into the report. */
int fa_verify(struct fa_report *report, const struct fa_verify_opts *opts, const struct fa_sink *sink, int step,
              struct fa_err *err);

#endif
