/* `fainstall matrix show [WHAT]`, `matrix check`, `matrix update`. */
#include "cli.h"
#include "closest.h"
#include "matrix_data.h"
#include "matrix_update.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fa_show_form form_of(const struct cli *c)
{
	return c->v[CLI_OPT_JSON] ? FA_SHOW_JSON : c->v[CLI_OPT_MARKDOWN] ? FA_SHOW_MARKDOWN : FA_SHOW_TEXT;
}

static int show(struct fa_matrix *m, const struct cli *c, int *status, struct fa_err *err)
{
	const char *what = c->words.n > 1 ? c->words.v[1] : "data";
	struct fa_buf out = FA_BUF_INIT;
	int rc;

	rc = fa_matrix_show(m, what, form_of(c), &out, err);
	if (rc == 0 && c->words.n < 2 && !c->v[CLI_OPT_JSON]) {
		fa_buf_addc(&out, '\n');
		rc = fa_matrix_show(m, "tree", form_of(c), &out, err);
	}
	fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
	*status = FA_OK;
	return rc;
}

/* What rows of the user do to shipped ones is as he wanted it: said, and no fault. */
static void tell_replaced(const struct cli *c, struct fa_matrix *m)
{
	const struct fa_strv *replaced = fa_matrix_replaced(m);

	for (size_t i = 0; i < replaced->n && !c->v[CLI_OPT_QUIET]; i++)
		puts(replaced->v[i]);
	if (fa_matrix_data(m)->notice && !c->v[CLI_OPT_QUIET])
		puts(fa_matrix_data(m)->notice);
}

static int check(struct fa_matrix *m, const struct cli *c, int *status, struct fa_err *err)
{
	struct fa_buf out = FA_BUF_INIT;
	int n = fa_matrix_check(m, &out, err);

	fputs(fa_buf_str(&out), stdout);
	tell_replaced(c, m);
	if (n == 0 && !c->v[CLI_OPT_QUIET])
		printf("Every row of %s, of yours and of recipes/ is in order.\n",
		       fa_matrix_data(m)->from ? "the update" : "matrix/");
	fa_buf_release(&out);
	if (n > 0) {
		fa_err_set(err, FA_CHECK, "matrix check: %d finding%s", n, n == 1 ? "" : "s");
		fa_err_next(err, "mend the rows named above, then check again");
	}
	*status = FA_OK;
	return n == 0 ? 0 : -1;
}

static bool is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

/* The hash in small letters, as everything of ours has it. The caller's; NULL with err. */
static char *take_hash(const char *text, struct fa_err *err)
{
	char *hash;

	if (!is_hash(text)) {
		fa_err_set(err, FA_USAGE, "--sha256: \"%s\" is not 64 hex digits", text);
		fa_err_next(err, "`sha256sum FILE` prints it");
		return NULL;
	}
	hash = fa_strdup(text);
	for (char *p = hash; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return hash;
}

static void tell_update(const struct cli *c, const struct fa_matrix_update_result *r, const char *from)
{
	struct fa_json *j;
	char *text;

	if (c->v[CLI_OPT_JSON]) {
		j = fa_json_new_object();
		fa_json_set_string(j, "schema", "fainstall.update/1");
		fa_json_set_string(j, "status", r->same ? "same" : "taken");
		fa_json_set_string(j, "date", r->date);
		fa_json_set_string(j, "was", r->was);
		fa_json_set_string(j, "proof", r->proof);
		text = fa_json_print(j, true);
		fputs(text, stdout);
		free(text);
		fa_json_free(j);
	} else if (!c->v[CLI_OPT_QUIET]) {
		if (r->same)
			printf("In use already: knowledge of %s, %s.\n", r->date, r->proof);
		else
			printf("In use now: knowledge of %s (before: %s), %s.\nFrom: %s\n`fainstall matrix update --shipped` "
			       "goes back to "
			       "what came with fainstall.\n",
			       r->date, r->was, r->proof, from);
	}
}

static int update(const struct cli *c, int *status, struct fa_err *err)
{
	struct fa_matrix_update_opts opts = { .from = c->words.n > 1 ? c->words.v[1] : NULL,
		                              .signature = c->v[CLI_OPT_SIGNATURE],
		                              .signers = c->v[CLI_OPT_SIGNERS] };
	struct fa_matrix_update_result r = { 0 };
	char *hash = NULL;
	int rc;

	*status = FA_OK;
	if (c->v[CLI_OPT_SHIPPED]) {
		rc = fa_matrix_update_shipped(err);
		if (rc == 0 && !c->v[CLI_OPT_QUIET] && !c->v[CLI_OPT_JSON])
			puts("In use now: what came with fainstall.");
		return rc;
	}
	if (!opts.from) {
		fa_err_set(err, FA_USAGE, "matrix update: nothing is named to take it from");
		return fa_err_next(err, "write `fainstall matrix update FILE|FOLDER|URL --sha256 HEX`");
	}
	if (c->v[CLI_OPT_SHA256] && !(hash = take_hash(c->v[CLI_OPT_SHA256], err)))
		return -1;
	opts.sha256 = hash;
	rc = fa_matrix_update(&r, &opts, err);
	if (rc == 0)
		tell_update(c, &r, opts.from);
	fa_matrix_update_release(&r);
	free(hash);
	return rc;
}

static const struct {
	const char *word;
	size_t most; /* words with it */
	int (*run)(struct fa_matrix *m, const struct cli *c, int *status, struct fa_err *err);
} WORDS[] = { { "show", 2, show }, { "check", 1, check }, { "update", 2, NULL } };

enum { N_WORDS = sizeof(WORDS) / sizeof(WORDS[0]) };

static int unknown_word(const char *word, struct fa_err *err)
{
	const char *known[N_WORDS], *guess;

	for (size_t i = 0; i < N_WORDS; i++)
		known[i] = WORDS[i].word;
	guess = fa_closest(word, known, N_WORDS);
	fa_err_set(err, FA_USAGE, "matrix: unknown word \"%s\"", word);
	return fa_err_next(err, "write `fainstall matrix %s`", guess ? guess : "show`, `matrix check` or `matrix update");
}

int cli_matrix(const struct cli *c, int *status, struct fa_err *err)
{
	const char *word = c->words.n ? c->words.v[0] : "show";
	struct fa_matrix *m = NULL;
	size_t i = 0;
	int rc;

	while (i < N_WORDS && strcmp(WORDS[i].word, word) != 0)
		i++;
	if (i == N_WORDS)
		return unknown_word(word, err);
	if (c->words.n > WORDS[i].most) {
		fa_err_set(err, FA_USAGE, "matrix %s takes no \"%s\"", word, c->words.v[WORDS[i].most]);
		return fa_err_next(err, "`fainstall matrix --help` says what it takes");
	}
	if (!WORDS[i].run)
		return update(c, status, err);
	if (fa_matrix_open(&m, err) < 0)
		return -1;
	rc = WORDS[i].run(m, c, status, err);
	fa_matrix_close(m);
	return rc;
}
