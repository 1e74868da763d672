/* A compatibility check for people without fainstall: one Python file with the rules and files of the knowledge inside. */
#ifndef FA_CHECK_SCRIPT_H
#define FA_CHECK_SCRIPT_H

#include "err.h"

struct fa_buf;
struct fa_matrix;

/* recipes/check.py with its data put in. -1: a table or the recipe cannot be read. */
int fa_check_script(struct fa_buf *out, struct fa_matrix *m, struct fa_err *err);

#endif
