#include "matrix.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "kb.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMA "fainstall.matrix/1"

struct table {
	char *name;
	struct fa_json *json;
};

struct fa_matrix {
	char *matrix, *recipes, *user;
	struct table *tables; /* recipes too: their names begin with "recipes/" */
	size_t n_tables;
	struct fa_kb *kb;
};

int fa_matrix_open_at(struct fa_matrix **out, const char *matrix, const char *recipes, const char *user, struct fa_err *err)
{
	*out = NULL;
	if (!fa_file_is_dir(matrix))
		return fa_err_set(err, FA_USAGE, "%s: no such folder", matrix);
	*out = fa_calloc(1, sizeof(**out));
	(*out)->matrix = fa_strdup(matrix);
	(*out)->recipes = fa_strdup(recipes);
	(*out)->user = fa_strdup(user);
	return 0;
}

int fa_matrix_open(struct fa_matrix **out, struct fa_err *err)
{
	char *matrix = fa_dir_own("matrix", err), *recipes = matrix ? fa_dir_own("recipes", err) : NULL;
	char *config = fa_dir_config(), *user = fa_path_join(config, "matrix");
	int rc = -1;

	*out = NULL;
	if (matrix && recipes)
		rc = fa_matrix_open_at(out, matrix, recipes, user, err);
	free(matrix);
	free(recipes);
	free(config);
	free(user);
	return rc;
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
	free(m->matrix);
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

/* The member by which a user's row replaces a shipped one. */
static const char *const KEYS[] = { "id", "torch", "cuda", "arch", "version", "name", "line", NULL };

static bool same_row(const struct fa_json *a, const struct fa_json *b)
{
	for (int i = 0; KEYS[i]; i++) {
		const char *x = fa_json_get_string(a, KEYS[i]), *y = fa_json_get_string(b, KEYS[i]);

		if (x || y)
			return x && y && !strcmp(x, y);
	}
	return false;
}

/* The rows of the user come first; shipped rows of the same key are left out. */
static void override(struct fa_json *shipped, const struct fa_json *user)
{
	struct fa_json *rows = fa_json_new_array();

	fa_json_each (u, fa_json_get(user, "rows"))
		fa_json_push(rows, fa_json_copy(u));
	fa_json_each (s, fa_json_get(shipped, "rows")) {
		bool replaced = false;

		fa_json_each (u, fa_json_get(user, "rows"))
			replaced = replaced || same_row(s, u);
		if (!replaced)
			fa_json_push(rows, fa_json_copy(s));
	}
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
			override(shipped, user);
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
	if (read_table(&j, m->matrix, name, err) < 0)
		return NULL;
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
