/* The knowledge: what works with what, read from matrix/ (and the user's overrides) and recipes/. C knows no version, no
 * architecture and no URL; it evaluates rows. Loaded once per program, const afterwards. */
#ifndef FA_MATRIX_H
#define FA_MATRIX_H

#include "err.h"

struct fa_json;
struct fa_matrix;

/* Opens the folders; tables are read when first asked for, since most questions need few of them. */
int fa_matrix_open(struct fa_matrix **out, struct fa_err *err);
void fa_matrix_close(struct fa_matrix *m);

/* A table ("torch", "cuda", "gpus", "wheels/official", …) or recipe. Borrowed. NULL with err when missing or damaged. */
const struct fa_json *fa_matrix_table(struct fa_matrix *m, const char *name, struct fa_err *err);
const struct fa_json *fa_matrix_recipe(struct fa_matrix *m, const char *name, struct fa_err *err);

/* `matrix check`: schema, unknown facts, shadowed rows, missing source. Findings one a line into out (a struct fa_buf);
 * returns their number, -1 when a file cannot be read. */
struct fa_buf;
int fa_matrix_check(struct fa_matrix *m, struct fa_buf *out, struct fa_err *err);

/* `matrix show WHAT`: "ids", "torch", "gpus", "tree", …, as text or Markdown. FA_USAGE names what there is. */
int fa_matrix_show(struct fa_matrix *m, const char *what, int markdown, struct fa_buf *out, struct fa_err *err);

#endif
