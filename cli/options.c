#include "cli.h"
#include "closest.h"

#include <stdlib.h>
#include <string.h>

#define NONE CLI_WISHES_NONE
#define ENV CLI_WISHES_ENV
#define LINE CLI_WISHES_LINE
#define ALL CLI_WISHES_ALL
static const struct cli_command_row commands[] = {
#define COMMAND(id, word, arguments, wishes, here, help) [CLI_##id] = { word, arguments, wishes, here, help },
#include "command.def"
#undef COMMAND
};
#undef NONE
#undef ENV
#undef LINE
#undef ALL

#define IN(command) (1u << CLI_##command)
#define EVERYWHERE (~0u)
static const struct cli_option_row options[] = {
#define OPTION(id, option, kind, argument, commands, help) [CLI_OPT_##id] = { option, CLI_##kind, argument, commands, help },
#include "option.def"
#undef OPTION
};

const struct cli_command_row *cli_command_row(enum cli_command c)
{
	return &commands[c];
}

const struct cli_option_row *cli_option_row(enum cli_option o)
{
	return &options[o];
}

bool cli_takes_wish(enum cli_command c, enum fa_wish_id id)
{
	switch (commands[c].wishes) {
	case CLI_WISHES_ALL: return true;
	case CLI_WISHES_LINE: return id == FA_WISH_ENV || id == FA_WISH_LINE;
	case CLI_WISHES_ENV: return id == FA_WISH_ENV;
	case CLI_WISHES_NONE: break;
	}
	return false;
}

/* "fainstall" or "fainstall COMMAND", for sentences. The caller's. */
static char *spoken(enum cli_command c)
{
	return fa_strf("fainstall%s%s", commands[c].word[0] ? " " : "", commands[c].word);
}

static int unknown_command(const char *word, struct fa_err *err)
{
	const char *words[CLI_COMMANDS], *guess;
	size_t n = 0;

	for (int i = 1; i < CLI_COMMANDS; i++)
		words[n++] = commands[i].word;
	guess = fa_closest(word, words, n);
	fa_err_set(err, FA_USAGE, "unknown command \"%s\"", word);
	if (guess)
		return fa_err_next(err, "did you mean `fainstall %s`?", guess);
	return fa_err_next(err, "`fainstall --help` lists the commands");
}

static int unknown_option(const struct cli *c, const char *name, struct fa_err *err)
{
	const char *names[CLI_OPTIONS + FA_WISH_COUNT], *guess;
	char *who = spoken(c->command);
	size_t n = 0;

	for (int i = 0; i < CLI_OPTIONS; i++)
		if (options[i].commands & (1u << c->command))
			names[n++] = options[i].option;
	for (int i = 0; i < FA_WISH_COUNT; i++)
		if (cli_takes_wish(c->command, (enum fa_wish_id)i))
			names[n++] = fa_wish_row((enum fa_wish_id)i)->option;
	guess = fa_closest(name, names, n);
	fa_err_set(err, FA_USAGE, "unknown option --%s", name);
	if (guess)
		fa_err_next(err, "did you mean --%s?", guess);
	else
		fa_err_next(err, "`%s --help` lists its options", who);
	free(who);
	return -1;
}

/* Known, but of another command: say of which. */
static int misplaced_option(const struct cli *c, const char *name, unsigned where, struct fa_err *err)
{
	struct fa_strv owners = FA_STRV_INIT;
	char *who = spoken(c->command), *all;

	for (int i = 0; i < CLI_COMMANDS; i++)
		if (where & (1u << i))
			fa_strv_take(&owners, spoken((enum cli_command)i));
	all = fa_strv_join(&owners, ", ");
	fa_err_set(err, FA_USAGE, "`%s` has no option --%s; it belongs to: %s", who, name, all);
	fa_err_next(err, "`%s --help` lists its options", who);
	fa_strv_release(&owners);
	free(all);
	free(who);
	return -1;
}

static int check_value(enum cli_option o, const char *value, struct fa_err *err)
{
	struct fa_strv words = FA_STRV_INIT;
	const char *guess;
	int rc = 0;

	if (!value[0]) {
		fa_err_set(err, FA_USAGE, "--%s: the value is empty", options[o].option);
		return fa_err_next(err, "write --%s %s", options[o].option, options[o].argument);
	}
	if (o != CLI_OPT_COLOR && o != CLI_OPT_LANG)
		return 0;
	fa_strv_split(&words, options[o].argument, "|");
	if (!fa_strv_has(&words, value)) {
		guess = fa_closest(value, (const char *const *)words.v, words.n);
		rc = fa_err_set(err, FA_USAGE, "--%s: unknown value \"%s\"", options[o].option, value);
		fa_err_next(err, "write --%s %s", options[o].option, guess ? guess : options[o].argument);
	}
	fa_strv_release(&words);
	return rc;
}

static int set_option(struct cli *c, enum cli_option o, const char *value, struct fa_err *err)
{
	if (!(options[o].commands & (1u << c->command)))
		return misplaced_option(c, options[o].option, options[o].commands, err);
	if (options[o].kind != CLI_FLAG && check_value(o, value, err) < 0)
		return -1;
	c->v[o] = value;
	if (o == CLI_OPT_READ)
		fa_strv_push(&c->read, value);
	if (o == CLI_OPT_SET)
		fa_strv_push(&c->set, value);
	return 0;
}

