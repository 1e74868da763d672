/* URLs, as far as trust goes: which may be fetched, and what of them may be shown. */
#ifndef FA_URL_H
#define FA_URL_H

#include "err.h"

#include <stdbool.h>

/* FA_USAGE unless it is https, or http to a loopback address (127.0.0.0/8, ::1, localhost), with a host, without blanks or
 * control characters. */
int fa_url_check(const char *url, struct fa_err *err);

/* "host" or "host:port" of it, for messages; "" when there is none. The caller's. */
char *fa_url_host(const char *url);

/* The text with what stands between "://" and "@" of any URL in it, and the query, replaced by "***": user names, passwords
 * and signatures must not reach logs. The caller's. */
char *fa_url_redact(const char *text);

/* An address without user and password: mirrors and their keys are configuration, not part of a lock. The caller's. */
char *fa_url_plain(const char *url);

/* `ref` as seen from `base` (RFC 3986, paths only): absolute stays, "//host/x", "/x", "x", "./x", "../x". The caller's. */
char *fa_url_join(const char *base, const char *ref);

#endif
