/* An installed distribution by its files, as its RECORD lists them: set aside before it is replaced, put back when what
 * replaced it does not work, removed. */
#ifndef FA_DIST_H
#define FA_DIST_H

#include "err.h"

/* `info`: the path of its .dist-info folder. Its files are linked (copied across file systems) under `keep`, with their paths
 * relative to the folder that holds `info`. FA_MACHINE: it has no RECORD (installed by another tool). */
int fa_dist_save(const char *info, const char *keep, struct fa_err *err);

/* Puts back what fa_dist_save() kept in `keep`, into the folder `site`. */
int fa_dist_restore(const char *keep, const char *site, struct fa_err *err);

/* Removes its files, their compiled forms, and the folders that become empty. No RECORD: only the .dist-info folder. */
int fa_dist_remove(const char *info, struct fa_err *err);

#endif
