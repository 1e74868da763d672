#include "xray.h"

#include "buf.h"
#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char site[] = "tests/data/xray/site";

static struct fa_xray xrayed(const char *so, const char *site_packages)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_xray x;

	if (fa_xray(&x, so, site_packages, NULL, &err) < 0)
		fail_msg("%s", err.text);
	return x;
}

static void a_binary_whose_symbols_are_all_exported_fits(void **state)
{
	struct fa_xray x = xrayed("tests/data/xray/fits.so", site);
	char *sentence = fa_xray_sentence(&x);

	(void)state;
	assert_true(fa_xray_fits(&x));
	assert_int_equal(x.n_symbols, 1);
	assert_string_equal(sentence, "1 symbol found, no GPU code");
	free(sentence);
	fa_xray_release(&x);
}

static void the_same_binary_does_not_fit_where_its_library_is_not(void **state)
{
	struct fa_xray x = xrayed("tests/data/xray/fits.so", "tests/data/xray/nowhere");
	char *sentence = fa_xray_sentence(&x);

	(void)state;
	assert_false(fa_xray_fits(&x));
	assert_string_equal(sentence, "1 library missing (libgives.so); 1 symbol missing (gives_a)");
	free(sentence);
	fa_xray_release(&x);
}

static void missing_symbols_versions_and_libraries_are_named(void **state)
{
	struct fa_xray x = xrayed("tests/data/xray/needs.so", site);

	(void)state;
	assert_false(fa_xray_fits(&x));
	assert_true(fa_strv_has(&x.missing, "absent_c"));
	assert_false(fa_strv_has(&x.missing, "gives_a"));
	assert_true(fa_strv_has(&x.missing_libs, "libabsent.so"));
	assert_true(fa_strv_has(&x.missing_versions, "VERS_2"));
	assert_false(fa_strv_has(&x.missing_versions, "VERS_1"));
	fa_xray_release(&x);
}

/* A host with a driver has libcuda.so.1, and then the made-up symbol is really missing. */
static void symbols_of_a_driver_that_is_not_here_are_not_judged(void **state)
{
	struct fa_xray x = xrayed("tests/data/xray/needs.so", site);

	(void)state;
	assert_false(fa_strv_has(&x.missing_libs, "libcuda.so.1"));
	if (x.driver_libs.n)
		assert_true(fa_strv_has(&x.unjudged, "cuAbsent") && !fa_strv_has(&x.missing, "cuAbsent"));
	else
		assert_true(fa_strv_has(&x.missing, "cuAbsent"));
	fa_xray_release(&x);
}

static void this_program_fits_this_system_and_tells_the_glibc_it_needs(void **state)
{
	struct fa_xray x = xrayed("/proc/self/exe", NULL);

	(void)state;
	assert_true(fa_xray_fits(&x));
	assert_non_null(x.glibc);
	assert_true(atoi(x.glibc) == 2 && strchr(x.glibc, '.'));
	fa_xray_release(&x);
}

static void the_json_holds_every_list(void **state)
{
	struct fa_xray x = xrayed("tests/data/xray/needs.so", site);
	struct fa_json *j = fa_xray_to_json(&x);

	(void)state;
	assert_false(fa_json_get_bool(j, "fits"));
	assert_int_equal(fa_json_len(fa_json_get(j, "needed")), 3);
	assert_int_equal(fa_json_get_number(j, "symbols", -1), 5);
	assert_int_equal(fa_json_len(fa_json_get(j, "missing_versions")), 1);
	fa_json_free(j);
	fa_xray_release(&x);
}

static void what_is_not_elf_is_an_error(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_xray x;

	(void)state;
	assert_int_equal(fa_xray(&x, "tests/data/xray/make", site, NULL, &err), -1);
	assert_string_equal(err.text, "tests/data/xray/make: not an ELF file");
	fa_xray_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_binary_whose_symbols_are_all_exported_fits),
		cmocka_unit_test(the_same_binary_does_not_fit_where_its_library_is_not),
		cmocka_unit_test(missing_symbols_versions_and_libraries_are_named),
		cmocka_unit_test(symbols_of_a_driver_that_is_not_here_are_not_judged),
		cmocka_unit_test(this_program_fits_this_system_and_tells_the_glibc_it_needs),
		cmocka_unit_test(the_json_holds_every_list),
		cmocka_unit_test(what_is_not_elf_is_an_error),
	};

	return cmocka_run_group_tests_name("xray", tests, NULL, NULL) != 0;
}
