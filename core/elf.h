/* Reads just enough of an ELF64 file, hostile or truncated: dynamic symbols with versions, NEEDED, RUNPATH and the GPU code in
 * .nv_fatbin / .hip_fatbin. No library; mapped, bounds checked. */
#ifndef FA_ELF_H
#define FA_ELF_H

#include "err.h"
#include "strv.h"

#include <stdbool.h>
#include <stddef.h>

struct fa_elf;

int fa_elf_open(struct fa_elf **out, const char *path, struct fa_err *err);
void fa_elf_close(struct fa_elf *e);

void fa_elf_needed(const struct fa_elf *e, struct fa_strv *out);  /* DT_NEEDED */
void fa_elf_runpath(const struct fa_elf *e, struct fa_strv *out); /* pieces of DT_RPATH and DT_RUNPATH */
const char *fa_elf_soname(const struct fa_elf *e);                /* NULL: none */

/* Undefined strong symbols, as "name" or "name@VERSION". */
void fa_elf_undefined(const struct fa_elf *e, struct fa_strv *out);
bool fa_elf_defines(const struct fa_elf *e, const char *name);            /* by DT_GNU_HASH: microseconds in a 1 GB library */
void fa_elf_versions_needed(const struct fa_elf *e, struct fa_strv *out); /* "libc.so.6:GLIBC_2.32" */

/* GPU code: "90", "90a", "100f", "ptx80", "gfx942"; sorted, each once. */
void fa_elf_gpu_archs(const struct fa_elf *e, struct fa_strv *out);

#endif
