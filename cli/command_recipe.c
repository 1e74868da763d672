/* `fainstall recipe list`, `recipe export check`. */
#include "check_script.h"
#include "cli.h"
#include "matrix.h"

#include <stdio.h>
#include <string.h>

static int export_check(struct fa_err *err)
{
	struct fa_matrix *m = NULL;
	struct fa_buf out = FA_BUF_INIT;
	int rc = fa_matrix_open(&m, err);

	if (rc == 0)
		rc = fa_check_script(&out, m, err);
	if (rc == 0)
		fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
	fa_matrix_close(m);
	return rc;
}

int cli_recipe(const struct cli *c, int *status, struct fa_err *err)
{
	const char *verb = c->words.n ? c->words.v[0] : "", *what = c->words.n > 1 ? c->words.v[1] : "";

	*status = FA_OK;
	if (!strcmp(verb, "list") && c->words.n == 1) {
		puts("check  a Python script that says which ready file fits a machine, and what speaks against the others;\n"
		     "       for people without fainstall: fainstall recipe export check > check_flash_attn.py");
		return 0;
	}
	if (!strcmp(verb, "export") && !strcmp(what, "check") && c->words.n == 2)
		return export_check(err);
	fa_err_set(err, FA_USAGE, "recipe: list or `export check` is needed");
	return fa_err_next(err, "`fainstall recipe list` says what can be exported");
}
