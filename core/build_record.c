#include "build_record.h"

#include "expect.h"
#include "json.h"

static double tenth(double seconds)
{
	return (double)(int64_t)(seconds * 10 + 0.5) / 10;
}

void fa_build_record_estimate(struct fa_json *estimates, double at, double left)
{
	size_t n = fa_json_len(estimates);
	double last = n ? fa_json_number(fa_json_at(fa_json_at(estimates, n - 1), 0)) : -1;
	struct fa_json *pair;

	if (left < 0 || (n && at - last < (last > 200 ? last / 100 : 2)))
		return;
	pair = fa_json_new_array();
	fa_json_push(pair, fa_json_new_number(tenth(at)));
	fa_json_push(pair, fa_json_new_number(tenth(left)));
	fa_json_push(estimates, pair);
}

static struct fa_json *unit_row(const struct fa_unit *u, double began)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_string(j, "unit", u->name);
	if (u->began >= 0)
		fa_json_set_number(j, "begin", tenth(u->began - began));
	if (u->state == FA_UNIT_DONE && u->took > 0) {
		fa_json_set_number(j, "seconds", tenth(u->took));
		fa_json_set_number(j, "cpu", tenth(u->cpu));
		if (u->busy >= 0)
			fa_json_set_number(j, "busy", tenth(u->busy));
		fa_json_set_number(j, "peak_mib", (double)u->peak_mib);
	} else if (u->state == FA_UNIT_DONE) {
		fa_json_set_bool(j, "kept", true);
	}
	fa_json_set_number(j, "expect_s", tenth(u->expect_s));
	fa_json_set_number(j, "expect_mib", (double)u->expect_mib);
	return j;
}

struct fa_json *fa_build_record(const struct fa_units *units, const struct fa_plan_build *plan, const char *version,
                                const char *profile, double began, double now, const struct fa_expect *expect,
                                const struct fa_json *estimates)
{
	struct fa_json *j = fa_json_new_object(), *rows = fa_json_new_array();

	fa_json_set_string(j, "schema", "fainstall.build/1");
	fa_json_set_string(j, "flash_attn", version);
	fa_json_set_string(j, "profile", profile);
	fa_json_set(j, "archs", fa_json_new_strv(&plan->archs));
	fa_json_set_number(j, "cores", units->host.cores);
	fa_json_set_number(j, "places", units->host.places);
	fa_json_set_number(j, "memory_mib", (double)units->host.memory_mib);
	fa_json_set_number(j, "seconds", tenth(now - began));
	if (expect->preflight > 0)
		fa_json_set_number(j, "preflight", expect->preflight);
	fa_json_set_number(j, "speed", fa_expect_speed(expect));
	for (size_t i = 0; i < units->n; i++)
		fa_json_push(rows, unit_row(&units->v[i], began));
	fa_json_set(j, "units", rows);
	fa_json_set(j, "estimates", fa_json_copy(estimates));
	return j;
}
