/* Steps that bring a source or a toolkit: clone, unpack, edit, toolkit. */
#include "run.h"

#include "archive.h"
#include "buf.h"
#include "clone.h"
#include "file.h"
#include "folder.h"
#include "json.h"
#include "source.h"
#include "url.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOURCE_MAX_MIB = 4096, EDIT_MAX = 16 * 1024 * 1024, DIGEST = 12 };

/* Path of what was fetched under an id; NULL: nothing. Borrowed. */
static const char *fetched(const struct fa_run *run, const char *id)
{
	size_t len = strlen(id);

	for (size_t i = 0; i < run->fetched.n; i++)
		if (!strncmp(run->fetched.v[i], id, len) && run->fetched.v[i][len] == ' ')
			return run->fetched.v[i] + len + 1;
	return NULL;
}

/* ---- clone */

/* The edits of the plan are part of what a source folder is. */
static char *edits_digest(const struct fa_run *run)
{
	struct fa_buf all = FA_BUF_INIT;
	char *digest;

	for (size_t i = 0; i < run->plan->n_steps; i++) {
		char *text;

		if (run->plan->steps[i].kind != FA_STEP_EDIT)
			continue;
		text = fa_json_print(run->plan->steps[i].args, false);
		fa_buf_adds(&all, text);
		free(text);
	}
	digest = all.len ? fa_run_digest(fa_buf_str(&all), 8) : fa_strdup("");
	fa_buf_release(&all);
	return digest;
}

/* cache/sources/NAME-ID[-EDITS]. The caller's. */
static char *source_folder(const struct fa_run *run, const char *name, const char *id)
{
	char *sources = fa_run_cache("sources"), *edits = edits_digest(run), *path;

	path = fa_strf("%s/%s-%.*s%s%s", sources, name, DIGEST, id, *edits ? "-" : "", edits);
	free(sources);
	free(edits);
	return path;
}

static void show_clone(void *ctx, const char *what, int64_t done, int64_t total)
{
	(void)what;
	fa_run_progress(ctx, done, total, "objects");
}

static struct fa_clone_submodule *submodules(const struct fa_json *args, size_t *n)
{
	const struct fa_json *list = fa_json_get(args, "submodules");
	struct fa_clone_submodule *all = fa_calloc(fa_json_len(list) + 1, sizeof(*all));

	*n = 0;
	fa_json_each (row, list) {
		if (fa_json_type(row) == FA_JSON_STRING)
			all[(*n)++].path = fa_json_string(row);
		else
			all[(*n)++] =
			        (struct fa_clone_submodule){ fa_json_get_string(row, "path"), fa_json_get_string(row, "url") };
	}
	return all;
}

struct origin { /* what to clone */
	char *url, *name;
	char commit[41]; /* what it must be; "" whatever ref is */
	const char *ref;
};

/* The commit is that of the lock, that behind the user's URL, or the plan's. */
static int find_origin(struct origin *o, const struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	const char *url = fa_json_get_string(args, "url"), *planned = fa_json_get_string(args, "commit"), *mark;
	const char *locked = run->opts->lock ? fa_lock_get(run->opts->lock, "source.commit") : NULL;
	const char *base;

	if (!url)
		return fa_err_set(err, FA_INTERNAL, "the clone step names no url");
	mark = strchr(url, '#');
	planned = mark ? mark + 1 : planned;
	o->url = fa_strndup(url, strcspn(url, "#"));
	o->ref = mark ? NULL : fa_json_get_string(args, "ref");
	base = fa_path_base(o->url);
	o->name = fa_strndup(base, strcspn(base, ".?"));
	if (locked && planned && strcmp(locked, planned) != 0)
		return fa_err_set(err, FA_INTEGRITY, "the lock says commit %.40s, the plan %.40s", locked, planned);
	if (locked || planned)
		snprintf(o->commit, sizeof(o->commit), "%s", locked ? locked : planned);
	if (o->commit[0] && (strlen(o->commit) != 40 || strspn(o->commit, "0123456789abcdef") != 40)) {
		fa_err_set(err, FA_USAGE, "%s: \"%.60s\" is not the full id of a commit (40 hexadecimal digits)", o->url,
		           o->commit);
		return fa_err_next(err, "take it from `git rev-parse TAG^{commit}`");
	}
	return 0;
}

