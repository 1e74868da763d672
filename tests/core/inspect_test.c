#include "inspect.h"

#include "buf.h"
#include "facts.h"
#include "file.h"
#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A machine whose torch is the one of tests/data/xray. */
static struct fa_facts machine(void)
{
	struct fa_facts f = FA_FACTS_INIT;
	char *origin = fa_path_absolute("tests/data/xray/site/torch/version.py");

	fa_facts_set_text(&f, FA_FACT_TORCH, "2.11.0", origin);
	fa_facts_set_text(&f, FA_FACT_GLIBC, "2.31", NULL);
	fa_facts_set_text(&f, FA_FACT_TORCH_CUDA, "13.0", NULL);
	free(origin);
	return f;
}

static void assert_inspects(const char *path, const struct fa_facts *f, const char *expected)
{
	struct fa_buf out = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct fa_inspect i;

	if (fa_inspect(&i, path, f, &err) < 0)
		fail_msg("%s", err.text);
	fa_inspect_print(&out, &i);
	assert_string_equal(fa_buf_str(&out), expected);
	fa_inspect_release(&i);
	fa_buf_release(&out);
}

static void a_binary_that_fits_says_what_was_proved(void **state)
{
	struct fa_facts f = machine();

	(void)state;
	assert_inspects("tests/data/xray/extends.so", &f,
	                "Fits this machine and its torch.\n"
	                "  fits     Symbols       needs 1; found all in torch 2.11.0\n");
	fa_facts_release(&f);
}

static void without_torch_symbols_are_not_judged_and_nothing_is_called_right(void **state)
{
	struct fa_facts f = FA_FACTS_INIT;

	(void)state;
	assert_inspects("tests/data/xray/extends.so", &f,
	                "Nothing speaks against it; not everything could be judged here.\n"
	                "  unknown  Symbols       needs 1; found not judged: torch is not here\n");
	fa_facts_release(&f);
}

static void a_missing_symbol_refuses_and_stands_first(void **state)
{
	struct fa_facts f = machine();
	struct fa_err err = FA_ERR_INIT;
	struct fa_inspect i;
	struct fa_json *j;

	(void)state;
	assert_int_equal(fa_inspect(&i, "tests/data/xray/needs.so", &f, &err), 0);
	assert_int_equal(fa_inspect_verdict(&i), FA_INSPECT_REFUSED);
	j = fa_inspect_to_json(&i);
	assert_string_equal(fa_json_get_string(j, "verdict"), "refused");
	assert_int_equal(fa_json_len(fa_json_get(j, "binaries")), 1);
	fa_json_free(j);
	fa_inspect_release(&i);
	fa_facts_release(&f);
}

static void a_program_that_is_no_extension_module_is_called_so(void **state)
{
	struct fa_facts f = FA_FACTS_INIT;
	struct fa_buf out = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct fa_inspect i;

	(void)state;
	assert_int_equal(fa_inspect(&i, "/bin/ls", &f, &err), 0);
	assert_int_equal(fa_inspect_verdict(&i), FA_INSPECT_REFUSED);
	fa_inspect_print(&out, &i);
	assert_non_null(strstr(fa_buf_str(&out), "This is no extension module of Flash-Attention.\n  refused  Kind "));
	fa_inspect_release(&i);
	fa_buf_release(&out);
}

static void what_cannot_be_read_is_an_error_that_names_it(void **state)
{
	struct fa_facts f = FA_FACTS_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct fa_inspect i;

	(void)state;
	assert_int_equal(fa_inspect(&i, "tests/data/xray/gone.so", &f, &err), -1);
	assert_string_equal(err.text, "tests/data/xray/gone.so is not there");
	assert_int_equal(fa_inspect(&i, "tests/data/xray/make", &f, &err), -1);
	assert_string_equal(err.text, "tests/data/xray/make: not an ELF file");
	fa_facts_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_binary_that_fits_says_what_was_proved),
		cmocka_unit_test(without_torch_symbols_are_not_judged_and_nothing_is_called_right),
		cmocka_unit_test(a_missing_symbol_refuses_and_stands_first),
		cmocka_unit_test(a_program_that_is_no_extension_module_is_called_so),
		cmocka_unit_test(what_cannot_be_read_is_an_error_that_names_it),
	};

	return cmocka_run_group_tests_name("inspect", tests, NULL, NULL) != 0;
}
