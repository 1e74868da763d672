#include "environment.h"

#include "buf.h"
#include "dist.h"
#include "environment_make.h"
#include "file.h"
#include "json.h"
#include "lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Inside an environment: what fainstall knows of it, and what is set aside while it is changed. */
static const char notes_name[] = "fainstall";
static const char kept_name[] = "fainstall/kept";
static const char journal_name[] = "fainstall/kept.json";
static const char unfinished_name[] = "fainstall/unfinished";

static char *inside(const struct fa_environment *e, const char *name)
{
	return fa_path_join(e->path, name);
}

char *fa_environment_notes(const struct fa_environment *e)
{
	return inside(e, notes_name);
}

/* ---- looking */

static void forget_dists(struct fa_environment *e)
{
	for (size_t i = 0; i < e->n_dists; i++) {
		free(e->dists[i].name);
		free(e->dists[i].version);
		free(e->dists[i].info);
	}
	free(e->dists);
	e->dists = NULL;
	e->n_dists = 0;
}

static void add_dist(struct fa_environment *e, const struct fa_json *row)
{
	const char *name = fa_json_get_string(row, "name");
	struct fa_distribution *d;

	if (!name)
		return;
	e->dists = fa_realloc(e->dists, e->n_dists + 1, sizeof(*e->dists));
	d = &e->dists[e->n_dists++];
	d->name = fa_lock_normal_name(name);
	d->version = fa_strdup(fa_json_get_string(row, "version"));
	d->info = fa_strdup(fa_json_get_string(row, "path"));
}

static int ask(struct fa_json **out, const struct fa_environment *e, const struct fa_strv *requirements,
               struct fa_child_context *c, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_strv argv = FA_STRV_INIT;
	char *script = fa_dir_own("recipes/environment.py", err);
	struct fa_child child = { .quiet = true, .out = &text };
	int rc = -1;

	if (script) {
		fa_strv_push(&argv, e->python);
		fa_strv_push(&argv, "-I");
		fa_strv_push(&argv, script);
		if (requirements)
			fa_strv_append(&argv, requirements);
		child.argv = (const char *const *)argv.v;
		rc = fa_child_run(c, &child, FA_MACHINE, err);
	}
	if (rc == 0)
		rc = fa_json_parse(out, fa_buf_str(&text), text.len, e->python, err);
	fa_buf_release(&text);
	fa_strv_release(&argv);
	free(script);
	return rc;
}

int fa_environment_closure(struct fa_json **out, const struct fa_environment *e, const struct fa_strv *requirements,
                           struct fa_child_context *c, struct fa_err *err)
{
	return ask(out, e, requirements, c, err);
}

static void take(char **to, const struct fa_json *j, const char *key)
{
	free(*to);
	*to = fa_strdup(fa_json_get_string(j, key));
}

static int look(struct fa_environment *e, struct fa_json **out, struct fa_child_context *c, struct fa_err *err)
{
	struct fa_json *j = NULL;

	if (ask(&j, e, NULL, c, err) < 0)
		return -1;
	take(&e->version, j, "version");
	take(&e->site, j, "site");
	forget_dists(e);
	fa_json_each (row, fa_json_get(j, "distributions"))
		add_dist(e, row);
	if (out)
		*out = j;
	else
		fa_json_free(j);
	return e->site && e->version ? 0 : fa_err_set(err, FA_MACHINE, "%s does not say where its packages are", e->python);
}

int fa_environment_look(struct fa_environment *e, struct fa_child_context *c, struct fa_err *err)
{
	return look(e, NULL, c, err);
}

const struct fa_distribution *fa_environment_find(const struct fa_environment *e, const char *name)
{
	char *normal = fa_lock_normal_name(name);
	const struct fa_distribution *found = NULL;

	for (size_t i = 0; i < e->n_dists && !found; i++)
		if (!strcmp(e->dists[i].name, normal))
			found = &e->dists[i];
	free(normal);
	return found;
}

char *fa_environment_torch_site(const struct fa_environment *e)
{
	const struct fa_distribution *torch = fa_environment_find(e, "torch");

	return torch && torch->info ? fa_path_dir(torch->info) : fa_strdup(e->site);
}

/* ---- journal of an adopted environment */

static int write_journal(const struct fa_environment *e, struct fa_err *err)
{
	struct fa_json *j = fa_json_new_object();
	char *path = inside(e, journal_name), *text;
	int rc;

	fa_json_set(j, "made", fa_json_new_strv(&e->made));
	text = fa_json_print(j, true);
	rc = fa_file_write(path, text, strlen(text), err);
	free(text);
	free(path);
	fa_json_free(j);
	return rc;
}

