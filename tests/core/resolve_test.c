/* The cases of tests/resolve (their form is told in tests/resolve/README), and generated hosts. */
#include "file.h"
#include "resolve_property.h"

#include <dirent.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct one_case {
	char *title;
	struct fa_facts facts;
	struct fa_wish wish;
	struct fa_strv expect; /* "KEY: VALUE" lines in order */
};

static struct fa_matrix *matrix;

static bool matches(const char *text, const char *pattern)
{
	regex_t re;
	bool fits;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
		fail_msg("no regular expression: %s", pattern);
	fits = !regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return fits;
}

/* ---- reading */

static void read_wish(struct fa_wish *w, const char *words)
{
	struct fa_strv argv = FA_STRV_INIT;
	struct fa_err err = FA_ERR_INIT;

	fa_strv_split(&argv, words, " ");
	for (size_t i = 0; i < argv.n; i++) {
		enum fa_wish_id id = FA_WISH_COUNT;
		const char *value = "yes";

		if (strncmp(argv.v[i], "--", 2) != 0 || fa_wish_find(&id, argv.v[i] + 2) < 0)
			fail_msg("no wish: %s", argv.v[i]);
		if (fa_wish_row(id)->kind != FA_WISH_FLAG && i + 1 < argv.n)
			value = argv.v[++i];
		if (fa_wish_set(w, id, value, &err) < 0)
			fail_msg("%s", err.text);
	}
	fa_strv_release(&argv);
}

static void read_card(struct fa_facts *f, const char *value)
{
	struct fa_strv words = FA_STRV_INIT;
	struct fa_gpu *g;

	f->gpus_known = true;
	if (!strcmp(value, "none"))
		return;
	fa_strv_split(&words, value, " ");
	g = fa_facts_add_gpu(f);
	g->vendor = fa_strdup(words.v[0]);
	g->arch = words.n > 1 && strcmp(words.v[1], "-") != 0 ? fa_strdup(words.v[1]) : NULL;
	g->name = words.n > 2 ? fa_strdup(strstr(value, words.v[2])) : NULL;
	fa_strv_release(&words);
}

static void read_facts(struct fa_facts *f, const char *assignments)
{
	struct fa_strv words = FA_STRV_INIT;
	struct fa_err err = FA_ERR_INIT;

	fa_strv_split(&words, assignments, " ");
	for (size_t i = 0; i < words.n; i++)
		if (fa_facts_assign(f, words.v[i], &err) < 0)
			fail_msg("%s", err.text);
	fa_strv_release(&words);
}

static void read_env(struct fa_facts *f, const char *value)
{
	char *name = fa_strndup(value, strcspn(value, "="));

	fa_facts_add_env(f, name, strchr(value, '=') ? strchr(value, '=') + 1 : "");
	free(name);
}

static void read_nvcc(struct fa_facts *f, const char *value)
{
	f->toolkits_known = true;
	if (!strncmp(value, "rocm ", 5))
		fa_facts_add_toolkit(f, "rocm", value + 5, "/opt/rocm");
	else if (strcmp(value, "none") != 0)
		fa_facts_add_toolkit(f, "cuda", value, "/usr/local/cuda");
}

static void read_line(struct one_case *c, const char *key, const char *value)
{
	if (!strcmp(key, "set"))
		read_facts(&c->facts, value);
	else if (!strcmp(key, "gpu"))
		read_card(&c->facts, value);
	else if (!strcmp(key, "nvcc"))
		read_nvcc(&c->facts, value);
	else if (!strcmp(key, "env"))
		read_env(&c->facts, value);
	else if (!strcmp(key, "cxx"))
		fa_facts_set_text(&c->facts, FA_FACT_CXX, value, NULL);
	else if (!strcmp(key, "problem"))
		fa_facts_add_problem(&c->facts, value, "nvidia-smi", value, "reboot");
	else if (!strcmp(key, "wish"))
		read_wish(&c->wish, value);
	else
		fa_strv_pushf(&c->expect, "%s: %s", key, value);
}

