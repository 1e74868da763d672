/* `fainstall` alone: the wizard on a terminal, the plan without one. */
#include "command_plan.h"

#include "tui/tui.h"

#include <string.h>
#include <unistd.h>

static enum tui_color color(const struct cli *c)
{
	const char *asked = c->v[CLI_OPT_COLOR];

	if (!asked || !strcmp(asked, "auto"))
		return TUI_COLOR_AUTO;
	return !strcmp(asked, "always") ? TUI_COLOR_ALWAYS : TUI_COLOR_NEVER;
}

static int wizard(const struct cli *c, int *status, struct fa_err *err)
{
	struct tui_opts opts = {
		.color = color(c),
		.foreign = c->v[CLI_OPT_HOST] || c->read.n || c->set.n,
		.lock_path = c->v[CLI_OPT_LOCK],
		.rebuild = c->v[CLI_OPT_REBUILD] != NULL,
		.strict = c->v[CLI_OPT_STRICT] != NULL,
	};
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_matrix *m = NULL;
	int rc = -1;

	if (fa_matrix_open(&m, err) < 0)
		return -1;
	if (cli_facts(&facts, c, err) == 0 && fa_source_add(m, &c->wish, CLI_LIST_MS, err) == 0) {
		*status = tui_run(&facts, &c->wish, m, &opts);
		rc = 0;
	}
	fa_facts_release(&facts);
	fa_matrix_close(m);
	return rc;
}

int cli_start(const struct cli *c, int *status, struct fa_err *err)
{
	if (c->v[CLI_OPT_JSON] || c->v[CLI_OPT_QUIET] || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return cli_plan(c, status, err);
	if (wizard(c, status, err) < 0)
		return -1;
	return *status == TUI_PLAIN ? cli_plan(c, status, err) : 0;
}
