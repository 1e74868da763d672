/* .gitmodules of a foreign repository, and addresses in it. */
#include "buf.h"
#include "clone.h"
#include "url.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fa_strndup((const char *)data, size), *url = fa_clone_submodule_url(text, "csrc/cutlass");
	char *joined = fa_url_join("https://host/org/repo.git/", url ? url : text), *shown = fa_url_redact(text);

	fa_url_check(joined, NULL);
	if (strstr(shown, "://secret@")) /* whoever it is, not with a name */
		abort();
	free(joined);
	free(shown);
	free(url);
	free(text);
	return 0;
}
