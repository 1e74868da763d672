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

/* ---- JSON (PEP 691, sizes of PEP 700) */

static bool read_json(struct fa_index_file *out, const char *text, size_t len, const char *file, const char *page)
{
	struct fa_json *j = NULL;
	int best = 0;

	if (fa_json_parse(&j, text, len, "index", NULL) < 0)
		return false;
	fa_json_each (row, fa_json_get(j, "files")) {
		const char *name = fa_json_get_string(row, "filename"), *url = fa_json_get_string(row, "url");
		int match = name && url ? names_match(file, name) : 0;
		double size = fa_json_get_number(row, "size", -1);

		if (match <= best)
			continue;
		best = match;
		take(out, page, url, fa_json_get_string(fa_json_get(row, "hashes"), "sha256"),
		     size >= 0 && size < 9e15 ? (int64_t)size : -1);
	}
	fa_json_free(j);
	return best > 0;
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

/* The attribute href of a tag between p (behind its name) and end. The caller's; NULL: none. */
static char *href_of(const char *p, const char *end)
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
		if (value && name_len == 4 && !strncasecmp(name, "href", 4))
			return unescape(value, value_end);
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

static int read_link(struct fa_index_file *out, const char *link, const char *file, const char *page, int best)
{
	static const char mark[] = "#sha256=";
	const char *hash = strstr(link, mark);
	char *name = file_of(link);
	int match = names_match(file, name);

	if (match > best)
		take(out, page, link, hash ? hash + strlen(mark) : NULL, -1);
	free(name);
	return match > best ? match : best;
}

static bool starts_tag(const char *p, const char *end, const char *name)
{
	size_t len = strlen(name);

	return (size_t)(end - p) > len && !strncasecmp(p, name, len) && isspace((unsigned char)p[len]);
}

static bool read_html(struct fa_index_file *out, const char *text, size_t len, const char *file, const char *page)
{
	const char *end = text + len, *close;
	char *base = fa_strdup(page);
	int best = 0;

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
		link = href_of(p + (anchor ? 2 : 5), close);
		if (link && anchor) {
			best = read_link(out, link, file, base, best);
		} else if (link) {
			char *absolute = fa_url_join(page, link);

			free(base);
			base = absolute;
		}
		free(link);
	}
	free(base);
	return best > 0;
}

bool fa_index_read_page(struct fa_index_file *out, const char *text, size_t len, const char *file, const char *page)
{
	const char *first = skip_blanks(text, text + len);

	*out = (struct fa_index_file){ .size = -1 };
	if (first < text + len && *first == '{')
		return read_json(out, text, len, file, page);
	return read_html(out, text, len, file, page);
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
