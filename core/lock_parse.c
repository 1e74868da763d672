#include "buf.h"
#include "file.h"
#include "lock.h"
#include "lock_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_MAX = 4 * 1024 * 1024, HEX_LEN = 64 };

struct reader {
	struct fa_lock *lock;
	const char *name;
	const char *at, *end;
	int line; /* of the text in hand, from 1 */
	bool schema;
	long packages; /* announced; -1 not yet */
	struct fa_strv built;
	struct fa_err *err;
};

static int fault(struct reader *r, const char *what)
{
	fa_err_set(r->err, FA_USAGE, "%s: line %d: %s", r->name, r->line, what);
	return fa_err_next(r->err, "take the lock from where it was made, or remove it to make a new one");
}

static int fault_about(struct reader *r, const char *what, const char *text)
{
	char shown[80];
	int rc;

	snprintf(shown, sizeof(shown), "%s", text);
	for (char *p = shown; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
	rc = fa_err_set(r->err, FA_USAGE, "%s: line %d: %s: \"%s\"", r->name, r->line, what, shown);
	fa_err_next(r->err, "take the lock from where it was made, or remove it to make a new one");
	return rc;
}

/* One physical line without its end, trimmed at the right. 1: a line (the caller's), 0: the end, -1. */
static int next_line(struct reader *r, char **out)
{
	const char *stop;
	size_t len;

	if (r->at == r->end)
		return 0;
	r->line++;
	stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
	if (!stop)
		return fault(r, "the file ends in the middle of a line: it was cut off");
	len = (size_t)(stop - r->at);
	if (memchr(r->at, '\0', len))
		return fault(r, "a NUL byte: this is no text file");
	while (len && isspace((unsigned char)r->at[len - 1]))
		len--;
	*out = fa_strndup(r->at, len);
	r->at = stop + 1;
	return 1;
}

/* ---- comment lines */

static int read_schema(struct reader *r, const char *value)
{
	if (!strcmp(value, FA_LOCK_SCHEMA)) {
		r->schema = true;
		return 0;
	}
	if (!strncmp(value, FA_LOCK_SCHEMA, strlen(FA_LOCK_SCHEMA) - 1)) {
		fa_err_set(r->err, FA_USAGE, "%s: line %d: schema %.40s is newer than this fainstall, which reads %s", r->name,
		           r->line, value, FA_LOCK_SCHEMA);
		return fa_err_next(r->err, "take a newer fainstall, or install it with pip install --require-hashes -r");
	}
	return fault_about(r, "unknown schema", value);
}

static int read_count(struct reader *r, const char *value)
{
	char *end;

	r->packages = strtol(value, &end, 10);
	if (end == value || *end || r->packages < 0 || r->packages > 100000)
		return fault_about(r, "packages is not a number", value);
	return 0;
}

static int read_entry(struct reader *r, const char *text)
{
	const char *equals = strstr(text, " = ");
	size_t len = strlen(text);
	char *key;
	int rc = 0;

	if (!equals && len > 2 && !strcmp(text + len - 2, " ="))
		equals = text + len - 2;
	if (!equals || equals == text)
		return fault_about(r, "not \"key = value\"", text);
	key = fa_strndup(text, (size_t)(equals - text));
	equals += equals[2] ? 3 : 2;
	if (!strcmp(key, "schema"))
		rc = read_schema(r, equals);
	else if (!strcmp(key, "packages"))
		rc = read_count(r, equals);
	else if (!strcmp(key, "built"))
		fa_strv_push(&r->built, equals);
	else if (fa_lock_get(r->lock, key))
		rc = fault_about(r, "this key is there twice", key);
	else
		fa_lock_set(r->lock, key, "%s", equals);
	free(key);
	return rc;
}

/* ---- requirements */

static bool is_name(const char *s)
{
	if (!isalnum((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_.", *s))
			return false;
	return true;
}

static bool is_version(const char *s)
{
	if (!isdigit((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_.+!", *s))
			return false;
	return true;
}

static bool is_loopback(const char *host)
{
	static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = strlen(names[i]);

		if (!strncmp(host, names[i], len) && (host[len] == ':' || host[len] == '/'))
			return true;
	}
	return false;
}

static bool is_url(const char *s)
{
	const char *host = strstr(s, "://");
	const char *slash;

	if (!host)
		return false;
	host += 3;
	slash = strchr(host, '/');
	if (!slash || slash == host || memchr(host, '@', (size_t)(slash - host)))
		return false;
	return !strncmp(s, "https://", 8) || (!strncmp(s, "http://", 7) && is_loopback(host));
}

static int hex_value(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

char *fa_lock_url_version(const char *url)
{
	const char *base = fa_path_base(url);
	const char *dash = strchr(base, '-');
	struct fa_buf b = FA_BUF_INIT;

	if (!dash)
		return NULL;
	for (const char *p = dash + 1; *p && *p != '-' && *p != '#'; p++) {
		if (*p == '%' && hex_value(p[1]) >= 0 && hex_value(p[2]) >= 0) {
			fa_buf_addc(&b, (char)(hex_value(p[1]) * 16 + hex_value(p[2])));
			p += 2;
		} else if (!strcmp(p, ".tar.gz") || !strcmp(p, ".zip")) {
			break;
		} else {
			fa_buf_addc(&b, *p);
		}
	}
	if (is_version(fa_buf_str(&b)))
		return fa_buf_detach(&b);
	fa_buf_release(&b);
	return NULL;
}

static int read_hash(struct reader *r, struct fa_strv *hashes, const char *word)
{
	static const char start[] = "--hash=sha256:";
	const char *hex = word + sizeof(start) - 1;

	if (strncmp(word, start, sizeof(start) - 1) != 0)
		return fault_about(r, "expected --hash=sha256:…", word);
	if (strlen(hex) != HEX_LEN || strspn(hex, "0123456789abcdef") != HEX_LEN)
		return fault_about(r, "a sha256 has 64 hexadecimal digits", hex);
	if (!fa_strv_has(hashes, word + 7))
		fa_strv_push(hashes, word + 7);
	return 0;
}

static int keep(struct reader *r, const char *name, const char *version, const char *url, const struct fa_strv *hashes)
{
	struct fa_lock_package *p;

	if (!hashes->n)
		return fault_about(r, "no --hash for", name);
	if (fa_lock_package(r->lock, name))
		return fault_about(r, "this package is there twice", name);
	p = fa_lock_add_package(r->lock, name, version);
	p->url = fa_strdup(url);
	fa_strv_append(&p->hashes, hashes);
	fa_strv_sort(&p->hashes);
	return 0;
}

/* words: "name==version" or "name" "@" "url", then hashes. */
static int read_words(struct reader *r, const struct fa_strv *words)
{
	struct fa_strv hashes = FA_STRV_INIT;
	bool direct = words->n > 2 && !strcmp(words->v[1], "@");
	char *name = NULL, *version = NULL;
	char *equals = strstr(words->v[0], "==");
	int rc = -1;

	if (direct) {
		name = fa_strdup(words->v[0]);
		version = is_url(words->v[2]) ? fa_lock_url_version(words->v[2]) : NULL;
		if (!version) {
			fault_about(r, "no https address of a wheel or source archive", words->v[2]);
			goto done;
		}
	} else if (equals) {
		name = fa_strndup(words->v[0], (size_t)(equals - words->v[0]));
		version = fa_strdup(equals + 2);
	}
	if (!name || !is_name(name) || !is_version(version)) {
		fault_about(r, "neither name==version nor name @ https://…", words->v[0]);
		goto done;
	}
	for (size_t i = direct ? 3 : 1; i < words->n; i++)
		if (read_hash(r, &hashes, words->v[i]) < 0)
			goto done;
	rc = keep(r, name, version, direct ? words->v[2] : NULL, &hashes);
done:
	fa_strv_release(&hashes);
	free(name);
	free(version);
	return rc;
}

/* `first` and the lines that a final backslash continues it with. */
static int read_requirement(struct reader *r, const char *first)
{
	struct fa_buf all = FA_BUF_INIT;
	struct fa_strv words = FA_STRV_INIT;
	char *more = NULL;
	int rc = -1, begun = r->line, last;

	fa_buf_adds(&all, first);
	while (all.len && all.data[all.len - 1] == '\\') {
		all.data[all.len - 1] = ' ';
		rc = next_line(r, &more);
		if (rc == 0)
			rc = fault(r, "the file ends after a backslash: it was cut off");
		if (rc < 0)
			goto done;
		fa_buf_adds(&all, more);
		free(more);
		more = NULL;
	}
	fa_strv_split(&words, fa_buf_str(&all), " \t");
	if (!words.n) {
		rc = fault(r, "a backslash with nothing before it");
		goto done;
	}
	last = r->line;
	r->line = begun;
	rc = read_words(r, &words);
	r->line = last;
done:
	free(more);
	fa_strv_release(&words);
	fa_buf_release(&all);
	return rc;
}

static int read_line(struct reader *r, const char *text)
{
	static const size_t comment = sizeof(FA_LOCK_COMMENT) - 1;

	if (!strncmp(text, FA_LOCK_COMMENT, comment))
		return read_entry(r, text + comment);
	if (!*text || *text == '#')
		return 0;
	if (!r->schema)
		return fault(r, "not a lock of fainstall: no line \"" FA_LOCK_COMMENT "schema = " FA_LOCK_SCHEMA
		                "\" before this one");
	if (!strcmp(text, FA_LOCK_FIND_LINKS))
		return 0;
	if (*text == '-')
		return fault_about(r, "this option does not belong in a lock", text);
	return read_requirement(r, text);
}

static int read_end(struct reader *r)
{
	char text[120];

	if (!r->schema)
		return fault(r, "not a lock of fainstall: no line \"" FA_LOCK_COMMENT "schema = " FA_LOCK_SCHEMA "\"");
	if (r->packages < 0)
		return fault(r, "no line \"" FA_LOCK_COMMENT "packages = N\": the file was cut off");
	if ((size_t)r->packages != r->lock->n_packages) {
		snprintf(text, sizeof(text), "the file ends after %zu packages of %ld", r->lock->n_packages, r->packages);
		return fault(r, text);
	}
	for (size_t i = 0; i < r->built.n; i++) {
		struct fa_lock_package *p = fa_lock_package(r->lock, r->built.v[i]);

		if (!p)
			return fault_about(r, "built here, but not among the packages", r->built.v[i]);
		p->built = true;
	}
	return 0;
}

int fa_lock_parse(struct fa_lock *out, const char *text, size_t len, const char *name, struct fa_err *err)
{
	struct reader r = { .lock = out, .name = name, .at = text, .end = text + len, .packages = -1, .err = err };
	char *line = NULL;
	int rc;

	*out = (struct fa_lock)FA_LOCK_INIT;
	while ((rc = next_line(&r, &line)) > 0) {
		rc = read_line(&r, line);
		free(line);
		line = NULL;
		if (rc < 0)
			break;
	}
	if (rc == 0)
		rc = read_end(&r);
	fa_strv_release(&r.built);
	if (rc < 0)
		fa_lock_release(out);
	return rc;
}

int fa_lock_read(struct fa_lock *out, const char *path, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	int rc = -1;

	*out = (struct fa_lock)FA_LOCK_INIT;
	if (fa_file_read(&text, path, LOCK_MAX, err) == 0)
		rc = fa_lock_parse(out, fa_buf_str(&text), text.len, path, err);
	fa_buf_release(&text);
	return rc;
}
