/* One file of a package index: where pip's configuration says files are (find-links, index-url, extra-index-url, cert; of its
 * environment variables, its files, else uv's variables, else the index that pip itself knows), without running anything that the
 * package brings. Where a file lies is configuration: its address may be fetched but not written into a lock. */
#ifndef FA_INDEX_H
#define FA_INDEX_H

#include "child.h"
#include "err.h"
#include "strv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fa_environment;

struct fa_index_file {
	char *url;    /* may hold credentials; or an absolute path of a local folder of wheels */
	char *sha256; /* as the index says, lower case; NULL: it does not */
	char *ca;     /* for fa_fetch_opts.ca_file; NULL: the usual one */
	int64_t size; /* as the index says; -1: it does not */
};

/* `file`: its name, "flash_attn-2.8.3.tar.gz". Yanked files are taken: the version is exact. FA_NETWORK: an index does not answer;
 * FA_IMPOSSIBLE: no index has it. */
int fa_index_find(struct fa_index_file *out, const char *package, const char *file, struct fa_environment *env,
                  struct fa_child_context *c, struct fa_err *err);
void fa_index_file_release(struct fa_index_file *f);

/* Reads a page of the simple repository API (HTML of PEP 503, JSON of PEP 691) for one file. false: it is not on it. Old sdists
 * are written with - or _ and . alike. page: the page's URL, for relative links. */
bool fa_index_read_page(struct fa_index_file *out, const char *text, size_t len, const char *file, const char *page);

/* The wheels of one version, each "SHA256 NAME URL", of the first index that has it: those of pip's configuration, or those in
 * `indexes` when that is not NULL. package: normal name. Nothing is downloaded but the list. FA_IMPOSSIBLE: none has it. */
int fa_index_wheels(struct fa_strv *out, const char *package, const char *version, const struct fa_strv *indexes,
                    struct fa_environment *env, struct fa_child_context *c, struct fa_err *err);
bool fa_index_read_version(struct fa_strv *out, const char *text, size_t len, const char *package, const char *version,
                           const char *page);

/* Every wheel on a page that was not taken back, "URL SHA256 BYTES" each; - and -1 for what the page does not say. */
void fa_index_read_wheels(struct fa_strv *out, const char *text, size_t len, const char *page);

/* The wheels of packages (normal names) of the index at `url`; when it has none of them, those that the page itself links to.
 * FA_NETWORK: it does not answer, or has neither. None at all on a page that answers is no error. */
int fa_index_list(struct fa_strv *out, const char *url, const char *const *packages, const volatile int *cancel,
                  struct fa_err *err);

/* The value that `pip config list` (text) gives for a setting ("index-url"): of the variable, of install, download, global. The
 * caller's; NULL: none. */
char *fa_index_pip_setting(const char *text, const char *name);

#endif
