#include "bundle.h"

#include "file.h"
#include "json.h"
#include "redact.h"
#include "scan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { AROUND = 40, TAIL = 40, LINE_MAX_BYTES = 2000, CAUSES_SHOWN = 3 };

/* ---- names and secrets */

static const char *const secret_endings[] = { "TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS" };

/* Beginnings of tokens as their issuers document them. */
static const char *const token_starts[] = { "hf_",    "ghp_", "gho_", "ghs_",  "github_pat_",
	                                    "glpat-", "sk-",  "AKIA", "xoxb-", "pypi-" };

enum { TOKEN_MIN = 16 };

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Length of `name` when it stands at p as a whole word, else 0. */
static size_t name_at(const char *p, char before, const char *name)
{
	size_t len = name ? strlen(name) : 0;

	if (len < 2 || strncmp(p, name, len) != 0 || is_word(before) || is_word(p[len]))
		return 0;
	return len;
}

/* Length of NAME= or NAME: where NAME ends like that of a secret, else 0. */
static size_t secret_name_at(const char *p, char before)
{
	size_t len = 0;

	if (is_word(before))
		return 0;
	while (is_word(p[len]))
		len++;
	if (!len || (p[len] != '=' && p[len] != ':'))
		return 0;
	for (size_t i = 0; i < sizeof(secret_endings) / sizeof(*secret_endings); i++) {
		size_t n = strlen(secret_endings[i]);

		if (len >= n && !strncasecmp(p + len - n, secret_endings[i], n))
			return len + 1;
	}
	return 0;
}

static size_t token_at(const char *p, char before)
{
	size_t len = 0;

	if (is_word(before))
		return 0;
	while (is_token(p[len]))
		len++;
	if (len < TOKEN_MIN)
		return 0;
	for (size_t i = 0; i < sizeof(token_starts) / sizeof(*token_starts); i++)
		if (!strncmp(p, token_starts[i], strlen(token_starts[i])))
			return len;
	return 0;
}

/* Length of "/home/" and the like when it stands at p: the next part of the path is somebody's name. */
static size_t homes_at(const char *p)
{
	static const char *const homes[] = { "/home/", "/Users/", "\\Users\\", "\\\\Users\\\\" };

	for (size_t i = 0; i < sizeof(homes) / sizeof(*homes); i++)
		if (!strncmp(p, homes[i], strlen(homes[i])))
			return strlen(homes[i]);
	return 0;
}

void fa_anonymise(struct fa_buf *out, const char *text, const struct fa_names *names)
{
	char *copy = fa_strdup(text), before = ' ';
	size_t len;

	fa_redact(copy);
	for (const char *p = copy; *p; before = p[-1]) {
		size_t home = names->home ? strlen(names->home) : 0;

		if (home > 1 && !strncmp(p, names->home, home) && !is_word(p[home])) {
			fa_buf_addc(out, '~');
			p += home;
		} else if ((len = homes_at(p))) {
			fa_buf_add(out, p, len);
			fa_buf_adds(out, "user");
			p += len;
			p += strcspn(p, "/\\ \t\"':,;");
		} else if ((len = name_at(p, before, names->user))) {
			fa_buf_adds(out, "user");
			p += len;
		} else if ((len = name_at(p, before, names->host))) {
			fa_buf_adds(out, "host");
			p += len;
		} else if ((len = secret_name_at(p, before))) {
			fa_buf_add(out, p, len);
			fa_buf_addc(out, '-');
			p += len;
			p += strspn(p, " \"'");
			p += strcspn(p, " \"'\t,;");
		} else if ((len = token_at(p, before))) {
			fa_buf_addc(out, '-');
			p += len;
		} else {
			fa_buf_addc(out, *p++);
		}
	}
	free(copy);
}

static struct fa_json *anonymised(const struct fa_json *j, const struct fa_names *names)
{
	struct fa_buf b = FA_BUF_INIT;
	struct fa_json *out;

