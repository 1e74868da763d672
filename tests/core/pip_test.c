#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "buf.h"
#include "file.h"
#include "pip.h"
#include "redact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_report_becomes_pins_without_mirrors(void **state)
{
	struct fa_buf text = FA_BUF_INIT, printed = FA_BUF_INIT;
	struct fa_strv files = FA_STRV_INIT, indexes = FA_STRV_INIT;
	struct fa_lock l = FA_LOCK_INIT;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	fa_strv_push(&indexes, "https://download.pytorch.org/whl/cu128");
	assert_int_equal(fa_file_read(&text, "tests/data/pip/report.json", 1 << 20, NULL), 0);
	assert_int_equal(fa_pip_report(&l, &files, &indexes, fa_buf_str(&text), text.len, &err), 0);
	assert_int_equal(l.n_packages, 3);
	assert_null(fa_lock_package(&l, "einops")->url);
	assert_non_null(fa_lock_package(&l, "typing-extensions"));
	assert_string_equal(fa_lock_package(&l, "torch")->url,
	                    "https://download.pytorch.org/whl/cu128/torch-2.8.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl");
	fa_lock_print(&printed, &l);
	assert_null(strstr(fa_buf_str(&printed), "mirror"));
	assert_true(fa_strv_has(&files, "einops https://mirror.example/packages/einops-0.8.2-py3-none-any.whl"));
	fa_buf_release(&text);
	fa_buf_release(&printed);
	fa_strv_release(&files);
	fa_strv_release(&indexes);
	fa_lock_release(&l);
}

static void a_package_without_a_hash_is_refused(void **state)
{
	static const char text[] = "{\"install\":[{\"download_info\":{\"url\":\"https://x/a-1.whl\",\"archive_info\":{}},"
	                           "\"metadata\":{\"name\":\"a\",\"version\":\"1\"}}]}";
	struct fa_lock l = FA_LOCK_INIT;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_pip_report(&l, NULL, NULL, text, sizeof(text) - 1, &err), -1);
	assert_string_equal(err.text, "the index gives no sha256 for a 1");
	fa_lock_release(&l);
}

static void check_fault(const char *title, const char *output, const char *want)
{
	struct fa_err err = FA_ERR_INIT;

	fa_pip_explain(output, FA_NETWORK, &err);
	if ((int)err.status != atoi(want) || !strstr(err.text, strchr(want, ' ') + 1))
		fail_msg("%s: wanted %s, got %d %s", title, want, (int)err.status, err.text);
}

static void what_pip_says_becomes_one_of_our_errors(void **state)
{
	struct fa_buf all = FA_BUF_INIT, output = FA_BUF_INIT;
	char title[128] = "", *line, *rest;
	int n = 0;

	(void)state;
	assert_int_equal(fa_file_read(&all, "tests/data/pip/faults.case", 1 << 20, NULL), 0);
	rest = all.data;
	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "== ", 3)) {
			snprintf(title, sizeof(title), "%s", line + 3);
			fa_buf_reset(&output);
		} else if (!strncmp(line, "-- ", 3)) {
			check_fault(title, fa_buf_str(&output), line + 3);
			n++;
		} else if (*title) {
			fa_buf_addf(&output, "%s\n", line);
		}
	}
	assert_int_equal(n, 9);
	fa_buf_release(&all);
	fa_buf_release(&output);
}

static void secrets_do_not_show(void **state)
{
	static const char *const cases[][2] = {
		{ "Looking in indexes: https://bob:pw@host/simple", "Looking in indexes: https://-@host/simple" },
		{ "https://host/x.whl?token=abc&y=1", "https://host/x.whl?token=-&y=1" },
		{ "see http://127.0.0.1:8080/a@b", "see http://127.0.0.1:8080/a@b" },
		{ "mail bob@example.org", "mail bob@example.org" },
		{ "https://a@b@c/", "https://-@c/" },
		{ "?sig=xyz", "?sig=-" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = fa_strdup(cases[i][0]);

		fa_redact(text);
		assert_string_equal(text, cases[i][1]);
		free(text);
	}
}

static void children_get_a_clean_environment(void **state)
{
	struct fa_strv env = FA_STRV_INIT;

	(void)state;
	setenv("PYTHONPATH", "/x", 1);
	setenv("PYTHONHOME", "/x", 1);
	setenv("PIP_TARGET", "/x", 1);
	setenv("PIP_INDEX_URL", "https://mirror.example/simple", 1);
	setenv("https_proxy", "http://proxy.example:3128", 1);
	setenv("LD_PRELOAD", "", 1);
	fa_child_environment(&env);
	assert_true(fa_strv_has(&env, "PIP_INDEX_URL=https://mirror.example/simple"));
	assert_true(fa_strv_has(&env, "https_proxy=http://proxy.example:3128"));
	assert_false(fa_strv_has(&env, "PYTHONPATH=/x"));
	assert_false(fa_strv_has(&env, "PYTHONHOME=/x"));
	assert_false(fa_strv_has(&env, "PIP_TARGET=/x"));
	assert_false(fa_strv_has(&env, "LD_PRELOAD="));
	assert_true(fa_strv_has(&env, "PYTHONNOUSERSITE=1"));
	fa_strv_release(&env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_becomes_pins_without_mirrors),
		cmocka_unit_test(a_package_without_a_hash_is_refused),
		cmocka_unit_test(what_pip_says_becomes_one_of_our_errors),
		cmocka_unit_test(secrets_do_not_show),
		cmocka_unit_test(children_get_a_clean_environment),
	};

	return cmocka_run_group_tests_name("pip", tests, NULL, NULL) != 0;
}