static int note_made(struct fa_environment *e, const char *name, struct fa_err *err)
{
	char *dir = inside(e, notes_name);
	int rc = fa_file_mkdirs(dir, err);

	free(dir);
	if (rc < 0)
		return -1;
	fa_strv_push(&e->made, name);
	return write_journal(e, err);
}

int fa_environment_will_change(struct fa_environment *e, const char *name, struct fa_err *err)
{
	char *normal = fa_lock_normal_name(name), *kept = NULL, *keep = NULL, *info;
	const struct fa_distribution *d = fa_environment_find(e, normal);
	int rc = 0;

	if (e->fresh || fa_strv_has(&e->made, normal))
		goto done;
	/* what lies outside (system site packages) is not touched, only covered */
	if (d && d->info && !strncmp(d->info, e->site, strlen(e->site))) {
		kept = inside(e, kept_name);
		info = fa_strdup(fa_path_base(d->info));
		keep = fa_strf("%s/%s", kept, normal);
		free(info);
		rc = fa_dist_save(d->info, keep, err);
	}
	if (rc == 0)
		rc = note_made(e, normal, err);
done:
	free(kept);
	free(keep);
	free(normal);
	return rc;
}

static void remove_made(struct fa_environment *e, struct fa_child_context *c)
{
	struct fa_err err = FA_ERR_INIT;

	for (size_t i = 0; i < e->made.n; i++) {
		const struct fa_distribution *d = fa_environment_find(e, e->made.v[i]);

		if (d && d->info && !strncmp(d->info, e->site, strlen(e->site)) && fa_dist_remove(d->info, &err) < 0)
			fa_emit_text(c->sink, FA_EVENT_WARNING, "undo", "%s could not be removed: %s", e->made.v[i], err.text);
	}
}

static void restore_kept(struct fa_environment *e, const char *kept, struct fa_child_context *c)
{
	DIR *d = opendir(kept);
	struct fa_err err = FA_ERR_INIT;
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char *keep;

		if (entry->d_name[0] == '.')
			continue;
		keep = fa_path_join(kept, entry->d_name);
		if (fa_dist_restore(keep, e->site, &err) < 0)
			fa_emit_text(c->sink, FA_EVENT_WARNING, "undo", "%s could not be put back: %s", entry->d_name,
			             err.text);
		else
			fa_emit_text(c->sink, FA_EVENT_NOTE, "undo", "%s is as it was before", entry->d_name);
		free(keep);
	}
	if (d)
		closedir(d);
}

static void forget_journal(struct fa_environment *e)
{
	char *kept = inside(e, kept_name), *journal = inside(e, journal_name), *notes = inside(e, notes_name);

	fa_file_remove_tree(kept, NULL);
	unlink(journal);
	rmdir(notes); /* unless something else is in it */
	fa_strv_release(&e->made);
	free(kept);
	free(journal);
	free(notes);
}

static void undo_adopted(struct fa_environment *e, struct fa_child_context *c)
{
	static const volatile int never = 0;
	struct fa_child_context calm = *c;
	char *kept = inside(e, kept_name);

	calm.cancel = &never;
	if (fa_environment_look(e, &calm, NULL) == 0) {
		remove_made(e, &calm);
		restore_kept(e, kept, &calm);
		forget_journal(e);
	} else {
		fa_emit_text(c->sink, FA_EVENT_WARNING, "undo", "%s could not be asked: what was replaced is kept in %s",
		             e->python, kept);
	}
	free(kept);
}

/* A run before this one was killed in the middle. */
static int undo_earlier(struct fa_environment *e, struct fa_child_context *c, struct fa_err *err)
{
	char *path = inside(e, journal_name);
	struct fa_json *j = NULL;
	int rc = 0;

	if (fa_file_exists(path)) {
		rc = fa_json_read_file(&j, path, err);
		fa_json_get_strv(j, "made", &e->made);
		fa_json_free(j);
		fa_emit_text(c->sink, FA_EVENT_NOTE, "undo", "an earlier run was cut off here: %s is put back first", e->path);
		if (rc == 0) {
			undo_adopted(e, c);
			rc = fa_environment_look(e, c, err);
		}
	}
	free(path);
	return rc;
}

/* ---- opening */

static int hold(struct fa_environment *e, const char *folder, struct fa_err *err)
{
	e->lock_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->lock_fd < 0) {
		fa_err_set(err, FA_MACHINE, "%s: %s", folder, strerror(errno));
		fa_err_next(err, "choose a folder that you may write to: --env DIR");
	} else if (flock(e->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		fa_err_set(err, FA_MACHINE, "another fainstall is changing %s", folder);
		fa_err_next(err, "wait for it to end, then run this again");
		close(e->lock_fd);
		e->lock_fd = -1;
	}
	return e->lock_fd < 0 ? -1 : 0;
}

