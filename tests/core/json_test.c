#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json.h"

#include <stdlib.h>
#include <string.h>

/* text, words that the error must hold; NULL: it is fine */
static const struct {
	const char *text, *error;
} cases[] = {
	{ "{}", NULL },
	{ " [1, 2.5, -3, true, false, null, \"x\"] \n", NULL },
	{ "{\"a\": {\"b\": []}}", NULL },
	{ "\"\xe7\x8e\xaf \\u00e9 \\n\"", NULL },
	{ "", "t.json:1:1" },
	{ "{", "t.json:1:" },
	{ "{\"a\": 1,\n \"b\": nul}", "t.json:2:" },
	{ "[1] x", "t.json:1:" },
	{ "{\"a\": 1, \"a\": 2}", "\"a\" stands twice" },
	{ "{\"o\": {\"x\": 1, \"y\": 2, \"x\": 3}}", "\"x\" stands twice" },
	{ "[\"\xff\"]", "not UTF-8" },
	{ "[\"\xc0\xaf\"]", "not UTF-8" },
	{ "[\"\xed\xa0\x80\"]", "not UTF-8" },
	{ "[\"a\\u0000b\"]", "NUL" },
	{ "[\"a\nb\"]", "t.json:1:4: control character" },
};

static void what_is_not_json_is_told_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fa_err err = FA_ERR_INIT;
		struct fa_json *j = NULL;
		int rc = fa_json_parse(&j, cases[i].text, strlen(cases[i].text), "t.json", &err);

		if ((rc == 0) != !cases[i].error || (rc < 0 && !strstr(err.text, cases[i].error)))
			fail_msg("%s: rc %d, %s", cases[i].text, rc, err.text);
		if (rc < 0)
			assert_null(j);
		fa_json_free(j);
	}
}

static void depth_has_a_limit(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	char deep[601];

	(void)state;
	memset(deep, '[', 300);
	memset(deep + 300, ']', 300);
	deep[600] = '\0';
	assert_int_equal(fa_json_parse(&j, deep, 600, "t.json", &err), -1);
	assert_non_null(strstr(err.text, "too deeply"));
}

static void a_text_may_end_anywhere_in_memory(void **state)
{
	static const char text[] = "{\"a\": 12345}";

	(void)state;
	for (size_t len = 0; len < strlen(text); len++) {
		char *exact = malloc(len ? len : 1); /* no NUL behind it */
		struct fa_json *j = NULL;

		memcpy(exact, text, len);
		assert_int_equal(fa_json_parse(&j, exact, len, "t.json", NULL), -1);
		free(exact);
	}
}

static void a_missing_value_is_nothing(void **state)
{
	struct fa_json *j = fa_json_new_object();

	(void)state;
	fa_json_set_number(j, "n", 3);
	fa_json_set_string(j, "absent", NULL);
	assert_null(fa_json_get_string(j, "n"));
	assert_null(fa_json_get(j, "absent"));
	assert_int_equal(fa_json_get_number(j, "nothing", -1), -1);
	assert_int_equal(fa_json_len(fa_json_get(j, "nothing")), 0);
	assert_null(fa_json_get(NULL, "n"));
	fa_json_free(j);
}

static void keys_stay_in_their_order(void **state)
{
	struct fa_json *j = fa_json_new_object();
	char *text;

	(void)state;
	fa_json_set_number(j, "z", 1);
	fa_json_set_number(j, "a", 2);
	fa_json_set_number(j, "z", 3);
	text = fa_json_print(j, false);
	assert_string_equal(text, "{\"z\":3,\"a\":2}");
	free(text);
	fa_json_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_json_is_told_with_its_place),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(a_text_may_end_anywhere_in_memory),
		cmocka_unit_test(a_missing_value_is_nothing),
		cmocka_unit_test(keys_stay_in_their_order),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL) != 0;
}
