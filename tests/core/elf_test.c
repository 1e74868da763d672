#include "elf.h"

#include "buf.h"
#include "file.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char needs_so[] = "tests/data/xray/needs.so";
static const char gives_so[] = "tests/data/xray/site/torch/lib/libgives.so";

static struct fa_elf *opened(const char *path)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_elf *e = NULL;

	if (fa_elf_open(&e, path, &err) < 0)
		fail_msg("%s", err.text);
	return e;
}

static void assert_list(struct fa_strv *list, const char *expected)
{
	char *text;

	fa_strv_sort(list);
	text = fa_strv_join(list, " ");
	assert_string_equal(text, expected);
	free(text);
	fa_strv_release(list);
}

static void needed_libraries_are_listed_with_the_folders_they_are_looked_for_in(void **state)
{
	struct fa_elf *e = opened(needs_so);
	struct fa_strv list = FA_STRV_INIT;

	(void)state;
	fa_elf_needed(e, &list);
	assert_list(&list, "libabsent.so libcuda.so.1 libgives.so");
	fa_elf_runpath(e, &list);
	assert_list(&list, "/opt/elsewhere tests/data/xray/../lib");
	assert_null(fa_elf_soname(e));
	fa_elf_close(e);
}

static void undefined_symbols_carry_the_version_they_ask_for_and_weak_ones_are_left_out(void **state)
{
	struct fa_elf *e = opened(needs_so);
	struct fa_strv list = FA_STRV_INIT;

	(void)state;
	fa_elf_undefined(e, &list);
	assert_list(&list, "PyAbsent absent_c cuAbsent gives_a@VERS_1 gives_b@VERS_2");
	fa_elf_versions_needed(e, &list);
	assert_list(&list, "libgives.so:VERS_1 libgives.so:VERS_2");
	fa_elf_close(e);
}

static void a_library_defines_what_it_exports_and_nothing_else(void **state)
{
	struct fa_elf *e = opened(gives_so);

	(void)state;
	assert_string_equal(fa_elf_soname(e), "libgives.so");
	assert_true(fa_elf_defines(e, "gives_a"));
	assert_true(fa_elf_defines(e, "gives_b"));
	assert_false(fa_elf_defines(e, "gives_c"));
	assert_false(fa_elf_defines(e, ""));
	assert_true(fa_elf_defines_version(e, "VERS_1"));
	assert_false(fa_elf_defines_version(e, "VERS_2"));
	fa_elf_close(e);
}

static void a_symbol_that_is_only_needed_is_not_defined(void **state)
{
	struct fa_elf *e = opened(needs_so);

	(void)state;
	assert_false(fa_elf_defines(e, "gives_a"));
	assert_true(fa_elf_defines(e, "f"));
	fa_elf_close(e);
}

