/* `fainstall install` and `fainstall --non-interactive`: plan, ask where that is right, then hand the plan to the worker. */
#include "command_plan.h"
#include "front.h"

#include "lock.h"
#include "plan_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct install { /* all that one installation needs; released in one place */
	const struct cli *c;
	struct fa_facts facts;
	struct fa_wish wish;
	struct fa_plan plan;
	struct fa_lock lock;
	bool have_lock;
	const char *write_lock; /* borrowed */
};

static void release(struct install *i)
{
	fa_lock_release(&i->lock);
	fa_plan_release(&i->plan);
	fa_wish_release(&i->wish);
	fa_facts_release(&i->facts);
}

static void tell(const struct install *i, enum fa_event_kind kind, const char *text)
{
	struct cli_front f;
	struct fa_event e = fa_event_new(kind);

	snprintf(e.text, sizeof(e.text), "%s", text);
	if (i->c->v[CLI_OPT_JSON])
		cli_front_jsonl(&f, i->c, NULL);
	else
		cli_front_plain(&f, i->c, NULL);
	f.show(&f, &e);
}

static void tell_lines(const struct install *i, const char *text)
{
	struct fa_strv lines = FA_STRV_INIT;

	fa_strv_split(&lines, text, "\n");
	for (size_t k = 0; k < lines.n; k++)
		tell(i, FA_EVENT_NOTE, lines.v[k]);
	fa_strv_release(&lines);
}

/* A place that cannot be written is told before the work, not after it. */
static int check_writable(const char *option, const char *path, struct fa_err *err)
{
	char *dir;
	int rc = 0;

	if (!path)
		return 0;
	dir = fa_path_dir(path);
	if (fa_file_is_dir(path))
		rc = fa_err_set(err, FA_USAGE, "--%s: %s is a folder", option, path);
	else if (!fa_file_is_dir(dir))
		rc = fa_err_set(err, FA_USAGE, "--%s: there is no folder %s", option, dir);
	else if (access(dir, W_OK) < 0)
		rc = fa_err_set(err, FA_MACHINE, "--%s: %s cannot be written: %s", option, dir, strerror(errno));
	if (rc < 0)
		fa_err_next(err, "name a file in a folder that you may write to");
	free(dir);
	return rc;
}

/* What may differ from the lock without changing what is installed. */
static bool free_of_lock(enum fa_wish_id id)
{
	return id == FA_WISH_ENV || id == FA_WISH_OFFLINE || id == FA_WISH_JOBS || id == FA_WISH_SOURCE ||
	       id == FA_WISH_KEEP_TORCH;
}

static bool agrees(const struct fa_lock *l, const char *locked, enum fa_wish_id id, const char *given)
{
	const char *wish = fa_lock_get(l, "wish");
	char *words;
	bool same;

	if (locked && (!strcmp(locked, given) || fa_version_matches(locked, given)))
		return true;
	words = fa_strf("--%s %s", fa_wish_row(id)->option, given);
	same = wish && strstr(wish, words);
	free(words);
	return same;
}

/* The wish that makes the lock's choice again, with what the user may add. Another wish than the lock's is an error. */
static int wish_of_lock(struct install *i, const char *path, struct fa_err *err)
{
	if (fa_lock_wish(&i->wish, &i->lock, err) < 0)
		return -1;
	for (int k = 0; k < FA_WISH_COUNT; k++) {
		enum fa_wish_id id = (enum fa_wish_id)k;
		const char *given = fa_wish_get(&i->c->wish, id), *locked = fa_wish_get(&i->wish, id);

		if (!given)
			continue;
		if (free_of_lock(id)) {
			if (fa_wish_set(&i->wish, id, given, err) < 0)
				return -1;
		} else if (!agrees(&i->lock, locked, id, given)) {
			fa_err_set(err, FA_USAGE, "--%s %s: %s says %s", fa_wish_row(id)->option, given, path,
			           locked ? locked : "nothing of it");
			return fa_err_next(
			        err, "leave the option out, or make another lock: fainstall install --%s %s --write-lock FILE",
			        fa_wish_row(id)->option, given);
		}
	}
	return 0;
}

/* Reads the lock when it is there; without one *have_lock stays false. */
static int read_lock(struct install *i, const char *path, struct fa_err *err)
{
	struct fa_buf notes = FA_BUF_INIT;
	bool frozen = i->c->v[CLI_OPT_FROZEN] != NULL;
	int rc;

	if (!fa_file_exists(path)) {
		if (frozen) {
			fa_err_set(err, FA_INTEGRITY, "%s: there is no such lock, and --frozen installs only what a lock says",
			           path);
			return fa_err_next(err, "name the lock, or leave --frozen out to make one");
		}
		if (i->c->command == CLI_INSTALL) {
			fa_err_set(err, FA_USAGE, "%s: there is no such lock", path);
			return fa_err_next(err, "name the lock, or make one: fainstall install --write-lock %s", path);
		}
		return 0;
	}
	if (fa_lock_read(&i->lock, path, err) < 0)
		return -1;
	i->have_lock = true;
	rc = fa_lock_fits(&i->lock, &i->facts, frozen, &notes, err);
	tell_lines(i, fa_buf_str(&notes));
	fa_buf_release(&notes);
	return rc < 0 ? -1 : wish_of_lock(i, path, err);
}

