/* Stage 5: is what was installed right, used and fast? Out of process, in the environment made: recipes/verify.py and the
 * programs of kernels/ run as children that print JSON lines. A check that cannot run is `not_run`, said, never passed.
 *
 * Stages, in order: environment import symbols kernels numbers used speed, and upstream in that mode. Events:
 *   PROGRESS  id: the stage; done of total in unit "cases" (total -1: not counted)
 *   CHECK     id "STAGE/NAME": one finding. numbers: value is the error as a multiple of plain attention's, unit "x";
 *             speed: value in unit TFLOP/s or GB/s. A front end may leave out those that are ok.
 *   CHECK     id "STAGE": the stage is over; seconds, text in words
 *   NOTE      id "verdict": the sentence about speed; other ids: something to know
 *   WARNING   id: card_throttled, module_shadowed, …
 * Report: checks[] (stage, id, status, text, seconds, case, data), stages[], figures {rows[], card, upstream}, verification {mode, status,
 * text, verdict, seconds}. A numeric case that failed carries data.shrunk, the simplest case found that still fails. */
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
	/* FA_VERIFY_UPSTREAM: folder with upstream's repository and what it is ("flash-attention at 060c9188beec"); NULL: there is
	 * none, and why. Tests: how many of its parameter sets, or "all"; NULL: as the script has it. */
	const char *upstream_dir, *upstream_from, *upstream_why, *upstream_tests;
	const char *log_path;
	const volatile int *cancel;
};

/* 0: nothing failed. FA_CHECK: a check failed (the first one is named). Figures and findings go into the report. */
int fa_verify(struct fa_report *report, const struct fa_verify_opts *opts, const struct fa_sink *sink, int step,
              struct fa_err *err);

/* Has code for these architectures ("80", "90a", "100f", "ptx80") an image that a card of `card` ("86", "gfx942") can run? */
bool fa_verify_serves(const struct fa_strv *archs, const char *card);

#endif
