/* fainstall: reads the command line, hands it to one command, tells how it ended. */
#include "front.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A query is ended at once; a job (run.c) takes the signals over and ends in order. */
static void leave(int signal)
{
	(void)signal;
	_exit(FA_INTERRUPTED);
}

static void watch_signals(void)
{
	struct sigaction a = { .sa_handler = leave };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

static int not_yet(const struct cli *c, struct fa_err *err)
{
	fa_err_set(err, FA_USAGE, "%s is not in this version (%s) yet", cli_command_row(c->command)->word, FA_VERSION);
	return fa_err_next(err, "`fainstall --help` lists what is");
}

static int too_many_words(const struct cli *c, struct fa_err *err)
{
	const char *word = cli_command_row(c->command)->word;

	fa_err_set(err, FA_USAGE, "%s takes no \"%s\"", word, c->words.v[0]);
	return fa_err_next(err, "`fainstall %s --help` says what it takes", word);
}

static int dispatch(const struct cli *c, int *status, struct fa_err *err)
{
	if (!cli_command_row(c->command)->here)
		return not_yet(c, err);
	if (c->words.n && !cli_command_row(c->command)->arguments[0])
		return too_many_words(c, err);
	switch (c->command) {
	case CLI_DETECT: return cli_detect(c, status, err);
	case CLI_MATRIX: return cli_matrix(c, status, err);
	case CLI_RECIPE: return cli_recipe(c, status, err);
	case CLI_INSTALL: return cli_install(c, status, err);
	case CLI_VERIFY: return cli_verify(c, status, err);
	case CLI_INSPECT: return cli_inspect(c, status, err);
	case CLI_REPORT: return cli_report(c, status, err);
	case CLI_DIAGNOSE: return cli_diagnose(c, status, err);
	case CLI_PLAN: return cli_plan(c, status, err);
	case CLI_RUN:
	default: break;
	}
	if (c->v[CLI_OPT_NON_INTERACTIVE])
		return cli_non_interactive(c, status, err);
	return cli_start(c, status, err);
}

/* Commands whose JSON is a line for each event. */
static bool tells_events(const struct cli *c)
{
	return c->command == CLI_VERIFY || (c->command == CLI_INSTALL && !c->v[CLI_OPT_DRY_RUN]) ||
	       (c->command == CLI_RUN && c->v[CLI_OPT_NON_INTERACTIVE]);
}

static int help_or_version(const struct cli *c)
{
	struct fa_buf out = FA_BUF_INIT;

	if (c->v[CLI_OPT_VERSION])
		fa_buf_addf(&out, "fainstall %s\n", FA_VERSION);
	else
		cli_help(&out, c->command);
	fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
	return FA_OK;
}

/* What was printed must have arrived: a full disk behind `> plan.json` is an error too. */
static int finish_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "fainstall: standard output: %s\nnext: make room, or write somewhere else\n", strerror(errno));
	return FA_MACHINE;
}

int main(int argc, char **argv)
{
	struct fa_err err = FA_ERR_INIT;
	struct cli c = CLI_INIT;
	int status = FA_OK;

	setlocale(LC_CTYPE, "");
	watch_signals();
	if (cli_parse(&c, argc, argv, &err) < 0 && !c.v[CLI_OPT_HELP]) {
		cli_say_error(&c, &err);
		status = err.status;
	} else if (c.v[CLI_OPT_HELP] || c.v[CLI_OPT_VERSION]) {
		status = help_or_version(&c);
	} else if (dispatch(&c, &status, &err) < 0) {
		if (c.v[CLI_OPT_JSON] && tells_events(&c))
			cli_jsonl_error(&err);
		cli_say_error(&c, &err);
		status = err.status;
	}
	cli_release(&c);
	return finish_output(status);
}
