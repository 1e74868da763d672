/* pip's report, pip's words, and text that secrets are taken out of. */
#include "core/buf.h"
#include "core/pip.h"
#include "core/redact.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fa_strndup((const char *)data, size);
	struct fa_lock l = FA_LOCK_INIT;
	struct fa_err err = FA_ERR_INIT;
	size_t len = strlen(text);

	fa_pip_report(&l, NULL, NULL, text, len, NULL);
	fa_pip_explain(text, FA_NETWORK, &err);
	fa_redact(text);
	if (strlen(text) > len)
		abort();
	fa_lock_release(&l);
	free(text);
	return 0;
}
