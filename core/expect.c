#include "expect.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "matrix_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No units: those have a blank in their key. */
static const char *const speed_key = "speed", *const preflight_key = "preflight";

/* Rows of versions that kept the time by the clock. */
static const double old_trust = 0.1;

static double decimal(const struct fa_json *table, const char *key, double otherwise)
{
	return fa_json_get_string(table, key) ? strtod(fa_json_get_string(table, key), NULL) : otherwise;
}

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

/* matrix/units-fa3.json has a row for each kind, head dim and dtype, and what variants of a kind take beside it. */
static void ship_fa3(struct fa_json *out)
{
	char *path = fa_matrix_file("units-fa3.json", NULL);
	struct fa_json *table = NULL;

	if (path && fa_json_read_file(&table, path, NULL) == 0)
		fa_json_each (row, fa_json_get(table, "rows"))
			fa_json_each (v, fa_json_get(fa_json_get(table, "variants"), fa_json_get_string(row, "kind"))) {
				char *name = fa_strf("flash_%s_hdim%s_%s%s_sm90", fa_json_get_string(row, "kind"),
				                     fa_json_get_string(row, "dims"), fa_json_get_string(row, "name"),
				                     fa_json_string(fa_json_at(v, 0)));
				struct fa_json *pair = fa_json_new_array();

				fa_json_push(pair,
				             fa_json_new_number(fa_json_number(fa_json_at(fa_json_get(row, "seconds"), 0)) *
				                                fa_json_number(fa_json_at(v, 1))));
				fa_json_push(pair, fa_json_new_number(fa_json_get_number(row, "peak_mib", 0)));
				fa_json_set(out, name, pair);
				free(name);
			}
	fa_json_free(table);
	free(path);
}

static void read_measured(struct fa_expect *e)
{
	char *mine = measured_path();

	fa_json_free(e->measured);
	e->measured = NULL;
	if (fa_json_read_file(&e->measured, mine, NULL) < 0 || fa_json_type(e->measured) != FA_JSON_OBJECT) {
		fa_json_free(e->measured);
		e->measured = fa_json_new_object();
	}
	free(mine);
}

void fa_expect_load(struct fa_expect *e)
{
	char *path = fa_matrix_file("units.json", NULL);
	struct fa_json *table = NULL;

	*e = (struct fa_expect){ .shipped = fa_json_new_object(), .learnt = fa_json_new_object() };
	if (path && fa_json_read_file(&table, path, NULL) == 0) {
		fa_json_each (row, fa_json_get(table, "rows"))
			if (fa_json_get_string(row, "kind") && fa_json_get_string(row, "dtype"))
				ship_row(e->shipped, row);
		e->ck = fa_json_copy(fa_json_get(table, "ck"));
		e->company = decimal(table, "company", 0);
		e->spread = decimal(table, "spread", 0);
		e->reference = decimal(table, "preflight", 0);
		e->preflight_arch = decimal(table, "preflight_arch", 0);
		e->weight = decimal(table, "preflight_weight", 1);
	}
	ship_fa3(e->shipped);
	read_measured(e);
	e->preflight = fa_json_number(fa_json_at(fa_json_get(e->measured, preflight_key), 0));
	fa_json_free(table);
	free(path);
}

void fa_expect_release(struct fa_expect *e)
{
	fa_json_free(e->shipped);
	fa_json_free(e->ck);
	fa_json_free(e->measured);
	fa_json_free(e->learnt);
	*e = (struct fa_expect){ 0 };
}

void fa_expect_add(struct fa_expect *e, const struct fa_json *rows)
{
	fa_json_each (row, rows)
		fa_json_set(e->shipped, fa_json_key(row), fa_json_copy(row));
}

/* Seconds now for one then, when the preflight took `then`. What differs by less than a tenth does so by chance. */
static double ratio_since(const struct fa_expect *e, double then)
{
	double ratio = then > 0 && e->preflight > 0 ? e->preflight / then : 1;

	return ratio > 0.9 && ratio < 1.1 ? 1 : pow(ratio, e->weight);
}

static struct fa_json *pair_of(double seconds, double mib)
{
	struct fa_json *pair = fa_json_new_array();

	fa_json_push(pair, fa_json_new_number(seconds));
	fa_json_push(pair, fa_json_new_number(mib));
	return pair;
}

struct fa_json *fa_expect_here(const struct fa_expect *e, const char *profile)
{
	struct fa_json *j = fa_json_new_object();
	size_t len = strlen(profile);

	fa_json_each (row, e->measured) {
		const char *key = fa_json_key(row);
		double seconds = fa_json_number(fa_json_at(row, 0));

		if (strncmp(key, profile, len) != 0 || key[len] != ' ')
			continue;
		fa_json_set(j, key + len + 1,
		            pair_of(seconds * ratio_since(e, fa_json_number(fa_json_at(row, 3))),
		                    fa_json_number(fa_json_at(row, 1))));
	}
	return j;
}

static double between(double low, double x, double high)
{
	return x < low ? low : x > high ? high : x;
}

