/* Which knowledge is in use: what came with the program, or what `matrix update` took since then. */
#ifndef FA_MATRIX_DATA_H
#define FA_MATRIX_DATA_H

#include "err.h"

#include <stdbool.h>

struct fa_matrix_data {
	char *dir;    /* folder of the tables */
	char *date;   /* of about.json; "" unknown */
	char *from;   /* where an updated one came from, without passwords; NULL: shipped */
	char *proof;  /* "sha256 HEX" or "signed by NAME"; NULL: shipped */
	char *notice; /* why an updated one that is there is not used; NULL: nothing to say */
};

/* An updated one is used when it is whole (its hashes are kept beside it) and not older than what came with the program.
 * -1 only when the program's own is missing. */
int fa_matrix_data_find(struct fa_matrix_data *out, struct fa_err *err);
void fa_matrix_data_release(struct fa_matrix_data *d);

/* Path of a table's file ("units.json") in the knowledge in use; NULL with err: it is not there. Found once per program. The
 * caller's. */
char *fa_matrix_file(const char *name, struct fa_err *err);

/* "checked" of a table's file; "" when it cannot be read. The caller's. */
char *fa_matrix_date(const char *dir, const char *table);

/* $XDG_DATA_HOME/fainstall/matrix: "current" is a link to the folder in use. The caller's. */
char *fa_matrix_updates(void);

/* Tables by place in table.def; NULL behind the last one. */
const char *fa_matrix_table_name(int i);
const char *fa_matrix_table_key(int i);
const char *fa_matrix_table_what(int i);

#endif
