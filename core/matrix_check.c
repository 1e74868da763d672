/* `matrix check`: what is wrong with the rows, one finding a line. */
#include "buf.h"
#include "causes.h"
#include "json.h"
#include "kb.h"
#include "matrix.h"

#include <stdlib.h>
#include <string.h>

static const char *const TABLES[] = { "rules",
	                              "ids",
	                              "torch",
	                              "cuda",
	                              "archs",
	                              "gpus",
	                              "lines",
	                              "units",
	                              "sources",
	                              "settings",
	                              "flash-attn",
	                              "wheels/official",
	                              "wheels/community",
	                              "wheels/pypi" };

static const char *key_of(const struct fa_json *row)
{
	static const char *const KEYS[] = { "id", "torch", "cuda", "arch", "version", "name", "line", "kind" };

	for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++)
		if (fa_json_get_string(row, KEYS[i]))
			return fa_json_get_string(row, KEYS[i]);
	return "?";
}

static void finding(struct fa_buf *out, int *n, const char *table, const char *row, const char *what, const char *detail)
{
	fa_buf_addf(out, "matrix/%s.json: row \"%s\": %s%s\n", table, row, what, detail);
	++*n;
}

/* Rows of lists (the community's) stand for their table, which names its sources itself. */
static void check_rows(struct fa_buf *out, int *n, const char *name, const struct fa_json *table)
{
	if (!fa_json_get_string(table, "checked"))
		finding(out, n, name, "-", "no date \"checked\"", "");
	fa_json_each (row, fa_json_get(table, "rows")) {
		if (fa_json_type(row) == FA_JSON_ARRAY && !fa_json_get(table, "sources"))
			finding(out, n, name, "-", "no \"sources\"", "");
		if (fa_json_type(row) == FA_JSON_OBJECT && !fa_json_get_string(row, "source"))
			finding(out, n, name, key_of(row), "no \"source\"", "");
	}
}