static void files_that_are_not_elf_are_an_error_that_names_them(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_elf *e;

	(void)state;
	assert_int_equal(fa_elf_open(&e, "tests/data/xray/make", &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_string_equal(err.text, "tests/data/xray/make: not an ELF file");
	assert_int_equal(fa_elf_open(&e, "tests/data/xray", &err), -1);
	assert_int_equal(fa_elf_open(&e, "tests/data/xray/nothing.so", &err), -1);
	assert_string_equal(err.text, "tests/data/xray/nothing.so: No such file or directory");
}

static void every_truncated_copy_is_an_error(void **state)
{
	struct fa_buf whole = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_file_read(&whole, needs_so, 1 << 20, &err), 0);
	for (size_t len = 0; len < whole.len; len++) {
		unsigned char *copy = fa_calloc(len + 1, 1); /* of its own size, so that a sanitizer sees a read past the end */
		struct fa_elf *e = NULL;

		memcpy(copy, whole.data, len);
		if (fa_elf_open_memory(&e, copy, len, "cut.so", &err) == 0)
			fail_msg("%zu of %zu bytes were taken for a whole file", len, whole.len);
		assert_int_equal(err.status, FA_USAGE);
		free(copy);
	}
	fa_buf_release(&whole);
}

static void read_everything(const struct fa_elf *e)
{
	struct fa_strv list = FA_STRV_INIT;

	fa_elf_needed(e, &list);
	fa_elf_runpath(e, &list);
	fa_elf_undefined(e, &list);
	fa_elf_versions_needed(e, &list);
	fa_elf_gpu_archs(e, &list);
	fa_elf_defines(e, "gives_a");
	fa_elf_defines_version(e, "VERS_9");
	fa_elf_soname(e);
	fa_strv_release(&list);
}

static void no_flipped_byte_leads_out_of_the_file(void **state)
{
	struct fa_buf whole = FA_BUF_INIT;

	(void)state;
	assert_int_equal(fa_file_read(&whole, gives_so, 1 << 20, NULL), 0);
	for (size_t i = 0; i < whole.len; i++) {
		struct fa_elf *e = NULL;
		char was = whole.data[i];

		whole.data[i] = (char)(was ^ (i % 2 ? 0xff : 0x80));
		if (fa_elf_open_memory(&e, whole.data, whole.len, "flipped.so", NULL) == 0) {
			read_everything(e);
			fa_elf_close(e);
		}
		whole.data[i] = was;
	}
	fa_buf_release(&whole);
}

/* ---- GPU code: a file of one section, written here */

static void add_entry(struct fa_buf *b, unsigned kind, unsigned arch, uint64_t flags, uint64_t payload)
{
	unsigned char e[64] = { 0 };
	uint16_t k = (uint16_t)kind;
	uint32_t head = 64, a = arch;

	memcpy(e, &k, 2);
	memcpy(e + 4, &head, 4);
	memcpy(e + 8, &payload, 8);
	memcpy(e + 0x1c, &a, 4);
	memcpy(e + 0x28, &flags, 8);
	fa_buf_add(b, e, sizeof(e));
	for (uint64_t i = 0; i < payload; i++)
		fa_buf_addc(b, 'x');
}

static void add_container(struct fa_buf *b, const struct fa_buf *entries)
{
	uint32_t magic = 0xBA55ED50;
	uint16_t version = 1, head = 16;
	uint64_t size = entries->len;

	fa_buf_add(b, &magic, 4);
	fa_buf_add(b, &version, 2);
	fa_buf_add(b, &head, 2);
	fa_buf_add(b, &size, 8);
	fa_buf_add(b, entries->data, entries->len);
}

static void wrap(struct fa_buf *out, const char *section, const struct fa_buf *content)
{
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
		         .e_type = ET_REL,
		         .e_machine = EM_X86_64 };
	Elf64_Shdr s[3] = { { 0 } };
	char names[64] = "";

	strcpy(names + 1, section);
	h.e_shoff = sizeof(h);
	h.e_shentsize = sizeof(s[0]);
	h.e_shnum = 3;
	h.e_shstrndx = 2;
	s[1] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = sizeof(h) + sizeof(s) + 64, .sh_size = content->len
	};
	s[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = sizeof(h) + sizeof(s), .sh_size = sizeof(names) };
	fa_buf_add(out, &h, sizeof(h));
	fa_buf_add(out, s, sizeof(s));
	fa_buf_add(out, names, sizeof(names));
	fa_buf_add(out, content->data, content->len);
}

static void assert_archs(const char *section, const struct fa_buf *content, const char *expected)
{
	struct fa_buf file = FA_BUF_INIT, text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct fa_elf_gpu *v;
	struct fa_elf *e;
	size_t n;

	wrap(&file, section, content);
	if (fa_elf_open_memory(&e, file.data, file.len, "made.o", &err) < 0)
		fail_msg("%s", err.text);
	n = fa_elf_gpu_code(e, &v);
	for (size_t i = 0; i < n; i++)
		fa_buf_addf(&text, "%s%s:%d", i ? " " : "", v[i].arch, v[i].count);
	assert_string_equal(fa_buf_str(&text), expected);
	free(v);
	fa_elf_close(e);
	fa_buf_release(&text);
	fa_buf_release(&file);
}