static int set_wish(struct cli *c, enum fa_wish_id id, const char *value, struct fa_err *err)
{
	unsigned where = 0;

	if (cli_takes_wish(c->command, id))
		return fa_wish_set(&c->wish, id, value, err);
	for (int i = 0; i < CLI_COMMANDS; i++)
		if (cli_takes_wish((enum cli_command)i, id))
			where |= 1u << i;
	return misplaced_option(c, fa_wish_row(id)->option, where, err);
}

static int find_option(enum cli_option *out, const char *name)
{
	for (int i = 0; i < CLI_OPTIONS; i++) {
		if (!strcmp(options[i].option, name)) {
			*out = (enum cli_option)i;
			return 0;
		}
	}
	return -1;
}

/* One option at argv[*i]; moves *i over its value. */
static int take_option(struct cli *c, int argc, char **argv, int *i, struct fa_err *err)
{
	const char *word = argv[*i] + 2, *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL, *argument;
	char *name = fa_strndup(word, equals ? (size_t)(equals - word) : strlen(word));
	enum fa_wish_id wish = FA_WISH_COUNT;
	enum cli_option option = CLI_OPTIONS;
	bool flag;
	int rc = -1;

	if (find_option(&option, name) < 0 && fa_wish_find(&wish, name) < 0) {
		unknown_option(c, name, err);
		goto done;
	}
	flag = option < CLI_OPTIONS ? options[option].kind == CLI_FLAG : fa_wish_row(wish)->kind == FA_WISH_FLAG;
	argument = option < CLI_OPTIONS ? options[option].argument : fa_wish_row(wish)->argument;
	if (flag && value) {
		fa_err_set(err, FA_USAGE, "--%s takes no value, \"%s\" was given", name, value);
		fa_err_next(err, "write --%s alone", name);
		goto done;
	}
	if (!flag && !value) {
		if (*i + 1 >= argc || !strncmp(argv[*i + 1], "--", 2)) {
			fa_err_set(err, FA_USAGE, "--%s needs a value", name);
			fa_err_next(err, "write --%s %s", name, argument);
			goto done;
		}
		value = argv[++*i];
	}
	if (option < CLI_OPTIONS)
		rc = set_option(c, option, flag ? "yes" : value, err);
	else
		rc = set_wish(c, wish, value, err);
done:
	free(name);
	return rc;
}

static int find_command(struct cli *out, const char *word, struct fa_err *err)
{
	if (!strcmp(word, "help")) {
		out->v[CLI_OPT_HELP] = "yes";
		return 0;
	}
	for (int i = 1; i < CLI_COMMANDS; i++) {
		if (!strcmp(commands[i].word, word)) {
			out->command = (enum cli_command)i;
			return 0;
		}
	}
	return unknown_command(word, err);
}

/* Does this word take the next one with it? The command may stand behind options. */
static bool takes_next(const char *word)
{
	enum fa_wish_id wish;
	enum cli_option option;

	if (strchr(word, '='))
		return false;
	if (find_option(&option, word + 2) == 0)
		return options[option].kind != CLI_FLAG;
	return fa_wish_find(&wish, word + 2) == 0 && fa_wish_row(wish)->kind != FA_WISH_FLAG;
}

/* The place of the command among the words, argc when there is none. */
static int command_place(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-')
			return i;
		if (!strncmp(argv[i], "--", 2) && argv[i][2] && takes_next(argv[i]))
			i++;
	}
	return argc;
}

int cli_parse(struct cli *out, int argc, char **argv, struct fa_err *err)
{
	int place = command_place(argc, argv);
	bool only_words = false;

	*out = (struct cli)CLI_INIT;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) { /* known first: they hold beside a mistake too */
		if (!strcmp(argv[i], "--json"))
			out->v[CLI_OPT_JSON] = "yes";
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			out->v[CLI_OPT_HELP] = "yes";
	}
	if (place < argc && find_command(out, argv[place], err) < 0)
		return -1;
	for (int i = 1; i < argc; i++) {
		if (i == place)
			continue;
		if (only_words || argv[i][0] != '-' || !argv[i][1]) {
			fa_strv_push(&out->words, argv[i]);
		} else if (!strcmp(argv[i], "--")) {
			only_words = true;
		} else if (argv[i][1] != '-' && strcmp(argv[i], "-h") != 0) {
			fa_err_set(err, FA_USAGE, "unknown option %s", argv[i]);
			return fa_err_next(err, "options are long words with two hyphens; `fainstall --help` lists them");
		} else if (strcmp(argv[i], "-h") != 0 && take_option(out, argc, argv, &i, err) < 0) {
			return -1;
		}
	}
	return 0;
}

void cli_release(struct cli *c)
{
	fa_strv_release(&c->read);
	fa_strv_release(&c->set);
	fa_strv_release(&c->words);
	fa_wish_release(&c->wish);
}
