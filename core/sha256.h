/* SHA-256 (FIPS 180-4) over memory and files: hashes of downloads, locks and cached objects. */
#ifndef FA_SHA256_H
#define FA_SHA256_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

struct fa_sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[64];
};

enum { FA_SHA256_HEX = 65 }; /* 64 hex digits and the NUL */

void fa_sha256_init(struct fa_sha256 *s);
void fa_sha256_add(struct fa_sha256 *s, const void *data, size_t len);
void fa_sha256_hex(struct fa_sha256 *s, char out[FA_SHA256_HEX]); /* ends it */
int fa_sha256_file(char out[FA_SHA256_HEX], const char *path, struct fa_err *err);

#endif
