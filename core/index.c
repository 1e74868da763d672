#include "index.h"

#include "buf.h"
#include "environment.h"
#include "fetch.h"
#include "file.h"
#include "lock.h"
#include "url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { PAGE_MAX = 64 * 1024 * 1024 };

static const char usual_index[] = "https://pypi.org/simple"; /* pip's own default (PEP 503) */
static const char accepted[] =
        "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/* ---- configuration */

struct settings {
	struct fa_strv folders; /* paths and pages of find-links */
	struct fa_strv indexes;
	bool no_index;
	char *ca;
};

/* Asked once: pip takes its time. Borrowed. */
static const char *pip_list(struct fa_environment *env, struct fa_child_context *c)
{
	const char *const argv[] = { env->python, "-I", "-m", "pip", "config", "list", NULL };
	struct fa_buf out = FA_BUF_INIT;
	struct fa_child child = { .argv = argv, .quiet = true, .out = &out };

	if (env->pip_settings)
		return env->pip_settings;
	if (!fa_environment_find(env, "pip") || fa_child_run(c, &child, FA_MACHINE, NULL) < 0)
		fa_buf_reset(&out);
	fa_buf_adds(&out, "");
	env->pip_settings = fa_buf_detach(&out);
	return env->pip_settings;
}

/* The variable of pip's, pip's files, then the variables of uv. The caller's; NULL: nowhere set. */
static char *setting(const char *list, const char *name, const char *variable, const char *uv, const char *older_uv)
{
	const char *names[] = { variable, uv, older_uv };
	char *value = NULL;

	if (getenv(variable))
		return fa_strdup(getenv(variable));
	value = fa_index_pip_setting(list, name);
	for (int i = 1; i < 3 && !value; i++)
		value = names[i] ? fa_strdup(getenv(names[i])) : NULL;
	return value;
}

static bool is_true(const char *value)
{
	return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0;
}

static void read_settings(struct settings *s, struct fa_environment *env, struct fa_child_context *c)
{
	const char *list = pip_list(env, c);
	char *folders = setting(list, "find-links", "PIP_FIND_LINKS", "UV_FIND_LINKS", NULL);
	char *first = setting(list, "index-url", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL");
	char *more = setting(list, "extra-index-url", "PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", NULL);
	char *none = setting(list, "no-index", "PIP_NO_INDEX", "UV_NO_INDEX", NULL);

	*s = (struct settings){ .no_index = is_true(none), .ca = setting(list, "cert", "PIP_CERT", NULL, NULL) };
	fa_strv_split(&s->folders, folders ? folders : "", " \t\n,");
	fa_strv_push(&s->indexes, first && *first ? first : usual_index);
	fa_strv_split(&s->indexes, more ? more : "", " \t\n");
	free(folders);
	free(first);
	free(more);
	free(none);
}

static void release_settings(struct settings *s)
{
	fa_strv_release(&s->folders);
	fa_strv_release(&s->indexes);
	free(s->ca);
}

/* ---- looking */

/* Files of an index with a password are behind the same one when they are on the very same host. */
static void carry_userinfo(struct fa_index_file *f, const char *index)
{
	char *ours = fa_url_host(index), *theirs = fa_url_host(f->url);
	const char *begin = strstr(index, "://"), *at, *rest = strstr(f->url, "://");
	size_t authority = begin ? strcspn(begin + 3, "/?#") : 0;

	at = begin ? memrchr(begin + 3, '@', authority) : NULL;
	if (at && rest && !strcmp(ours, theirs) && !strncmp(rest + 3, theirs, strlen(theirs)) &&
	    !strncmp(index, f->url, (size_t)(begin - index))) {
		char *with = fa_strf("%.*s%s", (int)(at + 1 - index), index, rest + 3);

		free(f->url);
		f->url = with;
	}
	free(ours);
	free(theirs);
}

/* The page of that URL. 1: here it is, 0: the index has none, -1: it cannot be had. */
static int get_page(struct fa_buf *page, const char *url, const char *what, const struct settings *s,
                    const volatile int *cancel, struct fa_err *err)
{
	char *cache = fa_dir_cache(), *path = fa_strf("%s/index/page.%ld", cache, (long)getpid());
	char *name = fa_strf("list of files with %s", what);
	int answer = 0, rc = -1;
	struct fa_fetch_opts fetch = { .url = url,
		                       .path = path,
		                       .size = -1,
		                       .ca_file = s->ca,
		                       .accept = accepted,
		                       .cancel = cancel,
		                       .tries = 3,
		                       .name = name,
		                       .answer = &answer };

	unlink(path);
	if (fa_fetch(NULL, &fetch, err) == 0 && fa_file_read(page, path, PAGE_MAX, err) == 0)
		rc = 1;
	else if (answer == 404 || answer == 410)
		rc = 0; /* an index without this package */
	unlink(path);
	free(cache);
	free(path);
	free(name);
	return rc;
}

/* 1: found, 0: not on it, -1: the page cannot be had. */
static int on_page(struct fa_index_file *out, const char *url, const char *file, const struct settings *s,
                   const volatile int *cancel, struct fa_err *err)
{
	struct fa_buf page = FA_BUF_INIT;
	int rc = get_page(&page, url, file, s, cancel, err);

	if (rc == 1)
		rc = fa_index_read_page(out, fa_buf_str(&page), page.len, file, url);
	if (rc == 1) {
		carry_userinfo(out, url);
		out->ca = fa_strdup(s->ca);
	}
	fa_buf_release(&page);
	return rc;
}

static int in_folders(struct fa_index_file *out, const char *file, const struct settings *s, const volatile int *cancel,
                      struct fa_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->folders.n && rc == 0; i++) {
		const char *at = s->folders.v[i], *dir = !strncmp(at, "file://", 7) ? at + 7 : at;
		char *path;

		if (!strncmp(at, "https://", 8) || !strncmp(at, "http://", 7)) {
			rc = on_page(out, at, file, s, cancel, err) == 1;
			continue;
		}
		path = *dir == '/' ? fa_path_join(dir, file) : NULL;
		if (path && fa_file_exists(path)) {
			out->url = fa_strdup(path);
			rc = 1;
		}
		free(path);
	}
	return rc;
}