/* ---- checking */

static const struct fa_json *member(const struct fa_json *j, const char *path)
{
	struct fa_strv names = FA_STRV_INIT;

	fa_strv_split(&names, path, ".");
	for (size_t i = 0; i < names.n && j; i++)
		j = fa_json_get(j, names.v[i]);
	fa_strv_release(&names);
	return j;
}

static char *text_of(const struct fa_json *j)
{
	return !j ? fa_strdup("") : fa_json_string(j) ? fa_strdup(fa_json_string(j)) : fa_json_print(j, false);
}

/* "route wheel" or "wheel.name ~ ^flash" */
static bool field_fits(const struct fa_json *choice, const char *value)
{
	size_t n = strcspn(value, " ");
	char *path = fa_strndup(value, n), *found;
	const char *want = value[n] ? value + n + 1 : "";
	bool fits;

	found = text_of(member(choice, path));
	fits = !strncmp(want, "~ ", 2) ? matches(found, want + 2) : !strcmp(found, want);
	free(path);
	free(found);
	return fits;
}

static bool is_refused(const struct fa_plan *p, const char *value)
{
	char *candidate = fa_strndup(value, strcspn(value, "|"));
	const char *rule = strchr(value, '|') ? strchr(value, '|') + 1 : "";
	bool found = false;

	for (size_t i = 0; i < p->n_rejected && !found; i++)
		found = matches(p->rejected[i].candidate, candidate) && matches(p->rejected[i].rule, rule);
	for (size_t i = 0; i < p->n_tree && !found; i++)
		for (size_t k = 0; k < p->tree[i].n_others && !found; k++)
			found = matches(p->tree[i].others[k].value, candidate) && matches(p->tree[i].others[k].rule, rule);
	free(candidate);
	return found;
}

static bool has_action(const struct fa_plan *p, const char *id)
{
	for (size_t i = 0; i < p->n_actions; i++)
		if (!strcmp(p->actions[i].id, id))
			return true;
	return false;
}

static bool has_warning(const struct fa_plan *p, const char *id)
{
	for (size_t i = 0; i < p->n_warnings; i++)
		if (!strcmp(p->warnings[i].id, id))
			return true;
	return false;
}

static bool has_nearest(const struct fa_plan *p, const char *pattern)
{
	bool found = false;

	for (size_t i = 0; i < p->n_nearest && !found; i++) {
		char *wish = fa_strv_join(&p->nearest[i].wish, " ");

		found = matches(wish, pattern);
		free(wish);
	}
	return found;
}

static bool has_step(const struct fa_json *j, const char *pattern)
{
	fa_json_each (step, fa_json_get(j, "steps")) {
		char *text = fa_json_print(step, false);
		bool found = matches(text, pattern);

		free(text);
		if (found)
			return true;
	}
	return false;
}

static bool holds(const struct fa_plan *p, const struct fa_json *j, const char *text, const char *key, const char *value)
{
	if (!strcmp(key, "status"))
		return !strcmp(fa_plan_status_name(p->status), value);
	if (!strcmp(key, "choice"))
		return field_fits(fa_json_get(j, "choice"), value);
	if (!strcmp(key, "not"))
		return !field_fits(fa_json_get(j, "choice"), value);
	if (!strcmp(key, "refused"))
		return is_refused(p, value);
	if (!strcmp(key, "action"))
		return has_action(p, value);
	if (!strcmp(key, "no action"))
		return !has_action(p, value);
	if (!strcmp(key, "actions"))
		return p->n_actions == (size_t)atoi(value);
	if (!strcmp(key, "warning"))
		return has_warning(p, value);
	if (!strcmp(key, "no warning"))
		return !has_warning(p, value);
	if (!strcmp(key, "nearest"))
		return has_nearest(p, value);
	if (!strcmp(key, "step"))
		return has_step(j, value);
	if (!strcmp(key, "says"))
		return matches(text, value);
	fail_msg("unknown key \"%s\"", key);
	return false;
}

