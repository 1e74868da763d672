#include "version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *a, *b;
	int order;
} ORDER[] = {
	{ "2.8.3", "2.8.3", 0 },
	{ "2.8.3", "2.8.3.post1", -1 },
	{ "2.8.3.post1", "2.8.3.post2", -1 },
	{ "2.8.3.post2", "2.8.4", -1 },
	{ "2.8.3.post10", "2.8.3.post9", 1 },
	{ "2.8", "2.8.0", 0 },
	{ "2.6.0a0", "2.6.0", -1 },
	{ "2.6.0.dev20241001", "2.6.0a0", -1 },
	{ "2.6.0a1", "2.6.0b1", -1 },
	{ "2.6.0rc1", "2.6.0b9", 1 },
	{ "4.0.0b36", "4.0.0b9", 1 },
	{ "4.0.0b36", "4.0.0", -1 },
	{ "2.8.0+cu128", "2.8.0+cu126", 0 },
	{ "2.11.0+cu130", "2.9.1", 1 },
	{ "12.10", "12.9", 1 },
	{ "570.86.10", "570.86.9", 1 },
	{ "525.60.13", "525.125.06", -1 },
	{ "450.80.02", "450.80.2", 0 },
	{ "2.35", "2.4", 1 },
	{ "99999999999999999999999", "99999999999999999999998", 1 },
	{ "", "0.0", 0 },
};

static void order_is_right_both_ways_round(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]); i++) {
		if (fa_version_compare(ORDER[i].a, ORDER[i].b) != ORDER[i].order ||
		    fa_version_compare(ORDER[i].b, ORDER[i].a) != -ORDER[i].order)
			fail_msg("%s against %s: expected %d", ORDER[i].a, ORDER[i].b, ORDER[i].order);
	}
}

static const struct {
	const char *version, *wish;
	bool fits;
} WISHES[] = {
	{ "2.8.3", "2.8.3", true },
	{ "2.8.3.post2", "2.8.3", true },
	{ "2.8.3", "2.8.3.post1", false },
	{ "2.8.30", "2.8.3", false },
	{ "2.9.1", "2.9", true },
	{ "2.9.0", "2.9", true },
	{ "2.9.0", "2.9.0", true },
	{ "2.9.1rc1", "2.9", false },
	{ "2.10.0", "2.1", false },
	{ "2.8.0+cu128", "2.8.0", true },
	{ "2.8.0+cu128", "2.8.0+cu126", false },
	{ "2.8.0", "2.8.0+cu126", false },
	{ "4.0.0b36", "4.0.0", false },
};

static void a_wish_means_the_version_and_its_posts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(WISHES) / sizeof(WISHES[0]); i++)
		if (fa_version_matches(WISHES[i].version, WISHES[i].wish) != WISHES[i].fits)
			fail_msg("%s for the wish %s: expected %d", WISHES[i].version, WISHES[i].wish, WISHES[i].fits);
}

static void assert_head(const char *version, int parts, const char *expected)
{
	char *head = fa_version_head(version, parts);

	assert_string_equal(head, expected);
	free(head);
}

static void heads_are_the_first_numbers(void **state)
{
	(void)state;
	assert_head("2.9.1+cu128", 2, "2.9");
	assert_head("13.0.88", 1, "13");
	assert_head("2.6.0a0+df5bbc09d1.nv24.12", 3, "2.6.0");
	assert_head("3", 2, "3");
	assert_head("", 2, "");
	assert_head("x", 1, "");
}

static void text_that_is_no_version_is_told(void **state)
{
	(void)state;
	assert_true(fa_version_valid("2.8.3.post1"));
	assert_true(fa_version_valid("2.8.0+cu128"));
	assert_false(fa_version_valid(""));
	assert_false(fa_version_valid("latest"));
	assert_false(fa_version_valid("2.8 .3"));
	assert_false(fa_version_valid("2.8;rm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_is_right_both_ways_round),
		cmocka_unit_test(a_wish_means_the_version_and_its_posts),
		cmocka_unit_test(heads_are_the_first_numbers),
		cmocka_unit_test(text_that_is_no_version_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