static int clone_into(struct origin *o, struct fa_run *run, const struct fa_json *args, const char *path, struct fa_err *err)
{
	char found[41] = "";
	struct fa_clone_opts opts = { .url = o->url,
		                      .ref = o->ref,
		                      .commit = o->commit[0] ? o->commit : NULL,
		                      .path = path,
		                      .cancel = run->opts->cancel,
		                      .progress = show_clone,
		                      .ctx = run };
	struct fa_clone_submodule *subs = submodules(args, &opts.n_submodules);
	char *dir = fa_path_dir(path);
	int rc = fa_file_mkdirs(dir, err);

	opts.submodules = subs;
	if (rc == 0)
		rc = fa_clone(found, &opts, err);
	if (rc == 0)
		memcpy(o->commit, found, sizeof(o->commit));
	free(dir);
	free(subs);
	return rc;
}

/* The commit shows only once it is here: cloned aside, then put in its place. */
static int clone_ref(struct origin *o, struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	char *aside = fa_strf("new.%ld", (long)getpid()), *path = source_folder(run, o->name, aside);
	int rc = clone_into(o, run, args, path, err);

	if (rc == 0) {
		free(run->source);
		run->source = source_folder(run, o->name, o->commit);
		if (!fa_file_is_dir(run->source) && rename(path, run->source) < 0)
			rc = fa_err_set(err, FA_MACHINE, "%s: %s", run->source, strerror(errno));
	}
	fa_file_remove_tree(path, NULL);
	free(aside);
	free(path);
	return rc;
}

static int clone_commit(struct origin *o, struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	free(run->source);
	run->source = source_folder(run, o->name, o->commit);
	if (!fa_file_is_dir(run->source))
		return clone_into(o, run, args, run->source, err);
	fa_run_skip(run, "%s at %.12s is here already", o->name, o->commit);
	return 0;
}

/* ---- a folder */

static bool holds_nothing(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	bool nothing = true;

	while (d && nothing && (e = readdir(d)))
		nothing = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return nothing;
}

/* A submodule that was not fetched is an empty folder. */
static int check_submodules(const char *folder, const struct fa_json *args, struct fa_err *err)
{
	size_t n;
	struct fa_clone_submodule *subs = submodules(args, &n);
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		char *path = fa_path_join(folder, subs[i].path);

		if (holds_nothing(path)) {
			rc = fa_err_set(err, FA_USAGE, "%s: nothing is there", path);
			fa_err_next(err, "git -C %s submodule update --init %s", folder, subs[i].path);
		}
		free(path);
	}
	free(subs);
	return rc;
}

/* The folder is copied: its own files are not edited, and what was compiled stays with the copy. */
static int take_folder(struct fa_run *run, const struct fa_json *args, const char *folder, struct fa_err *err)
{
	const char *locked = run->opts->lock ? fa_lock_get(run->opts->lock, "source.tree") : NULL;
	char hex[FA_SHA256_HEX], *sources = fa_run_cache("sources");
	int rc = check_submodules(folder, args, err);

	if (rc == 0)
		rc = fa_folder_digest(hex, folder, err);
	if (rc == 0 && locked && strcmp(locked, hex) != 0)
		rc = fa_err_set(err, FA_INTEGRITY, "%s is another source (%.12s) than that of the lock (%.12s)", folder, hex,
		                locked);
	if (rc == 0) {
		free(run->source);
		run->source = source_folder(run, fa_path_base(folder), hex);
		if (fa_file_is_dir(run->source))
			fa_run_skip(run, "%s is here already", fa_path_base(run->source));
		else
			rc = fa_file_mkdirs(sources, err) < 0 ? -1
			                                      : fa_folder_copy(run->source, folder, run->opts->cancel, err);
	}
	if (rc == 0) {
		if (run->outcome != FA_OUTCOME_SKIPPED)
			fa_run_say(run, "%s, sha256 %.12s…", folder, hex);
		fa_lock_set(run->lock, "source.tree", "%s", hex);
	}
	free(sources);
	return rc;
}

