/* The environment that a build runs in: ours, without what would break it or make it another build. */
#ifndef FA_BUILD_ENV_H
#define FA_BUILD_ENV_H

#include "build.h"
#include "strv.h"

/* "NAME=value" appended to out. gate_dir: holds bin/nvcc and bin/c++; NULL: the compilers themselves. objects: the store. What was left out and would
 * have changed the build is said in a WARNING, id "environment". FA_MACHINE: no C++ compiler. */
int fa_build_env(struct fa_strv *out, const struct fa_build_opts *opts, const char *gate_dir, const char *objects, int started,
                 const struct fa_sink *sink, struct fa_err *err);

/* The program's path as found in PATH order; NULL: none. The caller's. */
char *fa_build_find(const char *program, const char *path);

/* Where the gate is called from: a folder of links named nvcc and c++, made when it is not there. In gate_dir; but setuptools and torch take the
 * compiler's path for a command line, so a path with blanks and the like gets a folder in /tmp that is the same each time: the
 * build system compiles anew what another command compiled. The caller's. NULL: FA_MACHINE. */
char *fa_build_gate_bin(const char *gate_dir, struct fa_err *err);

#endif
