#include "expect.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "matrix_data.h"

#include <stdlib.h>
#include <string.h>

static const char *const speed_key = "speed"; /* no unit: those have a blank in their key */

static char *measured_path(void)
{
	char *state = fa_dir_state(), *path = fa_path_join(state, "units.json");

	free(state);
	return path;
}

/* matrix/units.json has a row for each kind, head dim and dtype with the seconds of both units, not causal and causal. */
static void ship_row(struct fa_json *out, const struct fa_json *row)
{
	static const char *const causal[] = { "", "_causal" };
	const struct fa_json *seconds = fa_json_get(row, "seconds");

	for (size_t i = 0; i < 2 && i < fa_json_len(seconds); i++) {
		char *name = fa_strf("flash_%s_hdim%.0f_%s%s_sm80", fa_json_get_string(row, "kind"),
		                     fa_json_get_number(row, "head_dim", 0), fa_json_get_string(row, "dtype"), causal[i]);
		struct fa_json *pair = fa_json_new_array();

		fa_json_push(pair, fa_json_new_number(fa_json_number(fa_json_at(seconds, i))));
		fa_json_push(pair, fa_json_new_number(fa_json_get_number(row, "peak_mib", 0)));
		fa_json_set(out, name, pair);
		free(name);
	}
}

void fa_expect_load(struct fa_expect *e)
{
	char *path = fa_matrix_file("units.json", NULL), *mine = measured_path();
	struct fa_json *table = NULL;

	*e = (struct fa_expect){ .shipped = fa_json_new_object() };
	if (path && fa_json_read_file(&table, path, NULL) == 0) {
		fa_json_each (row, fa_json_get(table, "rows"))
			if (fa_json_get_string(row, "kind") && fa_json_get_string(row, "dtype"))
				ship_row(e->shipped, row);
		e->company = fa_json_get_string(table, "company") ? strtod(fa_json_get_string(table, "company"), NULL) : 0;
	}
	if (fa_json_read_file(&e->measured, mine, NULL) < 0 || fa_json_type(e->measured) != FA_JSON_OBJECT) {
		fa_json_free(e->measured);
		e->measured = fa_json_new_object();
	}
	fa_json_free(table);
	free(path);
	free(mine);
}

void fa_expect_release(struct fa_expect *e)
{
	fa_json_free(e->shipped);
	fa_json_free(e->measured);
	*e = (struct fa_expect){ 0 };
}

void fa_expect_add(struct fa_expect *e, const struct fa_json *rows)
{
	fa_json_each (row, rows)
		fa_json_set(e->shipped, fa_json_key(row), fa_json_copy(row));
}

struct fa_json *fa_expect_here(const struct fa_expect *e, const char *profile)
{
	struct fa_json *j = fa_json_new_object();
	size_t len = strlen(profile);

	fa_json_each (row, e->measured) {
		const char *key = fa_json_key(row);

		if (!strncmp(key, profile, len) && key[len] == ' ')
			fa_json_set(j, key + len + 1, fa_json_copy(row));
	}
	return j;
}

double fa_expect_speed(const struct fa_expect *e)
{
	double speed = fa_json_get_number(e->measured, speed_key, 1);

	return speed > 0.1 && speed < 10 ? speed : 1;
}

static double rounded(double seconds)
{
	return (double)(int64_t)(seconds * 10 + 0.5) / 10;
}

void fa_expect_remember(struct fa_expect *e, const char *profile, const char *unit, double seconds, int64_t peak_mib)
{
	struct fa_json *row = fa_json_new_array();
	char *key = fa_strf("%s %s", profile, unit);

	fa_json_push(row, fa_json_new_number(rounded(seconds)));
	fa_json_push(row, fa_json_new_number((double)peak_mib));
	fa_json_set(e->measured, key, row);
	free(key);
}

/* Kernels alone tell it: what a C++ file takes depends on torch and the host compiler. */
static void learn_speed(struct fa_expect *e, const char *profile, int archs)
{
	struct fa_json *here = fa_expect_here(e, profile);
	double took = 0, shipped = 0;

	fa_json_each (row, here) {
		const struct fa_json *was =
		        strstr(fa_json_key(row), "_hdim") ? fa_json_get(e->shipped, fa_json_key(row)) : NULL;

		if (!was)
			continue;
		took += fa_json_number(fa_json_at(row, 0));
		shipped += fa_json_number(fa_json_at(was, 0));
	}
	if (shipped > 0)
		fa_json_set_number(e->measured, speed_key, took / shipped / (archs > 1 ? archs : 1));
	fa_json_free(here);
}

void fa_expect_store(struct fa_expect *e, const char *profile, int archs)
{
	char *path = measured_path(), *dir = fa_path_dir(path), *text;

	learn_speed(e, profile, archs);
	text = fa_json_print(e->measured, true);
	if (fa_file_mkdirs(dir, NULL) == 0)
		fa_file_write(path, text, strlen(text), NULL);
	free(path);
	free(text);
	free(dir);
}
