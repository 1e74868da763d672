/* Every block of tests/diagnose/ is a test: facts and a log go in, the first cause must be the one named. */
#include "buf.h"
#include "diagnose.h"
#include "file.h"
#include "json.h"
#include "matrix.h"
#include "scan.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct fa_matrix *matrix;
static struct fa_diagnoser *diagnoser;

struct diagnose_case {
	char *name;
	char *cause; /* "none": nothing may be accused; ID@LINE: the evidence is there */
	struct fa_facts facts;
	struct fa_buf log;
};

static int open_matrix(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	if (fa_matrix_open(&matrix, &err) < 0 || fa_diagnoser_new(&diagnoser, matrix, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	return 0;
}

static int close_matrix(void **state)
{
	(void)state;
	fa_diagnoser_free(diagnoser);
	fa_matrix_close(matrix);
	return 0;
}

/* These say that nothing needs mending, or that the cause stands elsewhere. */
static bool needs_repair(const char *id)
{
	static const char *const without[] = { "git_submodule_noise", "noise_gxx_bounds", "nvcc_exit_255_see_above",
		                               "torch_capability_warning_harmless" };

	for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
		if (!strcmp(id, without[i]))
			return false;
	return true;
}

/* A repair is a command as it stands: nothing is left to be put in. */
static void expect_whole(const struct fa_cause *c)
{
	if (!c->title || !c->title[0] || !c->because[0] || !c->n_evidence)
		fail_msg("%s: no title, reason or evidence", c->id);
	if (!c->repair.n && needs_repair(c->id))
		fail_msg("%s: no repair", c->id);
	for (size_t i = 0; i < c->repair.n; i++)
		if (strpbrk(c->repair.v[i], "<>") || strstr(c->repair.v[i], "${") || strstr(c->repair.v[i], "...") ||
		    strstr(c->repair.v[i], "\xe2\x80\xa6"))
			if (!strstr(c->repair.v[i], "'setuptools<"))
				fail_msg("%s: not a command as it stands: %s", c->id, c->repair.v[i]);
}

static void first_cause_is_right(void **state)
{
	struct diagnose_case *c = *state;
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;
	char found[256], *at;

	if (fa_diagnose_text(&d, diagnoser, fa_buf_str(&c->log), c->log.len, &c->facts, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(found, sizeof(found), "%s",
	         d.n_causes                                   ? d.causes[0].id
	         : d.n_noise && strcmp(c->cause, "none") != 0 ? d.noise[0].id
	                                                      : "none");
	at = strchr(c->cause, '@');
	if (at && d.n_causes)
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "@%zu", d.causes[0].evidence[0].line);
	for (size_t i = 0; i < d.n_causes; i++)
		expect_whole(&d.causes[i]);
	fa_diagnosis_release(&d);
	assert_string_equal(c->cause, found);
}

static void line_to_case(struct diagnose_case *c, const char *line, size_t len)
{
	struct fa_err err = FA_ERR_INIT;
	char *assignment;

	if (len < 2 || memcmp(line, "@ ", 2) != 0 || c->log.len) {
		fa_buf_add(&c->log, line, len);
		fa_buf_addc(&c->log, '\n');
		return;
	}
	assignment = fa_strndup(line + 2, len - 2);
	if (fa_facts_assign(&c->facts, assignment, &err) < 0) {
		fprintf(stderr, "%s: %s\n", c->name, err.text);
		exit(1);
	}
	free(assignment);
}

static size_t read_cases(struct diagnose_case **out, const char *path)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct diagnose_case *cases = NULL;
	size_t n = 0;

	if (fa_file_read(&text, path, FA_FILE_MAX, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (const char *p = fa_buf_str(&text); *p;) {
		size_t len = strcspn(p, "\n");
		char name[128], cause[128];

		if (len < 128 && sscanf(p, "== %127s %127s", name, cause) == 2) {
			cases = fa_realloc(cases, n + 1, sizeof(*cases));
			cases[n++] = (struct diagnose_case){ .name = fa_strdup(name), .cause = fa_strdup(cause) };
		} else if (n) {
			line_to_case(&cases[n - 1], p, len);
		}
		p += len + (p[len] == '\n');
	}
	fa_buf_release(&text);
	*out = cases;
	return n;
}

static void release_cases(struct diagnose_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(cases[i].name);
		free(cases[i].cause);
		fa_facts_release(&cases[i].facts);
		fa_buf_release(&cases[i].log);
	}
	free(cases);
}

static void add_log(struct diagnose_case **cases, size_t *n, const char *path, const char *cause)
{
	struct diagnose_case c = { .name = fa_strdup(path), .cause = fa_strdup(cause) };
	struct fa_err err = FA_ERR_INIT;

	if (fa_file_read(&c.log, path, FA_FILE_MAX, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	*cases = fa_realloc(*cases, *n + 1, sizeof(**cases));
	(*cases)[(*n)++] = c;
}

/* tests/diagnose/logs/expected: "FILE CAUSE@LINE" of each log of a real failure. */
static size_t read_failed_logs(struct diagnose_case **cases)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	size_t n = 0;

	*cases = NULL;
	if (fa_file_read(&text, "tests/diagnose/logs/expected", FA_FILE_MAX, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (const char *p = fa_buf_str(&text); *p; p += strcspn(p, "\n"), p += *p == '\n') {
		char name[128], cause[128], path[256];

		if (sscanf(p, "%127s %127s", name, cause) != 2)
			continue;
		snprintf(path, sizeof(path), "tests/diagnose/logs/%s", name);
		add_log(cases, &n, path, cause);
	}
	fa_buf_release(&text);
	return n;
}

/* Every log of tests/diagnose/clean/ is of something that went well. */
static size_t read_clean_logs(struct diagnose_case **cases)
{
	static const char folder[] = "tests/diagnose/clean";
	DIR *dir = opendir(folder);
	size_t n = 0;

	*cases = NULL;
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[512];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		add_log(cases, &n, path, "none");
	}
	if (dir)
		closedir(dir);
	return n;
}

static int run_cases(const char *path, struct diagnose_case *cases, size_t n)
{
	struct CMUnitTest *tests = fa_calloc(n, sizeof(*tests));
	int failed;

	for (size_t i = 0; i < n; i++) {
		tests[i].name = cases[i].name;
		tests[i].test_func = first_cause_is_right;
		tests[i].initial_state = &cases[i];
	}
	failed = _cmocka_run_group_tests(path, tests, n, open_matrix, close_matrix);
	release_cases(cases, n);
	free(tests);
	return failed;
}

/* ---- the same failure in other dresses: what a terminal, a tool or an editor makes of the same text */

static void as_crlf(struct fa_buf *out, const char *line, size_t number)
{
	(void)number;
	fa_buf_addf(out, "%s\r\n", line);
}

static void as_coloured(struct fa_buf *out, const char *line, size_t number)
{
	fa_buf_addf(out, "\033[%zum%s\033[0m\033[K\n", 31 + number % 6, line);
}

static void as_indented(struct fa_buf *out, const char *line, size_t number) /* pip shows a build's output so */
{
	fa_buf_addf(out, "%s      %s\n", number == 1 ? "  \xe2\x95\xb0\xe2\x94\x80> [89 lines of output]\n" : "", line);
}

static void as_timed(struct fa_buf *out, const char *line, size_t number) /* a job of a CI service */
{
	fa_buf_addf(out, "2026-05-02T11:03:%02zu.1234567Z %s\n", number % 60, line);
}

static void as_docker(struct fa_buf *out, const char *line, size_t number)
{
	fa_buf_addf(out, "#12 %zu.31 %s\n", number, line);
}

static void as_interleaved(struct fa_buf *out, const char *line, size_t number) /* other jobs write between */
{
	fa_buf_addf(out, "%s\n[%zu/73] c++ -MMD -O3 -std=c++17 -c /src/file%zu.cpp -o /build/file%zu.o\n", line, number, number,
	            number);
}

static void as_progress(struct fa_buf *out, const char *line, size_t number)
{
	fa_buf_addf(out, "  %zu%%|####      | 1.2/2.7 MB\r  100%%|##########| 2.7/2.7 MB\r%s\n", number % 100, line);
}

static void as_quoted(struct fa_buf *out, const char *line, size_t number) /* an answer in a thread */
{
	(void)number;
	fa_buf_addf(out, "> %s\n", line);
}

static void as_utf16(struct fa_buf *out, const char *line, size_t number) /* ASCII only */
{
	if (number == 1)
		fa_buf_add(out, "\xff\xfe", 2);
	for (; *line; line++) {
		fa_buf_addc(out, *line);
		fa_buf_addc(out, '\0');
	}
	fa_buf_add(out, "\r\0\n", 4);
}

static const struct {
	const char *name;
	void (*line)(struct fa_buf *out, const char *line, size_t number);
} dresses[] = {
	{ "CRLF", as_crlf },     { "colours", as_coloured },      { "indented", as_indented },
	{ "timed", as_timed },   { "docker", as_docker },         { "interleaved", as_interleaved },
	{ "quoted", as_quoted }, { "progress bar", as_progress }, { "UTF-16", as_utf16 },
};

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

static size_t in_dress(const struct diagnose_case *c, size_t dress)
{
	struct fa_buf log = FA_BUF_INIT;
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;
	const char *found;
	size_t number = 0, wrong;

	if (dresses[dress].line == as_utf16 && !is_ascii(fa_buf_str(&c->log)))
		return 0;
	for (const char *p = fa_buf_str(&c->log); *p; p += *p == '\n') {
		char *line = fa_strndup(p, strcspn(p, "\n"));

		dresses[dress].line(&log, line, ++number);
		p += strlen(line);
		free(line);
	}
	if (fa_diagnose_text(&d, diagnoser, fa_buf_str(&log), log.len, &c->facts, &err) < 0)
		fail_msg("%s", err.text);
	found = d.n_causes ? d.causes[0].id : d.n_noise && strcmp(c->cause, "none") != 0 ? d.noise[0].id : "none";
	wrong = strcmp(c->cause, found) != 0;
	if (wrong)
		print_error("%s in %s: %s, not %s\n", c->name, dresses[dress].name, found, c->cause);
	fa_diagnosis_release(&d);
	fa_buf_release(&log);
	return wrong;
}

static void the_dress_does_not_matter(void **state)
{
	static const char *const files[] = { "tests/diagnose/reports.cases", "tests/diagnose/kinds.cases",
		                             "tests/diagnose/posts.cases", "tests/diagnose/threads.cases" };
	size_t wrong = 0;

	(void)state;
	for (size_t f = 0; f < sizeof(files) / sizeof(*files); f++) {
		struct diagnose_case *cases;
		size_t n = read_cases(&cases, files[f]);

		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < sizeof(dresses) / sizeof(*dresses); k++)
				wrong += in_dress(&cases[i], k);
		release_cases(cases, n);
	}
	assert_int_equal(0, wrong);
}

/* ---- the reader of lines */

static void collect(void *ctx, size_t number, const char *text, size_t len)
{
	fa_buf_addf(ctx, "%zu:%.*s|", number, (int)len, text);
}

/* Whole, and cut in two at every place: the same lines. The encoding is told by the first bytes, so those stay together. */
static void expect_lines(const char *data, size_t len, const char *expected)
{
	for (size_t cut = 8; cut <= len; cut++) {
		struct fa_buf out = FA_BUF_INIT;
		struct fa_lines lines;

		fa_lines_init(&lines, collect, &out);
		fa_lines_add(&lines, data, cut);
		fa_lines_add(&lines, data + cut, len - cut);
		fa_lines_end(&lines);
		assert_string_equal(expected, fa_buf_str(&out));
		fa_buf_release(&out);
	}
}

static void lines_are_counted_as_an_editor_does(void **state)
{
	static const char text[] = "one\r\ntwo\n\nfour";

	(void)state;
	expect_lines(text, sizeof(text) - 1, "1:one|2:two|4:four|");
}

static void colours_and_progress_bars_are_dropped(void **state)
{
	static const char text[] = "\033[31mred\033[0m x\n 10 %\r 90 %\rdone\n";

	(void)state;
	expect_lines(text, sizeof(text) - 1, "1:red x|2: 10 %|2: 90 %|2:done|");
}

static void utf16_of_powershell_is_read(void **state)
{
	static const char text[] = "\xff\xfe"
	                           "e\0r\0r\0\n\0"
	                           "o\0k\0";

	(void)state;
	expect_lines(text, sizeof(text) - 1, "1:err|2:ok|");
}

static void a_long_line_comes_in_pieces_that_overlap(void **state)
{
	char *line = fa_calloc(200001, 1);
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	memset(line, 'x', 200000);
	memcpy(line + FA_LINES_MAX - 10, " nvcc error : 'cicc' died due to signal 9 ", 42);
	assert_int_equal(0, fa_diagnose_text(&d, diagnoser, line, 200000, NULL, &err));
	assert_int_equal(1, d.n_causes > 0);
	assert_string_equal("oom_compile", d.causes[0].id);
	fa_diagnosis_release(&d);
	free(line);
}

static void note_hit(void *ctx, size_t word, size_t end)
{
	fa_buf_addf(ctx, "%zu@%zu ", word, end);
}

static void words_are_found_inside_one_another(void **state)
{
	static const char *const words[] = { "killed", "oom killed", "ill", "led", "KIL" };
	struct fa_words *w = fa_words_new(words, 5);
	struct fa_search s;
	struct fa_buf out = FA_BUF_INIT;

	(void)state;
	fa_search_init(&s, w);
	fa_search_text(&s, "OOM Killed", 10, note_hit, &out);
	for (const char *hit = "0@10\0001@10\0002@8\0003@10\0004@7\0"; *hit; hit += strlen(hit) + 1)
		if (!strstr(fa_buf_str(&out), hit))
			fail_msg("no %s in %s", hit, fa_buf_str(&out));
	assert_int_equal(23, out.len); /* each once */
	fa_search_give_up(&s, 0);
	fa_search_give_up(&s, 2);
	fa_search_give_up(&s, 3);
	fa_search_give_up(&s, 4);
	fa_buf_reset(&out);
	fa_search_text(&s, "OOM Killed", 10, note_hit, &out);
	assert_string_equal("1@10 ", fa_buf_str(&out));
	fa_search_release(&s);
	fa_buf_release(&out);
	fa_words_free(w);
}

static void a_missing_file_is_named(void **state)
{
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(-1, fa_diagnose_file(&d, diagnoser, "/nowhere/build.log", NULL, &err));
	assert_int_equal(FA_USAGE, err.status);
	assert_non_null(strstr(err.text, "/nowhere/build.log"));
}

/* ---- what is no log */

static void expect_nobody(const char *text, size_t len)
{
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;

	assert_int_equal(0, fa_diagnose_text(&d, diagnoser, text, len, NULL, &err));
	assert_int_equal(0, d.n_causes);
	fa_diagnosis_release(&d);
}

static void an_empty_log_accuses_nobody(void **state)
{
	(void)state;
	expect_nobody("", 0);
	expect_nobody("\n", 1);
	expect_nobody("\0\0\0\0", 4);
	expect_nobody("\xff\xfe", 2);
	expect_nobody("\x1b[", 2);
}

static void random_bytes_accuse_nobody(void **state)
{
	size_t len = 1 << 20;
	char *bytes = fa_calloc(len, 1);
	uint32_t x = 2463534242u;

	(void)state;
	for (size_t i = 0; i < len; i++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		bytes[i] = (char)x;
	}
	expect_nobody(bytes, len);
	free(bytes);
}

static void other_text_accuses_nobody(void **state)
{
	static const char text[] =
	        "Dear Sir or Madam,\nthe concept failed: errors were made, and the cutlass was killed in the drama.\n"
	        "The ninja and the gcc of the triton have no kernel. It is invalid, or so they said.\n";

	(void)state;
	expect_nobody(text, sizeof(text) - 1);
}

static void bytes_of_zero_do_not_hide_the_error(void **state)
{
	static const char text[] = "building\0\0\nModuleNotFoundError: No module named 'torch'\n\0\0";
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(0, fa_diagnose_text(&d, diagnoser, text, sizeof(text) - 1, NULL, &err));
	assert_int_equal(1, d.n_causes);
	assert_string_equal("build_isolation_no_torch", d.causes[0].id);
	assert_int_equal(2, d.causes[0].evidence[0].line);
	fa_diagnosis_release(&d);
}

/* GBK, as Windows in China writes it; the evidence must be UTF-8, or nobody can read the JSON. */
static void a_chinese_code_page_is_read(void **state)
{
	static const char text[] = "ImportError: DLL load failed while importing flash_attn_2_cuda: "
	                           "\xd5\xd2\xb2\xbb\xb5\xbd\xd6\xb8\xb6\xa8\xb5\xc4\xb3\xcc\xd0\xf2\xa1\xa3\n";
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(0, fa_diagnose_text(&d, diagnoser, text, sizeof(text) - 1, NULL, &err));
	assert_int_equal(1, d.n_causes > 0);
	assert_string_equal("torch_abi_version_mismatch", d.causes[0].id);
	assert_non_null(strstr(d.causes[0].evidence[0].text, "\xe6\x89\xbe\xe4\xb8\x8d\xe5\x88\xb0"));
	fa_diagnosis_release(&d);
}

static void a_broken_character_becomes_a_question_mark(void **state)
{
	static const char text[] = "ModuleNotFoundError: No module named 'torch' \xff\xfe\xfd\n";
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(0, fa_diagnose_text(&d, diagnoser, text, sizeof(text) - 1, NULL, &err));
	assert_int_equal(1, d.n_causes);
	assert_string_equal("ModuleNotFoundError: No module named 'torch' ???", d.causes[0].evidence[0].text);
	fa_diagnosis_release(&d);
}

/* Only words, no line ends: each is tried, and the tries of a signal have an end. */
static void one_line_of_many_words_ends(void **state)
{
	static const char word[] = "undefined symbol killed gcc error: ";
	size_t n = 8 << 20;
	char *line = fa_calloc(n, 1);
	struct fa_diagnosis d;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	for (size_t i = 0; i < n; i++)
		line[i] = word[i % (sizeof(word) - 1)];
	assert_int_equal(0, fa_diagnose_text(&d, diagnoser, line, n, NULL, &err));
	assert_int_equal(1, d.n_lines);
	fa_diagnosis_release(&d);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_counted_as_an_editor_does),
		cmocka_unit_test(colours_and_progress_bars_are_dropped),
		cmocka_unit_test(utf16_of_powershell_is_read),
		cmocka_unit_test(a_long_line_comes_in_pieces_that_overlap),
		cmocka_unit_test(words_are_found_inside_one_another),
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(an_empty_log_accuses_nobody),
		cmocka_unit_test(random_bytes_accuse_nobody),
		cmocka_unit_test(other_text_accuses_nobody),
		cmocka_unit_test(bytes_of_zero_do_not_hide_the_error),
		cmocka_unit_test(one_line_of_many_words_ends),
		cmocka_unit_test(a_chinese_code_page_is_read),
		cmocka_unit_test(a_broken_character_becomes_a_question_mark),
		cmocka_unit_test(the_dress_does_not_matter),
	};
	int failed = cmocka_run_group_tests_name("diagnose", tests, open_matrix, close_matrix);

	struct diagnose_case *cases;
	size_t n;

	n = read_cases(&cases, "tests/diagnose/reports.cases");
	failed += run_cases("reports", cases, n);
	n = read_cases(&cases, "tests/diagnose/kinds.cases");
	failed += run_cases("kinds", cases, n);
	n = read_cases(&cases, "tests/diagnose/posts.cases");
	failed += run_cases("posts", cases, n);
	n = read_cases(&cases, "tests/diagnose/threads.cases");
	failed += run_cases("threads", cases, n);
	n = read_failed_logs(&cases);
	failed += run_cases("logs of failures", cases, n);
	n = read_clean_logs(&cases);
	failed += n < 30;
	failed += run_cases("logs of what went well", cases, n);
	return failed ? 1 : 0;
}
