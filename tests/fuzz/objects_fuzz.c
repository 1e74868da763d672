/* Depfiles, manifests of the object store, and what compilers print. */
#include "buf.h"
#include "gate.h"
#include "objects.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fa_strndup((const char *)data, size);
	struct fa_strv words = FA_STRV_INIT;
	size_t len = 0;

	fa_objects_parse_depfile(&words, text);
	fa_gate_first_error(text, &len);
	fa_gate_speaks_of_memory(text);
	fa_strv_release(&words);
	free(text);
	return 0;
}
