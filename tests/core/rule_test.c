#include "rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DRIVER, FLOOR, ARCH, CODES, TORCH, NAMES };

static int find(void *ctx, const char *name, size_t len)
{
	static const char *const names[] = { "driver", "floor", "arch", "codes", "torch" };

	(void)ctx;
	for (int i = 0; i < NAMES; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return i;
	return -1;
}

static const char *const VALUES[NAMES] = { "535.183.01", "525.60.13", "86", "80 90", NULL };

static const struct {
	const char *rule;
	enum fa_truth truth;
} RULES[] = {
	{ "", FA_TRUE },
	{ "driver >= 525.60.13", FA_TRUE },
	{ "driver >= $floor", FA_TRUE },
	{ "driver < 535", FA_FALSE },
	{ "driver > 99.9", FA_TRUE },
	{ "arch == 86", FA_TRUE },
	{ "arch != 86", FA_FALSE },
	{ "arch in 80,86,89", FA_TRUE },
	{ "arch in 80,860", FA_FALSE },
	{ "codes in 90,100", FA_TRUE },
	{ "codes has 80,90", FA_TRUE },
	{ "codes has 80,100", FA_FALSE },
	{ "codes lacks 100,120", FA_TRUE },
	{ "codes lacks 80", FA_FALSE },
	{ "torch known", FA_FALSE },
	{ "torch unknown", FA_TRUE },
	{ "torch >= 2.2", FA_UNKNOWN },
	{ "torch >= 2.2 and arch == 86", FA_UNKNOWN },
	{ "torch >= 2.2 and arch == 80", FA_FALSE },
	{ "arch == 86 and driver >= 525", FA_TRUE },
	{ "driver != \"\"", FA_TRUE },
	{ "  arch   ==   86  ", FA_TRUE },
};

static void rules_say_what_they_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); i++) {
		struct fa_err err = FA_ERR_INIT;
		struct fa_rule r;

		if (fa_rule_compile(&r, RULES[i].rule, find, NULL, &err) < 0)
			fail_msg("%s: %s", RULES[i].rule, err.text);
		if (fa_rule_test(&r, VALUES, NULL) != RULES[i].truth)
			fail_msg("%s: expected %d, found %d", RULES[i].rule, RULES[i].truth, fa_rule_test(&r, VALUES, NULL));
		fa_rule_release(&r);
	}
}

static void assert_refused(const char *rule, const char *expected)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_rule r;

	assert_int_equal(fa_rule_compile(&r, rule, find, NULL, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_string_equal(err.text, expected);
}

static void text_that_is_no_rule_is_an_error_that_names_it(void **state)
{
	(void)state;
	assert_refused("tourch >= 2", "unknown fact \"tourch\" in \"tourch >= 2\"");
	assert_refused("driver >= $flor", "unknown fact \"flor\" in \"driver >= $flor\"");
	assert_refused("driver => 5", "unknown comparison \"=>\" in \"driver => 5\"");
	assert_refused("driver >=", "no value after \">=\" in \"driver >=\"");
	assert_refused("driver >= 5 or arch == 86", "\"and\" expected, found \"or\" in \"driver >= 5 or arch == 86\"");
	assert_refused("driver >= 5 and", "nothing after \"and\" in \"driver >= 5 and\"");
	assert_refused("driver", "unknown comparison \"\" in \"driver\"");
}

static void the_verdict_names_what_was_needed_and_found(void **state)
{
	struct fa_verdict why;
	struct fa_rule r;
	char *needed;

	(void)state;
	assert_int_equal(fa_rule_compile(&r, "arch == 86 and driver >= 580", find, NULL, NULL), 0);
	assert_int_equal(fa_rule_test(&r, VALUES, &why), FA_FALSE);
	assert_int_equal(why.fact, DRIVER);
	needed = fa_verdict_needed(&why);
	assert_string_equal(needed, ">= 580");
	free(needed);
	assert_string_equal(why.found, "535.183.01");
	fa_rule_release(&r);
}

static void a_comparison_is_remembered_and_forgotten(void **state)
{
	struct fa_rule_memo *m = fa_rule_memo_new();
	char floor[] = "2.31";
	const char *values[NAMES] = { [DRIVER] = "550", [FLOOR] = floor };
	struct fa_verdict why = { .fact = -1 };
	struct fa_rule r;

	(void)state;
	assert_int_equal(fa_rule_compile(&r, "driver >= 525 and floor >= 2.35", find, NULL, NULL), 0);
	assert_int_equal(fa_rule_test_again(&r, values, m, &why), FA_FALSE);
	assert_int_equal(why.fact, FLOOR);
	assert_int_equal(fa_rule_test_again(&r, values, m, NULL), FA_FALSE);
	memcpy(floor, "2.39", 4);
	fa_rule_memo_clear(m);
	assert_int_equal(fa_rule_test_again(&r, values, m, NULL), FA_TRUE);
	values[DRIVER] = NULL;
	assert_int_equal(fa_rule_test_again(&r, values, m, NULL), FA_UNKNOWN);
	values[DRIVER] = "470";
	assert_int_equal(fa_rule_test_again(&r, values, m, NULL), FA_FALSE);
	fa_rule_release(&r);
	fa_rule_memo_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_say_what_they_say),
		cmocka_unit_test(text_that_is_no_rule_is_an_error_that_names_it),
		cmocka_unit_test(the_verdict_names_what_was_needed_and_found),
		cmocka_unit_test(a_comparison_is_remembered_and_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
