/* Making a virtual environment with python -m venv, or with uv where Python has no venv module or is not there. */
#ifndef FA_ENVIRONMENT_MAKE_H
#define FA_ENVIRONMENT_MAKE_H

#include "child.h"
#include "facts.h"

/* version: "3.11", NULL: any. FA_MACHINE names what is missing and how to get it. */
int fa_environment_make(const char *path, const char *version, const struct fa_facts *facts, struct fa_child_context *c,
                        struct fa_err *err);

#endif