static int check_adopted(const struct fa_environment *e, const struct fa_json *j, struct fa_err *err)
{
	const char *prefix = fa_json_get_string(j, "prefix"), *base = fa_json_get_string(j, "base_prefix");
	bool own = prefix && base && strcmp(prefix, base) != 0;

	if (!own && fa_json_get_bool(j, "externally_managed")) {
		fa_err_set(err, FA_MACHINE, "%s belongs to the distribution, which does not allow packages of others in it",
		           e->path);
		return fa_err_next(err, "choose an environment: --env NAME (made by fainstall) or --env DIR");
	}
	if (access(e->site, W_OK) < 0) {
		fa_err_set(err, FA_MACHINE, "%s cannot be written: %s", e->site, strerror(errno));
		return fa_err_next(err, "choose an environment of your own: --env NAME or --env DIR");
	}
	return 0;
}

static int open_adopted(struct fa_environment *e, struct fa_child_context *c, struct fa_err *err)
{
	struct fa_json *j = NULL;
	int rc = -1;

	e->python = fa_path_join(e->path, "bin/python");
	if (!fa_file_is_executable(e->python)) {
		fa_err_set(err, FA_USAGE, "%s is not an environment: there is no bin/python in it", e->path);
		fa_err_next(err, "name an empty or new folder, or an environment that exists");
		return -1;
	}
	if (look(e, &j, c, err) == 0 && check_adopted(e, j, err) == 0 && hold(e, e->path, err) == 0)
		rc = undo_earlier(e, c, err);
	fa_json_free(j);
	return rc;
}

static int mark_unfinished(const struct fa_environment *e, struct fa_err *err)
{
	char *dir = inside(e, notes_name), *path = inside(e, unfinished_name);
	int rc = fa_file_mkdirs(dir, err);

	if (rc == 0)
		rc = fa_file_write(path, "\n", 1, err);
	free(dir);
	free(path);
	return rc;
}

static int make_fresh(struct fa_environment *e, const struct fa_json *args, const struct fa_facts *facts,
                      struct fa_child_context *c, struct fa_err *err)
{
	e->fresh = true;
	if (mark_unfinished(e, err) < 0 || fa_environment_make(e->path, fa_json_get_string(args, "python"), facts, c, err) < 0)
		return -1;
	e->python = fa_path_join(e->path, "bin/python");
	return look(e, NULL, c, err);
}

