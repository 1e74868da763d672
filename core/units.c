#include "units.h"

#include "buf.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_S = 100, USUAL_MIB = 4000, USUAL_ENTRY_S = 60, USUAL_ENTRY_MIB = 1300, USUAL_GLUE_S = 8, USUAL_GLUE_MIB = 600 };

/* A part reads all headers again and repeats some kernels. */
static const double part_cost = 1.3;

static const struct fa_json *find(const struct fa_json *table, const char *name, size_t len)
{
	char *key = fa_strndup(name, len);
	const struct fa_json *row = fa_json_get(table, key);

	free(key);
	return row;
}

static size_t parts_of(const struct fa_strv *names, const char *name, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < names->n; i++)
		n += !strncmp(names->v[i], name, len) && (names->v[i][len] == '.' || !names->v[i][len]);
	return n;
}

static void guess(struct fa_unit *u)
{
	bool entry = !strcmp(u->name, "flash_api"), glue = !strcmp(u->name, "profile");

	u->expect_s = entry ? USUAL_ENTRY_S : glue ? USUAL_GLUE_S : USUAL_S;
	u->expect_mib = entry ? USUAL_ENTRY_MIB : glue ? USUAL_GLUE_MIB : USUAL_MIB;
}

static void expect(struct fa_unit *u, const struct fa_strv *names, const struct fa_json *shipped,
                   const struct fa_json *measured)
{
	size_t len = strlen(u->name), whole = strcspn(u->name, "."), parts;
	const struct fa_json *row = find(measured, u->name, len);
	double share = 1;

	guess(u);
	if (!row)
		row = find(shipped, u->name, len);
	if (!row && whole < len && (row = find(shipped, u->name, whole))) {
		parts = parts_of(names, u->name, whole);
		share = parts > 1 ? part_cost / (double)parts : 1;
	}
	if (!row || fa_json_len(row) != 2)
		return;
	u->expect_s = fa_json_number(fa_json_at(row, 0)) * share;
	u->expect_mib = (int64_t)fa_json_number(fa_json_at(row, 1));
}

void fa_units_set(struct fa_units *u, const struct fa_strv *names, const struct fa_json *shipped,
                  const struct fa_json *measured)
{
	fa_units_release(u);
	u->v = fa_calloc(names->n ? names->n : 1, sizeof(*u->v));
	u->n = names->n;
	u->speed = 1;
	for (size_t i = 0; i < u->n; i++) {
		u->v[i].name = fa_strdup(names->v[i]);
		expect(&u->v[i], names, shipped, measured);
		u->v[i].priority = u->v[i].expect_s;
	}
}

void fa_units_release(struct fa_units *u)
{
	for (size_t i = 0; i < u->n; i++)
		free(u->v[i].name);
	free(u->v);
	*u = (struct fa_units){ 0 };
}

static void set_priorities(struct fa_units *u, int jobs)
{
	struct fa_gate_unit *g = fa_calloc(u->n ? u->n : 1, sizeof(*g));

	for (size_t i = 0; i < u->n; i++)
		g[i].expect_s = u->v[i].expect_s;
	fa_gate_order(g, u->n, jobs);
	for (size_t i = 0; i < u->n; i++)
		u->v[i].priority = g[i].priority;
	free(g);
}

void fa_units_print(struct fa_units *u, int jobs, struct fa_buf *out)
{
	set_priorities(u, jobs);
	for (size_t i = 0; i < u->n; i++)
		fa_buf_addf(out, "%s %.1f %lld %.6f\n", u->v[i].name, u->v[i].expect_s, (long long)u->v[i].expect_mib,
		            u->v[i].priority);
}

static struct fa_unit *unit(struct fa_units *u, const char *name)
{
	for (size_t i = 0; i < u->n; i++)
		if (!strcmp(u->v[i].name, name))
			return &u->v[i];
	return NULL;
}

void fa_units_begin(struct fa_units *u, const char *name, double now)
{
	struct fa_unit *x = unit(u, name);

	if (!x)
		return;
	x->state = FA_UNIT_RUNS;
	x->began = now;
	u->any_begun = true;
}

void fa_units_again(struct fa_units *u, const char *name)
{
	struct fa_unit *x = unit(u, name);

	if (x)
		x->state = FA_UNIT_TO_DO;
}

/* How much slower than expected this machine and profile are: all that is done, and one unit's worth of doubt. */
static void learn(struct fa_units *u)
{
	double took = 0, expected = 0, n = 0;

	for (size_t i = 0; i < u->n; i++) {
		if (u->v[i].state != FA_UNIT_DONE || u->v[i].took <= 0)
			continue;
		took += u->v[i].took;
		expected += u->v[i].expect_s;
		n++;
	}
	if (n > 0 && expected > 0)
		u->speed = (took + expected / n * 0.1) / (expected * (1 + 0.1 / n));
}

void fa_units_end(struct fa_units *u, const char *name, double seconds)
{
	struct fa_unit *x = unit(u, name);

	if (!x)
		return;
	x->state = FA_UNIT_DONE;
	x->took = seconds;
	learn(u);
}

void fa_units_keep(struct fa_units *u, size_t to_do)
{
	size_t left = u->n - fa_units_done(u);

	for (size_t i = 0; i < u->n && left > to_do; i++) {
		if (u->v[i].state != FA_UNIT_TO_DO)
			continue;
		u->v[i].state = FA_UNIT_DONE;
		left--;
	}
}

static size_t count(const struct fa_units *u, int state)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n; i++)
		n += (int)u->v[i].state == state;
	return n;
}

size_t fa_units_done(const struct fa_units *u)
{
	return count(u, FA_UNIT_DONE);
}

size_t fa_units_running(const struct fa_units *u)
{
	return count(u, FA_UNIT_RUNS);
}

/* Running units tell of the speed too: one that is over its time already shows that all are slower. */
static double speed_now(const struct fa_units *u, double now)
{
	double speed = u->speed;

	for (size_t i = 0; i < u->n; i++)
		if (u->v[i].state == FA_UNIT_RUNS && u->v[i].expect_s > 0 && !count(u, FA_UNIT_DONE) &&
		    now - u->v[i].began > speed * u->v[i].expect_s)
			speed = (now - u->v[i].began) / u->v[i].expect_s;
	return speed;
}

double fa_units_left(const struct fa_units *u, double now, int jobs, int64_t memory_mib)
{
	struct fa_gate_unit *g;
	double left, speed = speed_now(u, now);

	if (!u->any_begun)
		return -1;
	g = fa_calloc(u->n, sizeof(*g));
	for (size_t i = 0; i < u->n; i++) {
		const struct fa_unit *x = &u->v[i];

		g[i].state = x->state == FA_UNIT_DONE   ? FA_GATE_FREE
		             : x->state == FA_UNIT_RUNS ? FA_GATE_RUNNING
		                                        : FA_GATE_WAITING;
		g[i].expect_s = x->expect_s * speed;
		g[i].expect_mib = x->expect_mib;
		g[i].priority = x->priority * speed;
		g[i].waited_s = x->state == FA_UNIT_RUNS ? now - x->began : 0;
	}
	left = fa_gate_simulate(g, u->n, jobs, memory_mib);
	free(g);
	return left;
}
