/* Pages of a package index and pip's list of settings: foreign text. */
#include "index.h"

#include "buf.h"
#include "strv.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fa_strndup((const char *)data, size); /* ends with NUL, as fa_file_read leaves it */
	struct fa_index_file f;
	struct fa_strv wheels = FA_STRV_INIT;

	if (fa_index_read_page(&f, text, size, "flash_attn-2.8.3.tar.gz", "https://h/simple/flash-attn/") && !f.url)
		abort();
	if (f.sha256 && strlen(f.sha256) != 64)
		abort();
	fa_index_file_release(&f);
	fa_index_read_wheels(&wheels, text, size, "https://h/simple/flash-attn/");
	for (size_t i = 0; i < wheels.n; i++) /* URL SHA256 BYTES */
		if (strcspn(wheels.v[i], " ") == strlen(wheels.v[i]))
			abort();
	fa_strv_release(&wheels);
	free(fa_index_pip_setting(text, "index-url"));
	free(text);
	return 0;
}