static bool is_empty_folder(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	bool empty = true;

	while (d && empty && (entry = readdir(d)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

/* Generations that a killed run left are removed; the number of the next one. */
static int next_generation(const char *root)
{
	DIR *d = opendir(root);
	struct dirent *entry;
	int last = 0;

	while (d && (entry = readdir(d))) {
		char *path = fa_path_join(root, entry->d_name), *mark = fa_path_join(path, unfinished_name);

		if (!strncmp(entry->d_name, "gen-", 4) && fa_file_exists(mark))
			fa_file_remove_tree(path, NULL);
		else if (!strncmp(entry->d_name, "gen-", 4) && atoi(entry->d_name + 4) > last)
			last = atoi(entry->d_name + 4);
		free(path);
		free(mark);
	}
	if (d)
		closedir(d);
	return last + 1;
}

/* What came with the environment itself. */
static bool is_bootstrap(const char *name)
{
	return !strcmp(name, "pip") || !strcmp(name, "setuptools") || !strcmp(name, "wheel");
}

/* The generation in use: what is in it that its lock does not name was added by the user. */
static void find_added(struct fa_environment *e, struct fa_child_context *c)
{
	struct fa_environment old = FA_ENVIRONMENT_INIT;
	struct fa_lock l = FA_LOCK_INIT;
	char *lock;

	old.path = fa_path_join(e->root, "current");
	old.python = inside(&old, "bin/python");
	lock = inside(&old, "fainstall/requirements.lock");
	if (fa_file_exists(lock) && fa_lock_read(&l, lock, NULL) == 0 && fa_environment_look(&old, c, NULL) == 0)
		for (size_t i = 0; i < old.n_dists; i++)
			if (!is_bootstrap(old.dists[i].name) && !fa_lock_package(&l, old.dists[i].name) && old.dists[i].version)
				fa_strv_pushf(&e->added, "%s==%s", old.dists[i].name, old.dists[i].version);
	fa_lock_release(&l);
	fa_environment_release(&old);
	free(lock);
}

static int open_managed(struct fa_environment *e, const struct fa_json *args, const struct fa_facts *facts,
                        struct fa_child_context *c, struct fa_err *err)
{
	const char *name = fa_json_get_string(args, "name");
	char *data = fa_dir_data();

	e->root = fa_strf("%s/envs/%s", data, name ? name : "default");
	free(data);
	if (fa_file_mkdirs(e->root, err) < 0 || hold(e, e->root, err) < 0)
		return -1;
	e->path = fa_strf("%s/gen-%d", e->root, next_generation(e->root));
	find_added(e, c);
	return make_fresh(e, args, facts, c, err);
}

static int open_folder(struct fa_environment *e, const struct fa_json *args, const struct fa_facts *facts,
                       struct fa_child_context *c, struct fa_err *err)
{
	const char *path = fa_json_get_string(args, "path");
	char *mark;
	bool unfinished;

	if (!path)
		return fa_err_set(err, FA_INTERNAL, "the environment step names no path");
	e->path = fa_path_absolute(path);
	mark = inside(e, unfinished_name);
	unfinished = fa_file_exists(mark);
	free(mark);
	if (unfinished && fa_file_remove_tree(e->path, err) < 0)
		return -1;
	if (fa_file_is_dir(e->path) && !is_empty_folder(e->path)) {
		e->kind = FA_ENVIRONMENT_ADOPTED;
		return open_adopted(e, c, err);
	}
	if (e->kind == FA_ENVIRONMENT_ADOPTED)
		return fa_err_set(err, FA_USAGE, "%s: there is no environment", e->path);
	return make_fresh(e, args, facts, c, err);
}

int fa_environment_open(struct fa_environment *e, const struct fa_json *args, const struct fa_facts *facts,
                        struct fa_child_context *c, struct fa_err *err)
{
	const char *kind = fa_json_get_string(args, "kind");

	e->open = true;
	if (!kind || !strcmp(kind, "managed")) {
		e->kind = FA_ENVIRONMENT_MANAGED;
		return open_managed(e, args, facts, c, err);
	}
	e->kind = !strcmp(kind, "adopt") ? FA_ENVIRONMENT_ADOPTED : FA_ENVIRONMENT_VENV;
	return open_folder(e, args, facts, c, err);
}

/* ---- closing */

static int switch_current(const struct fa_environment *e, struct fa_err *err)
{
	char *link = fa_path_join(e->root, "current"), *fresh = fa_path_join(e->root, ".current.new");
	int rc = 0;

	unlink(fresh);
	if (symlink(fa_path_base(e->path), fresh) < 0 || rename(fresh, link) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: %s", link, strerror(errno));
	free(link);
	free(fresh);
	return rc;
}

int fa_environment_commit(struct fa_environment *e, struct fa_err *err)
{
	char *mark;

	if (!e->open)
		return 0;
	mark = inside(e, unfinished_name);
	if (e->fresh)
		unlink(mark);
	free(mark);
	if (e->kind == FA_ENVIRONMENT_MANAGED && switch_current(e, err) < 0)
		return -1;
	if (!e->fresh)
		forget_journal(e);
	e->open = false;
	return 0;
}

static char *trash(void)
{
	char *data = fa_dir_data(), *path = fa_path_join(data, "trash");

	free(data);
	return path;
}

void fa_environment_empty_trash(void)
{
	char *path = trash();

	fa_file_remove_tree(path, NULL);
	free(path);
}

/* Out of the way at once, removed after: an environment with torch takes seconds to remove, and what is cut off then is only
 * rubbish, which the next run removes. */
static void remove_fresh(const struct fa_environment *e)
{
	char *folder = trash(), *gone = fa_strf("%s/%ld", folder, (long)getpid());

	if (fa_file_mkdirs(folder, NULL) < 0 || rename(e->path, gone) < 0)
		fa_file_remove_tree(e->path, NULL);
	if (e->root)
		rmdir(e->root); /* unless there are earlier generations */
	fa_file_remove_tree(gone, NULL);
	rmdir(folder);
	free(folder);
	free(gone);
}

void fa_environment_undo(struct fa_environment *e, struct fa_child_context *c)
{
	if (!e->open)
		return;
	e->open = false;
	if (e->fresh)
		remove_fresh(e);
	else if (e->made.n)
		undo_adopted(e, c);
}

void fa_environment_release(struct fa_environment *e)
{
	if (e->lock_fd >= 0)
		close(e->lock_fd);
	forget_dists(e);
	fa_strv_release(&e->made);
	fa_strv_release(&e->added);
	free(e->root);
	free(e->path);
	free(e->python);
	free(e->version);
	free(e->site);
	free(e->pip_settings);
	*e = (struct fa_environment)FA_ENVIRONMENT_INIT;
}
