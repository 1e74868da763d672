/* Archives are hostile input: paths, links, sizes, names. The only file that includes libarchive is archive.c. */
#ifndef FA_ARCHIVE_H
#define FA_ARCHIVE_H

#include "err.h"

#include <stdint.h>

struct fa_buf;
struct fa_strv;

/* Unpacks a .tar.gz or .whl/.zip into dir (made; DIR.tmp.PID meanwhile; must not exist), leaving out `strip` leading parts.
 * Refused with FA_INTEGRITY: absolute paths, "..", links that lead out, device files, duplicate names, more than max_bytes. */
int fa_archive_unpack(const char *archive, const char *dir, int strip, int64_t max_bytes, const volatile int *cancel,
                      struct fa_err *err);

/* Names of all entries, appended. */
int fa_archive_list(struct fa_strv *out, const char *archive, struct fa_err *err);

/* One entry, at most max bytes, appended; -1 when there is none of that name. */
int fa_archive_read(struct fa_buf *out, const char *archive, const char *name, int64_t max, struct fa_err *err);

#endif