static void architectures_of_cuda_code_are_counted_and_sorted_by_number(void **state)
{
	struct fa_buf first = FA_BUF_INIT, second = FA_BUF_INIT, all = FA_BUF_INIT;

	(void)state;
	add_entry(&first, 2, 100, 0x200000, 40);
	add_entry(&first, 2, 90, 0x100000, 8);
	add_entry(&first, 2, 90, 0, 24);
	add_entry(&first, 1, 80, 0x8000, 8);
	add_entry(&first, 7, 70, 0, 8); /* an unknown kind is passed over */
	add_entry(&second, 2, 90, 0, 16);
	add_container(&all, &first);
	fa_buf_add(&all, "\0\0\0\0\0\0\0\0", 8);
	add_container(&all, &second);
	assert_archs(".nv_fatbin", &all, "90:2 90a:1 100f:1 ptx80:1");
	assert_archs("__nv_relfatbin", &second, "");
	assert_archs(".data", &all, "");
	fa_buf_release(&first);
	fa_buf_release(&second);
	fa_buf_release(&all);
}

static void an_entry_that_claims_more_than_its_container_ends_the_reading(void **state)
{
	struct fa_buf entries = FA_BUF_INIT, all = FA_BUF_INIT;
	uint64_t lie = UINT64_MAX - 8;

	(void)state;
	add_entry(&entries, 2, 90, 0, 8);
	memcpy(entries.data + 8, &lie, sizeof(lie));
	add_entry(&entries, 2, 80, 0, 8);
	add_container(&all, &entries);
	assert_archs(".nv_fatbin", &all, "90:1");
	fa_buf_release(&entries);
	fa_buf_release(&all);
}

static void add_hip_name(struct fa_buf *b, const char *name)
{
	uint64_t head[3] = { 0, 0, strlen(name) };

	fa_buf_add(b, head, sizeof(head));
	fa_buf_adds(b, name);
}

static void architectures_of_hip_code_are_read_from_the_bundle(void **state)
{
	struct fa_buf b = FA_BUF_INIT;
	uint64_t n = 3;

	(void)state;
	fa_buf_adds(&b, "__CLANG_OFFLOAD_BUNDLE__");
	fa_buf_add(&b, &n, sizeof(n));
	add_hip_name(&b, "host-x86_64-unknown-linux--");
	add_hip_name(&b, "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-");
	add_hip_name(&b, "hipv4-amdgcn-amd-amdhsa--gfx90a");
	assert_archs(".hip_fatbin", &b, "gfx90a:1 gfx942:1");
	fa_buf_reset(&b);
	fa_buf_adds(&b, "CCOB compressed");
	assert_archs(".hip_fatbin", &b, "gfx?:1");
	fa_buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needed_libraries_are_listed_with_the_folders_they_are_looked_for_in),
		cmocka_unit_test(undefined_symbols_carry_the_version_they_ask_for_and_weak_ones_are_left_out),
		cmocka_unit_test(a_library_defines_what_it_exports_and_nothing_else),
		cmocka_unit_test(a_symbol_that_is_only_needed_is_not_defined),
		cmocka_unit_test(files_that_are_not_elf_are_an_error_that_names_them),
		cmocka_unit_test(every_truncated_copy_is_an_error),
		cmocka_unit_test(no_flipped_byte_leads_out_of_the_file),
		cmocka_unit_test(architectures_of_cuda_code_are_counted_and_sorted_by_number),
		cmocka_unit_test(an_entry_that_claims_more_than_its_container_ends_the_reading),
		cmocka_unit_test(architectures_of_hip_code_are_read_from_the_bundle),
	};

	return cmocka_run_group_tests_name("elf", tests, NULL, NULL) != 0;
}
