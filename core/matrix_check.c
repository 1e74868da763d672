/* `matrix check`: what is wrong with the rows, one finding a line. */
#include "buf.h"
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

int fa_matrix_check(struct fa_matrix *m, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *settings = fa_matrix_recipe(m, "settings", err);
	int n = 0;

	if (!settings)
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
	return n;
}
