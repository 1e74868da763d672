/* Parts of `matrix show` that ask the rules. Each appends its table to out; -1 and err when the knowledge is damaged. */
#ifndef FA_MATRIX_SERVES_H
#define FA_MATRIX_SERVES_H

#include "buf.h"
#include "matrix.h"

int fa_show_families(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err);
int fa_show_compat(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err);
int fa_show_lines(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err);

#endif
