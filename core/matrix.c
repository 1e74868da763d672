#include "matrix.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "kb.h"
#include "matrix_data.h"
#include "policy.h"
#include "strv.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMA "fainstall.matrix/1"

struct table {
	char *name;
	struct fa_json *json;
};

struct fa_matrix {
	struct fa_matrix_data data; /* which knowledge this is; dir is its folder */
	char *recipes, *user;
	struct fa_strv policies; /* paths */
	struct fa_strv replaced; /* what rows of the user do to shipped ones, a sentence each */
	struct table *tables;    /* recipes too: their names begin with "recipes/" */
	size_t n_tables;
	struct fa_kb *kb;
};

int fa_matrix_open_at(struct fa_matrix **out, const char *matrix, const char *recipes, const char *user, struct fa_err *err)
{
	*out = NULL;
	if (!fa_file_is_dir(matrix))
		return fa_err_set(err, FA_USAGE, "%s: no such folder", matrix);
	*out = fa_calloc(1, sizeof(**out));
	(*out)->data = (struct fa_matrix_data){ .dir = fa_strdup(matrix), .date = fa_matrix_date(matrix, "about") };
	(*out)->recipes = fa_strdup(recipes);
	(*out)->user = fa_strdup(user);
	return 0;
}

int fa_matrix_open(struct fa_matrix **out, struct fa_err *err)
{
	struct fa_matrix_data data = { 0 };
	char *recipes = fa_dir_own("recipes", err), *config = fa_dir_config(), *user = fa_path_join(config, "matrix");
	int rc = -1;

	*out = NULL;
	if (recipes && fa_matrix_data_find(&data, err) == 0)
		rc = fa_matrix_open_at(out, data.dir, recipes, user, err);
	if (rc == 0) {
		fa_matrix_data_release(&(*out)->data);
		(*out)->data = data;
		fa_policy_paths(&(*out)->policies);
	} else {
		fa_matrix_data_release(&data);
	}
	free(recipes);
	free(config);
	free(user);
	return rc;
}

const struct fa_matrix_data *fa_matrix_data(const struct fa_matrix *m)
{
	return &m->data;
}

struct fa_strv *fa_matrix_policies(struct fa_matrix *m)
{
	return &m->policies;
}

const struct fa_strv *fa_matrix_replaced(struct fa_matrix *m)
{
	return &m->replaced;
}

void fa_matrix_close(struct fa_matrix *m)
{
	if (!m)
		return;
	fa_kb_free(m->kb);
	for (size_t i = 0; i < m->n_tables; i++) {
		free(m->tables[i].name);
		fa_json_free(m->tables[i].json);
	}
	free(m->tables);
	fa_matrix_data_release(&m->data);
	fa_strv_release(&m->replaced);
	fa_strv_release(&m->policies);
	free(m->recipes);
	free(m->user);
	free(m);
}

static const struct fa_json *find(const struct fa_matrix *m, const char *name)
{
	for (size_t i = 0; i < m->n_tables; i++)
		if (!strcmp(m->tables[i].name, name))
			return m->tables[i].json;
	return NULL;
}

/* "fainstall.matrix/1" of the tables, "fainstall.causes/1" and the like of those that are shaped otherwise. */
static int check_head(const struct fa_json *j, const char *path, struct fa_err *err)
{
	const char *schema = fa_json_get_string(j, "schema"), *slash = schema ? strrchr(schema, '/') : NULL;

	if (!slash || strncmp(schema, "fainstall.", 10) != 0)
		return fa_err_set(err, FA_USAGE, "%s: schema %s expected, found \"%s\"", path, SCHEMA, schema ? schema : "");
	if (strcmp(slash, "/1") != 0) {
		fa_err_set(err, FA_USAGE, "%s: schema %s is not known here (known: %s)", path, schema, SCHEMA);
		return fa_err_next(err, "Take a newer fainstall, or a matrix made for this one");
	}
	if (!strcmp(schema, SCHEMA) && fa_json_type(fa_json_get(j, "rows")) != FA_JSON_ARRAY)
		return fa_err_set(err, FA_USAGE, "%s: no list \"rows\"", path);
	return 0;
}

static int read_table(struct fa_json **out, const char *dir, const char *name, struct fa_err *err)
{
	char *file = fa_strf("%s.json", name), *path = fa_path_join(dir, file);
	int rc = -1;

	if (fa_json_read_file(out, path, err) == 0) {
		rc = check_head(*out, path, err);
		if (rc < 0) {
			fa_json_free(*out);
			*out = NULL;
		}
	}
	free(file);
	free(path);
	return rc;
}

static bool same_value(const struct fa_json *a, const struct fa_json *b)
{
	char *x = a ? fa_json_print(a, false) : NULL, *y = b ? fa_json_print(b, false) : NULL;
	bool same = (!x && !y) || (x && y && !strcmp(x, y));

	free(x);
	free(y);
	return same;
}

