/* core/elf.c on hostile files. */
#include "elf.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fa_strv list = FA_STRV_INIT;
	struct fa_elf *e;

	if (fa_elf_open_memory(&e, data, size, "fuzz.so", NULL) < 0)
		return 0;
	fa_elf_needed(e, &list);
	fa_elf_runpath(e, &list);
	fa_elf_undefined(e, &list);
	fa_elf_versions_needed(e, &list);
	fa_elf_gpu_archs(e, &list);
	fa_elf_defines(e, "gives_a");
	fa_elf_defines_version(e, "VERS_2");
	fa_elf_soname(e);
	fa_strv_release(&list);
	fa_elf_close(e);
	return 0;
}
