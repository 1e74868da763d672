/* `matrix check`: what is wrong with the rows, one finding a line. */
#include "buf.h"
#include "causes.h"
#include "json.h"
#include "kb.h"
#include "matrix.h"
#include "matrix_data.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

struct check { /* findings so far */
	struct fa_buf *out;
	int n;
};

static const char *key_of(const struct fa_json *row)
{
	static const char *const KEYS[] = { "id", "version", "torch", "cuda", "line", "name", "arch", "kind", "card", "file" };

	for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++)
		if (fa_json_get_string(row, KEYS[i]))
			return fa_json_get_string(row, KEYS[i]);
	return "?";
}

static void finding(struct check *c, const char *table, const char *row, const char *what, const char *detail)
{
	fa_buf_addf(c->out, "matrix/%s.json: row \"%s\": %s%s\n", table, row, what, detail);
	c->n++;
}

/* The same, of a row that may be the user's. */
static void row_finding(struct check *c, const char *table, const struct fa_json *row, const char *what, const char *detail)
{
	const char *file = fa_json_get_string(row, FA_ROW_FILE);

	if (!file) {
		finding(c, table, key_of(row), what, detail);
		return;
	}
	fa_buf_addf(c->out, "%s: row \"%s\": %s%s\n", file, key_of(row), what, detail);
	c->n++;
}

/* ---- schema */

static const struct {
	const char *table, *member;
	enum fa_json_type type;
	bool needed;
} MEMBERS[] = {
#define MEMBER(table, member, type, needed) { table, member, FA_JSON_##type, needed },
#include "matrix_schema.def"
#undef MEMBER
};

static const char *type_word(enum fa_json_type type)
{
	static const char *const WORDS[] = { "null", "true or false", "a number", "a text", "a list", "an object" };

	return WORDS[type];
}

static void check_members(struct check *c, const char *table, const struct fa_json *row)
{
	for (size_t i = 0; i < sizeof(MEMBERS) / sizeof(MEMBERS[0]); i++) {
		const struct fa_json *value = fa_json_get(row, MEMBERS[i].member);
		char *what;

		if (strcmp(MEMBERS[i].table, table) != 0)
			continue;
		if (!value && MEMBERS[i].needed) {
			what = fa_strf("no \"%s\"", MEMBERS[i].member);
			row_finding(c, table, row, what, "");
			free(what);
		} else if (value && fa_json_type(value) != MEMBERS[i].type) {
			what = fa_strf("\"%s\" must be %s", MEMBERS[i].member, type_word(MEMBERS[i].type));
			row_finding(c, table, row, what, "");
			free(what);
		}
	}
}

/* Rows that are lists: `kinds` has a letter for each place, s a text, n a number. */
static void check_list(struct check *c, const char *table, const char *row, const struct fa_json *list, const char *kinds)
{
	const struct fa_json *cell = fa_json_first(list);
	size_t needed = strcspn(kinds, "?");

	for (size_t i = 0; i < needed || cell; i++, cell = fa_json_next(cell)) {
		char kind = kinds[i] == '?' ? kinds[i + 1] : i < strlen(kinds) ? kinds[i] : '\0';
		enum fa_json_type type = kind == 'n' ? FA_JSON_NUMBER : FA_JSON_STRING;
		char *what;

		if (cell && kind && fa_json_type(cell) == type)
			continue;
		what = fa_strf("place %zu of the list %s", i + 1, kind ? "is not as it must be" : "is one too many");
		finding(c, table, row, what, "");
		free(what);
		return;
	}
}

static void check_lists(struct check *c, const char *table, const struct fa_json *rows)
{
	size_t n = 0;

	fa_json_each (row, rows) {
		char *name = fa_strf("%zu", ++n);

		if (!strcmp(table, "wheels/community"))
			check_list(c, table, name, row, "sssssnnsss");
		fa_json_each (build, fa_json_get(row, "builds"))
			if (!strcmp(table, "wheels/official"))
				check_list(c, table, key_of(row), build, "sssss?s");
		free(name);
	}
}

/* ---- rows */

