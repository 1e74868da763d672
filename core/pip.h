/* pip as a child: resolution without installing (its own dry-run report), installing by hash. An environment whose pip is
 * missing or too old for reports is served by a pip of ours (--python). */
#ifndef FA_PIP_H
#define FA_PIP_H

#include "child.h"
#include "environment.h"
#include "err.h"
#include "lock.h"
#include "strv.h"

#include <stdbool.h>

struct fa_pip_wish {
	const struct fa_environment *env;
	const struct fa_strv *requirements;
	const struct fa_strv *constraints; /* "name==version"; NULL: none */
	const struct fa_strv *indexes;     /* for what the primary index lacks; NULL: none */
	bool afresh;                       /* as if nothing were installed */
	bool alone;                        /* without what they need */
	bool offline;                      /* only what is installed, and the wheelhouse */
};

/* What pip would install, with hashes; nothing is changed. Added to out. `url` is set for what comes from one of `indexes` or
 * was asked for by URL; `files` (may be NULL) gets "name URL" of each, for downloads. Errors: FA_NETWORK, FA_IMPOSSIBLE (no such
 * version, conflict), FA_MACHINE. */
int fa_pip_resolve(struct fa_lock *out, struct fa_strv *files, const struct fa_pip_wish *wish, struct fa_child_context *c,
                   struct fa_err *err);

/* Installs exactly these, without asking for more, every file checked by hash. find_links: a folder to look in, then nothing
 * else is asked (NULL: the index). target: a folder instead of the environment (NULL). */
int fa_pip_install(const struct fa_environment *env, const struct fa_lock *packages, const char *find_links, const char *target,
                   bool again, struct fa_child_context *c, struct fa_err *err);

/* Reads a report of `pip install --dry-run --report`. */
int fa_pip_report(struct fa_lock *out, struct fa_strv *files, const struct fa_strv *indexes, const char *text, size_t len,
                  struct fa_err *err);

/* What a failed pip printed, as one of our errors. */
int fa_pip_explain(const char *output, enum fa_status otherwise, struct fa_err *err);

#endif
