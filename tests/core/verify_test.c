#include "verify.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "plan.h"
#include "proc.h"
#include "report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct told {
	struct fa_buf text;
};

static void hear(void *ctx, const struct fa_event *e)
{
	struct told *t = ctx;

	if (e->kind == FA_EVENT_PROGRESS)
		return;
	fa_buf_addf(&t->text, "%s %s %s", fa_event_word(e->kind), e->id, fa_outcome_word(e->status));
	if (e->unit[0])
		fa_buf_addf(&t->text, " %g %s", e->value, e->unit);
	fa_buf_addc(&t->text, '\n');
}

static int verified(const char *name, bool strict, struct fa_report *r, struct told *told, struct fa_err *err)
{
	char *python = fa_strf("tests/data/verify/python-%s", name);
	struct fa_sink sink = { hear, told };
	struct fa_verify_opts o = { .python = python, .mode = FA_VERIFY_QUICK, .strict = strict };
	int rc;

	setenv("FAINSTALL_DATA", ".", 1);
	*told = (struct told){ FA_BUF_INIT };
	*err = (struct fa_err)FA_ERR_INIT;
	rc = fa_verify(r, &o, &sink, 3, err);
	free(python);
	return rc;
}

static void every_stage_and_finding_becomes_an_event_in_order(void **state)
{
	struct fa_report *r = fa_report_new();
	struct told told;
	struct fa_err err;

	(void)state;
	assert_int_equal(verified("good", true, r, &told, &err), 0);
	assert_string_equal(fa_buf_str(&told.text), "check environment/files ok\n"
	                                            "check environment ok\n"
	                                            "check import/torch ok\n"
	                                            "check import ok\n"
	                                            "check symbols/fits.so ok\n"
	                                            "check symbols ok\n"
	                                            "check numbers/dense bf16 d128 200x200 backward ok 0.92 x\n"
	                                            "check numbers ok\n"
	                                            "check speed/bf16 d128 ok 383 TFLOP/s\n"
	                                            "note verdict \n");
	fa_buf_release(&told.text);
	fa_report_free(r);
}

static void the_report_holds_findings_figures_and_the_sentence(void **state)
{
	struct fa_report *r = fa_report_new();
	const struct fa_json *j = fa_report_json(r), *v;
	struct told told;
	struct fa_err err;

	(void)state;
	assert_int_equal(verified("good", false, r, &told, &err), 0);
	v = fa_json_get(j, "verification");
	assert_string_equal(fa_json_get_string(v, "status"), "ok");
	assert_string_equal(fa_json_get_string(v, "mode"), "quick");
	assert_non_null(strstr(fa_json_get_string(v, "verdict"), "3.9 x as fast"));
	assert_int_equal(fa_json_len(fa_json_get(j, "checks")), 5);
	assert_int_equal(fa_json_len(fa_json_get(j, "stages")), 4);
	assert_int_equal(fa_json_get_number(fa_json_get(fa_json_get(j, "figures"), "card"), "matmul_tflops", 0), 768);
	assert_non_null(fa_json_get(fa_json_get(fa_json_get(j, "figures"), "upstream"), "agreement"));
	fa_buf_release(&told.text);
	fa_report_free(r);
}

static void a_wrong_number_fails_and_names_the_case_and_its_simplest_form(void **state)
{
	struct fa_report *r = fa_report_new();
	struct told told;
	struct fa_err err;

	(void)state;
	assert_int_equal(verified("wrong", false, r, &told, &err), -1);
	assert_int_equal(err.status, FA_CHECK);
	assert_string_equal(
	        err.text, "verification: numbers, dense bf16 d128 200x200 backward: dk: error 0.5, plain 0.0083, bound 0.023");
	assert_string_equal(err.next, "the simplest case that fails: verify.py --case '{\"op\":\"dense\",\"d\":128}'");
	fa_buf_release(&told.text);
	fa_report_free(r);
}

static void without_a_card_it_is_not_run_and_only_strict_fails(void **state)
{
	struct fa_report *r = fa_report_new();
	struct told told;
	struct fa_err err;

	(void)state;
	assert_int_equal(verified("nocard", false, r, &told, &err), 0);
	assert_string_equal(fa_json_get_string(fa_json_get(fa_report_json(r), "verification"), "status"), "not_run");
	fa_buf_release(&told.text);
	assert_int_equal(verified("nocard", true, r, &told, &err), -1);
	assert_int_equal(err.status, FA_CHECK);
	assert_non_null(strstr(err.text, "no GPU here"));
	fa_buf_release(&told.text);
	fa_report_free(r);
}

