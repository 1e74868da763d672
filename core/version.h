/* Versions as the field writes them. */
#ifndef FA_VERSION_H
#define FA_VERSION_H

#include <stdbool.h>

/* PEP 440 order, near enough and total: dev < a < b < rc < release < post; a local label (+cu128) is ignored; missing parts
 * are 0; "2.8.3.post1" > "2.8.3". Also right for drivers (570.86.10), CUDA (12.10 > 12.9) and glibc. -1, 0, 1. */
int fa_version_compare(const char *a, const char *b);

/* Does `version` fulfil a wish typed as `wish`: equal, or a .postN of it ("2.8.3" means 2.8.3.post2 too), or a longer number
 * of a shorter wish ("2.9" means 2.9.1)? Build labels must agree when the wish has one. */
bool fa_version_matches(const char *version, const char *wish);

bool fa_version_valid(const char *text); /* digits first, then letters, digits, . + - only */

/* First `parts` numbers: ("2.9.1+cu128", 2) -> "2.9". The caller's. */
char *fa_version_head(const char *version, int parts);
char *fa_version_public(const char *version); /* without +local; the caller's */

#endif
