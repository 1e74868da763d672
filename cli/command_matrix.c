/* `fainstall matrix show [WHAT]` and `matrix check`. */
#include "cli.h"
#include "closest.h"

#include <stdio.h>
#include <string.h>

static int show(struct fa_matrix *m, const struct cli *c, int *status, struct fa_err *err)
{
	const char *what = c->words.n > 1 ? c->words.v[1] : "tree";
	struct fa_buf out = FA_BUF_INIT;
	int rc;

	rc = fa_matrix_show(m, what, c->v[CLI_OPT_MARKDOWN] != NULL, &out, err);
	fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
	*status = FA_OK;
	return rc;
}

static int check(struct fa_matrix *m, const struct cli *c, int *status, struct fa_err *err)
{
	struct fa_buf out = FA_BUF_INIT;
	int n = fa_matrix_check(m, &out, err);

	fputs(fa_buf_str(&out), stdout);
	if (n == 0 && !c->v[CLI_OPT_QUIET])
		puts("Every row of matrix/ and recipes/ is in order.");
	fa_buf_release(&out);
	if (n > 0) {
		fa_err_set(err, FA_CHECK, "matrix check: %d finding%s", n, n == 1 ? "" : "s");
		fa_err_next(err, "mend the rows named above, then check again");
	}
	*status = FA_OK;
	return n == 0 ? 0 : -1;
}

int cli_matrix(const struct cli *c, int *status, struct fa_err *err)
{
	static const char *const known[] = { "show", "check" };
	const char *word = c->words.n ? c->words.v[0] : "show", *guess;
	struct fa_matrix *m = NULL;
	int rc = -1;

	if (!strcmp(word, "update")) {
		fa_err_set(err, FA_USAGE, "matrix update is not in this version (%s) yet", FA_VERSION);
		return fa_err_next(err, "install a newer fainstall for newer knowledge");
	}
	if (strcmp(word, "show") != 0 && strcmp(word, "check") != 0) {
		guess = fa_closest(word, known, 2);
		fa_err_set(err, FA_USAGE, "matrix: unknown word \"%s\"", word);
		return fa_err_next(err, "write `fainstall matrix %s`", guess ? guess : "show` or `fainstall matrix check");
	}
	if (fa_matrix_open(&m, err) < 0)
		return -1;
	rc = !strcmp(word, "show") ? show(m, c, status, err) : check(m, c, status, err);
	fa_matrix_close(m);
	return rc;
}
