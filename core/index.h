/* Files of a Python package in the index that the user's pip is set up for: mirror, credentials and CA are configuration, so
 * what is found here may be fetched but never written into a lock; there only name, version and hash count. */
#ifndef FA_INDEX_H
#define FA_INDEX_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

struct fa_index {  /* what pip would use */
	char *url; /* "https://pypi.org/simple"; may hold credentials */
	char *ca;  /* file with certificates; NULL: the system's */
};

#define FA_INDEX_INIT \
	{ \
		NULL, NULL \
	}

struct fa_index_file {
	char *name;      /* "flash_attn-2.8.3.tar.gz" */
	char *url;       /* for fa_fetch only: may hold credentials */
	char *ca;        /* for fa_fetch_opts.ca_file; NULL: the system's */
	char sha256[65]; /* "" when the index does not say */
	int64_t size;    /* -1 when the index does not say */
};

#define FA_INDEX_FILE_INIT \
	{ \
		NULL, NULL, NULL, "", -1 \
	}

/* As `python -m pip config` and the environment say: PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL, pip's files, else PyPI. */
int fa_index_open(struct fa_index *out, const char *python, const volatile int *cancel, struct fa_err *err);

/* The file of package==version whose name fits the pattern (fnmatch: "*-cp39-abi3-manylinux*_x86_64.whl"); NULL: its sdist.
 * FA_NETWORK: the index does not answer; FA_IMPOSSIBLE: it has no such package, version or file (says which). Yanked files are
 * taken: the version is exact. */
int fa_index_find(struct fa_index_file *out, const struct fa_index *index, const char *package, const char *version,
                  const char *pattern, const volatile int *cancel, struct fa_err *err);

/* The reading alone: a page (JSON of PEP 691 or HTML of PEP 503) that came from `url`. */
int fa_index_read(struct fa_index_file *out, const char *page, size_t len, const char *url, const char *package,
                  const char *version, const char *pattern, struct fa_err *err);

void fa_index_release(struct fa_index *x);
void fa_index_file_release(struct fa_index_file *f);

#endif
