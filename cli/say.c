/* Errors on stderr, and whether there is colour. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void cli_say(bool color, enum fa_status status, const char *text, const char *next)
{
	fflush(stdout);
	fprintf(stderr, "%sfainstall:%s %s\n", color ? "\033[31m" : "", color ? "\033[0m" : "",
	        text[0] ? text : fa_status_name(status));
	fprintf(stderr, "next: %s\n", next[0] ? next : usual_next(status));
}

void cli_say_error(const struct cli *c, const struct fa_err *err)
{
	cli_say(cli_color(c, STDERR_FILENO), err->status, err->text, err->next);
}
