/* The files of one commit of a repository, with only the submodules named, checked by its id whatever the mirror: ids are hashes of
 * the content. No history is kept (no .git): upstream's setup.py would fetch submodules by itself where there is one. The only file
 * that includes libgit2 is clone.c; as libgit2 1.5 has no time-outs, it works in a forked child that can be killed. */
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
	const char *url; /* https, or http to a loopback address; url.*.insteadOf and http.proxy of git's configuration apply */
	const char *ref; /* "refs/tags/v2.8.3": what to ask the server for; NULL: the commit itself */
	const char *commit; /* 40 hex digits: what it must be; NULL: whatever ref is, returned */
	const char *path;   /* folder it ends up in; PATH.tmp.PID meanwhile; must not exist */
	const struct fa_clone_submodule *submodules;
	size_t n_submodules;
	unsigned silence_s;         /* less than 1 KiB/s for so long: FA_NETWORK; 0: 60 */
	const volatile int *cancel; /* becomes non-zero: stop within 200 ms; NULL: never */
	void (*progress)(void *ctx, const char *what /* objects, deltas, files */, int64_t done, int64_t total);
	void *ctx;
};

/* A cut connection is tried three times in all. commit_out: 41 bytes, may be NULL. Errors: FA_NETWORK, FA_INTEGRITY (another commit: needed, found), FA_MACHINE, FA_USAGE,
 * FA_INTERRUPTED. Nothing is left at path on failure. */
int fa_clone(char *commit_out, const struct fa_clone_opts *opts, struct fa_err *err);

/* The url that a .gitmodules file (text) gives for the submodule at `path`. The caller's; NULL: none. */
char *fa_clone_submodule_url(const char *text, const char *path);

#endif
