/* fainstall: reads the command line, hands it to one command, tells how it ended. */
#include "cli.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

bool cli_color(const struct cli *c, int fd)
{
	const char *asked = c->v[CLI_OPT_COLOR], *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (asked && strcmp(asked, "auto") != 0)
		return !strcmp(asked, "always");
	return !(no && no[0]) && isatty(fd) && term && strcmp(term, "dumb") != 0;
}

/* For an error that names no next step of its own. */
static const char *usual_next(enum fa_status status)
{
	switch (status) {
	case FA_USAGE: return "mend the file or word named above; `fainstall COMMAND --help` says what is taken";
	case FA_MACHINE: return "mend that on the machine, then run the same command again";
	case FA_NETWORK: return "check the network, then run the same command again; what was fetched is kept";
	case FA_BUILD: return "fainstall diagnose LOG names the cause of a failed build";
	case FA_INTEGRITY: return "get the file again from where it came, or make a new lock";
	case FA_INTERNAL: return "report this with the command line and `fainstall --version`";
	default: return "`fainstall --help` lists what can be done";
	}
}

static void print_error(const struct cli *c, const struct fa_err *err)
{
	bool color = cli_color(c, STDERR_FILENO);

	fflush(stdout);
	fprintf(stderr, "%sfainstall:%s %s\n", color ? "\033[31m" : "", color ? "\033[0m" : "",
	        err->text[0] ? err->text : fa_status_name(err->status));
	fprintf(stderr, "next: %s\n", err->next[0] ? err->next : usual_next(err->status));
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
	case CLI_INSTALL: return cli_install(c, status, err);
	case CLI_VERIFY: return cli_verify(c, status, err);
	case CLI_DIAGNOSE: return cli_diagnose(c, status, err);
	case CLI_PLAN: return cli_plan(c, status, err);
	case CLI_RUN:
	default: break;
	}
	if (c->v[CLI_OPT_NON_INTERACTIVE])
		return cli_non_interactive(c, status, err);
	return cli_start(c, status, err);
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
		print_error(&c, &err);
		status = err.status;
	} else if (c.v[CLI_OPT_HELP] || c.v[CLI_OPT_VERSION]) {
		status = help_or_version(&c);
	} else if (dispatch(&c, &status, &err) < 0) {
		print_error(&c, &err);
		status = err.status;
	}
	cli_release(&c);
	return finish_output(status);
}
