/* `fainstall inspect WHEEL|SO`: what it needs and holds, and whether that is right here. */
#include "cli.h"

#include "inspect.h"

#include <stdio.h>
#include <stdlib.h>

static void print(const struct cli *c, const struct fa_inspect *i)
{
	struct fa_buf out = FA_BUF_INIT;

	if (c->v[CLI_OPT_JSON]) {
		struct fa_json *j = fa_inspect_to_json(i);
		char *text = fa_json_print(j, true);

		fa_buf_adds(&out, text);
		free(text);
		fa_json_free(j);
	} else if (!c->v[CLI_OPT_QUIET]) {
		fa_inspect_print(&out, i);
	}
	fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
}

int cli_inspect(const struct cli *c, int *status, struct fa_err *err)
{
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_inspect i = FA_INSPECT_INIT;
	int rc = -1;

	if (c->words.n != 1) {
		fa_err_set(err, FA_USAGE, "inspect looks into one file, %zu were given", c->words.n);
		return fa_err_next(err, "write `fainstall inspect FILE.whl` or `fainstall inspect FILE.so`");
	}
	if (cli_facts(&facts, c, err) == 0 && fa_inspect(&i, c->words.v[0], &facts, err) == 0) {
		print(c, &i);
		*status = fa_inspect_verdict(&i) == FA_INSPECT_REFUSED ? FA_CHECK : FA_OK;
		rc = 0;
	}
	fa_inspect_release(&i);
	fa_facts_release(&facts);
	return rc;
}
