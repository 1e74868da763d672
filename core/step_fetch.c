/* The step that brings one file: fetch. */
#include "run.h"

#include "buf.h"
#include "fetch.h"
#include "file.h"
#include "index.h"
#include "json.h"
#include "pip.h"
#include "url.h"
#include "wheelhouse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGEST = 12 };

static void show_bytes(void *ctx, int64_t done, int64_t total)
{
	fa_run_progress(ctx, done, total, "bytes");
}

struct wanted { /* one file to be had */
	char *file, *url, *sha256, *ca;
	char *mirror; /* asked instead of url, which is what a lock says; NULL: url itself */
	int64_t size;
	bool wheel;
	bool canonical; /* its address may stand in a lock */
};

static void release_wanted(struct wanted *w)
{
	free(w->file);
	free(w->url);
	free(w->mirror);
	free(w->sha256);
	free(w->ca);
}

static void replace(char **to, const char *text)
{
	char *copy = fa_strdup(text);

	free(*to);
	*to = copy;
}

/* "sha256:HEX" of a pinned package: the one that it has, or NULL. */
static const char *pinned_hash(const struct fa_lock_package *p)
{
	return p && p->hashes.n ? p->hashes.v[0] + strlen("sha256:") : NULL;
}

/* Where pip would take a pinned package from; NULL: pip was not asked. Borrowed. */
static const char *pinned_url(const struct fa_run *run, const char *name)
{
	char *normal = fa_lock_normal_name(name);
	size_t len = strlen(normal);
	const char *url = NULL;

	for (size_t i = 0; i < run->files.n; i++)
		if (!strncmp(run->files.v[i], normal, len) && run->files.v[i][len] == ' ')
			url = run->files.v[i] + len + 1;
	free(normal);
	return url;
}

/* A pinned wheel of an index: pip's report says where it is; with a lock alone pip is asked again, for this one. */
static int want_pinned_wheel(struct wanted *w, struct fa_run *run, const char *package, struct fa_err *err)
{
	const struct fa_lock_package *p = fa_lock_package(run->lock, package);
	const char *url = pinned_url(run, package);
	struct fa_strv one = FA_STRV_INIT;
	struct fa_lock found = FA_LOCK_INIT;
	struct fa_pip_wish wish = { .env = run->env, .requirements = &one, .afresh = true, .alone = true };
	int rc = 0;

	if (!p)
		return fa_err_set(err, FA_INTERNAL, "the plan fetches %s, which it did not pin", package);
	if (!url) {
		fa_strv_pushf(&one, "%s==%s", p->name, p->version);
		rc = fa_pip_resolve(&found, &run->files, &wish, &run->child, err);
		url = pinned_url(run, package);
	}
	if (rc == 0 && !url)
		rc = fa_err_set(err, FA_NETWORK, "pip does not say where %s %s comes from", p->name, p->version);
	if (rc == 0) {
		char *plain = fa_strndup(url, strcspn(url, "#"));

		replace(&w->url, !strncmp(plain, "file://", 7) ? plain + 7 : plain);
		replace(&w->sha256, pinned_hash(p));
		replace(&w->file, fa_path_base(plain));
		free(plain);
	}
	fa_lock_release(&found);
	fa_strv_release(&one);
	return rc;
}

static int want_sdist(struct wanted *w, struct fa_run *run, const char *package, struct fa_err *err)
{
	struct fa_index_file f;

	if (fa_index_find(&f, package, w->file, run->env, &run->child, err) < 0)
		return -1;
	replace(&w->url, f.url);
	replace(&w->ca, f.ca);
	if (!w->sha256)
		replace(&w->sha256, f.sha256);
	if (w->size < 0)
		w->size = f.size;
	fa_index_file_release(&f);
	return 0;
}

/* A wheel that no index has lies in the folder `wheels` beside the lock, or in the wheelhouse. */
static void want_beside_lock(struct wanted *w, const struct fa_run *run, const struct fa_lock_package *p)
{
	for (size_t i = 0; i < p->hashes.n; i++) {
		const char *hex = p->hashes.v[i] + strlen("sha256:");
		char *path = run->opts->wheels ? fa_wheel_in(run->opts->wheels, hex) : NULL;

		path = path ? path : fa_wheelhouse_by_hash(hex);
		replace(&w->sha256, hex);
		if (!path)
			continue;
		free(w->url);
		w->url = fa_path_absolute(path);
		replace(&w->file, fa_path_base(path));
		free(path);
		return;
	}
}

/* Hash and address by the lock, where there is one. */
static void want_locked(struct wanted *w, const struct fa_run *run)
{
	const struct fa_lock_package *p = fa_run_locked(run);
	const char *source;

	if (!run->opts->lock)
		return;
	if (w->wheel && p && p->url) {
		replace(&w->url, p->url);
		replace(&w->sha256, pinned_hash(p));
		replace(&w->file, fa_path_base(p->url));
	}
	if (w->wheel && p && p->built)
		want_beside_lock(w, run, p);
	source = fa_lock_get(run->opts->lock, "source.sha256");
	if (!w->wheel && source)
		replace(&w->sha256, source);
}

