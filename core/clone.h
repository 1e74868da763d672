/* One commit of a repository, with only the submodules named, checked by its id whatever the mirror. The only file that
 * includes libgit2 is clone.c. Runs in the worker: libgit2 1.5 has no time-outs, so whoever runs this must be killable. */
#ifndef FA_CLONE_H
#define FA_CLONE_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

struct fa_clone_submodule {
	const char *path; /* "csrc/cutlass" */
	const char *url;  /* instead of the one in .gitmodules (mirrors); NULL: that one, made absolute, same scheme rules */
};

struct fa_clone_opts {
	const char *url;    /* https, or http to a loopback address */
	const char *ref;    /* "refs/tags/v2.8.3": what to ask the server for; NULL: the commit itself */
	const char *commit; /* 40 hex digits: what it must be; NULL: whatever ref is, returned */
	const char *path;   /* folder it ends up in; PATH.tmp.PID meanwhile; must not exist */
	const struct fa_clone_submodule *submodules;
	size_t n_submodules;
	unsigned silence_s;         /* no byte for so long: FA_NETWORK; 0: 60 */
	const volatile int *cancel; /* NULL: never */
	void (*progress)(void *ctx, const char *what, int64_t done, int64_t total /* objects or files */);
	void *ctx;
};

/* commit_out: 41 bytes, may be NULL. Errors: FA_NETWORK, FA_INTEGRITY (another commit: needed, found), FA_MACHINE, FA_USAGE,
 * FA_INTERRUPTED. Nothing is left at path on failure. */
int fa_clone(char *commit_out, const struct fa_clone_opts *opts, struct fa_err *err);

#endif
