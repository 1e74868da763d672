/* Reads just enough of an ELF64 file, hostile or truncated: dynamic symbols with versions, NEEDED, RUNPATH and the GPU code in
 * .nv_fatbin / .hip_fatbin. No library; mapped, bounds checked. What the dynamic loader would use counts (the dynamic segment);
 * section headers are only asked for the GPU code. */
#ifndef FA_ELF_H
#define FA_ELF_H

#include "err.h"
#include "strv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fa_elf;

/* FA_USAGE: not there, not ELF64 little-endian, or cut short (what is missing is named). */
int fa_elf_open(struct fa_elf **out, const char *path, struct fa_err *err);

/* The same over memory that the caller keeps; `name` is how errors call it. */
int fa_elf_open_memory(struct fa_elf **out, const void *data, size_t size, const char *name, struct fa_err *err);
void fa_elf_close(struct fa_elf *e);

const char *fa_elf_path(const struct fa_elf *e);
int fa_elf_machine(const struct fa_elf *e);                       /* EM_X86_64, EM_AARCH64, … */
void fa_elf_needed(const struct fa_elf *e, struct fa_strv *out);  /* DT_NEEDED */
void fa_elf_runpath(const struct fa_elf *e, struct fa_strv *out); /* pieces of DT_RPATH and DT_RUNPATH, $ORIGIN put in */
const char *fa_elf_soname(const struct fa_elf *e);                /* NULL: none */

/* Undefined strong symbols, as "name" or "name@VERSION". */
void fa_elf_undefined(const struct fa_elf *e, struct fa_strv *out);
bool fa_elf_defines(const struct fa_elf *e, const char *name);            /* by DT_GNU_HASH: microseconds in a 1 GB library */
void fa_elf_versions_needed(const struct fa_elf *e, struct fa_strv *out); /* "libc.so.6:GLIBC_2.32" */
bool fa_elf_defines_version(const struct fa_elf *e, const char *version); /* "GLIBC_2.32"; true where it has no versions */

/* One kind of GPU code and how many images of it there are. */
struct fa_elf_gpu {
	char arch[24]; /* "90", "90a", "100f", "ptx80", "gfx942" */
	int count;
};

/* Sorted by number, each once; the array is the caller's (free). Code that is not readable (a compressed HIP bundle) is "gfx?". */
size_t fa_elf_gpu_code(const struct fa_elf *e, struct fa_elf_gpu **out);
void fa_elf_gpu_archs(const struct fa_elf *e, struct fa_strv *out); /* the names only */

#endif
