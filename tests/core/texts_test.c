#include "texts.h"

#include "buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void equal_texts_have_one_address(void **state)
{
	struct fa_texts t = FA_TEXTS_INIT;
	const char *first = fa_texts_keep(&t, "2.8.3");
	char name[16];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		assert_string_equal(fa_texts_keep(&t, name), name);
	}
	assert_ptr_equal(fa_texts_keep(&t, "2.8.3"), first);
	assert_ptr_equal(fa_texts_take(&t, fa_strdup("2.8.3")), first);
	assert_null(fa_texts_keep(&t, NULL));
	assert_int_equal(t.n, 3001);
	fa_texts_release(&t);
}

static void a_rewind_forgets_what_came_later(void **state)
{
	struct fa_texts t = FA_TEXTS_INIT;
	const char *first = fa_texts_keep(&t, "a");

	(void)state;
	fa_texts_keep(&t, "b");
	fa_texts_rewind(&t, 1);
	assert_int_equal(t.n, 1);
	assert_ptr_equal(fa_texts_keep(&t, "a"), first);
	assert_string_equal(fa_texts_keep(&t, "b"), "b");
	assert_int_equal(t.n, 2);
	fa_texts_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_one_address),
		cmocka_unit_test(a_rewind_forgets_what_came_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
