/* Events as JSON lines. */
#include "front.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void print(const struct fa_event *e)
{
	struct fa_json *j = fa_event_to_json(e);
	char *text = fa_json_print(j, false);

	puts(text);
	fflush(stdout);
	free(text);
	fa_json_free(j);
}

/* An error goes to stderr too: there it is looked for, whatever stdout holds. */
static void show(struct cli_front *f, const struct fa_event *e)
{
	print(e);
	if (e->kind == FA_EVENT_ERROR)
		cli_say(f->color, e->code, e->text, e->next);
}

void cli_jsonl_error(const struct fa_err *err)
{
	struct fa_event e = fa_event_new(FA_EVENT_ERROR), done = fa_event_new(FA_EVENT_DONE);

	e.code = done.code = err->status;
	snprintf(e.text, sizeof(e.text), "%s", err->text);
	snprintf(e.next, sizeof(e.next), "%s", err->next);
	print(&e);
	print(&done);
}

void cli_front_jsonl(struct cli_front *out, const struct cli *c, const struct fa_plan *plan)
{
	*out = (struct cli_front){ .show = show, .plan = plan, .color = cli_color(c, STDERR_FILENO) };
}