static bool is_date(const char *text)
{
	static const char form[] = "0000-00-00";

	for (int i = 0; form[i]; i++)
		if (form[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9')
			return false;
	return !text[sizeof(form) - 1];
}

/* Rows of lists (the community's) stand for their table, which names its sources itself. */
static void check_rows(struct check *c, const char *name, const struct fa_json *table, const char *date)
{
	const char *checked = fa_json_get_string(table, "checked");

	if (checked && !is_date(checked))
		finding(c, name, "-", "\"checked\" is not YYYY-MM-DD: ", checked);
	if (!checked && strcmp(name, "cards") != 0)
		finding(c, name, "-", "no date \"checked\"", "");
	else if (checked && strcmp(checked, date) > 0)
		finding(c, name, "-", "is newer than the date of about.json: ", checked);
	if (strncmp(fa_json_get_string(table, "schema"), "fainstall.about/", 16) != 0 &&
	    !fa_json_len(fa_json_get(table, "rows")))
		finding(c, name, "-", "no rows", "");
	fa_json_each (row, fa_json_get(table, "rows")) {
		if (fa_json_type(row) == FA_JSON_ARRAY && !fa_json_get(table, "sources"))
			finding(c, name, "-", "no \"sources\"", "");
		if (fa_json_type(row) == FA_JSON_OBJECT && !fa_json_get_string(row, "source"))
			row_finding(c, name, row, "no \"source\"", "");
		if (fa_json_type(row) == FA_JSON_OBJECT)
			check_members(c, name, row);
	}
	check_lists(c, name, fa_json_get(table, "rows"));
}

/* ---- rules */

static void check_rule(struct check *c, const char *table, const struct fa_json *row, const char *member)
{
	const char *text = fa_json_get_string(row, member);
	struct fa_err why = FA_ERR_INIT;
	struct fa_rule r;

	if (!text)
		return;
	if (fa_rule_compile(&r, text, fa_name_find_word, NULL, &why) < 0)
		row_finding(c, table, row, why.text, "");
	else
		fa_rule_release(&r);
}

static bool has_id(const struct fa_json *ids, const char *id)
{
	fa_json_each (row, fa_json_get(ids, "rows"))
		if (fa_json_get_string(row, "id") && !strcmp(fa_json_get_string(row, "id"), id))
			return true;
	return false;
}

static bool same(const struct fa_json *a, const struct fa_json *b, const char *key)
{
	const char *x = fa_json_get_string(a, key), *y = fa_json_get_string(b, key);

	return (!x && !y) || (x && y && !strcmp(x, y));
}

/* A row that comes after one with the same subject, condition and need is never reached. */
static void check_shadowed(struct check *c, const struct fa_json *rows)
{
	fa_json_each (a, rows)
		for (const struct fa_json *b = fa_json_next(a); b; b = fa_json_next(b))
			if (same(a, b, "on") && same(a, b, "when") && same(a, b, "need"))
				row_finding(c, "rules", b, "is shadowed by row ", key_of(a));
}

static void check_rules(struct check *c, const struct fa_json *rules, const struct fa_json *ids)
{
	fa_json_each (row, fa_json_get(rules, "rows")) {
		const char *action = fa_json_get_string(row, "action"), *on = fa_json_get_string(row, "on");

		if (on && !fa_rule_on_known(on))
			row_finding(c, "rules", row, "unknown \"on\": ", on);
		check_rule(c, "rules", row, "when");
		check_rule(c, "rules", row, "need");
		if (action && !has_id(ids, action))
			row_finding(c, "rules", row, "its action is in no row of ids: ", action);
	}
	check_shadowed(c, fa_json_get(rules, "rows"));
}

/* Two rows of one key: the later one is never reached. The first is the user's where there is one. */
static void check_twice(struct check *c, const char *table, const struct fa_json *rows, const char *member, const char *second)
{
	fa_json_each (a, rows)
		for (const struct fa_json *b = fa_json_next(a); b; b = fa_json_next(b))
			if (fa_json_get(a, member) && same(a, b, member) && (!second || same(a, b, second)))
				row_finding(c, table, b, "stands twice", "");
}

static void check_ids(struct check *c, const struct fa_json *ids)
{
	fa_json_each (row, fa_json_get(ids, "rows"))
		check_rule(c, "ids", row, "when");
}

/* Variables that a recipe sets and that no setup.py of ours reads would do nothing. */
static void check_settings(struct check *c, const struct fa_json *settings, const struct fa_json *releases,
                           const struct fa_json *fa3)
{
	static const char *const OTHERS = "CUDA_HOME NVCC_APPEND_FLAGS TORCH_CUDA_ARCH_LIST";

	fa_json_each (row, fa_json_get(settings, "rows")) {
		const char *set = fa_json_get_string(row, "set");
		char *name = set ? fa_strndup(set, strcspn(set, "=")) : fa_strdup("");
		bool read = fa_words_has(OTHERS, name) || !strncmp(name, "FAINSTALL_", 10); /* for our own half of the build */

		check_rule(c, "../recipes/settings", row, "when");
		fa_json_each (profile, fa_json_get(releases, "profiles"))
			read = read ||
			       (fa_json_get_string(profile, "env") && fa_words_has(fa_json_get_string(profile, "env"), name));
		fa_json_each (profile, fa_json_get(fa3, "profiles"))
			read = read ||
			       (fa_json_get_string(profile, "env") && fa_words_has(fa_json_get_string(profile, "env"), name));
		if (!read)
			finding(c, "../recipes/settings", name, "no setup.py reads this variable", "");
		free(name);
	}
}

static void check_steps(struct check *c, const struct fa_json *steps)
{
	fa_json_each (row, fa_json_get(steps, "rows")) {
		enum fa_step_kind kind;

		check_rule(c, "../recipes/steps", row, "when");
		if (!fa_json_get_string(row, "kind") || fa_step_find(&kind, fa_json_get_string(row, "kind")) < 0)
			row_finding(c, "../recipes/steps", row, "no such kind of step", "");
	}
}

/* A release names the setup.py that it was read from. */
static void check_profiles(struct check *c, const struct fa_json *releases)
{
	fa_json_each (row, fa_json_get(releases, "rows")) {
		const char *name = fa_json_get_string(row, "profile");
		bool there = false;

		fa_json_each (profile, fa_json_get(releases, "profiles"))
			there = there || (name && fa_json_get_string(profile, "profile") &&
			                  !strcmp(fa_json_get_string(profile, "profile"), name));
		if (name && !there)
			row_finding(c, "flash-attn", row, "there is no profile ", name);
	}
}

/* ---- causes */

/* "${name}" must be a name that diagnose knows. */
static void check_blanks(struct check *c, const struct fa_causes *causes, const char *id, const char *text)
{
	for (const char *p = text ? strstr(text, "${") : NULL; p; p = strstr(p + 2, "${")) {
		size_t len = strcspn(p + 2, "}");

		if (fa_causes_name(causes, p + 2, len) < 0)
			finding(c, "causes", id, "nothing is called as it says in ", p);
	}
}

static void check_cause(struct check *c, const struct fa_causes *causes, const struct fa_cause_row *row)
{
	if (!row->title)
		finding(c, "causes", row->id, "no \"title\"", "");
	if (!row->because)
		finding(c, "causes", row->id, "no \"because\"", "");
	if (!row->source)
		finding(c, "causes", row->id, "no \"source\"", "");
	if (!row->n_rules && fa_causes_signal(causes, row->id) < 0)
		finding(c, "causes", row->id, "neither a rule nor a signal of that name", "");
	check_blanks(c, causes, row->id, row->title);
	check_blanks(c, causes, row->id, row->because);
	for (size_t i = 0; i < row->n_repairs; i++)
		check_blanks(c, causes, row->id, row->repairs[i].text);
	for (const struct fa_cause_row *other = causes->rows; other < row; other++)
		if (!strcmp(other->id, row->id))
			finding(c, "causes", row->id, "stands twice", "");
}

static void check_signals(struct check *c, struct fa_causes *causes)
{
	for (size_t i = 0; i < causes->n_signals; i++) {
		struct fa_signal *s = &causes->signals[i];
		char *found;

		if (s->kind == FA_SIGNAL_NOISE && !s->meaning)
			finding(c, "causes", s->id, "noise without \"meaning\"", "");
		fa_pattern_find(&s->pattern, "", &found);
		free(found);
		if (s->pattern.text && !s->pattern.compiled)
			finding(c, "causes", s->id, "its pattern is no extended regular expression: ", s->pattern.text);
	}
}

/* What diagnose knows; a table that does not load is one finding. */
static void check_causes(struct check *c, const struct fa_json *table)
{
	struct fa_err why = FA_ERR_INIT;
	struct fa_causes causes;

	if (!fa_json_get_string(table, "checked"))
		finding(c, "causes", "-", "no date \"checked\"", "");
	if (fa_causes_load(&causes, table, &why) < 0) {
		finding(c, "causes", "-", why.text, "");
		return;
	}
	check_signals(c, &causes);
	for (size_t i = 0; i < causes.n_rows; i++)
		check_cause(c, &causes, &causes.rows[i]);
	fa_causes_release(&causes);
}

/* ---- all of it */

static void check_across(struct check *c, struct fa_matrix *m)
{
	const struct fa_json *ids = fa_matrix_table(m, "ids", NULL), *releases = fa_matrix_table(m, "flash-attn", NULL);
	const struct fa_json *torch = fa_matrix_table(m, "torch", NULL), *cuda = fa_matrix_table(m, "cuda", NULL);

	check_rules(c, fa_matrix_table(m, "rules", NULL), ids);
	check_ids(c, ids);
	check_twice(c, "ids", fa_json_get(ids, "rows"), "id", NULL);
	check_twice(c, "torch", fa_json_get(torch, "rows"), "torch", NULL);
	check_twice(c, "cuda", fa_json_get(cuda, "rows"), "cuda", NULL);
	check_twice(c, "flash-attn", fa_json_get(releases, "rows"), "version", "line");
	check_twice(c, "archs", fa_json_get(fa_matrix_table(m, "archs", NULL), "rows"), "arch", NULL);
	check_profiles(c, releases);
	check_settings(c, fa_matrix_recipe(m, "settings", NULL), releases, fa_matrix_table(m, "fa3", NULL));
	check_steps(c, fa_matrix_recipe(m, "steps", NULL));
	check_causes(c, fa_matrix_table(m, "causes", NULL));
}

int fa_matrix_check(struct fa_matrix *m, struct fa_buf *out, struct fa_err *err)
{
	const char *date = fa_matrix_data(m)->date;
	struct check c = { .out = out };

	if (!fa_matrix_recipe(m, "settings", err) || !fa_matrix_recipe(m, "steps", err))
		return -1;
	for (int i = 0; fa_matrix_table_name(i); i++) {
		const struct fa_json *table = fa_matrix_table(m, fa_matrix_table_name(i), err);

		if (!table)
			return -1;
		if (strcmp(fa_matrix_table_name(i), "causes") != 0)
			check_rows(&c, fa_matrix_table_name(i), table, date);
	}
	check_across(&c, m);
	return c.n;
}
