/* The names of wheels that a source which the user names brings. */
#include "buf.h"
#include "matrix.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fa_strndup((const char *)data, size);
	struct fa_matrix *m;

	if (fa_matrix_open_at(&m, "matrix", "recipes", NULL, NULL) == 0) {
		fa_matrix_add_source(m, "x", "http://127.0.0.1/", text, NULL);
		fa_matrix_close(m);
	}
	free(text);
	return 0;
}
