/* Runs tests/data/read/FILE.case: the word of --read, what the tool printed, and all that must be read from it. */
#include "buf.h"
#include "detect.h"
#include "file.h"
#include "json.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIR_OF_CASES "tests/data/read"

struct text_case {
	char *path;
	char *tool;
	char *output;
	size_t output_len;
	char *facts;
};

/* "TOOL\n--- output\n…--- facts\n…"; \e, \r, \0 and \xHH in a case that begins its tool line with "escaped " are those bytes. */
static size_t unescape(char *s)
{
	char *to = s, *from = s;

	while (*from) {
		unsigned byte;

		if (from[0] == '\\' && from[1] == 'x' && sscanf(from + 2, "%2x", &byte) == 1) {
			*to++ = (char)byte;
			from += 4;
		} else if (from[0] == '\\' && (from[1] == 'e' || from[1] == 'r')) {
			*to++ = from[1] == 'e' ? '\x1b' : '\r';
			from += 2;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return (size_t)(to - s);
}

static void load(struct text_case *c)
{
	struct fa_buf b = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	char *text, *output, *facts;
	bool escaped;

	if (fa_file_read(&b, c->path, 1 << 20, &err) < 0)
		fail_msg("%s", err.text);
	text = fa_buf_detach(&b);
	output = strstr(text, "\n--- output\n");
	facts = output ? strstr(output + 11, "\n--- facts\n") : NULL;
	if (!facts)
		fail_msg("%s: needs a line '--- output' and a line '--- facts'", c->path);
	escaped = !strncmp(text, "escaped ", 8);
	c->tool = fa_strndup(text + (escaped ? 8 : 0), (size_t)(output - text) - (escaped ? 8 : 0));
	c->output = facts > output + 12 ? fa_strndup(output + 12, (size_t)(facts - output) - 11) : fa_strdup("");
	c->facts = fa_strdup(facts + 11);
	c->output_len = escaped ? unescape(c->output) : strlen(c->output);
	free(text);
}

/* Of a problem the id counts here; where a value comes from is told by another test. */
static char *print(struct fa_facts *f)
{
	struct fa_json *j;
	char *text;

	for (int i = 0; i < FA_FACT_COUNT; i++) {
		free(f->v[i].origin);
		free(f->v[i].doubt);
		f->v[i].origin = f->v[i].doubt = NULL;
	}
	for (size_t i = 0; i < f->n_problems; i++) {
		free(f->problems[i].tool);
		free(f->problems[i].text);
		free(f->problems[i].repair);
		f->problems[i].tool = f->problems[i].text = f->problems[i].repair = NULL;
	}
	free(f->gpus_origin);
	free(f->toolkits_origin);
	f->gpus_origin = f->toolkits_origin = NULL;
	j = fa_facts_to_json(f);
	text = fa_json_print(j, true);
	fa_json_free(j);
	return text;
}

static void the_output_gives_these_facts_and_no_others(void **state)
{
	struct text_case *c = *state;
	struct fa_facts found, wanted;
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	char *found_text, *wanted_text;

	load(c);
	if (fa_json_parse(&j, c->facts, strlen(c->facts), c->path, &err) < 0 ||
	    fa_facts_from_json(&wanted, j, c->path, &err) < 0)
		fail_msg("%s", err.text);
	if (fa_read_tool(&found, c->tool, c->output, c->output_len, &err) < 0)
		fail_msg("%s: %s", c->path, err.text);
	found_text = print(&found);
	wanted_text = print(&wanted);
	if (strcmp(found_text, wanted_text) != 0)
		print_error("%s\nexpected %s\nfound %s\n", c->path, wanted_text, found_text);
	assert_string_equal(found_text, wanted_text);
	free(found_text);
	free(wanted_text);
	fa_facts_release(&found);
	fa_facts_release(&wanted);
	fa_json_free(j);
	free(c->tool);
	free(c->output);
	free(c->facts);
}

static void an_unknown_tool_is_named_with_those_there_are(void **state)
{
	struct fa_facts f;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_read_tool(&f, "nvidia", "x", 1, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_string_equal(err.text, "--read nvidia: there is no such tool");
	assert_non_null(strstr(err.next, "nvidia-smi-query"));
}

static void read_and_forget(const char *tool, const char *text, size_t len)
{
	struct fa_facts f;

	assert_int_equal(fa_read_tool(&f, tool, text, len, NULL), 0);
	fa_facts_release(&f);
}

static void no_parser_falls_over_text_that_was_cut_or_is_of_another_tool(void **state)
{
	struct fa_strv tools = FA_STRV_INIT;
	const struct fa_strv *paths = *state;

	fa_strv_split(&tools, fa_read_tools(), " ");
	assert_in_range(tools.n, 20, 60);
	for (size_t p = 0; p < paths->n; p++) {
		struct text_case c = { .path = paths->v[p] };

		load(&c);
		for (size_t t = 0; t < tools.n; t++)
			read_and_forget(tools.v[t], c.output, c.output_len);
		for (size_t len = p % 11; len < c.output_len; len += 29)
			read_and_forget(c.tool, c.output, len);
		free(c.tool);
		free(c.output);
		free(c.facts);
	}
	fa_strv_release(&tools);
}

static void empty_output_is_a_problem_for_every_tool(void **state)
{
	struct fa_strv tools = FA_STRV_INIT;

	(void)state;
	fa_strv_split(&tools, fa_read_tools(), " ");
	for (size_t t = 0; t < tools.n; t++) {
		struct fa_facts f;

		assert_int_equal(fa_read_tool(&f, tools.v[t], "", 0, NULL), 0);
		assert_int_equal(f.n_problems, 1);
		assert_string_equal(f.problems[0].id, "tool_output_empty");
		assert_false(f.gpus_known);
		fa_facts_release(&f);
	}
	fa_strv_release(&tools);
}

static void find_cases(struct fa_strv *out)
{
	DIR *d = opendir(DIR_OF_CASES);

	for (struct dirent *e; d && (e = readdir(d));)
		if (strlen(e->d_name) > 5 && !strcmp(e->d_name + strlen(e->d_name) - 5, ".case"))
			fa_strv_pushf(out, DIR_OF_CASES "/%s", e->d_name);
	if (d)
		closedir(d);
	fa_strv_sort(out);
}

int main(void)
{
	struct fa_strv paths = FA_STRV_INIT;
	struct CMUnitTest *tests;
	struct text_case *cases;
	size_t n = 0;
	int failed;

	setenv("FAINSTALL_DATA", ".", 0);
	find_cases(&paths);
	tests = fa_calloc(paths.n + 3, sizeof(*tests));
	cases = fa_calloc(paths.n + 1, sizeof(*cases));
	for (; n < paths.n; n++) {
		cases[n].path = paths.v[n];
		tests[n] = (struct CMUnitTest){ paths.v[n], the_output_gives_these_facts_and_no_others, NULL, NULL, &cases[n] };
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(an_unknown_tool_is_named_with_those_there_are);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(empty_output_is_a_problem_for_every_tool);
	tests[n] = (struct CMUnitTest)cmocka_unit_test(no_parser_falls_over_text_that_was_cut_or_is_of_another_tool);
	tests[n++].initial_state = &paths;
	failed = _cmocka_run_group_tests("read", tests, n, NULL, NULL);
	free(tests);
	free(cases);
	fa_strv_release(&paths);
	return failed != 0 || n < 20;
}
