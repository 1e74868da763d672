/* Rules of a user's own rows. */
#include "buf.h"
#include "kb.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const values[FA_NAME_COUNT] = { "linux", "x86_64", NULL, "2.35" };
	char *text = fa_strndup((const char *)data, size);
	struct fa_verdict why;
	struct fa_rule r;

	if (fa_rule_compile(&r, text, fa_name_find_word, NULL, NULL) == 0) {
		fa_rule_test(&r, values, &why);
		fa_rule_release(&r);
	}
	free(text);
	return 0;
}
