#include "url.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Length of "scheme://", 0 when text has none. */
static size_t scheme_len(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

	return n && !strncmp(text + n, "://", 3) ? n + 3 : 0;
}

static const char *after_userinfo(const char *authority)
{
	size_t len = strcspn(authority, "/?#\\");

	for (size_t i = len; i > 0; i--)
		if (authority[i - 1] == '@')
			return authority + i;
	return authority;
}

char *fa_url_host(const char *url)
{
	size_t scheme = scheme_len(url);
	const char *host = after_userinfo(url + scheme);

	return scheme ? fa_strndup(host, strcspn(host, "/?#\\")) : fa_strdup("");
}

static bool is_dotted_127(const char *host, size_t len)
{
	int dots = 0;

	if (len < 4 || strncmp(host, "127.", 4) != 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (host[i] == '.')
			dots++;
		else if (host[i] < '0' || host[i] > '9')
			return false;
	}
	return dots == 3;
}

static bool is_loopback(const char *host)
{
	size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

	return is_dotted_127(host, len) || (len == 9 && !strncasecmp(host, "localhost", 9)) ||
	       (len == 5 && !strncmp(host, "[::1]", 5));
}

int fa_url_check(const char *url, struct fa_err *err)
{
	char *shown = fa_url_redact(url), *host = fa_url_host(url);
	int rc = -1;

	for (const char *p = url; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\') {
			fa_err_set(err, FA_USAGE, "%.300s: a blank, a backslash or a control character in a URL", shown);
			goto done;
		}
	if (!host[0]) {
		fa_err_set(err, FA_USAGE, "%.300s: not a URL with a host", shown);
		fa_err_next(err, "give an https:// address");
	} else if (!strncasecmp(url, "https://", 8) || (!strncasecmp(url, "http://", 7) && is_loopback(host))) {
		rc = 0;
	} else {
		fa_err_set(err, FA_USAGE, "%.300s: only https is fetched (http from this machine alone)", shown);
		fa_err_next(err, "give an https:// address");
	}
done:
	free(shown);
	free(host);
	return rc;
}

/* What stands behind "://" up to the path, a user's part of it hidden. Returns where the path begins. */
static const char *add_authority(struct fa_buf *out, const char *p)
{
	size_t len = strcspn(p, "/?# \t\r\n\"'<>");
	const char *at = memrchr(p, '@', len), *end = p + len;

	if (at)
		fa_buf_adds(out, "***");
	if (len && end[-1] == ':' && !strncmp(end, "//", 2))
		end--; /* "a://b://user@host": the second one counts too */
	if (at && at < end)
		p = at;
	fa_buf_add(out, p, (size_t)(end - p));
	return end;
}

char *fa_url_redact(const char *text)
{
	struct fa_buf out = FA_BUF_INIT;
	bool in_url = false;

	for (const char *p = text; *p;) {
		if (!strncmp(p, "://", 3)) {
			fa_buf_adds(&out, "://");
			p = add_authority(&out, p + 3);
			in_url = true;
		} else if (in_url && *p == '?') {
			fa_buf_adds(&out, "?***");
			p += strcspn(p, " \t\r\n\"'<>");
		} else {
			in_url = in_url && !strchr(" \t\r\n\"'<>", *p);
			fa_buf_addc(&out, *p++);
		}
	}
	return fa_buf_detach(&out);
}

/* Appends path with "." and ".." parts worked out; never above the root. */
static void add_path(struct fa_buf *out, const char *path)
{
	size_t root = out->len;

	while (*path) {
		size_t len = strcspn(path + 1, "/");

		if (len == 2 && !strncmp(path + 1, "..", 2)) {
			while (out->len > root && out->data[out->len - 1] != '/')
				out->len--;
			out->len -= out->len > root;
			fa_buf_add(out, "", 0);
		} else if (!(len == 1 && path[1] == '.')) {
			fa_buf_add(out, path, len + 1);
		}
		path += len + 1;
	}
}

char *fa_url_join(const char *base, const char *ref)
{
	size_t scheme = scheme_len(base), host_end = scheme + strcspn(base + scheme, "/?#"), dir = host_end;
	struct fa_buf out = FA_BUF_INIT, path = FA_BUF_INIT;

	if (scheme_len(ref) || !scheme)
		return fa_strdup(ref);
	if (!strncmp(ref, "//", 2))
		return fa_strf("%.*s%s", (int)scheme - 2, base, ref);
	for (size_t i = host_end; base[i] && base[i] != '?' && base[i] != '#'; i++)
		if (base[i] == '/')
			dir = i;
	fa_buf_add(&out, base, host_end);
	if (ref[0] != '/') {
		fa_buf_add(&path, base + host_end, dir - host_end);
		fa_buf_addc(&path, '/');
	}
	fa_buf_adds(&path, ref);
	add_path(&out, fa_buf_str(&path));
	fa_buf_release(&path);
	return fa_buf_detach(&out);
}

char *fa_url_plain(const char *url)
{
	const char *host = strstr(url, "://"), *at;

	if (!host)
		return fa_strdup(url);
	host += 3;
	at = memchr(host, '@', strcspn(host, "/"));
	return at ? fa_strf("%.*s%s", (int)(host - url), url, at + 1) : fa_strdup(url);
}
