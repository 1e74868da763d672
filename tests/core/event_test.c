#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "event.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *print(const struct fa_event *e)
{
	struct fa_json *j = fa_event_to_json(e);
	char *text = fa_json_print(j, false);

	fa_json_free(j);
	return text;
}

static void parse(struct fa_event *out, const char *text)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;

	assert_int_equal(fa_json_parse(&j, text, strlen(text), "event", &err), 0);
	assert_int_equal(fa_event_from_json(out, j, &err), 0);
	fa_json_free(j);
}

static void unknown_values_are_left_out(void **state)
{
	struct fa_event e = fa_event_new(FA_EVENT_STEP_BEGIN);
	char *text;

	(void)state;
	e.step = 2;
	text = print(&e);
	assert_string_equal(text, "{\"event\":\"step_begin\",\"step\":2}");
	free(text);
}

static void every_event_comes_back_as_it_went(void **state)
{
	(void)state;
	for (int kind = 0; kind < FA_EVENT_COUNT; kind++) {
		struct fa_event e = fa_event_new((enum fa_event_kind)kind), back;
		char *there, *again;

		e.status = FA_OUTCOME_NOT_RUN;
		e.code = FA_BUILD;
		e.step = 3;
		e.done = 12;
		e.total = 72;
		e.number = 2;
		e.peak_mib = 3174;
		e.seconds = 1.5;
		e.value = 0.25;
		strcpy(e.unit, "units");
		strcpy(e.id, "flash_fwd");
		strcpy(e.text, "a \"quoted\" \\ text, \xe7\x8e\xaf");
		strcpy(e.next, "the next step");
		there = print(&e);
		parse(&back, there);
		again = print(&back);
		assert_string_equal(there, again);
		assert_int_equal(back.kind, kind);
		free(there);
		free(again);
	}
}

static void a_text_cut_within_a_letter_stays_utf8(void **state)
{
	struct fa_event e = fa_event_new(FA_EVENT_LOG), back;
	char *text;

	(void)state;
	memset(e.text, 'x', sizeof(e.text) - 1);
	memcpy(e.text + sizeof(e.text) - 3, "\xe7\x8e", 2); /* two of three bytes */
	text = print(&e);
	parse(&back, text);
	assert_int_equal(strlen(back.text), sizeof(e.text) - 3);
	free(text);
}

static void control_characters_become_blanks(void **state)
{
	struct fa_event e = fa_event_new(FA_EVENT_LOG);
	char *text;

	(void)state;
	strcpy(e.text, "a\x1b[31mb\rc");
	text = print(&e);
	assert_string_equal(text, "{\"event\":\"log\",\"text\":\"a [31mb c\"}");
	free(text);
}

static void an_unknown_event_is_an_error_that_names_it(void **state)
{
	static const char text[] = "{\"event\":\"stepp_begin\"}";
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	struct fa_event e;

	(void)state;
	assert_int_equal(fa_json_parse(&j, text, strlen(text), "event", &err), 0);
	assert_int_equal(fa_event_from_json(&e, j, &err), -1);
	assert_non_null(strstr(err.text, "stepp_begin"));
	fa_json_free(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_values_are_left_out),
		cmocka_unit_test(every_event_comes_back_as_it_went),
		cmocka_unit_test(a_text_cut_within_a_letter_stays_utf8),
		cmocka_unit_test(control_characters_become_blanks),
		cmocka_unit_test(an_unknown_event_is_an_error_that_names_it),
	};

	return cmocka_run_group_tests_name("event", tests, NULL, NULL) != 0;
}
