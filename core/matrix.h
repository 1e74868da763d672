/* The knowledge: what works with what, read from matrix/ (and the user's rows) and recipes/. C knows no version, no architecture
 * and no URL; it evaluates rows. Loaded once per program. docs/knowledge.md describes the tables. */
#ifndef FA_MATRIX_H
#define FA_MATRIX_H

#include "err.h"

struct fa_buf;
struct fa_json;
struct fa_kb;
struct fa_matrix;
struct fa_matrix_data;
struct fa_strv;

/* A member of rows that are the user's: the file that they stand in. */
#define FA_ROW_FILE "_file"

/* Finds the folders; tables are read when first asked for, since most questions need few of them. */
int fa_matrix_open(struct fa_matrix **out, struct fa_err *err);

/* The same with folders named; user may be NULL: rows there replace rows of the same key, or are added. */
int fa_matrix_open_at(struct fa_matrix **out, const char *matrix, const char *recipes, const char *user, struct fa_err *err);
void fa_matrix_close(struct fa_matrix *m);

/* Which knowledge it is: folder, date, where from (matrix_data.h). Borrowed. */
const struct fa_matrix_data *fa_matrix_data(const struct fa_matrix *m);

/* Files of a lab's policy that hold (policy.h): those of the machine, unless the folders were named. */
struct fa_strv *fa_matrix_policies(struct fa_matrix *m);

/* A sentence for each shipped row that a row of the user replaces, of the tables read so far. Borrowed. */
const struct fa_strv *fa_matrix_replaced(struct fa_matrix *m);

/* A table ("torch", "cuda", "gpus", "wheels/official", …) or recipe. Borrowed. NULL with err when missing or damaged. */
const struct fa_json *fa_matrix_table(struct fa_matrix *m, const char *name, struct fa_err *err);
const struct fa_json *fa_matrix_recipe(struct fa_matrix *m, const char *name, struct fa_err *err);

/* The tables that the resolver needs, compiled (kb.h). Borrowed. */
int fa_matrix_kb(struct fa_kb **out, struct fa_matrix *m, struct fa_err *err);

/* Adds what `--source NAME` or URL or folder holds: wheel files by name, one a line, each a file name, a path or a URL, with an
 * optional blank and sha256 in hex after it. `base` is put before names that are no URL (a folder or the page's URL). Lines that are no
 * wheel of Flash-Attention are passed over; returns how many were taken, -1 with err. */
int fa_matrix_add_source(struct fa_matrix *m, const char *name, const char *base, const char *listing, struct fa_err *err);

/* `matrix check`: schema, unknown facts, shadowed rows, missing source. Findings one a line into out;
 * returns their number, -1 when a file cannot be read. */
int fa_matrix_check(struct fa_matrix *m, struct fa_buf *out, struct fa_err *err);

enum fa_show_form { FA_SHOW_TEXT, FA_SHOW_MARKDOWN, FA_SHOW_JSON };

/* `matrix show WHAT`: "data" (which knowledge this is), "ids", "torch", "gpus", "tree", … FA_USAGE names what there is. */
int fa_matrix_show(struct fa_matrix *m, const char *what, enum fa_show_form form, struct fa_buf *out, struct fa_err *err);
const char *fa_matrix_shows(void); /* what there is, blanks between */

#endif
