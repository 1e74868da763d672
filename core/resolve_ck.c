/* What a CK build takes, by the table "ck" of matrix/units.json: kernels of each kind, the same number for each head dim and data type, half
 * of them without a feature. */
#include "json.h"
#include "resolve.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

static const struct fa_json *table_of(const struct fa_solve *s)
{
	return fa_json_get(s->kb->units_table, "ck");
}

static bool leaves(const struct fa_plan_build *b, const char *feature)
{
	return feature && b->features.n && !fa_strv_has(&b->features, feature);
}

/* Head dims compiled: each that is wanted is served by the next larger one. */
static int count_dims(const struct fa_plan_build *b, const struct fa_json *table)
{
	struct fa_strv there = FA_STRV_INIT;
	const char *list = fa_json_get_string(table, "head_dims");
	int n = 0;

	fa_strv_split(&there, list ? list : "", " ");
	for (size_t i = 0; i < there.n; i++) {
		int below = i ? atoi(there.v[i - 1]) : 0, here = atoi(there.v[i]);
		bool wanted = !b->head_dims.n;

		for (size_t k = 0; k < b->head_dims.n; k++)
			wanted = wanted || (atoi(b->head_dims.v[k]) > below && atoi(b->head_dims.v[k]) <= here);
		n += wanted;
	}
	fa_strv_release(&there);
	return n;
}

static int count_units(const struct fa_plan_build *b, const struct fa_json *table, const char *kind, const struct fa_json *row)
{
	int dtypes = b->dtypes.n ? (int)b->dtypes.n : 2;
	int n = (int)fa_json_get_number(row, "units", 0) * count_dims(b, table) * dtypes;
	struct fa_strv halves = FA_STRV_INIT;

	if ((!b->backward && !strncmp(kind, "bwd", 3)) || leaves(b, fa_json_get_string(row, "feature")))
		return 0;
	fa_strv_split(&halves, fa_json_get_string(row, "halves") ? fa_json_get_string(row, "halves") : "", " ");
	for (size_t i = 0; i < halves.n; i++)
		n /= leaves(b, halves.v[i]) ? 2 : 1;
	fa_strv_release(&halves);
	return n;
}

static struct fa_ck_units pair_of(const struct fa_json *pair, int units)
{
	return (struct fa_ck_units){ .units = units,
		                     .seconds = fa_json_number(fa_json_at(pair, 0)),
		                     .peak_mib = (int)fa_json_number(fa_json_at(pair, 1)) };
}

size_t fa_solve_ck_units(const struct fa_solve *s, const struct fa_plan_build *b, struct fa_ck_units *out, size_t room)
{
	const struct fa_json *table = table_of(s);
	size_t n = 0;

	fa_json_each (row, fa_json_get(table, "kinds")) {
		int units = count_units(b, table, fa_json_key(row), row);

		if (units > 0 && n < room)
			out[n++] = pair_of(fa_json_get(row, "expect"), units);
	}
	if (n < room && table)
		out[n++] =
		        pair_of(fa_json_get(fa_json_get(table, "others"), "*"), (int)fa_json_get_number(table, "n_others", 0));
	return n;
}

int fa_solve_ck_peak(const struct fa_solve *s)
{
	int peak = 0;

	fa_json_each (row, fa_json_get(table_of(s), "kinds")) {
		int mib = (int)fa_json_number(fa_json_at(fa_json_get(row, "expect"), 1));

		peak = mib > peak ? mib : peak;
	}
	return peak;
}

int fa_solve_ck_all(const struct fa_solve *s)
{
	const char *version = s->found.version;
	int n = 0;

	fa_json_each (row, fa_json_get(table_of(s), "all"))
		if (version && fa_version_compare(fa_json_string(fa_json_at(row, 0)), version) <= 0)
			n = (int)fa_json_number(fa_json_at(row, 1));
	return n;
}

void fa_solve_ck_forecast(const struct fa_solve *s, struct fa_plan_build *b)
{
	struct fa_ck_units v[16];
	size_t n = fa_solve_ck_units(s, b, v, sizeof(v) / sizeof(*v));
	int all = fa_solve_ck_all(s), units = 0, archs = b->archs.n ? (int)b->archs.n : 1;
	double seconds = 0, longest = 0;

	for (size_t i = 0; i < n; i++) {
		units += v[i].units;
		seconds += v[i].units * v[i].seconds;
		longest = v[i].seconds > longest ? v[i].seconds : longest;
	}
	if (!units || b->jobs < 1)
		return;
	if (!strcmp(b->profile, "full") && all > units) /* with those that no call asks for */
		seconds = seconds / units * all;
	b->wheel_mb = (int)((!strcmp(b->profile, "full") && all ? all : units) * archs *
	                            fa_json_get_number(table_of(s), "wheel_mb", 0) +
	                    0.99);
	b->estimate_s = (int)(archs * (seconds / b->jobs > longest ? seconds / b->jobs : longest));
}
