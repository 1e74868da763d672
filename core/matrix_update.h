/* `matrix update`: takes a newer knowledge. Nothing of it is read before it is proved, nothing is in use before it is whole, and an
 * update that was interrupted, refused or killed leaves what was in use. */
#ifndef FA_MATRIX_UPDATE_H
#define FA_MATRIX_UPDATE_H

#include "err.h"

#include <stdbool.h>

struct fa_matrix_update_opts {
	const char *from;      /* an archive (.tar.gz, .zip) by path or URL, or a folder of tables with SHA256SUMS */
	const char *sha256;    /* of the archive, or of the folder's SHA256SUMS, given by hand; NULL: by signature */
	const char *signature; /* path or URL; NULL: the same name with .sig behind it */
	const char
	        *signers; /* allowed signers as ssh-keygen(1) has them; NULL: the user's, else /etc/fainstall/allowed_signers */
};

struct fa_matrix_update_result {
	char *date, *was; /* dates of the knowledge now and before; the caller's */
	char *proof;      /* "sha256 HEX", "signed by NAME" */
	bool same;        /* it was in use already: nothing was changed */
};

/* FA_INTEGRITY: nothing proves it, or the proof is another's. FA_USAGE: it is older, damaged or of a newer schema; file, row and rule
 * are named. FA_NETWORK, FA_MACHINE. */
int fa_matrix_update(struct fa_matrix_update_result *out, const struct fa_matrix_update_opts *opts, struct fa_err *err);
void fa_matrix_update_release(struct fa_matrix_update_result *r);

/* Back to what came with the program. */
int fa_matrix_update_shipped(struct fa_err *err);

#endif
