/* Events as JSON lines. */
#include "front.h"

#include <stdio.h>
#include <stdlib.h>

static void show(struct cli_front *f, const struct fa_event *e)
{
	struct fa_json *j = fa_event_to_json(e);
	char *text = fa_json_print(j, false);

	(void)f;
	puts(text);
	fflush(stdout);
	free(text);
	fa_json_free(j);
}

void cli_front_jsonl(struct cli_front *out, const struct cli *c, const struct fa_plan *plan)
{
	(void)c;
	*out = (struct cli_front){ .show = show, .plan = plan };
}
