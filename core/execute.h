/* Stage 4: runs the steps of a plan, in order, with the plan's fallbacks. Each kind of step is one file step_*.c or one function
 * of execute.c. A second run goes on from what is done: a step whose result is there and proved is skipped and says so.
 *
 * Arguments of the steps (args, JSON, expanded by plan.c from recipes/); [] optional:
 *   environment  kind managed|venv|adopt; name (managed) or path; python "3.11" (what makes it; facts.python_path when it fits)
 *   pin          requirements ["torch==2.11.0", "einops", …]: the FINAL set, as pip requirements, the package itself too when an
 *                index has it ("flash-attn-4==4.0.0b36"); pip's own dry run pins them and all they need, before anything changes.
 *                [tools ["ninja", "setuptools<82", …]]: what only the build needs; pinned too, kept out of the environment.
 *                [indexes ["https://download.pytorch.org/whl/cu128"]]: for what the primary index lacks; locked as name @ URL
 *   pip          - (installs what was pinned and is not there yet; the package itself comes with `install`)
 *   fetch        id; file; [sha256] [size]; and url, [mirror] fetched from instead of it, or index "pypi", package, version, kind sdist|wheel (a wheel: the file pinned)
 *   clone        id; url, "URL#COMMIT" where the user says which; [commit] [ref] [submodules [{path,[url]}]]. Without a commit the
 *                one that ref names is taken, and locked
 *   unpack       of (id of a fetch), [strip 1]; its folder is fixed, keyed by the hash, so objects in it are found again
 *   edit         edits [{file, find, replace, [count 1]}] in the source unpacked or cloned
 *   toolkit      requirements [all five, ==]; [links [[target, name]]] inside its folder; [home "nvidia/cu13"]
 *   preflight    -
 *   build        -  (choice.build says what)
 *   xray         -  (the wheel in hand, of a build or a fetch of kind wheel)
 *   install      -  (the wheel in hand)
 */
#ifndef FA_EXECUTE_H
#define FA_EXECUTE_H

#include "err.h"
#include "event.h"
#include "facts.h"
#include "plan.h"

#include <stdbool.h>

struct fa_environment;
struct fa_lock;
struct fa_report;

struct fa_execute_opts {
	const struct fa_plan *plan;
	const struct fa_facts *facts;
	const struct fa_lock *lock; /* reproduce exactly this; NULL: first time */
	const char *wheels;         /* the folder `wheels` beside that lock; NULL: none */
	bool frozen;                /* anything not exactly as locked is FA_INTEGRITY */
	bool wants_lock;            /* a lock will be written: of a plan that keeps what is there, too */
	bool rebuild;               /* do not reuse a wheel of the wheelhouse */
	const volatile int *cancel;
	const char *log_path; /* the full log of this run */
};

struct fa_execute_result {
	char *wheel;     /* the wheel installed, where it is kept; NULL: none; the caller's */
	char sha256[65]; /* of it */
	char *cuda_home; /* CUDA folder that the build used; NULL: none; the caller's */
	bool built;      /* it is one of ours: belongs into `wheels` beside a lock */
	bool as_locked;  /* all that was installed is what the given lock says, byte for byte */
};

/* `lock_out` gets what was pinned and built (packages, hashes, source, flags), `report` times and peaks of each step. `env` is
 * opened by the first step and left open: the caller commits it once verification has passed, or undoes it. */
int fa_execute(struct fa_execute_result *out, struct fa_environment *env, struct fa_lock *lock_out, struct fa_report *report,
               const struct fa_execute_opts *opts, const struct fa_sink *sink, struct fa_err *err);

/* A plan of clone steps alone: no environment is touched. *out: the folder of the last one; NULL: none; the caller's. */
int fa_execute_clone(char **out, struct fa_report *report, const struct fa_execute_opts *opts, const struct fa_sink *sink,
                     struct fa_err *err);

#endif
