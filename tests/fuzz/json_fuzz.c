/* JSON from anywhere, and what reads it as facts, as a plan or as an event. */
#include "core/fainstall.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_facts(const struct fa_json *j)
{
	struct fa_facts f = FA_FACTS_INIT;

	if (fa_facts_from_json(&f, j, "fuzz", NULL) == 0)
		fa_json_free(fa_facts_to_json(&f));
	fa_facts_release(&f);
}

static void as_plan(const struct fa_json *j)
{
	struct fa_plan p = FA_PLAN_INIT;

	if (fa_plan_from_json(&p, j, "fuzz", NULL) == 0)
		fa_json_free(fa_plan_to_json(&p));
	fa_plan_release(&p);
}

static void as_event(const struct fa_json *j)
{
	struct fa_event e;

	if (fa_event_from_json(&e, j, NULL) == 0)
		fa_json_free(fa_event_to_json(&e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;

	if (fa_json_parse(&j, (const char *)data, size, "fuzz", &err) == 0) {
		free(fa_json_print(j, true));
		as_facts(j);
		as_plan(j);
		as_event(j);
	}
	fa_json_free(j);
	return 0;
}
