#include "report_show.h"

#include "buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void open_both(struct fa_report_view v[2])
{
	struct fa_err err = FA_ERR_INIT;

	if (fa_report_view(&v[0], "tests/data/report/synthetic-before.json", &err) < 0 ||
	    fa_report_view(&v[1], "tests/data/report/synthetic-after.json", &err) < 0)
		fail_msg("%s", err.text);
}

static void close_both(struct fa_report_view v[2])
{
	fa_report_view_release(&v[0]);
	fa_report_view_release(&v[1]);
}

static void assert_holds(const struct fa_buf *b, const char *part)
{
	if (!strstr(fa_buf_str(b), part))
		fail_msg("\"%s\" is not in:\n%s", part, fa_buf_str(b));
}

static void assert_lacks(const struct fa_buf *b, const char *part)
{
	if (strstr(fa_buf_str(b), part))
		fail_msg("\"%s\" is in the text", part);
}

static void markdown_tells_each_report_and_marks_what_became_slower(void **state)
{
	struct fa_buf out = FA_BUF_INIT;
	struct fa_report_view v[2];

	(void)state;
	open_both(v);
	fa_report_markdown(&out, v, 2);
	assert_holds(&out, "| NVIDIA H200 | torch 2.11.0+cu130 | flash-attn 2.8.3 | ok | 3.9 x as fast as standard attention");
	assert_holds(&out, "| FA2 | 4.019 | 4.007–4.031 | 274 TFLOP/s | 65 | 0.71 x **slower** |");
	assert_holds(&out, "| SDPA cuDNN | 1.672 | 1.667–1.677 | 658 TFLOP/s | 65 | 1.00 x |");
	assert_holds(&out, "8,128");
	fa_buf_release(&out);
	close_both(v);
}

static void text_of_a_report_is_shown_and_not_obeyed(void **state)
{
	struct fa_buf page = FA_BUF_INIT, text = FA_BUF_INIT;
	struct fa_report_view v[2];

	(void)state;
	open_both(v);
	fa_report_html(&page, v, 2);
	assert_lacks(&page, "<script");
	assert_holds(&page, "✗ 2 slower</span> <span class=\"dim\">");
	assert_holds(&page, "Are the numbers right?</span><b class=\"failed\">✗ No</b>");
	assert_holds(&page, "dense &lt;script&gt;alert(1)&lt;/script&gt; | pipe: dv: error 0.5 &amp; more");
	fa_report_markdown(&text, v, 2);
	assert_holds(&text, "dense \\<script>alert(1)\\</script> \\| pipe");
	fa_buf_release(&page);
	fa_buf_release(&text);
	close_both(v);
}

static void the_page_needs_nothing_from_elsewhere_and_has_both_colours(void **state)
{
	struct fa_buf page = FA_BUF_INIT;
	struct fa_report_view v[2];

	(void)state;
	open_both(v);
	fa_report_html(&page, v, 1);
	assert_lacks(&page, "http");
	assert_lacks(&page, "src=");
	assert_lacks(&page, "url(");
	assert_holds(&page, "prefers-color-scheme:dark");
	assert_holds(&page, "@media print");
	assert_holds(&page, "<span class=\"bar own\" style=\"width:47.9%\">");
	assert_holds(&page, "<b class=\"ok\">✓ Yes</b><p>24 of 24 cases right</p>");
	assert_holds(&page, "<i>0</i><i>200</i><i>400</i><i>600</i><i>800</i>");
	assert_holds(&page, "Decode with KV cache: 0.300 ms, 3579 GB/s, 83 % of what a copy reaches.");
	fa_buf_release(&page);
	close_both(v);
}

static void what_is_no_report_is_refused_by_name(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_report_view v;

	(void)state;
	assert_int_equal(fa_report_view(&v, "tests/data/report/nothing.json", &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_non_null(strstr(err.text, "tests/data/report/nothing.json"));
	assert_int_equal(fa_report_view(&v, "matrix/speed.json", &err), -1);
	assert_string_equal(err.text,
	                    "matrix/speed.json: not a report: its schema is fainstall.matrix/1, fainstall.report/1 is needed");
	assert_int_equal(fa_report_view(&v, "tests/data/xray/make", &err), -1);
	assert_int_equal(err.status, FA_USAGE);
}

static void assert_thousands(double value, const char *expected)
{
	char *text = fa_report_thousands(value);

	assert_string_equal(text, expected);
	free(text);
}

static void thousands_are_set_apart(void **state)
{
	(void)state;
	assert_thousands(0, "0");
	assert_thousands(999, "999");
	assert_thousands(8128, "8,128");
	assert_thousands(1234567.4, "1,234,567");
	assert_thousands(-1, "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markdown_tells_each_report_and_marks_what_became_slower),
		cmocka_unit_test(text_of_a_report_is_shown_and_not_obeyed),
		cmocka_unit_test(the_page_needs_nothing_from_elsewhere_and_has_both_colours),
		cmocka_unit_test(what_is_no_report_is_refused_by_name),
		cmocka_unit_test(thousands_are_set_apart),
	};

	return cmocka_run_group_tests_name("report_show", tests, NULL, NULL) != 0;
}