/* The folder beside the lock, when its wheel is a ready one that no index has. The caller's; NULL: it is not needed. */
static char *wheels_of_lock(const struct install *i, const char *path)
{
	const char *route = fa_lock_get(&i->lock, "route"), *source = fa_lock_get(&i->lock, "wheel.source");
	char *dir, *wheels;

	if (!i->have_lock || !route || strcmp(route, "wheel") != 0 || !source || strcmp(source, "wheels") != 0)
		return NULL;
	dir = fa_path_dir(path);
	wheels = fa_path_join(dir, "wheels");
	if (!fa_file_is_dir(wheels)) {
		free(wheels);
		wheels = NULL;
	}
	free(dir);
	return wheels;
}

static int decide(struct install *i, struct fa_err *err)
{
	const char *path = i->c->v[CLI_OPT_LOCK];
	char *wheels;
	int rc;

	if (cli_facts(&i->facts, i->c, err) < 0)
		return -1;
	if (path && read_lock(i, path, err) < 0)
		return -1;
	if (!i->have_lock)
		fa_wish_copy(&i->wish, &i->c->wish);
	if (path && !i->have_lock) {
		char *text = fa_strf("%s is not there yet: resolving, and writing it at the end", path);

		tell(i, FA_EVENT_NOTE, text);
		free(text);
		i->write_lock = path;
	}
	wheels = wheels_of_lock(i, path);
	rc = cli_make_plan(&i->plan, &i->facts, &i->wish, wheels, err);
	free(wheels);
	return rc;
}

/* 1: go on; 0: the user said no. */
static int ask(const struct install *i)
{
	struct fa_buf text = FA_BUF_INIT;
	char answer[16] = "";

	if (i->c->v[CLI_OPT_YES] || i->c->v[CLI_OPT_JSON] || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return 1;
	fa_plan_print(&text, &i->plan);
	printf("%s\nInstall this? [y/N] ", fa_buf_str(&text));
	fflush(stdout);
	fa_buf_release(&text);
	if (!fgets(answer, sizeof(answer), stdin))
		putchar('\n');
	return answer[0] == 'y' || answer[0] == 'Y';
}

static int start(struct install *i, int *status, struct fa_err *err)
{
	const struct cli *c = i->c;
	struct cli_front f;
	struct fa_job_opts opts = {
		.kind = FA_JOB_INSTALL,
		.plan = &i->plan,
		.facts = &i->facts,
		.lock_path = i->have_lock ? c->v[CLI_OPT_LOCK] : NULL,
		.write_lock_path = i->write_lock,
		.report_path = c->v[CLI_OPT_REPORT],
		.frozen = c->v[CLI_OPT_FROZEN] != NULL,
		.rebuild = c->v[CLI_OPT_REBUILD] != NULL,
		.strict = c->v[CLI_OPT_STRICT] != NULL,
		.verify = FA_VERIFY_NORMAL,
	};

	if (c->v[CLI_OPT_JSON])
		cli_front_jsonl(&f, c, &i->plan);
	else
		cli_front_plain(&f, c, &i->plan);
	return cli_run_job(&f, &opts, status, err);
}

static int install(struct install *i, int *status, struct fa_err *err)
{
	if (check_writable("write-lock", i->write_lock, err) < 0 || check_writable("report", i->c->v[CLI_OPT_REPORT], err) < 0)
		return -1;
	if (decide(i, err) < 0 || check_writable("lock", i->write_lock, err) < 0)
		return -1;
	if (i->c->v[CLI_OPT_DRY_RUN] || i->plan.status != FA_PLAN_READY) {
		if (i->c->v[CLI_OPT_DRY_RUN] || !i->c->v[CLI_OPT_JSON])
			cli_print_plan(i->c, &i->plan);
		*status = (int)fa_plan_exit(&i->plan);
		return cli_say_plan(&i->plan, err);
	}
	if (!i->c->v[CLI_OPT_NON_INTERACTIVE] && !ask(i)) {
		puts("Nothing was changed.");
		*status = FA_INTERRUPTED;
		return 0;
	}
	return start(i, status, err);
}

int cli_install(const struct cli *c, int *status, struct fa_err *err)
{
	struct install i = { .c = c, .write_lock = c->v[CLI_OPT_WRITE_LOCK] };
	int rc = install(&i, status, err);

	release(&i);
	return rc;
}

int cli_non_interactive(const struct cli *c, int *status, struct fa_err *err)
{
	if (!c->v[CLI_OPT_LOCK]) {
		fa_err_set(err, FA_USAGE, "--non-interactive needs --lock FILE");
		return fa_err_next(err, "write `fainstall --non-interactive --lock requirements.lock`");
	}
	return cli_install(c, status, err);
}
