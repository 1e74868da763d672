/* Machines are folders in tests/hosts: what they answered, and expected_facts.json: values that must be found so; null is
 * "must be unknown". Of problems the ids count. */
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

#define HOSTS "tests/hosts"

/* Every value of `wanted` is in `found`; the first that is not is printed. */
static bool holds(const struct fa_json *wanted, const struct fa_json *found, const char *place)
{
	bool good = true;

	if (fa_json_type(wanted) == FA_JSON_OBJECT) {
		fa_json_each (m, wanted) {
			char *below = fa_strf("%s.%s", place, fa_json_key(m));

			good = holds(m, fa_json_get(found, fa_json_key(m)), below) && good;
			free(below);
		}
		return good;
	}
	if (fa_json_type(wanted) == FA_JSON_ARRAY && fa_json_type(found) == FA_JSON_ARRAY &&
	    fa_json_len(wanted) == fa_json_len(found)) {
		for (size_t i = 0; i < fa_json_len(wanted); i++) {
			char *below = fa_strf("%s[%zu]", place, i);

			good = holds(fa_json_at(wanted, i), fa_json_at(found, i), below) && good;
			free(below);
		}
		return good;
	}
	if (fa_json_type(wanted) == FA_JSON_NULL) {
		good = !found;
	} else {
		char *a = fa_json_print(wanted, false), *b = found ? fa_json_print(found, false) : fa_strdup("nothing");

		good = !strcmp(a, b);
		if (!good)
			print_error("%s: expected %s, found %s\n", place, a, b);
		free(a);
		free(b);
		return good;
	}
	if (!good)
		print_error("%s: expected unknown\n", place);
	return good;
}

static char *host_path(const char *host, const char *file)
{
	return fa_strf(HOSTS "/%s%s%s", host, file ? "/" : "", file ? file : "");
}

static void assert_origins(const struct fa_facts *f)
{
	for (int i = 0; i < FA_FACT_COUNT; i++)
		if (f->v[i].known && !f->v[i].origin)
			fail_msg("%s has no origin", fa_fact_key((enum fa_fact)i));
	if (f->gpus_known)
		assert_non_null(f->gpus_origin);
	if (f->toolkits_known)
		assert_non_null(f->toolkits_origin);
}

static void the_machine_has_these_facts(void **state)
{
	const char *host = *state;
	char *dir = host_path(host, NULL), *expected = host_path(host, "expected_facts.json");
	struct fa_json *wanted = NULL, *found;
	struct fa_err err = FA_ERR_INIT;
	struct fa_facts f, again;

	if (fa_json_read_file(&wanted, expected, &err) < 0 || fa_detect_host(&f, dir, NULL, &err) < 0)
		fail_msg("%s", err.text);
	found = fa_facts_to_json(&f);
	assert_true(holds(wanted, found, host));
	if (strcmp(host, "windows") != 0) /* a file of facts, made by hand */
		assert_origins(&f);
	assert_int_equal(fa_facts_from_json(&again, found, host, &err), 0); /* what we print we read */
	fa_json_free(found);
	fa_json_free(wanted);
	fa_facts_release(&again);
	fa_facts_release(&f);
	free(expected);
	free(dir);
}

static char *print(const struct fa_facts *f)
{
	struct fa_json *j = fa_facts_to_json(f);
	char *text = fa_json_print(j, true);

	fa_json_free(j);
	return text;
}

/* A machine of which nothing was recorded has no facts: none of this one's may show through. */
static void nothing_of_this_machine_leaks_into_a_recorded_one(void **state)
{
	char dir[] = "/tmp/fa-detect-XXXXXX", *index, *text;
	static const char empty[] = "{\"schema\":\"fainstall.answers/1\",\"answers\":[]}";
	struct fa_err err = FA_ERR_INIT;
	struct fa_facts f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	index = fa_path_join(dir, "answers.json");
	assert_int_equal(fa_file_write(index, empty, strlen(empty), &err), 0);
	assert_int_equal(fa_detect_host(&f, dir, NULL, &err), 0);
	text = print(&f);
	assert_string_equal(text, "{\n\t\"schema\":\t\"fainstall.facts/1\"\n}\n");
	free(text);
	free(index);
	fa_facts_release(&f);
	fa_file_remove_tree(dir, NULL);
}

