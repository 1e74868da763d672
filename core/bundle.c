#include "bundle.h"

#include "file.h"
#include "json.h"
#include "redact.h"
#include "scan.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { AROUND = 40, TAIL = 40, LINE_MAX_BYTES = 2000, CAUSES_SHOWN = 3, PIECES_OF_A_LINE = 3, LOG_MAX_BYTES = 256 * 1024 };

/* ---- names and secrets */

static const char *const secret_endings[] = { "TOKEN",       "KEY",  "SECRET",        "PASSWORD", "PASSWD", "PASSPHRASE",
	                                      "CREDENTIALS", "_PAT", "AUTHORIZATION", "COOKIE",   "_PW",    "LOGIN" };

/* Beginnings of tokens as their issuers document them. */
static const char *const token_starts[] = { "hf_",    "ghp_",   "gho_", "ghs_",  "ghu_",      "ghr_",  "github_pat_", "glpat-",
	                                    "sk-",    "AKIA",   "ASIA", "xoxb-", "xoxp-",     "pypi-", "npm_",        "eyJ",
	                                    "nvapi-", "wandb_", "AIza", "ya29.", "dckr_pat_", "r8_",   "gsk_",        "SG." };

/* After these words the next one is a secret: options, and how headers and netrc say it. */
static const char *const before_secrets[] = { "--password", "--token", "--api-key", "--proxy-user", "--secret",
	                                      "Bearer",     "Basic",   "password",  "login",        "passwd" };

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

static bool ends_like_secret(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(secret_endings) / sizeof(*secret_endings); i++) {
		size_t n = strlen(secret_endings[i]);

		if (len >= n && !strncasecmp(name + len - n, secret_endings[i], n))
			return true;
	}
	return false;
}

/* Length of NAME=, NAME: or "NAME": (blanks allowed) where NAME ends like that of a secret, else 0. A colon in prose ("key: word")
 * counts too: better a word too few. */
