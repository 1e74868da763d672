/* The command line: options, commands, and the front ends without a screen. */
#ifndef CLI_H
#define CLI_H

#include "fainstall.h"

enum cli_command {
#define COMMAND(id, word, arguments, wishes, here, help) CLI_##id,
#include "command.def"
#undef COMMAND
	CLI_COMMANDS,
};

enum cli_wishes { CLI_WISHES_NONE, CLI_WISHES_ENV, CLI_WISHES_LINE /* and ENV */, CLI_WISHES_ALL };

struct cli_command_row {
	const char *word;
	const char *arguments;
	enum cli_wishes wishes;
	bool here;
	const char *help;
};

enum cli_option {
#define OPTION(id, option, kind, argument, commands, help) CLI_OPT_##id,
#include "option.def"
#undef OPTION
	CLI_OPTIONS,
};

enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_MANY };

struct cli_option_row {
	const char *option; /* without the dashes */
	enum cli_kind kind;
	const char *argument;
	unsigned commands; /* bit per enum cli_command */
	const char *help;
};

enum { CLI_LIST_MS = 120 * 1000 }; /* an index of --source may take so long */

struct cli {
	enum cli_command command;
	const char *v[CLI_OPTIONS]; /* NULL: not given; borrowed from argv; a FLAG is "yes"; of MANY the last */
	struct fa_strv read, set;   /* the pieces of the MANY options */
	struct fa_strv words;       /* operands after the command */
	struct fa_wish wish;
};

#define CLI_INIT \
	{ \
		0 \
	}

const struct cli_command_row *cli_command_row(enum cli_command c);
const struct cli_option_row *cli_option_row(enum cli_option o);
bool cli_takes_wish(enum cli_command c, enum fa_wish_id id);

/* FA_USAGE for every word that does not fit: the option, the command and the nearest right one are named. `out` holds what was
 * read so far even then, so that --json is known when the error is told. */
int cli_parse(struct cli *out, int argc, char **argv, struct fa_err *err);
void cli_release(struct cli *c);

/* `fainstall --help` and `fainstall COMMAND --help`. */
void cli_help(struct fa_buf *out, enum cli_command c);

/* Facts as asked for: this machine, --host, --read, --set. */
int cli_facts(struct fa_facts *out, const struct cli *c, struct fa_err *err);

/* Colour on this stream: --color, NO_COLOR, terminal. */
bool cli_color(const struct cli *c, int fd);

/* The error in one line on stderr, the next step in a second one. */
void cli_say_error(const struct cli *c, const struct fa_err *err);
void cli_say(bool color, enum fa_status status, const char *text, const char *next);

/* A command returns 0 with *status the exit status, or -1 with err, which main() prints. */
int cli_detect(const struct cli *c, int *status, struct fa_err *err);
int cli_matrix(const struct cli *c, int *status, struct fa_err *err);
int cli_recipe(const struct cli *c, int *status, struct fa_err *err);
int cli_plan(const struct cli *c, int *status, struct fa_err *err);
int cli_install(const struct cli *c, int *status, struct fa_err *err);
int cli_verify(const struct cli *c, int *status, struct fa_err *err);
int cli_inspect(const struct cli *c, int *status, struct fa_err *err);
int cli_report(const struct cli *c, int *status, struct fa_err *err);
int cli_diagnose(const struct cli *c, int *status, struct fa_err *err);
int cli_start(const struct cli *c, int *status, struct fa_err *err);
int cli_non_interactive(const struct cli *c, int *status, struct fa_err *err);

#endif