static int clone_repository(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct origin o = { 0 };
	char *plain;
	int rc = find_origin(&o, run, args, err);

	if (rc == 0)
		rc = o.commit[0] ? clone_commit(&o, run, args, err) : clone_ref(&o, run, args, err);
	if (rc == 0) {
		if (run->outcome != FA_OUTCOME_SKIPPED)
			fa_run_say(run, "%s at %.12s", o.name, o.commit);
		plain = fa_url_plain(o.url);
		fa_lock_set(run->lock, "source.url", "%s", plain);
		fa_lock_set(run->lock, "source.commit", "%s", o.commit);
		free(plain);
	}
	free(o.url);
	free(o.name);
	return rc;
}

int fa_step_clone(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	const char *url = fa_json_get_string(args, "url");
	char *folder;
	int rc;

	if (url && fa_source_is_folder(url)) {
		folder = fa_path_absolute(url);
		rc = take_folder(run, args, folder, err);
		free(folder);
		return rc;
	}
	if (run->opts->lock && fa_lock_get(run->opts->lock, "source.tree")) {
		fa_err_set(err, FA_INTEGRITY, "the lock was made with a folder of sources (%.12s), not with a repository",
		           fa_lock_get(run->opts->lock, "source.tree"));
		return fa_err_next(err, "name the folder: --source DIR");
	}
	return clone_repository(run, args, err);
}

/* ---- unpack */

/* "flash_attn-2.8.3.tar.gz" -> "flash_attn-2.8.3". The caller's. */
static char *stem(const char *file)
{
	static const char *const ends[] = { ".tar.gz", ".tgz", ".zip", ".whl" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t a = strlen(file), b = strlen(ends[i]);

		if (a > b && !strcmp(file + a - b, ends[i]))
			return fa_strndup(file, a - b);
	}
	return fa_strdup(file);
}

int fa_step_unpack(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	const char *of = fa_json_get_string(args, "of"), *archive = fetched(run, of ? of : "file");
	const char *sha256 = fa_lock_get(run->lock, "source.sha256");
	char *name, *dir = NULL;
	int rc = -1;

	if (!archive || !sha256)
		return fa_err_set(err, FA_INTERNAL, "the plan unpacks \"%s\", which no step before fetches", of ? of : "file");
	name = stem(fa_path_base(archive));
	free(run->source);
	run->source = source_folder(run, name, sha256);
	if (fa_file_is_dir(run->source)) {
		fa_run_skip(run, "%s is unpacked already", name);
		rc = 0;
		goto done;
	}
	dir = fa_path_dir(run->source);
	if (fa_file_mkdirs(dir, err) < 0)
		goto done;
	rc = fa_archive_unpack(archive, run->source, (int)fa_json_get_number(args, "strip", 1), (int64_t)SOURCE_MAX_MIB << 20,
	                       run->opts->cancel, err);
	if (rc == 0)
		fa_run_say(run, "%s", run->source);
done:
	free(name);
	free(dir);
	return rc;
}

/* ---- edit */

static int count(const char *text, const char *find)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, find)); p += strlen(find))
		n++;
	return n;
}

/* text with every find replaced. The caller's. */
static char *replace_all(const char *text, const char *find, const char *by)
{
	struct fa_buf b = FA_BUF_INIT;
	const char *hit;

	for (; (hit = strstr(text, find)); text = hit + strlen(find)) {
		fa_buf_add(&b, text, (size_t)(hit - text));
		fa_buf_adds(&b, by);
	}
	fa_buf_adds(&b, text);
	return fa_buf_detach(&b);
}

/* The file as upstream made it: kept beside it before its first edit. Edits always start from there, so a second run, or one
 * after a crash, gives the same text. */
static int original(struct fa_buf *out, const char *path, struct fa_err *err)
{
	char *kept = fa_strf("%s.fainstall-orig", path);
	int rc = fa_file_read(out, fa_file_exists(kept) ? kept : path, EDIT_MAX, err);

	if (rc == 0 && !fa_file_exists(kept))
		rc = fa_file_write(kept, fa_buf_str(out), out->len, err);
	free(kept);
	return rc;
}