/* Do both rows have the same values in these members? */
static bool same_row(const struct fa_json *a, const struct fa_json *b, const struct fa_strv *key)
{
	if (!key->n || !fa_json_get(a, key->v[0]))
		return false;
	for (size_t i = 0; i < key->n; i++)
		if (!same_value(fa_json_get(a, key->v[i]), fa_json_get(b, key->v[i])))
			return false;
	return true;
}

static const char *key_of_table(const char *name)
{
	for (int i = 0; fa_matrix_table_name(i); i++)
		if (!strcmp(fa_matrix_table_name(i), name))
			return fa_matrix_table_key(i);
	return NULL;
}

static char *row_name(const struct fa_json *row, const struct fa_strv *key)
{
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < key->n; i++)
		if (fa_json_get_string(row, key->v[i]))
			fa_buf_addf(&b, "%s%s", b.len ? " " : "", fa_json_get_string(row, key->v[i]));
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

/* The rows of the user come first, marked with their file; shipped rows of the same key are left out. */
static void override(struct fa_matrix *m, struct fa_json *shipped, const struct fa_json *user, const char *name,
                     const char *path)
{
	const char *key_words = key_of_table(name);
	struct fa_json *rows = fa_json_new_array(), *copy;
	struct fa_strv key = FA_STRV_INIT;

	fa_strv_split(&key, key_words ? key_words : "", " ");
	fa_json_each (u, fa_json_get(user, "rows")) {
		copy = fa_json_copy(u);
		if (fa_json_type(copy) == FA_JSON_OBJECT)
			fa_json_set_string(copy, FA_ROW_FILE, path);
		fa_json_push(rows, copy);
	}
	fa_json_each (s, fa_json_get(shipped, "rows")) {
		bool replaced = false;

		fa_json_each (u, fa_json_get(user, "rows"))
			replaced = replaced || same_row(s, u, &key);
		if (replaced) {
			char *row = row_name(s, &key);

			fa_strv_pushf(&m->replaced, "%s: row \"%s\" replaces that of %s/%s.json", path, row, m->data.dir, name);
			free(row);
		} else {
			fa_json_push(rows, fa_json_copy(s));
		}
	}
	fa_strv_release(&key);
	fa_json_set(shipped, "rows", rows);
}

static int add_user_rows(struct fa_matrix *m, struct fa_json *shipped, const char *name, struct fa_err *err)
{
	char *file = fa_strf("%s.json", name), *path = m->user ? fa_path_join(m->user, file) : NULL;
	struct fa_json *user = NULL;
	int rc = 0;

	if (path && fa_file_exists(path)) {
		rc = read_table(&user, m->user, name, err);
		if (rc == 0)
			override(m, shipped, user, name, path);
		else
			fa_err_next(err, "Repair or remove that file; the rows that come with fainstall are whole");
		fa_json_free(user);
	}
	free(file);
	free(path);
	return rc;
}

static const struct fa_json *keep(struct fa_matrix *m, const char *name, struct fa_json *j)
{
	m->tables = fa_realloc(m->tables, m->n_tables + 1, sizeof(*m->tables));
	m->tables[m->n_tables++] = (struct table){ fa_strdup(name), j };
	return j;
}

const struct fa_json *fa_matrix_table(struct fa_matrix *m, const char *name, struct fa_err *err)
{
	const struct fa_json *known = find(m, name);
	struct fa_json *j = NULL;

	if (known)
		return known;
	if (read_table(&j, m->data.dir, name, err) < 0) {
		if (m->data.from)
			fa_err_next(err, "`fainstall matrix update --shipped` goes back to what came with fainstall");
		return NULL;
	}
	if (add_user_rows(m, j, name, err) < 0) {
		fa_json_free(j);
		return NULL;
	}
	return keep(m, name, j);
}

const struct fa_json *fa_matrix_recipe(struct fa_matrix *m, const char *name, struct fa_err *err)
{
	char *key = fa_strf("recipes/%s", name), *file = fa_strf("%s.json", name), *path = NULL;
	const struct fa_json *known = find(m, key);
	struct fa_json *j = NULL;

	if (!known && m->recipes) {
		path = fa_path_join(m->recipes, file);
		if (fa_json_read_file(&j, path, err) == 0)
			known = keep(m, key, j);
	} else if (!known) {
		fa_err_set(err, FA_INTERNAL, "no folder of recipes was named");
	}
	free(key);
	free(file);
	free(path);
	return known;
}

int fa_matrix_kb(struct fa_kb **out, struct fa_matrix *m, struct fa_err *err)
{
	if (!m->kb && fa_kb_make(&m->kb, m, err) < 0)
		return -1;
	*out = m->kb;
	return 0;
}

int fa_matrix_add_source(struct fa_matrix *m, const char *name, const char *base, const char *listing, struct fa_err *err)
{
	struct fa_kb *kb;

	return fa_matrix_kb(&kb, m, err) < 0 ? -1 : fa_kb_add_listing(kb, name, base, listing);
}