static void check_rule(struct fa_buf *out, int *n, const char *table, const char *row, const char *text)
{
	struct fa_err why = FA_ERR_INIT;
	struct fa_rule r;

	if (!text)
		return;
	if (fa_rule_compile(&r, text, fa_name_find_word, NULL, &why) < 0)
		finding(out, n, table, row, why.text, "");
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
static void check_shadowed(struct fa_buf *out, int *n, const struct fa_json *rows)
{
	fa_json_each (a, rows)
		for (const struct fa_json *b = fa_json_next(a); b; b = fa_json_next(b))
			if (same(a, b, "on") && same(a, b, "when") && same(a, b, "need"))
				finding(out, n, "rules", key_of(b), "is shadowed by row ", key_of(a));
}

static void check_rules(struct fa_buf *out, int *n, const struct fa_json *rules, const struct fa_json *ids)
{
	fa_json_each (row, fa_json_get(rules, "rows")) {
		const char *action = fa_json_get_string(row, "action");

		check_rule(out, n, "rules", key_of(row), fa_json_get_string(row, "when"));
		check_rule(out, n, "rules", key_of(row), fa_json_get_string(row, "need"));
		if (!fa_json_get_string(row, "need"))
			finding(out, n, "rules", key_of(row), "no \"need\"", "");
		if (action && !has_id(ids, action))
			finding(out, n, "rules", key_of(row), "its action is in no row of ids: ", action);
	}
	check_shadowed(out, n, fa_json_get(rules, "rows"));
}

static void check_ids(struct fa_buf *out, int *n, const struct fa_json *ids)
{
	fa_json_each (row, fa_json_get(ids, "rows")) {
		check_rule(out, n, "ids", key_of(row), fa_json_get_string(row, "when"));
		if (!fa_json_get_string(row, "meaning"))
			finding(out, n, "ids", key_of(row), "no \"meaning\"", "");
	}
	fa_json_each (a, fa_json_get(ids, "rows"))
		for (const struct fa_json *b = fa_json_next(a); b; b = fa_json_next(b))
			if (same(a, b, "id"))
				finding(out, n, "ids", key_of(b), "stands twice", "");
}

/* Variables that a recipe sets and that no setup.py of ours reads would do nothing. */
static void check_settings(struct fa_buf *out, int *n, const struct fa_json *settings, const struct fa_json *releases)
{
	static const char *const OTHERS = "CUDA_HOME NVCC_APPEND_FLAGS TORCH_CUDA_ARCH_LIST";

	fa_json_each (row, fa_json_get(settings, "rows")) {
		const char *set = fa_json_get_string(row, "set");
		char *name = set ? fa_strndup(set, strcspn(set, "=")) : fa_strdup("");
		bool read = fa_words_has(OTHERS, name);

		check_rule(out, n, "../recipes/settings", name, fa_json_get_string(row, "when"));
		fa_json_each (profile, fa_json_get(releases, "profiles"))
			read = read ||
			       (fa_json_get_string(profile, "env") && fa_words_has(fa_json_get_string(profile, "env"), name));
		if (!read)
			finding(out, n, "../recipes/settings", name, "no setup.py reads this variable", "");
		free(name);
	}
}

/* "${name}" must be a name that diagnose knows. */
static void check_blanks(struct fa_buf *out, int *n, const struct fa_causes *c, const char *id, const char *text)
{
	for (const char *p = text ? strstr(text, "${") : NULL; p; p = strstr(p + 2, "${")) {
		size_t len = strcspn(p + 2, "}");

		if (fa_causes_name(c, p + 2, len) < 0)
			finding(out, n, "causes", id, "nothing is called as it says in ", p);
	}
}

static void check_cause(struct fa_buf *out, int *n, const struct fa_causes *c, const struct fa_cause_row *row)
{
	if (!row->title)
		finding(out, n, "causes", row->id, "no \"title\"", "");
	if (!row->because)
		finding(out, n, "causes", row->id, "no \"because\"", "");
	if (!row->source)
		finding(out, n, "causes", row->id, "no \"source\"", "");
	if (!row->n_rules && fa_causes_signal(c, row->id) < 0)
		finding(out, n, "causes", row->id, "neither a rule nor a signal of that name", "");
	check_blanks(out, n, c, row->id, row->title);
	check_blanks(out, n, c, row->id, row->because);
	for (size_t i = 0; i < row->n_repairs; i++)
		check_blanks(out, n, c, row->id, row->repairs[i].text);
	for (const struct fa_cause_row *other = c->rows; other < row; other++)
		if (!strcmp(other->id, row->id))
			finding(out, n, "causes", row->id, "stands twice", "");
}

static void check_signals(struct fa_buf *out, int *n, struct fa_causes *c)
{
	for (size_t i = 0; i < c->n_signals; i++) {
		struct fa_signal *s = &c->signals[i];
		char *found;

		if (s->kind == FA_SIGNAL_NOISE && !s->meaning)
			finding(out, n, "causes", s->id, "noise without \"meaning\"", "");
		fa_pattern_find(&s->pattern, "", &found);
		free(found);
		if (s->pattern.text && !s->pattern.compiled)
			finding(out, n, "causes", s->id, "its pattern is no extended regular expression: ", s->pattern.text);
	}
}

/* What diagnose knows; a table that does not load is one finding. */
static void check_causes(struct fa_buf *out, int *n, const struct fa_json *table)
{
	struct fa_err why = FA_ERR_INIT;
	struct fa_causes c;

	if (!fa_json_get_string(table, "checked"))
		finding(out, n, "causes", "-", "no date \"checked\"", "");
	if (fa_causes_load(&c, table, &why) < 0) {
		finding(out, n, "causes", "-", why.text, "");
		return;
	}
	check_signals(out, n, &c);
	for (size_t i = 0; i < c.n_rows; i++)
		check_cause(out, n, &c, &c.rows[i]);
	fa_causes_release(&c);
}

int fa_matrix_check(struct fa_matrix *m, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *settings = fa_matrix_recipe(m, "settings", err), *causes = fa_matrix_table(m, "causes", err);
	int n = 0;

	if (!settings || !causes)
		return -1;
	for (size_t i = 0; i < sizeof(TABLES) / sizeof(TABLES[0]); i++) {
		const struct fa_json *table = fa_matrix_table(m, TABLES[i], err);

		if (!table)
			return -1;
		check_rows(out, &n, TABLES[i], table);
	}
	check_rules(out, &n, fa_matrix_table(m, "rules", err), fa_matrix_table(m, "ids", err));
	check_ids(out, &n, fa_matrix_table(m, "ids", err));
	check_settings(out, &n, settings, fa_matrix_table(m, "flash-attn", err));
	check_causes(out, &n, causes);
	return n;
}
