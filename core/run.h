/* The state of one run of the execute stage, shared by execute.c and the step_*.c files only. */
#ifndef FA_RUN_H
#define FA_RUN_H

#include "child.h"
#include "environment.h"
#include "execute.h"
#include "lock.h"
#include "plan.h"
#include "sha256.h"

#include <stdbool.h>

struct fa_run {
	const struct fa_execute_opts *opts;
	const struct fa_plan *plan;
	const struct fa_choice *choice;
	struct fa_lock *lock; /* being filled: what is pinned, built, found */
	struct fa_environment *env;
	struct fa_child_context child;
	const struct fa_sink *sink; /* same as child.sink */
	int step;                   /* same as child.step */

	struct fa_lock changes; /* packages that the environment lacks */
	struct fa_strv files;   /* "name URL": where pip would take each pinned package from */
	struct fa_strv fetched; /* "id path" */
	char *tools;            /* folder of build requirements; NULL: none */
	char *toolkit;          /* CUDA folder made from wheels; NULL: none */
	char *source;           /* folder unpacked or cloned */
	char *key;              /* of the build: what decides about its bits; NULL: none wanted */
	char *wheel;            /* the wheel in hand; NULL: none yet */
	char wheel_sha256[FA_SHA256_HEX];
	size_t fallback;  /* the plan's candidates tried so far, beside the first */
	char *wheel_url;  /* canonical address of a wheel that no index has; NULL */
	bool looked;      /* for a wheel that is ready */
	bool wheel_ready; /* found instead of built */
	bool built_now;   /* built in this run */
	bool built;       /* a wheel of ours, then or now: locked with --find-links */
	double build_seconds;

	enum fa_outcome outcome; /* of the step in hand */
	char said[512];          /* what came out of it */
};

typedef int fa_step_function(struct fa_run *run, const struct fa_json *args, struct fa_err *err);

fa_step_function fa_step_environment, fa_step_pin, fa_step_pip, fa_step_fetch, fa_step_clone, fa_step_unpack, fa_step_edit,
        fa_step_toolkit, fa_step_preflight, fa_step_build, fa_step_xray, fa_step_install;

/* Pins what the requirements need from what is installed, by the lists of the index alone: nothing is downloaded. 1: done; 0: it
 * cannot be told so, pip must resolve; -1. base: set when torch is on no index. */
int fa_pin_installed(struct fa_run *run, const struct fa_strv *requirements, const struct fa_strv *indexes, bool *base,
                     struct fa_err *err);

/* The lock's need.glibc becomes at least what a version ("2.28"), or a wheel's file name (manylinux_2_28), says. */
void fa_run_need_glibc(struct fa_run *run, const char *version);
void fa_run_need_of_file(struct fa_run *run, const char *name);

/* One installed package: by the index, else as a base. */
int fa_pin_distribution(struct fa_run *run, const struct fa_distribution *d, struct fa_err *err);

/* A plan without steps: compares what is installed with the lock given, or makes a lock of it. */
int fa_run_keep(struct fa_run *run, struct fa_err *err);

/* An installed package that no index is asked for is named with a fingerprint, and checked instead of installed. */
int fa_lock_base(struct fa_run *run, const struct fa_distribution *d, struct fa_err *err);

/* What the user had added to the generation in use is to be installed too, outside the lock; what cannot is named. */
int fa_bring_added(struct fa_run *run, struct fa_err *err);

/* The sentence of STEP_END. */
void fa_run_say(struct fa_run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fa_run_skip(struct fa_run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fa_run_progress(struct fa_run *run, int64_t done, int64_t total, const char *unit);
bool fa_run_cancelled(const struct fa_run *run);

/* Of the package that the plan is about ("flash-attn"). */
const struct fa_lock_package *fa_run_locked(const struct fa_run *run); /* what the given lock says of it; NULL */
bool fa_run_is_choice(const struct fa_run *run, const char *name);

/* Before anything is built: is the wheel there, by the lock's hash or by the key of the build? Sets wheel_ready. FA_INTEGRITY:
 * frozen, and it is not. Looks once. */
int fa_run_find_wheel(struct fa_run *run, struct fa_err *err);

/* The CUDA folder for compiling and checking; NULL: none. Borrowed. */
const char *fa_run_cuda_home(const struct fa_run *run);

/* The ROCm folder, where the plan compiles the CK build; NULL: it does not. Borrowed. */
const char *fa_run_rocm_home(const struct fa_run *run);

/* $XDG_CACHE_HOME/fainstall/NAME and the same in the data folder. The caller's. */
char *fa_run_cache(const char *name);
char *fa_run_data(const char *name);

/* First len hex digits of the sha256 of a text. The caller's. */
char *fa_run_digest(const char *text, int len);

/* Requirements into a folder of their own below data/NAME, keyed by what they are; made once (*fresh: now). prefix: of the lock's entries
 * ("tool"). The caller's. */
int fa_run_folder_of(char **out, struct fa_run *run, const char *name, const char *prefix, const struct fa_strv *requirements,
                     bool alone, bool *fresh, struct fa_err *err);

#endif
