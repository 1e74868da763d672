/* Stage 1: the machine's facts. */
#ifndef FA_DETECT_H
#define FA_DETECT_H

#include "facts.h"
#include "sys.h"

/* Every fact of DESIGN 4 that can be had through sys, cheap evidence first. `env` is the target environment: a folder, a
 * managed name, or NULL for the active one. Never fails as a whole: a probe that cannot answer leaves its fact unknown and,
 * where that speaks of a fault, a problem. */
void fa_detect(struct fa_facts *out, const struct fa_sys *sys, const char *env);

/* Facts from the saved output of a tool (`--read TOOL=FILE`). FA_USAGE: no such tool (names those there are). Text that says
 * nothing usable gives a problem, never a guess. */
int fa_read_tool(struct fa_facts *out, const char *tool, const char *text, size_t len, struct fa_err *err);

/* The words of `--read`, separated by blanks. */
const char *fa_read_tools(void);

/* `--host PATH`: a facts file (JSON) or a folder of recorded answers. */
int fa_detect_host(struct fa_facts *out, const char *path, const char *env, struct fa_err *err);

#endif
