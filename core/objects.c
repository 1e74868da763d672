#include "objects.h"

#include "buf.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OBJECT = 512 * 1024 * 1024, MAX_MANIFEST = 16 * 1024 * 1024, MAX_VARIANTS = 6 };

void fa_objects_init(struct fa_objects *s, const char *dir, const char *identity, const char *roots)
{
	*s = (struct fa_objects){ .dir = fa_strdup(dir),
		                  .identity = fa_strdup(identity ? identity : ""),
		                  .roots = FA_STRV_INIT };
	fa_strv_split(&s->roots, roots ? roots : "", "\n");
}

void fa_objects_release(struct fa_objects *s)
{
	free(s->dir);
	free(s->identity);
	fa_strv_release(&s->roots);
	*s = (struct fa_objects){ 0 };
}

/* ---- paths without the folders of this machine */

/* The longest root that holds the path; its length in *len. */
static const char *root_of(const struct fa_objects *s, const char *path, size_t *len)
{
	const char *best = NULL;

	*len = 0;
	for (size_t i = 0; i < s->roots.n; i++) {
		const char *folder = strchr(s->roots.v[i], '=');
		size_t n = folder ? strlen(++folder) : 0;

		if (n > *len && !strncmp(path, folder, n) && (path[n] == '/' || !path[n])) {
			best = s->roots.v[i];
			*len = n;
		}
	}
	return best;
}

static char *shorten(const struct fa_objects *s, const char *path)
{
	size_t len;
	const char *root = root_of(s, path, &len);

	return root ? fa_strf("@%.*s%s", (int)strcspn(root, "="), root, path + len) : fa_strdup(path);
}

static char *lengthen(const struct fa_objects *s, const char *path)
{
	size_t len = strcspn(path, "/");

	for (size_t i = 0; *path == '@' && i < s->roots.n; i++)
		if (strcspn(s->roots.v[i], "=") == len - 1 && !strncmp(s->roots.v[i], path + 1, len - 1))
			return fa_strf("%s%s", s->roots.v[i] + len, path + len);
	return fa_strdup(path);
}

/* ---- the key */

static void add_text(struct fa_sha256 *h, const char *text)
{
	fa_sha256_add(h, text, strlen(text) + 1);
}

static bool ignored(const struct fa_objects *s, const char *folder, const char *names)
{
	size_t len;
	const char *root = root_of(s, folder, &len);

	return root && names && root[1] == '=' && strchr(names, root[0]);
}

static void add_flag(struct fa_sha256 *h, const struct fa_objects *s, const char *flag, const char *ignore_below)
{
	char *path;

	if (!strncmp(flag, "-I", 2) && ignored(s, flag + 2, ignore_below))
		return;
	if (strncmp(flag, "-I", 2) != 0 && flag[0] != '/') {
		add_text(h, flag);
		return;
	}
	path = shorten(s, flag[0] == '/' ? flag : flag + 2);
	add_text(h, flag[0] == '/' ? "" : "-I");
	add_text(h, path);
	free(path);
}

int fa_objects_look(struct fa_object *out, const struct fa_objects *s, char *const *argv, const char *ignore_below)
{
	struct fa_sha256 h;
	struct fa_buf text = FA_BUF_INIT;
	int rc = -1;

	*out = (struct fa_object){ 0 };
	fa_sha256_init(&h);
	add_text(&h, "fainstall object 1");
	add_text(&h, s->identity);
	for (char *const *a = argv + 1; *a; a++) {
		if (!strcmp(*a, "-MD") || !strcmp(*a, "-MMD") || !strcmp(*a, "--generate-dependencies-with-compile"))
			continue;
		if ((!strcmp(*a, "-MF") || !strcmp(*a, "--dependency-output")) && a[1])
			out->depfile = *++a;
		else if (!strcmp(*a, "-o") && a[1])
			out->output = *++a;
		else if (!strcmp(*a, "-c") && a[1] && a[1][0] != '-')
			out->source = *++a;
		else
			add_flag(&h, s, *a, ignore_below);
	}
	/* "-c" may stand apart from the source */
	for (char *const *a = argv + 1; *a && !out->source; a++)
		if (strlen(*a) > 3 && !strcmp(*a + strlen(*a) - 3, ".cu"))
			out->source = *a;
	if (!out->depfile || !out->output || !out->source || fa_file_read(&text, out->source, MAX_MANIFEST, NULL) < 0)
		goto done;
	add_text(&h, fa_path_base(out->source));
	fa_sha256_add(&h, fa_buf_str(&text), text.len);
	fa_sha256_hex(&h, out->key);
	rc = 0;
done:
	fa_buf_release(&text);
	return rc;
}

/* ---- depfiles */

