/* A folder of files as a source of a build: one hash over what is in it, and a copy. Left out, at any depth: .git, what builds leave
 * behind (build, dist, __pycache__, *.egg-info). */
#ifndef FA_FOLDER_H
#define FA_FOLDER_H

#include "err.h"
#include "sha256.h"

/* Over the names, contents, executable bits and link targets of all files, in the order of their names: the same tree gives the same hash
 * wherever it lies. FA_MACHINE: something cannot be read; FA_INTEGRITY: a link leads out, or it is no file. */
int fa_folder_digest(char out[FA_SHA256_HEX], const char *folder, struct fa_err *err);

/* The same files at `to` (must not exist; TO.tmp.PID meanwhile). cancel becomes non-zero: FA_INTERRUPTED; NULL: never. */
int fa_folder_copy(const char *to, const char *folder, const volatile int *cancel, struct fa_err *err);

#endif
