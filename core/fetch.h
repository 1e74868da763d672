/* Downloads: https (and http to a loopback address), resumed where they were cut, proved by hash before anybody reads them. The
 * only file that includes libcurl is fetch.c. */
#ifndef FA_FETCH_H
#define FA_FETCH_H

#include "err.h"

#include <stdbool.h>
#include <stdint.h>

struct fa_fetch_opts {
	const char *url;
	const char *path;           /* where it ends up; PATH.part and PATH.part.meta meanwhile */
	const char *sha256;         /* 64 hex digits; NULL: first seen, its hash is returned */
	int64_t size;               /* bytes; -1 unknown */
	const char *ca_file;        /* certificates; NULL: SSL_CERT_FILE, CURL_CA_BUNDLE, …, else the system's */
	const char *accept;         /* Accept header; NULL: anything */
	const char *name;           /* how messages call it; NULL: as path ends */
	int *answer;                /* set to the server's last status (404), 0 when there was none; NULL: not wanted */
	unsigned silence_s;         /* gives up below 1 KiB/s for so long; 0: 30 */
	unsigned tries;             /* in all, without real progress between; 0: 5 */
	const volatile int *cancel; /* becomes non-zero: stop within 200 ms, the part is kept; NULL: never */
	void (*progress)(void *ctx, int64_t done, int64_t total /* -1 unknown */);
	void *ctx;
};

/* 0: `path` holds the whole file and its hash is right; `sha256_out` (65 bytes, may be NULL) tells it. A file that is there
 * already with the right hash is not fetched again. Errors: FA_NETWORK (host and reason), FA_INTEGRITY (hash; the file is
 * removed), FA_MACHINE (disk, permission), FA_USAGE (a scheme that is not allowed), FA_INTERRUPTED. */
int fa_fetch(char *sha256_out, const struct fa_fetch_opts *opts, struct fa_err *err);

#endif