static void a_recording_of_this_machine_gives_the_same_facts(void **state)
{
	char dir[] = "/tmp/fa-detect-XXXXXX", *a, *b;
	struct fa_err err = FA_ERR_INIT;
	struct fa_facts live, replayed;
	struct fa_sys real, record;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fa_sys_real(&real);
	assert_int_equal(fa_sys_record(&record, &real, dir, &err), 0);
	fa_detect(&live, &record, NULL);
	assert_int_equal(fa_sys_recorded(&record, &err), 0);
	fa_sys_close(&record);
	fa_sys_close(&real);
	assert_int_equal(fa_detect_host(&replayed, dir, NULL, &err), 0);
	a = print(&live);
	b = print(&replayed);
	assert_string_equal(a, b);
	assert_origins(&live);
	assert_true(fa_facts_has(&live, FA_FACT_KERNEL));
	assert_true(fa_facts_number(&live, FA_FACT_RAM_AVAILABLE_MIB, 0) > 0);
	free(a);
	free(b);
	fa_facts_release(&live);
	fa_facts_release(&replayed);
	fa_file_remove_tree(dir, NULL);
}

static void write_text(const char *dir, const char *name, const char *text)
{
	char *path = fa_path_join(dir, name);

	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	free(path);
}

static void outputs_saved_by_hand_are_read_by_their_names(void **state)
{
	char dir[] = "/tmp/fa-detect-XXXXXX";
	struct fa_err err = FA_ERR_INIT;
	struct fa_facts f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_text(dir, "nvcc-version.txt", "Cuda compilation tools, release 12.8, V12.8.93\n");
	write_text(dir, "nvidia-smi-query.csv", "name, compute_cap\nNVIDIA H20, 9.0\n");
	write_text(dir, "proc-meminfo.txt", "MemTotal: 2097152 kB\nMemAvailable: 2000000 kB\n");
	write_text(dir, "cgroup-memory.max.txt", "1073741824\n");
	write_text(dir, "notes.txt", "hello\n");
	assert_int_equal(fa_detect_host(&f, dir, NULL, &err), 0);
	assert_string_equal(f.toolkits[0].version, "12.8.93");
	assert_string_equal(f.gpus[0].arch, "90");
	assert_int_equal(fa_facts_number(&f, FA_FACT_RAM_MIB, 0), 2048);
	assert_int_equal(fa_facts_number(&f, FA_FACT_RAM_AVAILABLE_MIB, 0), 1024);
	assert_false(f.v[FA_FACT_KERNEL].known);
	fa_facts_release(&f);
	fa_file_remove_tree(dir, NULL);
}

static void a_host_that_is_none_is_told_by_name(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_facts f;

	(void)state;
	assert_int_equal(fa_detect_host(&f, "tests/core", NULL, &err), -1);
	assert_string_equal(err.text, "tests/core: holds no recorded answers");
	assert_int_equal(fa_detect_host(&f, "tests/no-such-host", NULL, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_non_null(strstr(err.text, "tests/no-such-host"));
}

/* docs/facts.md has a row for every fact. */
static void every_fact_is_documented(void **state)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_file_read(&text, "docs/facts.md", 1 << 20, &err), 0);
	for (int i = 0; i < FA_FACT_COUNT; i++) {
		char *row = fa_strf("\n| `%s` |", fa_fact_key((enum fa_fact)i));

		if (!strstr(fa_buf_str(&text), row))
			fail_msg("docs/facts.md: no row for %s", fa_fact_key((enum fa_fact)i));
		free(row);
	}
	fa_buf_release(&text);
}

/* Other tests keep files of facts there too. */
static bool has_expected_facts(const char *host)
{
	char *path = host_path(host, "expected_facts.json");
	bool has = fa_file_exists(path);

	free(path);
	return has;
}

static void find_hosts(struct fa_strv *out)
{
	DIR *d = opendir(HOSTS);

	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.' && has_expected_facts(e->d_name))
			fa_strv_push(out, e->d_name);
	if (d)
		closedir(d);
	fa_strv_sort(out);
}

int main(void)
{
	static const struct CMUnitTest fixed[] = {
		cmocka_unit_test(nothing_of_this_machine_leaks_into_a_recorded_one),
		cmocka_unit_test(a_recording_of_this_machine_gives_the_same_facts),
		cmocka_unit_test(outputs_saved_by_hand_are_read_by_their_names),
		cmocka_unit_test(a_host_that_is_none_is_told_by_name),
		cmocka_unit_test(every_fact_is_documented),
	};
	enum { FIXED = sizeof(fixed) / sizeof(*fixed) };
	struct fa_strv hosts = FA_STRV_INIT;
	struct CMUnitTest *tests;
	int failed;

	setenv("FAINSTALL_DATA", ".", 0);
	find_hosts(&hosts);
	tests = fa_calloc(hosts.n + FIXED, sizeof(*tests));
	for (size_t i = 0; i < hosts.n; i++)
		tests[i] = (struct CMUnitTest){ hosts.v[i], the_machine_has_these_facts, NULL, NULL, hosts.v[i] };
	memcpy(tests + hosts.n, fixed, sizeof(fixed));
	failed = _cmocka_run_group_tests("detect", tests, hosts.n + FIXED, NULL, NULL);
	failed += hosts.n < 10;
	free(tests);
	fa_strv_release(&hosts);
	return failed != 0;
}
