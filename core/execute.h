/* Stage 4: runs the steps of a plan, in order, with the plan's fallbacks. Each kind of step is one file step_*.c or one function
 * of execute.c. A second run goes on from what is done: a step whose result is there and proved is skipped and says so.
 *
 * Arguments of the steps (args, JSON, expanded by plan.c from recipes/):
 *   environment  kind managed|venv|adopt; path; python (X.Y)
 *   pin          requirements: [..]; (pip install --dry-run --report; fills the lock's packages)
 *   pip          requirements: [..] that `pin` pinned; constraints
 *   fetch        url, file, sha256|null, size|-1; or index: "pypi", package, version, kind sdist|wheel
 *   clone        url, ref, commit, submodules [{path,url}]
 *   unpack       file (of a fetch), strip, id (its folder is keyed by the hash)
 *   edit         edits [{file, find, replace, count}]
 *   toolkit      requirements [...] links [[target, name]]
 *   preflight    -
 *   build        -  (choice.build says what)
 *   xray         -  (the wheel in hand)
 *   install      -  (the wheel in hand, or package==version from an index with its hash)
 */
#ifndef FA_EXECUTE_H
#define FA_EXECUTE_H

#include "err.h"
#include "event.h"
#include "facts.h"
#include "plan.h"

struct fa_lock;
struct fa_report;

struct fa_execute_opts {
	const struct fa_plan *plan;
	const struct fa_facts *facts;
	const struct fa_lock *lock; /* reproduce exactly this; NULL: first time */
	bool frozen;                /* anything not exactly as locked is FA_INTEGRITY */
	bool rebuild;               /* do not reuse a wheel of the wheelhouse */
	const volatile int *cancel;
	const char *log_path; /* the full log of this run */
};

/* `lock_out` gets what was pinned and built (packages, hashes, source, flags), `report` times and peaks of each step. */
int fa_execute(struct fa_lock *lock_out, struct fa_report *report, const struct fa_execute_opts *opts,
               const struct fa_sink *sink, struct fa_err *err);

#endif
