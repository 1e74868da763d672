/* What an index says, as text: pages and pip's list of settings. Foreign text, no side effects. */
#include "index.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void fa_index_file_release(struct fa_index_file *f)
{
	free(f->url);
	free(f->sha256);
	free(f->ca);
	*f = (struct fa_index_file){ .size = -1 };
}

/* ---- names */

static bool is_separator(char c)
{
	return c == '-' || c == '_' || c == '.';
}

/* 2: the very name, 1: the same sdist in an older spelling, 0. */
static int names_match(const char *a, const char *b)
{
	size_t n = strlen(a);

	if (!strcmp(a, b))
		return 2;
	if (n != strlen(b) || (n > 4 && !strcmp(a + n - 4, ".whl")))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]) && !(is_separator(a[i]) && is_separator(b[i])))
			return 0;
	return 1;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* 64 hex digits in lower case; NULL: it is none. The caller's. */
static char *clean_hash(const char *text)
{
	char *out;

	for (int i = 0; i < 64; i++)
		if (!text || hex_digit(text[i]) < 0)
			return NULL;
	if (isalnum((unsigned char)text[64]))
		return NULL;
	out = fa_strndup(text, 64);
	for (char *p = out; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return out;
}

static void take(struct fa_index_file *out, const char *page, const char *link, const char *hash, int64_t size)
{
	char *plain = fa_strndup(link, strcspn(link, "#"));

	fa_index_file_release(out);
	out->url = fa_url_join(page, plain);
	out->sha256 = clean_hash(hash);
	out->size = size;
	free(plain);
}

/* ---- what is done with each link of a page */

struct link {
	const char *name;
	const char *page; /* URL that href is relative to */
	const char *href;
	const char *hash; /* sha256, NULL unknown */
	int64_t size;     /* -1 unknown */
	bool yanked;      /* taken back (PEP 592): an exact version may still be had */
};

struct visitor {
	const char *page; /* its URL, for relative links */
	void (*link)(void *ctx, const struct link *l);
	void *ctx;
};

struct search { /* for one file */
	struct fa_index_file *out;
	const char *file;
	int best;
};

static void look_at(void *ctx, const struct link *l)
{
	struct search *s = ctx;
	int match = names_match(s->file, l->name);

	if (match <= s->best)
		return;
	s->best = match;
	take(s->out, l->page, l->href, l->hash, l->size);
}

/* ---- JSON (PEP 691, sizes of PEP 700) */

static void read_json(const struct visitor *v, const char *text, size_t len)
{
	struct fa_json *j = NULL;

	if (fa_json_parse(&j, text, len, "index", NULL) < 0)
		return;
	fa_json_each (row, fa_json_get(j, "files")) {
		double size = fa_json_get_number(row, "size", -1);
		const struct fa_json *yanked = fa_json_get(row, "yanked");
		struct link l = { .name = fa_json_get_string(row, "filename"),
			          .page = v->page,
			          .href = fa_json_get_string(row, "url"),
			          .hash = fa_json_get_string(fa_json_get(row, "hashes"), "sha256"),
			          .size = size >= 0 && size < 9e15 ? (int64_t)size : -1,
			          .yanked = fa_json_string(yanked) || fa_json_bool(yanked) };

		if (l.name && l.href)
			v->link(v->ctx, &l);
	}
	fa_json_free(j);
}

/* ---- HTML (PEP 503) */

/* &name; or &#number; at p: its character, *used set. 0: none. */
static char entity(const char *p, const char *end, size_t *used)
{
	static const struct {
		const char *name;
		char c;
	} known[] = { { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' } };
	bool hex;
	char *after;
	long code;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if ((size_t)(end - p) >= strlen(known[i].name) && !strncasecmp(p, known[i].name, strlen(known[i].name))) {
			*used = strlen(known[i].name);
			return known[i].c;
		}
	if (end - p < 4 || p[1] != '#')
		return 0;
	hex = p[2] == 'x' || p[2] == 'X';
	code = strtol(p + 2 + hex, &after, hex ? 16 : 10);
	if (after >= end || *after != ';' || code < 32 || code > 126)
		return 0;
	*used = (size_t)(after + 1 - p);
	return (char)code;
}

static char *unescape(const char *p, const char *end)
{
	struct fa_buf b = FA_BUF_INIT;

	while (p < end) {
		size_t used = 1;
		char c = *p == '&' ? entity(p, end, &used) : 0;

		fa_buf_addc(&b, c ? c : *p);
		p += c ? used : 1;
	}
	return fa_buf_detach(&b);
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && isspace((unsigned char)*p))
		p++;
	return p;
}

/* An attribute of a tag between p (behind its name) and end: "" when it has no value. The caller's; NULL: it is not there. */
static char *attribute(const char *p, const char *end, const char *wanted)
{
	while ((p = skip_blanks(p, end)) < end) {
		const char *name = p, *value = NULL, *value_end = NULL;
		size_t name_len;

		while (p < end && *p != '=' && !isspace((unsigned char)*p))
			p++;
		name_len = (size_t)(p - name);
		p = skip_blanks(p, end);
		if (p < end && *p == '=') {
			p = skip_blanks(p + 1, end);
			value = p < end && (*p == '"' || *p == '\'') ? p + 1 : p;
			value_end = value;
			while (value_end < end && (value == p ? !isspace((unsigned char)*value_end) : *value_end != *p))
				value_end++;
			p = value_end + (value_end < end);
		} else if (!name_len) {
			p++;
		}
		if (name_len == strlen(wanted) && !strncasecmp(name, wanted, name_len))
			return value ? unescape(value, value_end) : fa_strdup("");
	}
	return NULL;
}

/* The end of a tag: the > that stands in no quotes. NULL: none. */
static const char *tag_end(const char *p, const char *end)
{
	char quote = 0;

	for (; p < end; p++) {
		if (quote ? *p == quote : *p == '"' || *p == '\'')
			quote = quote ? 0 : *p;
		else if (!quote && *p == '>')
			return p;
	}
	return NULL;
}

/* The last part of a link's path, %XX undone. The caller's. */
static char *file_of(const char *link)
{
	char *path = fa_strndup(link, strcspn(link, "?#"));
	const char *p = fa_path_base(path);
	struct fa_buf b = FA_BUF_INIT;

	for (; *p; p++) {
		bool coded = *p == '%' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0;

		fa_buf_addc(&b, coded ? (char)(hex_digit(p[1]) * 16 + hex_digit(p[2])) : *p);
		p += coded ? 2 : 0;
	}
	free(path);
	return fa_buf_detach(&b);
}

static void read_link(const struct visitor *v, const char *href, const char *page, bool yanked)
{
	static const char mark[] = "#sha256=";
	const char *hash = strstr(href, mark);
	char *name = file_of(href);
	struct link l = { name, page, href, hash ? hash + strlen(mark) : NULL, -1, yanked };

	v->link(v->ctx, &l);
	free(name);
}

static bool starts_tag(const char *p, const char *end, const char *name)
{
	size_t len = strlen(name);

	return (size_t)(end - p) > len && !strncasecmp(p, name, len) && isspace((unsigned char)p[len]);
}

static void read_html(const struct visitor *v, const char *text, size_t len)
{
	const char *end = text + len, *close;
	char *base = fa_strdup(v->page);

	for (const char *p = text; (p = memchr(p, '<', (size_t)(end - p))); p = close + 1) {
		bool anchor = starts_tag(p, end, "<a"), is_base = starts_tag(p, end, "<base");
		char *link;

		close = p;
		if (end - p > 4 && !strncmp(p, "<!--", 4)) {
			close = memmem(p + 4, (size_t)(end - p - 4), "-->", 3);
			if (!close)
				break;
			continue;
		}
		if (!anchor && !is_base)
			continue;
		close = tag_end(p, end);
		if (!close)
			break;
		link = attribute(p + (anchor ? 2 : 5), close, "href");
		if (link && anchor) {
			char *yanked = attribute(p + 2, close, "data-yanked");

			read_link(v, link, base, yanked != NULL);
			free(yanked);
		} else if (link) {
			char *absolute = fa_url_join(v->page, link);

			free(base);
			base = absolute;
		}
		free(link);
	}
	free(base);
}

static void read_links(const struct visitor *v, const char *text, size_t len)
{
	const char *first = skip_blanks(text, text + len);

	if (first < text + len && *first == '{')
		read_json(v, text, len);
	else
		read_html(v, text, len);
}

bool fa_index_read_page(struct fa_index_file *out, const char *text, size_t len, const char *file, const char *page)
{
	struct search s = { .out = out, .file = file };
	struct visitor v = { .page = page, .link = look_at, .ctx = &s };

	*out = (struct fa_index_file){ .size = -1 };
	read_links(&v, text, len);
	return s.best > 0;
}

/* ---- the wheels of one version */

struct version_search {
	struct fa_strv *out;
	const char *package, *version;
	bool lacks_hash;
};

/* "torch-2.8.0+cu128-cp311-…whl" is of torch 2.8.0+cu128? The name may be spelt with _ or . for -. */
static bool is_wheel_of(const char *name, const char *package, const char *version)
{
	size_t n = strlen(package), v = strlen(version), len = strlen(name);

	if (len < n + v + 6 || strcmp(name + len - 4, ".whl") != 0 || name[n] != '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (tolower((unsigned char)name[i]) != package[i] && !(is_separator(name[i]) && is_separator(package[i])))
			return false;
	return !strncmp(name + n + 1, version, v) && name[n + 1 + v] == '-';
}

static void look_at_version(void *ctx, const struct link *l)
{
	struct version_search *s = ctx;
	char *clean, *plain, *url;

	if (!is_wheel_of(l->name, s->package, s->version))
		return;
	clean = clean_hash(l->hash);
	if (!clean) {
		s->lacks_hash = true;
		return;
	}
	plain = fa_strndup(l->href, strcspn(l->href, "#"));
	url = fa_url_join(l->page, plain);
	fa_strv_pushf(s->out, "%s %s %s", clean, l->name, url);
	free(clean);
	free(plain);
	free(url);
}

bool fa_index_read_version(struct fa_strv *out, const char *text, size_t len, const char *package, const char *version,
                           const char *page)
{
	struct version_search s = { .out = out, .package = package, .version = version };
	struct visitor v = { .page = page, .link = look_at_version, .ctx = &s };

	read_links(&v, text, len);
	return out->n && !s.lacks_hash;
}

/* ---- every wheel */

static void look_at_wheel(void *ctx, const struct link *l)
{
	size_t len = strlen(l->name);
	char *clean, *plain, *url, *text;

	if (len < 5 || strcmp(l->name + len - 4, ".whl") != 0 || l->yanked)
		return;
	clean = clean_hash(l->hash);
	plain = fa_strndup(l->href, strcspn(l->href, "#"));
	url = fa_url_join(l->page, plain);
	text = fa_strf("%s %s %lld", url, clean ? clean : "-", (long long)l->size);
	if (!strpbrk(url, " \t\r\n"))
		fa_strv_take(ctx, text);
	else
		free(text);
	free(clean);
	free(plain);
	free(url);
}

void fa_index_read_wheels(struct fa_strv *out, const char *text, size_t len, const char *page)
{
	struct visitor v = { .page = page, .link = look_at_wheel, .ctx = out };

	read_links(&v, text, len);
}

/* ---- pip config list: SECTION.NAME='VALUE' as Python writes it; SECTION is ":env:" for a variable */

static char *python_text(const char *p)
{
	struct fa_buf b = FA_BUF_INIT;
	char quote = *p;

	if (quote != '\'' && quote != '"')
		return fa_strndup(p, strcspn(p, "\n"));
	for (p++; *p && *p != quote && *p != '\n'; p++) {
		if (*p == '\\' && p[1] && p[1] != '\n') {
			p++;
			fa_buf_addc(&b, *p == 'n' ? '\n' : *p == 't' ? '\t' : *p);
		} else {
			fa_buf_addc(&b, *p);
		}
	}
	return fa_buf_detach(&b);
}

static char *setting_of(const char *text, const char *section, const char *name)
{
	size_t a = strlen(section), b = strlen(name);

	for (const char *p = text; *p; p += strcspn(p, "\n")) {
		p += *p == '\n';
		if (!strncmp(p, section, a) && p[a] == '.' && !strncmp(p + a + 1, name, b) && p[a + 1 + b] == '=')
			return python_text(p + a + 1 + b + 1);
	}
	return NULL;
}

char *fa_index_pip_setting(const char *text, const char *name)
{
	static const char *const sections[] = { ":env:", "install", "download", "global" };
	char *value = NULL;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && !value; i++)
		value = setting_of(text, sections[i], name);
	return value;
}
