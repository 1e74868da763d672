/* Is this binary right for that environment? Symbols it needs against symbols that its libraries export, versions, GPU code.
 *
 * The scope is the loader's: the closure of DT_NEEDED, the Python program and its libraries (Py*), and libtorch_global_deps,
 * which torch loads with RTLD_GLOBAL before any extension. A library is looked for where torch has loaded it already
 * (torch/lib, nvidia/…/lib), then by RUNPATH, the CUDA folder, the environment's lib, LD_LIBRARY_PATH and the system's folders.
 * Necessary, not sufficient: a structure can change its layout under the same names (DESIGN 6). */
#ifndef FA_XRAY_H
#define FA_XRAY_H

#include "err.h"
#include "strv.h"

#include <stdbool.h>

struct fa_json;

struct fa_xray {
	struct fa_strv archs;            /* GPU code inside: "90", "90a", "ptx80" */
	struct fa_strv needed;           /* libraries */
	struct fa_strv missing;          /* symbols that nothing exports */
	struct fa_strv missing_libs;     /* libraries not found, or found and unreadable */
	struct fa_strv missing_versions; /* "GLIBC_2.32" */
	struct fa_strv
	        driver_libs; /* needed, not here, but come with the GPU driver: libcuda.so.1; their symbols are not judged */
	struct fa_strv unjudged; /* symbols that could not be judged: driver's, or Py* where no Python program was found */
	char *glibc;             /* highest GLIBC_ version needed, "2.32"; NULL: none */
	char *glibcxx;           /* highest GLIBCXX_ version needed, "3.4.30"; NULL: none */
	int n_symbols;           /* undefined strong symbols in all */
	int n_images;            /* GPU images: cubins and PTX texts */
};

#define FA_XRAY_INIT \
	{ \
		0 \
	}

/* `so` against the libraries of `site_packages`/torch/lib and nvidia/.../lib, the CUDA folder (NULL: none) and the system.
 * site_packages NULL: only the system. -1 only when so cannot be read as ELF; what is wrong stands in out. */
int fa_xray(struct fa_xray *out, const char *so, const char *site_packages, const char *cuda_home, struct fa_err *err);

/* Nothing missing? */
bool fa_xray_fits(const struct fa_xray *x);

/* "311 symbols found, 72 sm_90 cubins" or "5 symbols missing (c10_cuda_check_implementation, …)". The caller's. */
char *fa_xray_sentence(const struct fa_xray *x);
struct fa_json *fa_xray_to_json(const struct fa_xray *x);
void fa_xray_release(struct fa_xray *x);

#endif