void fa_objects_parse_depfile(struct fa_strv *out, const char *text)
{
	const char *p = strstr(text, ": ");
	struct fa_buf word = FA_BUF_INIT;

	if (!p && !(p = strchr(text, ':')))
		return;
	for (p++;; p++) {
		bool continued = *p == '\\' && (p[1] == '\n' || (p[1] == '\r' && p[2] == '\n'));

		if (*p && !continued && !strchr(" \t\r\n", *p)) {
			if ((*p == '\\' && (p[1] == ' ' || p[1] == '#')) || (*p == '$' && p[1] == '$'))
				p++;
			fa_buf_addc(&word, *p);
			continue;
		}
		if (word.len)
			fa_strv_push(out, fa_buf_str(&word));
		fa_buf_reset(&word);
		if (!*p || (*p == '\n' && !continued))
			break;
		if (continued)
			p += p[1] == '\r' ? 2 : 1;
	}
	fa_buf_release(&word);
}

static void print_depfile(struct fa_buf *out, const char *output, const struct fa_strv *deps)
{
	fa_buf_addf(out, "%s:", output);
	for (size_t i = 0; i < deps->n; i++) {
		fa_buf_adds(out, " \\\n ");
		for (const char *p = deps->v[i]; *p; p++) {
			if (*p == ' ' || *p == '#')
				fa_buf_addc(out, '\\');
			fa_buf_addc(out, *p);
		}
	}
	fa_buf_addc(out, '\n');
}

/* ---- manifests: one file a key; blocks "object HASH", "dep HASH PATH" lines, newest first */

static char *place(const struct fa_objects *s, const char *kind, const char *hash, const char *suffix)
{
	return fa_strf("%s/%s/%.2s/%s%s", s->dir, kind, hash, hash, suffix);
}

struct block {
	char object[FA_SHA256_HEX];
	struct fa_strv deps; /* as they are called here */
	bool fits;
};

static const char *line_end(const char *p)
{
	return strchrnul(p, '\n');
}

static bool dep_fits(const struct fa_objects *s, const char *line, size_t len, struct fa_strv *deps)
{
	char hash[FA_SHA256_HEX], *name, *path;
	bool same;

	if (len < 4 + 64 + 2)
		return false;
	name = fa_strndup(line + 4 + 64 + 1, len - (4 + 64 + 1));
	path = lengthen(s, name);
	same = fa_sha256_file(hash, path, NULL) == 0 && !strncmp(hash, line + 4, 64);
	fa_strv_take(deps, path);
	free(name);
	return same;
}

/* Reads one block from *p; false at the end. */
static bool next_block(struct block *b, const struct fa_objects *s, const char **p)
{
	while (**p && strncmp(*p, "object ", 7) != 0)
		*p = *line_end(*p) ? line_end(*p) + 1 : line_end(*p);
	if (line_end(*p) - *p < 7 + 64)
		return false;
	memcpy(b->object, *p + 7, 64);
	b->object[64] = '\0';
	b->fits = strspn(b->object, "0123456789abcdef") == 64;
	b->deps = (struct fa_strv)FA_STRV_INIT;
	*p = *line_end(*p) ? line_end(*p) + 1 : line_end(*p);
	while (!strncmp(*p, "dep ", 4)) {
		const char *end = line_end(*p);

		if (b->fits)
			b->fits = dep_fits(s, *p, (size_t)(end - *p), &b->deps);
		*p = *end ? end + 1 : end;
	}
	return true;
}

static bool put_object(const struct fa_objects *s, const struct fa_object *o, const struct block *b)
{
	char *path = place(s, "objects", b->object, ".o"), hash[FA_SHA256_HEX];
	struct fa_buf data = FA_BUF_INIT, deps = FA_BUF_INIT;
	struct fa_sha256 h;
	bool done = false;

	if (fa_file_read(&data, path, MAX_OBJECT, NULL) < 0)
		goto done;
	fa_sha256_init(&h);
	fa_sha256_add(&h, fa_buf_str(&data), data.len);
	fa_sha256_hex(&h, hash);
	if (strcmp(hash, b->object) != 0) { /* damaged */
		unlink(path);
		goto done;
	}
	print_depfile(&deps, o->output, &b->deps);
	done = fa_file_write(o->depfile, fa_buf_str(&deps), deps.len, NULL) == 0 &&
	       fa_file_write(o->output, fa_buf_str(&data), data.len, NULL) == 0;
	utimensat(AT_FDCWD, path, NULL, 0); /* used now */
done:
	fa_buf_release(&data);
	fa_buf_release(&deps);
	free(path);
	return done;
}

bool fa_objects_fetch(const struct fa_objects *s, const struct fa_object *o)
{
	char *path = place(s, "manifests", o->key, "");
	struct fa_buf text = FA_BUF_INIT;
	const char *p;
	struct block b;
	bool found = false;

	fa_file_read(&text, path, MAX_MANIFEST, NULL);
	for (p = fa_buf_str(&text); !found && next_block(&b, s, &p);) {
		found = b.fits && put_object(s, o, &b);
		fa_strv_release(&b.deps);
	}
	fa_buf_release(&text);
	free(path);
	return found;
}

