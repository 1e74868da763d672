#include "matrix_data.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "sha256.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name, *key, *what;
} TABLES[] = {
#define TABLE(name, key, what) { name, key, what },
#include "table.def"
#undef TABLE
};

enum { N_TABLES = sizeof(TABLES) / sizeof(TABLES[0]) };

const char *fa_matrix_table_name(int i)
{
	return i >= 0 && i < N_TABLES ? TABLES[i].name : NULL;
}

const char *fa_matrix_table_key(int i)
{
	return i >= 0 && i < N_TABLES && *TABLES[i].key ? TABLES[i].key : NULL;
}

const char *fa_matrix_table_what(int i)
{
	return i >= 0 && i < N_TABLES ? TABLES[i].what : NULL;
}

char *fa_matrix_updates(void)
{
	char *data = fa_dir_data(), *path = fa_path_join(data, "matrix");

	free(data);
	return path;
}

char *fa_matrix_date(const char *dir, const char *table)
{
	char *file = fa_strf("%s/%s.json", dir, table);
	struct fa_json *j = NULL;
	const char *date = fa_json_read_file(&j, file, NULL) == 0 ? fa_json_get_string(j, "checked") : NULL;
	char *out = fa_strdup(date ? date : "");

	fa_json_free(j);
	free(file);
	return out;
}

void fa_matrix_data_release(struct fa_matrix_data *d)
{
	free(d->dir);
	free(d->date);
	free(d->from);
	free(d->proof);
	free(d->notice);
	*d = (struct fa_matrix_data){ 0 };
}

/* The folder that "current" leads to, read once: an update in between does not mix two of them. NULL: none. */
static char *updated_dir(void)
{
	char *updates = fa_matrix_updates(), *link = fa_path_join(updates, "current"), target[PATH_MAX], *dir = NULL;
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n > 0) {
		target[n] = '\0';
		dir = fa_path_join(updates, target);
	}
	free(updates);
	free(link);
	return dir;
}

/* Every file of the update is there as it was taken. */
static bool is_whole(const char *dir, const struct fa_json *files, char **notice)
{
	char hex[FA_SHA256_HEX];

	fa_json_each (file, files) {
		char *path = fa_path_join(dir, fa_json_key(file));
		bool good =
		        fa_sha256_file(hex, path, NULL) == 0 && !strcmp(hex, fa_json_string(file) ? fa_json_string(file) : "");

		if (!good)
			*notice = fa_strf("%s is not as it was taken; what came with fainstall is used", path);
		free(path);
		if (!good)
			return false;
	}
	for (int i = 0; i < N_TABLES; i++) {
		char *name = fa_strf("%s.json", TABLES[i].name);
		bool listed = fa_json_get(files, name) != NULL;

		if (!listed)
			*notice = fa_strf("%s: the table %s is missing; what came with fainstall is used", dir, TABLES[i].name);
		free(name);
		if (!listed)
			return false;
	}
	return true;
}

static void try_updated(struct fa_matrix_data *d, char *dir)
{
	char *path = fa_path_join(dir, "origin.json"), *date = NULL;
	struct fa_json *origin = NULL;

	if (fa_json_read_file(&origin, path, NULL) < 0)
		d->notice = fa_strf("%s cannot be read; what came with fainstall is used", path);
	else if (is_whole(dir, fa_json_get(origin, "files"), &d->notice))
		date = fa_matrix_date(dir, "about");
	if (date && strcmp(date, d->date) < 0)
		d->notice =
		        fa_strf("the update of %s is older than what came with fainstall (%s), which is used", date, d->date);
	if (date && strcmp(date, d->date) >= 0) {
		free(d->dir);
		free(d->date);
		d->dir = fa_strdup(dir);
		d->date = date;
		date = NULL;
		d->from = fa_strdup(fa_json_get_string(origin, "from"));
		d->proof = fa_strdup(fa_json_get_string(origin, "proof"));
	}
	free(date);
	free(path);
	fa_json_free(origin);
}

int fa_matrix_data_find(struct fa_matrix_data *out, struct fa_err *err)
{
	char *updated;

	*out = (struct fa_matrix_data){ .dir = fa_dir_own("matrix", err) };
	if (!out->dir)
		return -1;
	out->date = fa_matrix_date(out->dir, "about");
	updated = updated_dir();
	if (updated)
		try_updated(out, updated);
	free(updated);
	return 0;
}

char *fa_matrix_file(const char *name, struct fa_err *err)
{
	static struct fa_matrix_data found;
	char *path;

	if (!found.dir && fa_matrix_data_find(&found, err) < 0)
		return NULL;
	path = fa_path_join(found.dir, name);
	if (fa_file_exists(path))
		return path;
	fa_err_set(err, FA_INTERNAL, "%s is missing", path);
	free(path);
	return NULL;
}
