#include "index.h"

#include "buf.h"
#include "environment.h"
#include "fetch.h"
#include "file.h"
#include "lock.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PAGE_MAX = 64 * 1024 * 1024 };

static const char usual_index[] = "https://pypi.org/simple"; /* pip's own default (PEP 503) */

void fa_index_file_release(struct fa_index_file *f)
{
	free(f->url);
	free(f->sha256);
	f->url = f->sha256 = NULL;
}

/* ---- pages */

/* Value of an attribute with &amp; undone. The caller's. */
static char *unescape(const char *text, size_t len)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = { { "&amp;", '&' },  { "&lt;", '<' },    { "&gt;", '>' },
		         { "&quot;", '"' }, { "&#x27;", '\'' }, { "&#39;", '\'' } };
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < len; i++) {
		size_t k = 0;

		while (k < sizeof(entities) / sizeof(*entities) &&
		       strncasecmp(text + i, entities[k].name, strlen(entities[k].name)) != 0)
			k++;
		if (k < sizeof(entities) / sizeof(*entities)) {
			fa_buf_addc(&b, entities[k].c);
			i += strlen(entities[k].name) - 1;
		} else {
			fa_buf_addc(&b, text[i]);
		}
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

/* A link of a page made absolute. The caller's. */
static char *resolve_link(const char *link, const char *page)
{
	const char *host = strstr(page, "://");
	size_t origin = host ? (size_t)(host + 3 - page) + strcspn(host + 3, "/") : 0;
	char *dir, *url;

	if (strstr(link, "://") || !host)
		return fa_strdup(link);
	if (*link == '/')
		return fa_strf("%.*s%s", (int)origin, page, link);
	dir = fa_strndup(page, (size_t)(strrchr(page, '/') - page));
	while (!strncmp(link, "../", 3) && strlen(dir) > origin) {
		link += 3;
		*strrchr(dir, '/') = '\0';
	}
	url = fa_strf("%s/%s", dir, link);
	free(dir);
	return url;
}

/* href of the <a …> that starts at `tag`. The caller's; NULL: none. */
static char *href_of(const char *tag, const char *end)
{
	for (const char *p = tag; p + 6 < end; p++) {
		const char *close;

		if (strncasecmp(p, "href=", 5) != 0 || (p[5] != '"' && p[5] != '\''))
			continue;
		close = memchr(p + 6, p[5], (size_t)(end - p - 6));
		return close ? unescape(p + 6, (size_t)(close - p - 6)) : NULL;
	}
	return NULL;
}

static void keep_link(struct fa_index_file *out, const char *href, const char *page)
{
	static const char mark[] = "#sha256=";
	const char *sum = strstr(href, mark);
	char *plain = fa_strndup(href, strcspn(href, "#"));

	out->url = resolve_link(plain, page);
	out->sha256 = sum ? fa_strndup(sum + strlen(mark), strspn(sum + strlen(mark), "0123456789abcdef")) : NULL;
	if (out->sha256 && strlen(out->sha256) != 64) {
		free(out->sha256);
		out->sha256 = NULL;
	}
	free(plain);
}

bool fa_index_read_page(struct fa_index_file *out, const char *text, const char *file, const char *page)
{
	size_t len = strlen(file);

	for (const char *p = text; (p = strcasestr(p, "<a ")); p++) {
		const char *end = strchr(p, '>'), *name = end ? end + 1 : NULL;
		char *href;

		if (!name)
			break;
		name += strspn(name, " \t\r\n");
		if (strncmp(name, file, len) != 0 || !strchr("< \t\r\n", name[len]))
			continue;
		href = href_of(p, end);
		if (!href)
			continue;
		keep_link(out, href, page);
		free(href);
		return true;
	}
	return false;
}

/* ---- configuration */

/* pip's setting of that name; "" when unset. The caller's. */
static char *pip_setting(const char *name, const struct fa_environment *env, struct fa_child_context *c)
{
	char *variable = fa_strf("PIP_%s", name), *key, *text;
	const char *value;
	struct fa_buf out = FA_BUF_INIT;

	for (char *p = variable; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	value = getenv(variable);
	free(variable);
	if (value)
		return fa_strdup(value);
	if (!fa_environment_find(env, "pip"))
		return fa_strdup("");
	key = fa_strf("global.%s", name);
	{
		const char *const argv[] = { env->python, "-I", "-m", "pip", "config", "get", key, "--quiet", NULL };
		struct fa_child child = { .argv = argv, .quiet = true, .out = &out };

		if (fa_child_run(c, &child, FA_MACHINE, NULL) < 0)
			fa_buf_reset(&out);
	}
	free(key);
	text = fa_strdup(fa_buf_str(&out));
	fa_buf_release(&out);
	for (size_t len = strlen(text); len && isspace((unsigned char)text[len - 1]);)
		text[--len] = '\0';
	return text;
}

static bool in_folders(struct fa_index_file *out, const char *file, const char *folders)
{
	struct fa_strv dirs = FA_STRV_INIT;
	bool found = false;

	fa_strv_split(&dirs, folders, " \t\n");
	for (size_t i = 0; i < dirs.n && !found; i++) {
		const char *dir = !strncmp(dirs.v[i], "file://", 7) ? dirs.v[i] + 7 : dirs.v[i];
		char *path = *dir == '/' ? fa_path_join(dir, file) : NULL;

		if (path && fa_file_exists(path)) {
			out->url = fa_strdup(path);
			found = true;
		}
		free(path);
	}
	fa_strv_release(&dirs);
	return found;
}

/* Files of an index with a password are behind the same one, when they are on the same host. */
static void carry_userinfo(struct fa_index_file *f, const char *index)
{
	const char *start = strstr(index, "://"), *host, *at, *url_host;
	char *with;

	if (!start)
		return;
	start += 3;
	host = start + strcspn(start, "/");
	at = memchr(start, '@', (size_t)(host - start));
	url_host = strstr(f->url, "://");
	if (!at || !url_host)
		return;
	url_host += 3;
	if (strncmp(at + 1, url_host, (size_t)(host - at - 1)) != 0)
		return;
	with = fa_strf("%.*s%.*s%s", (int)(url_host - f->url), f->url, (int)(at + 1 - start), start, url_host);
	free(f->url);
	f->url = with;
}

/* 1: found, 0: not on it, -1: the page cannot be had. */
static int on_index(struct fa_index_file *out, const char *index, const char *package, const char *file,
                    struct fa_child_context *c, struct fa_err *err)
{
	char *name = fa_lock_normal_name(package), *cache = fa_dir_cache(), *dir = fa_path_join(cache, "index");
	char *url = fa_strf("%s%s%s/", index, index[strlen(index) - 1] == '/' ? "" : "/", name), *path;
	struct fa_buf page = FA_BUF_INIT;
	struct fa_fetch_opts fetch = { .url = url, .size = -1, .cancel = c->cancel };
	int rc = -1;

	path = fa_strf("%s/%s.html", dir, name);
	fetch.path = path;
	fa_file_remove_tree(path, NULL);
	if (fa_file_mkdirs(dir, err) == 0 && fa_fetch(NULL, &fetch, err) == 0 && fa_file_read(&page, path, PAGE_MAX, err) == 0)
		rc = fa_index_read_page(out, fa_buf_str(&page), file, url);
	if (rc == 1)
		carry_userinfo(out, index);
	fa_file_remove_tree(path, NULL);
	fa_buf_release(&page);
	free(name);
	free(cache);
	free(dir);
	free(url);
	free(path);
	return rc;
}

static int on_indexes(struct fa_index_file *out, const struct fa_strv *indexes, const char *package, const char *file,
                      struct fa_child_context *c, struct fa_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < indexes->n && rc <= 0; i++) {
		rc = on_index(out, indexes->v[i], package, file, c, err);
		if (rc < 0 && err && err->status == FA_INTERRUPTED)
			return -1;
	}
	if (rc == 0) {
		fa_err_set(err, FA_IMPOSSIBLE, "%s: the package index has no such file", file);
		fa_err_next(err, "choose another version with --flash-attn, or another source with --source");
	}
	return rc == 1 ? 0 : -1;
}

int fa_index_find(struct fa_index_file *out, const char *package, const char *file, const struct fa_environment *env,
                  struct fa_child_context *c, struct fa_err *err)
{
	char *folders = pip_setting("find-links", env, c), *none = pip_setting("no-index", env, c), *first = NULL, *more = NULL;
	struct fa_strv indexes = FA_STRV_INIT;
	int rc = -1;

	*out = (struct fa_index_file){ 0 };
	if (in_folders(out, file, folders)) {
		rc = 0;
		goto done;
	}
	if (*none && strcmp(none, "0") != 0 && strcasecmp(none, "false") != 0) {
		fa_err_set(err, FA_NETWORK, "%s: not in %s, and pip is set to ask no index (no-index)", file,
		           *folders ? folders : "any folder");
		fa_err_next(err, "put the file there, or unset PIP_NO_INDEX");
		goto done;
	}
	first = pip_setting("index-url", env, c);
	more = pip_setting("extra-index-url", env, c);
	fa_strv_push(&indexes, *first ? first : usual_index);
	fa_strv_split(&indexes, more, " \t\n");
	rc = on_indexes(out, &indexes, package, file, c, err);
done:
	fa_strv_release(&indexes);
	free(folders);
	free(none);
	free(first);
	free(more);
	return rc;
}
