/* tests/cli/events/NAME.jsonl, events as the worker writes them, must come out as the lines of NAME.txt. A line {"wait": S} lets
 * so many seconds pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/front.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double clock_s = 100;

static double fake_now(void)
{
	return clock_s;
}

static void tell(struct cli_front *f, const char *line, const char *name)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	struct fa_event e;

	if (fa_json_parse(&j, line, strlen(line), name, &err) < 0)
		fail_msg("%s", err.text);
	if (fa_json_get(j, "wait"))
		clock_s += fa_json_get_number(j, "wait", 0);
	else if (fa_event_from_json(&e, j, &err) < 0)
		fail_msg("%s", err.text);
	else
		f->show(f, &e);
	fa_json_free(j);
}

/* Standard output of all events of the file, appended to out. */
static void play(struct fa_buf *out, const char *path)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_strv lines = FA_STRV_INIT;
	struct fa_plan plan = FA_PLAN_INIT;
	struct cli c = CLI_INIT;
	struct cli_front f;
	FILE *tmp = tmpfile();
	int saved = dup(STDOUT_FILENO), n;
	char piece[4096];

	assert_non_null(tmp);
	assert_int_equal(fa_file_read(&text, path, FA_FILE_MAX, NULL), 0);
	fa_strv_split(&lines, fa_buf_str(&text), "\n");
	for (int i = 0; i < 3; i++)
		fa_plan_add_step(&plan, FA_STEP_PIP, "a step", NULL);
	fflush(stdout);
	dup2(fileno(tmp), STDOUT_FILENO);
	cli_front_plain(&f, &c, &plan);
	f.now = fake_now;
	for (size_t i = 0; i < lines.n; i++)
		tell(&f, lines.v[i], path);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(tmp);
	while ((n = (int)fread(piece, 1, sizeof(piece), tmp)) > 0)
		fa_buf_add(out, piece, (size_t)n);
	fclose(tmp);
	fa_plan_release(&plan);
	fa_strv_release(&lines);
	fa_buf_release(&text);
}

static void events_come_out_as_calm_lines(void **state)
{
	static const char dir[] = "tests/cli/events";
	DIR *d = opendir(dir);
	struct dirent *entry;
	int n = 0;

	(void)state;
	assert_non_null(d);
	while ((entry = readdir(d))) {
		struct fa_buf found = FA_BUF_INIT, wanted = FA_BUF_INIT;
		char *dot = strstr(entry->d_name, ".jsonl"), *events, *lines;

		if (!dot)
			continue;
		events = fa_strf("%s/%s", dir, entry->d_name);
		lines = fa_strf("%s/%.*s.txt", dir, (int)(dot - entry->d_name), entry->d_name);
		play(&found, events);
		assert_int_equal(fa_file_read(&wanted, lines, FA_FILE_MAX, NULL), 0);
		assert_string_equal(fa_buf_str(&found), fa_buf_str(&wanted));
		n++;
		fa_buf_release(&found);
		fa_buf_release(&wanted);
		free(events);
		free(lines);
	}
	closedir(d);
	assert_true(n > 0);
}

static void seconds_and_bytes_are_written_for_people(void **state)
{
	struct fa_buf b = FA_BUF_INIT;

	(void)state;
	cli_add_seconds(&b, 0.42);
	fa_buf_addc(&b, '|');
	cli_add_seconds(&b, 59.4);
	fa_buf_addc(&b, '|');
	cli_add_seconds(&b, 59.6);
	fa_buf_addc(&b, '|');
	cli_add_seconds(&b, 3723);
	fa_buf_addc(&b, '|');
	cli_add_bytes(&b, 999);
	fa_buf_addc(&b, '|');
	cli_add_bytes(&b, 62600000);
	fa_buf_addc(&b, '|');
	cli_add_bytes(&b, 2400000000);
	assert_string_equal(fa_buf_str(&b), "0.4 s|59 s|1 min 0 s|1 h 2 min|999 bytes|62.6 MB|2.40 GB");
	fa_buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_out_as_calm_lines),
		cmocka_unit_test(seconds_and_bytes_are_written_for_people),
	};

	return cmocka_run_group_tests_name("plain", tests, NULL, NULL) != 0;
}