/* %2B in the name of a file that comes by URL is a +. */
static char *file_name(const char *file)
{
	struct fa_buf b = FA_BUF_INIT;

	for (const char *p = file; *p; p++) {
		bool plus = p[0] == '%' && p[1] == '2' && (p[2] == 'B' || p[2] == 'b');

		fa_buf_addc(&b, plus ? '+' : *p == '/' ? '_' : *p);
		p += plus ? 2 : 0;
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

/* A folder for it: by hash when that is known, so that two files of one name are two files. */
static char *place_for(const struct wanted *w)
{
	char *downloads = fa_run_cache("downloads"), *name = file_name(w->file), *key, *path;

	key = w->sha256 ? fa_strndup(w->sha256, DIGEST) : fa_run_digest(w->url, DIGEST);
	path = fa_strf("%s/%s/%s", downloads, key, name);
	free(downloads);
	free(name);
	free(key);
	return path;
}

static bool here_already(const char *path, const char *sha256)
{
	char hex[FA_SHA256_HEX];

	return sha256 && fa_file_exists(path) && fa_sha256_file(hex, path, NULL) == 0 && !strcmp(hex, sha256);
}

/* What was fetched before needs no index to say where it is. */
static bool fetched_before(const struct wanted *w)
{
	char *path = w->file && w->sha256 ? place_for(w) : NULL;
	bool is = path && here_already(path, w->sha256);

	free(path);
	return is;
}

static int want(struct wanted *w, struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	const char *kind = fa_json_get_string(args, "kind"), *package = fa_json_get_string(args, "package");
	const char *file = fa_json_get_string(args, "file"), *url = fa_json_get_string(args, "url");

	w->file = fa_strdup(file ? file : url ? fa_path_base(url) : NULL);
	w->url = fa_strdup(url);
	w->mirror = fa_strdup(fa_json_get_string(args, "mirror"));
	w->sha256 = fa_strdup(fa_json_get_string(args, "sha256"));
	w->size = (int64_t)fa_json_get_number(args, "size", -1);
	w->wheel = kind ? !strcmp(kind, "wheel") : w->file && strstr(w->file, ".whl");
	w->canonical = url != NULL;
	want_locked(w, run);
	if (!w->url && fetched_before(w))
		return 0;
	if (!w->url && w->wheel)
		return want_pinned_wheel(w, run, package ? package : run->choice->package, err);
	if (!w->url)
		return want_sdist(w, run, package ? package : run->choice->package, err);
	return 0;
}

static int copy_local(const char *from, const char *to, char *sha256, struct fa_err *err)
{
	struct fa_buf data = FA_BUF_INIT;
	int rc = fa_file_read(&data, from, (size_t)4 << 30, err);

	if (rc == 0)
		rc = fa_file_write(to, fa_buf_str(&data), data.len, err);
	if (rc == 0)
		rc = fa_sha256_file(sha256, to, err);
	fa_buf_release(&data);
	return rc;
}

static int bring(char *sha256, struct fa_run *run, const struct wanted *w, const char *path, struct fa_err *err)
{
	struct fa_fetch_opts opts = { .url = w->mirror ? w->mirror : w->url,
		                      .path = path,
		                      .sha256 = w->sha256,
		                      .size = w->size,
		                      .ca_file = w->ca,
		                      .cancel = run->opts->cancel,
		                      .progress = show_bytes,
		                      .ctx = run };

	if (*opts.url != '/')
		return fa_fetch(sha256, &opts, err);
	if (copy_local(opts.url, path, sha256, err) < 0)
		return -1;
	if (!w->sha256 || !strcmp(w->sha256, sha256))
		return 0;
	unlink(path);
	return fa_err_set(err, FA_INTEGRITY, "%s: sha256 %s needed, %s found", opts.url, w->sha256, sha256);
}

static void take_in_hand(struct fa_run *run, const struct wanted *w, const char *path, const char *sha256)
{
	if (w->wheel) {
		replace(&run->wheel, path);
		memcpy(run->wheel_sha256, sha256, sizeof(run->wheel_sha256));
		free(run->wheel_url);
		run->wheel_url = w->canonical && w->url && *w->url != '/' ? fa_url_plain(w->url) : NULL;
		run->built = run->built || (w->url && *w->url == '/' && w->canonical); /* locked as a file beside the lock */
	} else {
		fa_lock_set(run->lock, "source.file", "%s", fa_path_base(path));
		fa_lock_set(run->lock, "source.sha256", "%s", sha256);
	}
}

int fa_step_fetch(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	const char *id = fa_json_get_string(args, "id");
	char sha256[FA_SHA256_HEX] = "", *path = NULL, *dir = NULL;
	struct wanted w = { 0 };
	int rc = -1;

	if (want(&w, run, args, err) < 0)
		goto done;
	path = place_for(&w);
	dir = fa_path_dir(path);
	if (here_already(path, w.sha256)) {
		snprintf(sha256, sizeof(sha256), "%s", w.sha256);
		fa_run_skip(run, "%s is here already, its hash is right", fa_path_base(path));
	} else {
		if (fa_file_mkdirs(dir, err) < 0 || bring(sha256, run, &w, path, err) < 0)
			goto done;
		fa_run_say(run, "%s, sha256 %.12s…", fa_path_base(path), sha256);
	}
	fa_strv_pushf(&run->fetched, "%s %s", id ? id : "file", path);
	take_in_hand(run, &w, path, sha256);
	rc = 0;
done:
	release_wanted(&w);
	free(path);
	free(dir);
	return rc;
}