static int edit_text(char **text, const struct fa_json *edit, const char *file, struct fa_err *err)
{
	const char *find = fa_json_get_string(edit, "find"), *by = fa_json_get_string(edit, "replace");
	int needed = (int)fa_json_get_number(edit, "count", 1), found;
	char *next;

	if (!find || !*find || !by)
		return fa_err_set(err, FA_INTERNAL, "an edit of %s has no \"find\" or no \"replace\"", file);
	found = count(*text, find);
	if (found != needed) {
		fa_err_set(err, FA_BUILD,
		           "%s: \"%.80s\" is there %d times, the recipe edits %d: this is not the source it was written for",
		           file, find, found, needed);
		return fa_err_next(err, "choose another version with --flash-attn, or a newer fainstall");
	}
	next = replace_all(*text, find, by);
	free(*text);
	*text = next;
	return 0;
}

/* All edits of one file that this step and those before it make, in order. */
static int edit_file(const struct fa_run *run, const char *file, struct fa_err *err)
{
	char *path = fa_path_join(run->source, file), *text = NULL;
	struct fa_buf old = FA_BUF_INIT, now = FA_BUF_INIT;
	int rc = original(&old, path, err);

	if (rc == 0)
		text = fa_buf_detach(&old);
	for (int i = 0; rc == 0 && i <= run->step && (size_t)i < run->plan->n_steps; i++) {
		const struct fa_step *s = &run->plan->steps[i];

		if (s->kind != FA_STEP_EDIT)
			continue;
		fa_json_each (e, fa_json_get(s->args, "edits"))
			if (rc == 0 && fa_json_get_string(e, "file") && !strcmp(fa_json_get_string(e, "file"), file))
				rc = edit_text(&text, e, file, err);
	}
	if (rc == 0 && fa_file_read(&now, path, EDIT_MAX, NULL) == 0 && strcmp(fa_buf_str(&now), text) != 0)
		rc = fa_file_write(path, text, strlen(text), err); /* untouched when right: its time decides what is rebuilt */
	fa_buf_release(&now);
	fa_buf_release(&old);
	free(text);
	free(path);
	return rc;
}

static bool leads_out(const char *file)
{
	return !file || *file == '/' || strstr(file, "..");
}

int fa_step_edit(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	const struct fa_json *edits = fa_json_get(args, "edits");
	struct fa_strv files = FA_STRV_INIT;
	int rc = 0;

	if (!run->source)
		return fa_err_set(err, FA_INTERNAL, "the plan edits a source that no step before brings");
	fa_json_each (e, edits) {
		const char *file = fa_json_get_string(e, "file");

		if (leads_out(file))
			rc = fa_err_set(err, FA_INTERNAL, "an edit names the file \"%s\"", file ? file : "");
		else if (!fa_strv_has(&files, file))
			fa_strv_push(&files, file);
	}
	for (size_t i = 0; i < files.n && rc == 0; i++)
		rc = edit_file(run, files.v[i], err);
	if (rc == 0)
		fa_run_say(run, "%zu edits in %zu files", fa_json_len(edits), files.n);
	fa_strv_release(&files);
	return rc;
}

/* ---- toolkit */

static int make_links(const char *home, const struct fa_json *links, struct fa_err *err)
{
	fa_json_each (pair, links) {
		const char *target = fa_json_string(fa_json_at(pair, 0)), *name = fa_json_string(fa_json_at(pair, 1));
		char *path;
		int rc = 0;

		if (leads_out(name) || !target)
			return fa_err_set(err, FA_INTERNAL, "the toolkit step has a link without a name");
		path = fa_path_join(home, name);
		if (symlink(target, path) < 0 && errno != EEXIST)
			rc = fa_err_set(err, FA_MACHINE, "%s: %s", path, strerror(errno));
		free(path);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int fa_step_toolkit(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct fa_strv requirements = FA_STRV_INIT;
	const char *home = fa_json_get_string(args, "home");
	char *folder = NULL;
	bool fresh = false;
	int rc;

	fa_json_get_strv(args, "requirements", &requirements);
	rc = fa_run_folder_of(&folder, run, "toolkits", "toolkit", &requirements, true, &fresh, err);
	if (rc == 0) {
		free(run->toolkit);
		run->toolkit = fa_path_join(folder, home ? home : "nvidia/cu13");
		rc = make_links(run->toolkit, fa_json_get(args, "links"), err);
	}
	if (rc == 0 && fresh)
		fa_run_say(run, "%s", run->toolkit);
	else if (rc == 0)
		fa_run_skip(run, "%s is there already", run->toolkit);
	free(folder);
	fa_strv_release(&requirements);
	return rc;
}
