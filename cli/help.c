#include "cli.h"

#include <string.h>

enum { HELP_COLUMN = 34 };

/* Two columns; a left side too wide for its column gets a line of its own. */
static void row(struct fa_buf *out, const char *left, const char *help)
{
	if (strlen(left) > HELP_COLUMN - 4)
		fa_buf_addf(out, "  %s\n%*s%s\n", left, HELP_COLUMN, "", help);
	else
		fa_buf_addf(out, "  %-*s%s\n", HELP_COLUMN - 2, left, help);
}

static void option_row(struct fa_buf *out, const char *option, const char *argument, const char *help)
{
	struct fa_buf left = FA_BUF_INIT;

	fa_buf_addf(&left, "--%s%s%s", option, argument[0] ? " " : "", argument);
	row(out, fa_buf_str(&left), help);
	fa_buf_release(&left);
}

static void add_commands(struct fa_buf *out)
{
	fa_buf_adds(out, "\nCommands:\n");
	for (int i = 1; i < CLI_COMMANDS; i++)
		if (cli_command_row((enum cli_command)i)->here)
			row(out, cli_command_row((enum cli_command)i)->word, cli_command_row((enum cli_command)i)->help);
	fa_buf_adds(out, "\nNot in this version yet:");
	for (int i = 1; i < CLI_COMMANDS; i++)
		if (!cli_command_row((enum cli_command)i)->here)
			fa_buf_addf(out, " %s", cli_command_row((enum cli_command)i)->word);
	fa_buf_adds(out, "\n");
}

/* Options of this command, or those that every command has. */
static void add_options(struct fa_buf *out, enum cli_command c, bool common)
{
	const struct cli_option_row *o;
	bool any = false;

	for (int i = 0; i < CLI_OPTIONS; i++) {
		o = cli_option_row((enum cli_option)i);
		if ((o->commands == ~0u) != common || !(o->commands & (1u << c)))
			continue;
		if (!any)
			fa_buf_addf(out, "\n%s:\n", common ? "Everywhere" : "Options");
		any = true;
		option_row(out, o->option, o->argument, o->help);
	}
}

static void add_wishes(struct fa_buf *out, enum cli_command c)
{
	const struct fa_wish_row *w;
	bool any = false;

	for (int i = 0; i < FA_WISH_COUNT; i++) {
		if (!cli_takes_wish(c, (enum fa_wish_id)i))
			continue;
		if (!any)
			fa_buf_adds(out, "\nWishes (lists are comma-separated):\n");
		any = true;
		w = fa_wish_row((enum fa_wish_id)i);
		option_row(out, w->option, w->argument, w->help);
	}
}

static void add_status(struct fa_buf *out)
{
	fa_buf_adds(out, "\nExit status:\n");
#define STATUS(number, text) fa_buf_addf(out, "  %3d  %s\n", number, text);
#include "status.def"
#undef STATUS
}

static void add_signals(struct fa_buf *out)
{
	fa_buf_adds(out, "\nWhile it works:\n");
	row(out, "Ctrl-C", "stop at once");
	row(out, "Ctrl-\\", "start nothing new, let the units that compile finish (SIGQUIT)");
}

void cli_help(struct fa_buf *out, enum cli_command c)
{
	const struct cli_command_row *r = cli_command_row(c);

	if (c == CLI_RUN) {
		fa_buf_adds(
		        out,
		        "fainstall: the right Flash-Attention for this machine, proved.\n\n"
		        "  fainstall                       the wizard; without a terminal `fainstall plan`\n"
		        "  fainstall COMMAND [OPTION...]   one of the commands below\n"
		        "  fainstall --non-interactive --lock FILE [--env NAME|DIR] [--frozen]\n"
		        "                                  reproduce the lock; where there is none, install and write it\n");
		add_commands(out);
	} else {
		fa_buf_addf(out, "fainstall %s%s%s [OPTION...]\n\n  %s\n", r->word, r->arguments[0] ? " " : "", r->arguments,
		            r->help);
	}
	if (r->here) {
		add_options(out, c, false);
		add_wishes(out, c);
		add_options(out, c, true);
	} else {
		fa_buf_addf(out, "\n  Not in this version (%s) yet.\n", FA_VERSION);
	}
	if (c == CLI_RUN || c == CLI_INSTALL)
		add_signals(out);
	add_status(out);
}