	switch (fa_json_type(j)) {
	case FA_JSON_STRING:
		fa_anonymise(&b, fa_json_string(j), names);
		out = fa_json_new_string(fa_buf_str(&b));
		fa_buf_release(&b);
		return out;
	case FA_JSON_ARRAY:
		out = fa_json_new_array();
		fa_json_each (e, j)
			fa_json_push(out, anonymised(e, names));
		return out;
	case FA_JSON_OBJECT:
		out = fa_json_new_object();
		fa_json_each (e, j)
			fa_json_set(out, fa_json_key(e), anonymised(e, names));
		return out;
	default: return fa_json_copy(j);
	}
}

/* ---- the part of the log */

struct part {
	const struct fa_diagnosis *d;
	const struct fa_names *names;
	struct fa_json *lines;
};

static bool near(size_t number, size_t line)
{
	return number + AROUND >= line && number <= line + AROUND;
}

static bool wanted(const struct fa_diagnosis *d, size_t number)
{
	if (number + TAIL > d->n_lines)
		return true;
	for (size_t i = 0; i < d->n_causes && i < CAUSES_SHOWN; i++)
		if (near(number, d->causes[i].evidence[0].line))
			return true;
	for (size_t i = 0; i < d->n_unknown; i++)
		if (near(number, d->unknown[i].line))
			return true;
	return false;
}

static void add_line(struct part *p, size_t number, const char *text, size_t len)
{
	struct fa_json *row = fa_json_new_object();
	char *copy = fa_strndup(text, len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);
	struct fa_buf b = FA_BUF_INIT;

	for (char *c = copy; *c; c++) /* JSON is UTF-8; a log in another code page is told by its ASCII part */
		if (((unsigned char)*c < 0x20 && *c != '\t') || (unsigned char)*c >= 0x7f)
			*c = '?';
	fa_anonymise(&b, copy, p->names);
	fa_json_set_number(row, "line", (double)number);
	fa_json_set_string(row, "text", fa_buf_str(&b));
	fa_json_push(p->lines, row);
	fa_buf_release(&b);
	free(copy);
}

static void on_line(void *ctx, size_t number, const char *text, size_t len)
{
	struct part *p = ctx;

	if (wanted(p->d, number))
		add_line(p, number, text, len);
}

static int add_log(struct part *p, const char *path, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_lines lines;
	int rc = fa_file_read(&text, path, FA_FILE_MAX, err);

	if (rc == 0) {
		fa_lines_init(&lines, on_line, p);
		fa_lines_add(&lines, fa_buf_str(&text), text.len);
		fa_lines_end(&lines);
	}
	fa_buf_release(&text);
	return rc;
}

int fa_bundle_write(const char *path, const struct fa_facts *facts, const struct fa_plan *plan, const struct fa_diagnosis *d,
                    const char *log_path, const struct fa_names *names, struct fa_err *err)
{
	struct fa_json *raw = fa_json_new_object(), *out = NULL;
	struct part p = { d, names, fa_json_new_array() };
	char *text = NULL;
	int rc = -1;

	fa_json_set_string(raw, "schema", "fainstall.bundle/1");
	fa_json_set(raw, "facts", fa_facts_to_json(facts));
	fa_json_set(raw, "plan", fa_plan_to_json(plan));
	fa_json_set(raw, "diagnosis", fa_diagnosis_to_json(d));
	out = anonymised(raw, names);
	if (log_path && strcmp(log_path, "-") != 0 && add_log(&p, log_path, err) < 0)
		goto done;
	fa_json_set(out, "log", p.lines);
	p.lines = NULL;
	text = fa_json_print(out, true);
	rc = fa_file_write(path, text, strlen(text), err);
done:
	fa_json_free(p.lines);
	fa_json_free(raw);
	fa_json_free(out);
	free(text);
	return rc;
}