/* What the preflight makes likely counts as much as one build: builds minutes apart on one machine differ by a fifth. */
double fa_expect_speed(const struct fa_expect *e)
{
	const struct fa_json *learnt = fa_json_get(e->measured, speed_key);
	double likely = e->preflight > 0 && e->reference > 0 ? pow(e->preflight / e->reference, e->weight) : 1;
	double speed = fa_json_number(fa_json_at(learnt, 0)) * ratio_since(e, fa_json_number(fa_json_at(learnt, 1)));
	double builds = fa_json_len(learnt) > 2 ? fa_json_number(fa_json_at(learnt, 2)) : 1;

	if (speed < 0.1 || speed > 10)
		return between(0.1, likely, 10);
	return exp((log(likely) + builds * log(speed)) / (1 + builds));
}

static double rounded(double seconds)
{
	return (double)(int64_t)(seconds * 100 + 0.5) / 100;
}

static struct fa_json *row_of(double seconds, int64_t mib, double trust, double preflight)
{
	struct fa_json *row = pair_of(rounded(seconds), (double)mib);

	fa_json_push(row, fa_json_new_number(rounded(trust)));
	fa_json_push(row, fa_json_new_number(rounded(preflight)));
	return row;
}

static void learn(struct fa_expect *e, const char *key, struct fa_json *row)
{
	fa_json_set(e->measured, key, row);
	fa_json_set(e->learnt, key, fa_json_copy(row));
}

void fa_expect_remember(struct fa_expect *e, const char *profile, const char *unit, const struct fa_expect_sample *sample)
{
	char *key = fa_strf("%s %s", profile, unit);
	const struct fa_json *was = fa_json_get(e->measured, key);
	double before = fa_json_number(fa_json_at(was, 0)) * ratio_since(e, fa_json_number(fa_json_at(was, 3)));
	double trust = between(0.01, sample->trust, 1),
	       had = fa_json_len(was) < 4 ? old_trust : fa_json_number(fa_json_at(was, 2)), work = sample->work;
	bool another = before > 0 && trust > 0.5 && (work > 1.33 * before || work < 0.75 * before);

	if (before > 0 && !another) {
		work = (had * before + trust * work) / (had + trust);
		trust = between(0, had + trust, 1);
	}
	learn(e, key, row_of(work, sample->peak_mib, trust, e->preflight));
	free(key);
}

void fa_expect_outgrown(struct fa_expect *e, const char *profile, const char *unit, int64_t peak_mib)
{
	char *key = fa_strf("%s %s", profile, unit);
	const struct fa_json *was = fa_json_get(e->measured, key);

	if ((double)peak_mib > fa_json_number(fa_json_at(was, 1)))
		learn(e, key,
		      row_of(fa_json_number(fa_json_at(was, 0)), peak_mib, fa_json_number(fa_json_at(was, 2)),
		             fa_json_number(fa_json_at(was, 3))));
	free(key);
}

/* The mean of the last builds, and how many they were. */
static struct fa_json *speed_row(const struct fa_expect *e, double now)
{
	enum { BUILDS = 4 };
	const struct fa_json *was = fa_json_get(e->measured, speed_key);
	double builds = fa_json_len(was) > 2 ? between(1, fa_json_number(fa_json_at(was, 2)), BUILDS - 1) : 0;
	double before = fa_json_number(fa_json_at(was, 0)) * ratio_since(e, fa_json_number(fa_json_at(was, 1)));
	struct fa_json *row = pair_of(before > 0 ? exp((builds * log(before) + log(now)) / (builds + 1)) : now, e->preflight);

	fa_json_push(row, fa_json_new_number(builds + 1));
	return row;
}

/* Kernels alone tell it: what a C++ file takes depends on torch and the host compiler. */
static void learn_speed(struct fa_expect *e, const char *profile, int archs)
{
	struct fa_json *here = fa_expect_here(e, profile);
	double took = 0, shipped = 0;

	fa_json_each (row, here) {
		const struct fa_json *was =
		        strstr(fa_json_key(row), "_hdim") ? fa_json_get(e->shipped, fa_json_key(row)) : NULL;

		if (!was || fa_json_number(fa_json_at(row, 0)) <= 0)
			continue;
		took += fa_json_number(fa_json_at(row, 0));
		shipped += fa_json_number(fa_json_at(was, 0));
	}
	if (shipped > 0)
		fa_json_set(e->measured, speed_key, speed_row(e, took / shipped / (archs > 1 ? archs : 1)));
	fa_json_free(here);
}

static void write_measured(const struct fa_expect *e)
{
	char *path = measured_path(), *dir = fa_path_dir(path), *text = fa_json_print(e->measured, true);

	if (fa_file_mkdirs(dir, NULL) == 0)
		fa_file_write(path, text, strlen(text), NULL);
	free(path);
	free(text);
	free(dir);
}

void fa_expect_store(struct fa_expect *e, const char *profile, int archs)
{
	read_measured(e); /* another build may have ended meanwhile */
	fa_json_each (row, e->learnt)
		fa_json_set(e->measured, fa_json_key(row), fa_json_copy(row));
	learn_speed(e, profile, archs);
	write_measured(e);
}

void fa_expect_store_preflight(double work)
{
	struct fa_expect e;

	if (work <= 0)
		return;
	fa_expect_load(&e);
	fa_json_set(e.measured, preflight_key, pair_of(rounded(work), 1));
	write_measured(&e);
	fa_expect_release(&e);
}