static int check_case(const struct one_case *c, const char *file)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_plan p;
	struct fa_json *j;
	char *text;
	int bad = 0;

	if (fa_resolve(&p, &c->facts, &c->wish, matrix, &err) < 0 || fa_plan_steps(&p, &c->facts, matrix, &err) < 0)
		fail_msg("%s: %s: %s", file, c->title, err.text);
	j = fa_plan_to_json(&p);
	text = fa_json_print(j, false);
	for (size_t i = 0; i < c->expect.n; i++) {
		const char *colon = strstr(c->expect.v[i], ": ");
		char *key = fa_strndup(c->expect.v[i], (size_t)(colon - c->expect.v[i]));

		if (!holds(&p, j, text, key, colon + 2)) {
			char *choice = text_of(fa_json_get(j, "choice"));

			print_message("%s: %s: expected %s; found %s, %s\n", file, c->title, c->expect.v[i],
			              fa_plan_status_name(p.status), choice);
			free(choice);
			bad++;
		}
		free(key);
	}
	free(text);
	fa_json_free(j);
	fa_plan_release(&p);
	return bad;
}

static void release_case(struct one_case *c)
{
	free(c->title);
	fa_facts_release(&c->facts);
	fa_wish_release(&c->wish);
	fa_strv_release(&c->expect);
	*c = (struct one_case){ 0 };
}

static int run_file(const char *path, int *cases)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_strv lines = FA_STRV_INIT;
	struct one_case c = { 0 };
	int bad = 0;

	assert_int_equal(fa_file_read(&text, path, FA_FILE_MAX, NULL), 0);
	fa_strv_split(&lines, fa_buf_str(&text), "\n");
	for (size_t i = 0; i < lines.n; i++) {
		const char *colon = strstr(lines.v[i], ":");
		char *key;

		if (lines.v[i][0] == '#' || !colon)
			continue;
		key = fa_strndup(lines.v[i], (size_t)(colon - lines.v[i]));
		colon += colon[1] == ' ' ? 2 : 1;
		if (!strcmp(key, "case")) {
			bad += c.title ? check_case(&c, path) : 0;
			release_case(&c);
			c.title = fa_strdup(colon);
			++*cases;
		} else {
			read_line(&c, key, colon);
		}
		free(key);
	}
	bad += c.title ? check_case(&c, path) : 0;
	release_case(&c);
	fa_strv_release(&lines);
	fa_buf_release(&text);
	return bad;
}

static void the_cases_come_out_as_written(void **state)
{
	DIR *dir = opendir("tests/resolve");
	int bad = 0, cases = 0;

	(void)state;
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		char *path = fa_path_join("tests/resolve", e->d_name);

		if (strstr(e->d_name, ".case"))
			bad += run_file(path, &cases);
		free(path);
	}
	closedir(dir);
	print_message("%d cases\n", cases);
	assert_int_equal(bad, 0);
	assert_true(cases > 20);
}

static void generated_hosts_get_sound_plans(void **state)
{
	struct property_times t;

	(void)state;
	assert_int_equal(run_properties(matrix, 1200, &t), 0);
	print_message("%.0f us of CPU each\n", t.mean * 1e6);
}

static int open_matrix(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	if (fa_matrix_open_at(&matrix, "matrix", "recipes", NULL, &err) == 0)
		return 0;
	print_message("%s\n", err.text);
	return -1;
}

static int close_matrix(void **state)
{
	(void)state;
	fa_matrix_close(matrix);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cases_come_out_as_written),
		cmocka_unit_test(generated_hosts_get_sound_plans),
	};

	return cmocka_run_group_tests(tests, open_matrix, close_matrix) != 0;
}