static void a_child_that_ends_in_the_middle_is_a_failure(void **state)
{
	struct fa_report *r = fa_report_new();
	struct told told;
	struct fa_err err;

	(void)state;
	assert_int_equal(verified("cut", false, r, &told, &err), -1);
	assert_int_equal(err.status, FA_CHECK);
	fa_buf_release(&told.text);
	fa_report_free(r);
}

static void no_flash_attention_in_the_plan_means_nothing_to_verify(void **state)
{
	struct fa_choice c = { .line = (char *)(uintptr_t) "none" };
	struct fa_report *r = fa_report_new();
	struct told told = { FA_BUF_INIT };
	struct fa_sink sink = { hear, &told };
	struct fa_verify_opts o = { .python = "tests/data/verify/python-good", .choice = &c };

	(void)state;
	assert_int_equal(fa_verify(r, &o, &sink, 0, NULL), 0);
	assert_string_equal(fa_buf_str(&told.text), "check environment not_run\n");
	fa_buf_release(&told.text);
	fa_report_free(r);
}

static void collect(void *ctx, const char *line, bool is_err)
{
	(void)is_err;
	fa_buf_addf(ctx, "%s\n", line);
}

static void assert_runs(const char *const *argv)
{
	struct fa_buf said = FA_BUF_INIT;
	struct fa_proc_opts proc = { .argv = argv, .timeout_ms = 60000, .line = collect, .ctx = &said, .merge = true };
	struct fa_proc_result result;
	struct fa_err err = FA_ERR_INIT;

	if (fa_proc_run(&result, &proc, FA_CHECK, &err) < 0)
		fail_msg("%s\n%s", err.text, fa_buf_str(&said));
	fa_buf_release(&said);
}

static void the_parts_that_need_no_torch(void **state)
{
	const char *argv[] = { "python3", "tests/verify/parts_test.py", NULL };

	(void)state;
	assert_runs(argv);
}

static void what_is_written_and_every_kept_report_are_as_the_schema_says(void **state)
{
	char folder[] = "/tmp/fainstall-schema-XXXXXX", path[3][64];
	static const char *const names[] = { "good", "wrong", "nocard" };
	const char *argv[] = { "python3",
		               "tests/verify/schema_test.py",
		               "tests/data/report/h200.json",
		               "tests/data/report/synthetic-before.json",
		               "tests/data/report/synthetic-after.json",
		               path[0],
		               path[1],
		               path[2],
		               NULL };
	struct told told;
	struct fa_err err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < 3; i++) {
		struct fa_report *r = fa_report_new();

		verified(names[i], false, r, &told, &err);
		snprintf(path[i], sizeof(path[i]), "%s/%s.json", folder, names[i]);
		assert_int_equal(fa_report_write(r, path[i], &err), 0);
		fa_buf_release(&told.text);
		fa_report_free(r);
	}
	assert_runs(argv);
	fa_file_remove_tree(folder, NULL);
}

static void assert_serves(const char *archs, const char *card, bool expected)
{
	struct fa_strv list = FA_STRV_INIT;

	fa_strv_split(&list, archs, " ");
	if (fa_verify_serves(&list, card) != expected)
		fail_msg("code for %s %s a card of %s", archs, expected ? "serves" : "does not serve", card);
	fa_strv_release(&list);
}

static void code_serves_cards_of_its_major_and_a_suffix_only_its_own(void **state)
{
	(void)state;
	assert_serves("80", "80", true);
	assert_serves("80", "86", true);
	assert_serves("80", "90", false);
	assert_serves("86", "80", false);
	assert_serves("90a", "90", true);
	assert_serves("100a", "103", false);
	assert_serves("100f", "103", true);
	assert_serves("ptx80", "120", true);
	assert_serves("ptx90a", "100", false);
	assert_serves("ptx90", "80", false);
	assert_serves("75 80 90", "89", true);
	assert_serves("gfx90a gfx942", "gfx942", true);
	assert_serves("gfx90a", "gfx942", false);
	assert_serves("", "90", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stage_and_finding_becomes_an_event_in_order),
		cmocka_unit_test(the_report_holds_findings_figures_and_the_sentence),
		cmocka_unit_test(a_wrong_number_fails_and_names_the_case_and_its_simplest_form),
		cmocka_unit_test(without_a_card_it_is_not_run_and_only_strict_fails),
		cmocka_unit_test(a_child_that_ends_in_the_middle_is_a_failure),
		cmocka_unit_test(no_flash_attention_in_the_plan_means_nothing_to_verify),
		cmocka_unit_test(code_serves_cards_of_its_major_and_a_suffix_only_its_own),
		cmocka_unit_test(the_parts_that_need_no_torch),
		cmocka_unit_test(what_is_written_and_every_kept_report_are_as_the_schema_says),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL) != 0;
}
