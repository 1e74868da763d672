/* Is this binary right for that environment? Symbols it needs against symbols that its libraries export, versions, GPU code. */
#ifndef FA_XRAY_H
#define FA_XRAY_H

#include "err.h"
#include "strv.h"

#include <stdbool.h>

struct fa_json;

struct fa_xray {
	struct fa_strv archs;            /* GPU code inside */
	struct fa_strv needed;           /* libraries */
	struct fa_strv missing;          /* symbols that nothing exports */
	struct fa_strv missing_libs;     /* libraries not found */
	struct fa_strv missing_versions; /* "GLIBC_2.32" */
	char *glibc;                     /* highest GLIBC_ version needed; NULL: none */
	int n_symbols;
};

#define FA_XRAY_INIT \
	{ \
		0 \
	}

/* `so` against the libraries of `site_packages`/torch/lib and nvidia/.../lib, the CUDA folder (NULL: none) and the system.
 * -1 only when so cannot be read as ELF; what is wrong stands in out. */
int fa_xray(struct fa_xray *out, const char *so, const char *site_packages, const char *cuda_home, struct fa_err *err);
struct fa_json *fa_xray_to_json(const struct fa_xray *x);
void fa_xray_release(struct fa_xray *x);

#endif
