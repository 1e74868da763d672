/* One file of a package index: where pip's configuration says files are (PIP_FIND_LINKS, PIP_INDEX_URL, PIP_EXTRA_INDEX_URL,
 * pip.conf; else the index that pip itself knows), without running anything that the package brings. */
#ifndef FA_INDEX_H
#define FA_INDEX_H

#include "child.h"
#include "err.h"
#include "strv.h"

#include <stdbool.h>

struct fa_environment;

struct fa_index_file {
	char *url;    /* or an absolute path of a local folder of wheels */
	char *sha256; /* as the index says; NULL: it does not */
};

/* `file`: its name, "flash_attn-2.8.3.tar.gz". FA_NETWORK, FA_IMPOSSIBLE: no index has it. */
int fa_index_find(struct fa_index_file *out, const char *package, const char *file, const struct fa_environment *env,
                  struct fa_child_context *c, struct fa_err *err);
void fa_index_file_release(struct fa_index_file *f);

/* Reads a page of the simple repository API (HTML) for one file. false: it is not on it. page: its URL, for relative links. */
bool fa_index_read_page(struct fa_index_file *out, const char *text, const char *file, const char *page);

#endif