static size_t secret_name_at(const char *p, char before)
{
	size_t name = 0, len;

	if (is_word(before))
		return 0;
	while (is_word(p[name]) || (name && p[name] == '-'))
		name++;
	len = name;
	len += strspn(p + len, "\"'");
	len += strspn(p + len, " \t");
	if (!name || (p[len] != '=' && p[len] != ':') || !ends_like_secret(p, name))
		return 0;
	return len + 1;
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

/* "--token " and the like: length including the blanks or '=' after it. */
static size_t before_secret_at(const char *p, char before)
{
	for (size_t i = 0; i < sizeof(before_secrets) / sizeof(*before_secrets); i++) {
		size_t len = strlen(before_secrets[i]),
		       gap = strncasecmp(p, before_secrets[i], len) ? 0 : strspn(p + len, " =");

		if (gap && !is_word(before) && p[len + gap])
			return len + gap;
	}
	return 0;
}

/* Length of "/home/" and the like when it stands at p: the next part of the path is somebody's name. */
static size_t homes_at(const char *p)
{
	static const char *const homes[] = { "/home/",        "/Users/",        "\\Users\\",
		                             "\\\\Users\\\\", "/users/",        "/homes/",
		                             "/scratch/",     "/var/lib/user/", "\\Documents and Settings\\" };

	for (size_t i = 0; i < sizeof(homes) / sizeof(*homes); i++)
		if (!strncmp(p, homes[i], strlen(homes[i])))
			return strlen(homes[i]);
	return 0;
}

/* Length of the name before the @ of a prompt or an address ("ada@lab7:", "ada@example.org"), and of what follows, else 0. Not
 * "flash-attn @ file", not "torch@2.8". */
static size_t address_at(const char *p, char before, size_t *host)
{
	size_t len = 0;

	if (is_token(before) || before == '/' || before == '@')
		return 0;
	while (is_token(p[len]) || p[len] == '+')
		len++;
	if (!len || p[len] != '@' || !isalpha((unsigned char)p[len + 1]))
		return 0;
	*host = 0;
	while (is_token(p[len + 1 + *host]))
		++*host;
	while (*host && !is_word(p[len + *host])) /* a full stop after it */
		--*host;
	if (!strncmp(p + len + 1, "lib", 3) || memchr(p + len + 1, '_', *host)) /* version of a symbol: "memcpy@GLIBC_2.14" */
		return 0;
	return *host ? len : 0;
}

/* The machine's name without its domain, and the domain that may follow. */
static size_t host_at(const char *p, char before, const char *host)
{
	char name[256];
	size_t len;

	snprintf(name, sizeof(name), "%.*s", host ? (int)strcspn(host, ".") : 0, host ? host : "");
	len = name_at(p, before, name);
	while (len && p[len] == '.' && isalpha((unsigned char)p[len + 1]))
		len += 1 + strspn(p + len + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
	return len;
}

/* An IPv4 address, but no version of four numbers: only where an address stands. */
static size_t ip_at(const char *p, const char *start)
{
	size_t len = strspn(p, "0123456789."), dots = 0;

	if (p - start < 2 ||
	    (strncmp(p - 2, "//", 2) != 0 && p[-1] != '@' && (p - start < 6 || strncmp(p - 6, "host='", 6) != 0)))
		return 0;
	for (size_t i = 0; i < len; i++)
		dots += p[i] == '.';
	return dots == 3 ? len : 0;
}

static bool key_block(const char *p)
{
	return !strncmp(p, "-----BEGIN ", 11) && strstr(p, "PRIVATE KEY");
}

static const char *blank_value(struct fa_buf *out, const char *p, size_t name)
{
	fa_buf_add(out, p, name);
	p += name;
	p += strspn(p, " \"'");
	if (!strncasecmp(p, "bearer ", 7) || !strncasecmp(p, "basic ", 6)) /* Authorization: Bearer SECRET */
		p += strcspn(p, " ") + 1;
	fa_buf_addc(out, '-');
	return p + strcspn(p, " \"'\t,;");
}

void fa_anonymise(struct fa_buf *out, const char *text, const struct fa_names *names)
{
	char *copy = fa_strdup(text), before = ' ';
	size_t len, host, home = names->home ? strlen(names->home) : 0;

	fa_redact(copy);
	for (const char *p = copy; *p; before = p[-1]) {
		if (key_block(p)) {
			fa_buf_addc(out, '-');
			break;
		}
		if (home > 1 && !strncmp(p, names->home, home) && !is_word(p[home])) {
			fa_buf_addc(out, '~');
			p += home;
		} else if ((len = homes_at(p))) {
			fa_buf_add(out, p, len);
			fa_buf_adds(out, "user");
			p += len;
			p += strcspn(p, "/\\ \t\"':,;");
		} else if ((len = address_at(p, before, &host))) {
			fa_buf_adds(out, "user@host");
			p += len + 1 + host;
		} else if ((len = name_at(p, before, names->user))) {
			fa_buf_adds(out, "user");
			p += len;
		} else if ((len = host_at(p, before, names->host)) || (len = ip_at(p, copy))) {
			fa_buf_adds(out, "host");
			p += len;
		} else if ((len = secret_name_at(p, before)) || (len = before_secret_at(p, before))) {
			p = blank_value(out, p, len);
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
	size_t bytes;
	size_t number, pieces; /* of the line in hand: a progress bar comes in thousands */
	char *last;            /* piece of it that was held back; NULL none */
	bool in_key;           /* inside a block of a private key */
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

static void add_row(struct part *p, size_t number, const char *text)
{
	struct fa_json *row;
	struct fa_buf b = FA_BUF_INIT;

	fa_anonymise(&b, text, p->names);
	if (p->bytes + b.len <= LOG_MAX_BYTES) {
		p->bytes += b.len;
		row = fa_json_new_object();
		fa_json_set_number(row, "line", (double)number);
		fa_json_set_string(row, "text", fa_buf_str(&b));
		fa_json_push(p->lines, row);
	}
	fa_buf_release(&b);
}

static void end_line(struct part *p)
{
	if (p->last)
		add_row(p, p->number, p->last);
	free(p->last);
	p->last = NULL;
	p->pieces = 0;
}

static bool secret_block(struct part *p, const char *text)
{
	bool inside = p->in_key;

	if (key_block(text))
		p->in_key = true;
	else if (strstr(text, "-----END "))
		p->in_key = false;
	return inside;
}

/* JSON is UTF-8; a log in another code page is told by its ASCII part. */
static char *plain(const char *text, size_t len)
{
	char *copy = fa_strndup(text, len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);

	for (char *c = copy; *c; c++)
		if (((unsigned char)*c < 0x20 && *c != '\t') || (unsigned char)*c >= 0x7f)
			*c = '?';
	return copy;
}

static void on_line(void *ctx, size_t number, const char *text, size_t len)
{
	struct part *p = ctx;
	char *copy = plain(text, len);
	bool secret = secret_block(p, copy);

	if (number != p->number)
		end_line(p);
	p->number = number;
	if (!wanted(p->d, number)) {
		free(copy);
		return;
	}
	if (++p->pieces < PIECES_OF_A_LINE) {
		add_row(p, number, secret ? "-" : copy);
		free(copy);
		return;
	}
	free(p->last);
	p->last = secret ? fa_strdup("-") : copy;
	if (secret)
		free(copy);
}

static int add_log(struct part *p, const char *path, struct fa_err *err)
{
	struct fa_lines lines;
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
	fa_lines_init(&lines, on_line, p);
	rc = fa_lines_read(&lines, fd, path, err);
	fa_lines_end(&lines);
	end_line(p);
	close(fd);
	return rc;
}

int fa_bundle_write(const char *path, const struct fa_facts *facts, const struct fa_plan *plan, const struct fa_diagnosis *d,
                    const char *log_path, const struct fa_names *names, struct fa_err *err)
{
	struct fa_json *raw = fa_json_new_object(), *out = NULL;
	struct part p = { .d = d, .names = names, .lines = fa_json_new_array() };
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