/* ---- storing */

static int write_below(const char *path, const void *data, size_t len, struct fa_err *err)
{
	char *dir = fa_path_dir(path);
	int rc = fa_file_mkdirs(dir, err);

	free(dir);
	return rc < 0 ? rc : fa_file_write(path, data, len, err);
}

static int print_block(struct fa_buf *out, const struct fa_objects *s, const char *object, const struct fa_strv *deps)
{
	fa_buf_addf(out, "object %s\n", object);
	for (size_t i = 0; i < deps->n; i++) {
		char hash[FA_SHA256_HEX], *name;

		if (fa_sha256_file(hash, deps->v[i], NULL) < 0)
			return -1;
		name = shorten(s, deps->v[i]);
		fa_buf_addf(out, "dep %s %s\n", hash, name);
		free(name);
	}
	return 0;
}

/* The blocks there were, at most MAX_VARIANTS - 1 of them. */
static void append_old(struct fa_buf *out, const char *path)
{
	struct fa_buf old = FA_BUF_INIT;
	int blocks = 0;

	fa_file_read(&old, path, MAX_MANIFEST, NULL);
	for (const char *p = fa_buf_str(&old); *p; p = *line_end(p) ? line_end(p) + 1 : line_end(p)) {
		if (!strncmp(p, "object ", 7) && ++blocks == MAX_VARIANTS)
			break;
		fa_buf_add(out, p, (size_t)(line_end(p) - p));
		fa_buf_addc(out, '\n');
	}
	fa_buf_release(&old);
}

int fa_objects_store(const struct fa_objects *s, const struct fa_object *o, struct fa_err *err)
{
	struct fa_buf data = FA_BUF_INIT, deps_text = FA_BUF_INIT, manifest = FA_BUF_INIT;
	struct fa_strv deps = FA_STRV_INIT;
	char object[FA_SHA256_HEX], *object_path = NULL, *path = place(s, "manifests", o->key, "");
	struct fa_sha256 h;
	int rc = -1;

	if (fa_file_read(&deps_text, o->depfile, MAX_MANIFEST, err) < 0 || fa_file_read(&data, o->output, MAX_OBJECT, err) < 0)
		goto done;
	fa_objects_parse_depfile(&deps, fa_buf_str(&deps_text));
	fa_sha256_init(&h);
	fa_sha256_add(&h, fa_buf_str(&data), data.len);
	fa_sha256_hex(&h, object);
	object_path = place(s, "objects", object, ".o");
	if (!deps.n || print_block(&manifest, s, object, &deps) < 0)
		goto done;
	append_old(&manifest, path);
	if (write_below(object_path, fa_buf_str(&data), data.len, err) == 0)
		rc = write_below(path, fa_buf_str(&manifest), manifest.len, err);
done:
	fa_buf_release(&data);
	fa_buf_release(&deps_text);
	fa_buf_release(&manifest);
	fa_strv_release(&deps);
	free(object_path);
	free(path);
	return rc;
}

/* ---- the limit */

struct kept {
	char *path;
	time_t used;
	int64_t bytes;
};

enum { LEFT_OVER_S = 3600 };

static int by_use(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return (x->used > y->used) - (x->used < y->used);
}

static void list_objects(const char *dir, struct kept **v, size_t *n)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		char *path = fa_path_join(dir, e->d_name);

		if (e->d_name[0] == '.' || lstat(path, &st) < 0) {
			free(path);
		} else if (S_ISDIR(st.st_mode)) {
			list_objects(path, v, n);
			free(path);
		} else {
			*v = fa_realloc(*v, *n + 1, sizeof(**v));
			(*v)[(*n)++] = (struct kept){ path, st.st_mtime, st.st_size };
		}
	}
	if (d)
		closedir(d);
}

/* What a process that was killed did not finish writing. */
static bool is_left_over(const struct kept *k)
{
	return strstr(fa_path_base(k->path), ".tmp.") && time(NULL) - k->used > LEFT_OVER_S;
}

void fa_objects_trim(const char *dir, int64_t max_mib)
{
	char *objects = fa_path_join(dir, "objects");
	struct kept *v = NULL;
	size_t n = 0;
	int64_t all = 0;

	list_objects(objects, &v, &n);
	for (size_t i = 0; i < n; i++)
		all += v[i].bytes;
	if (n)
		qsort(v, n, sizeof(*v), by_use);
	for (size_t i = 0; i < n; i++) {
		if ((all > max_mib * 1024 * 1024 || is_left_over(&v[i])) && unlink(v[i].path) == 0)
			all -= v[i].bytes;
		free(v[i].path);
	}
	free(v);
	free(objects);
}
