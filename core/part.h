/* A file that is still on its way: PATH.part, and beside it PATH.part.meta, which says of what. One process at a time owns it. */
#ifndef FA_PART_H
#define FA_PART_H

#include "err.h"
#include "sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fa_part {
	char *target; /* where it ends up */
	char *path, *meta;
	int fd;
	struct fa_sha256 sha; /* of its bytes */
	int64_t got;          /* how many they are */
	bool from_before;     /* some are of an earlier run */
	char url_hash[FA_SHA256_HEX];
	char etag[256], modified[64]; /* what the server called the file; "" unknown */
};

/* Waits until no other process owns it. Only `fd` and the names are good after that. */
int fa_part_open(struct fa_part *p, const char *target, const char *url, const volatile int *cancel, struct fa_err *err);

/* Hashes what an earlier run left; begins anew when that can be of no use: longer than size (-1 unknown), or neither the server
 * (ETag, date) nor a hash known beforehand can tell whether it still is the same file. */
int fa_part_take_up(struct fa_part *p, int64_t size, bool hash_known, const volatile int *cancel, struct fa_err *err);

int fa_part_restart(struct fa_part *p);                           /* empty; -1 with errno */
int fa_part_add(struct fa_part *p, const void *data, size_t len); /* -1 with errno */
void fa_part_remember(struct fa_part *p, const char *etag, const char *modified);
void fa_part_hex(const struct fa_part *p, char out[FA_SHA256_HEX]);

/* To the disk, then renamed: the moment at which the file exists. */
int fa_part_commit(struct fa_part *p, struct fa_err *err);
void fa_part_discard(struct fa_part *p);
void fa_part_close(struct fa_part *p); /* keeps it, unless it is empty */

/* FA_MACHINE: PATH.part cannot be written, and why. */
int fa_part_say(const struct fa_part *p, int why, struct fa_err *err);

#endif
