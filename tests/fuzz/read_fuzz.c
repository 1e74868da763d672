/* Parsers of foreign text: the first byte chooses the tool, the rest is what it printed. */
#include "detect.h"
#include "json.h"
#include "strv.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fa_strv tools;
	struct fa_facts f, again;
	struct fa_json *j;
	char *text;

	if (!tools.n)
		fa_strv_split(&tools, fa_read_tools(), " ");
	if (!size || fa_read_tool(&f, tools.v[data[0] % tools.n], (const char *)data + 1, size - 1, NULL) < 0)
		return 0;
	j = fa_facts_to_json(&f);
	text = fa_json_print(j, false);
	if (fa_facts_from_json(&again, j, "facts", NULL) < 0) /* what is printed can be read */
		abort();
	free(text);
	fa_json_free(j);
	fa_facts_release(&again);
	fa_facts_release(&f);
	return 0;
}