/* The first index that has it; one that does not answer matters only when no other has it. */
static int on_indexes(struct fa_index_file *out, const char *package, const char *file, const struct settings *s,
                      const volatile int *cancel, struct fa_err *err)
{
	struct fa_err silent = FA_ERR_INIT, why = FA_ERR_INIT;
	char *name = fa_lock_normal_name(package);
	int rc = 0;

	for (size_t i = 0; i < s->indexes.n && rc != 1 && silent.status != FA_INTERRUPTED; i++) {
		const char *index = s->indexes.v[i];
		char *url = fa_strf("%s%s%s/", index, index[strlen(index) - 1] == '/' ? "" : "/", name);

		rc = on_page(out, url, file, s, cancel, &why);
		if (rc < 0)
			silent = why;
		free(url);
	}
	free(name);
	if (rc != 1 && silent.status != FA_OK && err)
		*err = silent;
	else if (rc != 1) {
		fa_err_set(err, FA_IMPOSSIBLE, "%s: the package index has no such file", file);
		fa_err_next(err, "choose another version with --flash-attn, or another source with --source");
	}
	return rc == 1 ? 0 : -1;
}

int fa_index_find(struct fa_index_file *out, const char *package, const char *file, struct fa_environment *env,
                  struct fa_child_context *c, struct fa_err *err)
{
	struct settings s;
	int rc = -1;

	*out = (struct fa_index_file){ .size = -1 };
	read_settings(&s, env, c);
	if (in_folders(out, file, &s, c->cancel, err) == 1) {
		rc = 0;
	} else if (s.no_index) {
		fa_err_set(err, FA_NETWORK, "%s: not in %s, and pip is set to ask no index (no-index)", file,
		           s.folders.n ? s.folders.v[0] : "any folder");
		fa_err_next(err, "put the file there, or unset PIP_NO_INDEX");
	} else {
		rc = on_indexes(out, package, file, &s, c->cancel, err);
	}
	release_settings(&s);
	return rc;
}

/* ---- a version */

int fa_index_wheels(struct fa_strv *out, const char *package, const char *version, const struct fa_strv *indexes,
                    struct fa_environment *env, struct fa_child_context *c, struct fa_err *err)
{
	const struct fa_strv *asked;
	struct settings s;
	int rc = 0;

	read_settings(&s, env, c);
	asked = indexes ? indexes : &s.indexes;
	for (size_t i = 0; i < asked->n && rc == 0 && !s.no_index; i++) {
		const char *index = asked->v[i];
		char *url = fa_strf("%s%s%s/", index, index[strlen(index) - 1] == '/' ? "" : "/", package);
		struct fa_buf page = FA_BUF_INIT;

		rc = get_page(&page, url, package, &s, c->cancel, err);
		if (rc == 1)
			rc = fa_index_read_version(out, fa_buf_str(&page), page.len, package, version, url);
		fa_buf_release(&page);
		free(url);
	}
	release_settings(&s);
	if (rc == 0)
		fa_err_set(err, FA_IMPOSSIBLE, "no index has wheels of %s %s with their sha256", package, version);
	return rc == 1 ? 0 : -1;
}

/* ---- all wheels of an index that was named */

/* 1: the page is there, 0: it is not, -1: no answer. */
static int list_page(struct fa_strv *out, const char *url, const volatile int *cancel, struct fa_err *err)
{
	struct settings none = { 0 };
	struct fa_buf page = FA_BUF_INIT;
	int rc = get_page(&page, url, "wheels", &none, cancel, err);

	if (rc == 1)
		fa_index_read_wheels(out, fa_buf_str(&page), page.len, url);
	fa_buf_release(&page);
	return rc;
}

int fa_index_list(struct fa_strv *out, const char *url, const char *const *packages, const volatile int *cancel,
                  struct fa_err *err)
{
	const char *slash = url[strlen(url) - 1] == '/' ? "" : "/";
	int rc = 0, there = 0;

	for (size_t i = 0; packages[i] && rc >= 0; i++) {
		char *page = fa_strf("%s%s%s/", url, slash, packages[i]);

		rc = list_page(out, page, cancel, err);
		there += rc == 1;
		free(page);
	}
	if (rc >= 0 && !there) {
		rc = list_page(out, url, cancel, err);
		there += rc == 1;
	}
	if (rc >= 0 && !there) {
		fa_err_set(err, FA_NETWORK, "%s: there is no such page, and no list of Flash-Attention's wheels below it", url);
		return fa_err_next(err, "name a simple index, a page of links or a folder; a repository ends with .git");
	}
	return rc < 0 ? -1 : 0;
}
