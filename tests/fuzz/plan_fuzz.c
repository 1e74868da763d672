/* A plan as the worker reads it. */
#include "json.h"
#include "plan.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fa_json *j;
	struct fa_plan p;

	if (fa_json_parse(&j, (const char *)data, size, "plan", NULL) < 0)
		return 0;
	if (fa_plan_from_json(&p, j, "plan", NULL) == 0) {
		fa_json_free(fa_plan_to_json(&p));
		fa_plan_release(&p);
	}
	fa_json_free(j);
	return 0;
}
