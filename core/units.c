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
                   const struct fa_json *measured, double speed)
{
	size_t len = strlen(u->name), whole = strcspn(u->name, "."), parts;
	const struct fa_json *row = find(measured, u->name, len);
	double share = 1;

	guess(u);
	if (row)
		speed = 1; /* it is of this machine */
	else
		row = find(shipped, u->name, len);
	if (!row && whole < len && (row = find(shipped, u->name, whole))) {
		parts = parts_of(names, u->name, whole);
		share = parts > 1 ? part_cost / (double)parts : 1;
	}
	if (row && fa_json_len(row) == 2) {
		u->expect_s = fa_json_number(fa_json_at(row, 0)) * share;
		u->expect_mib = (int64_t)fa_json_number(fa_json_at(row, 1));
	}
	if (strstr(u->name, "_hdim"))
		u->expect_s *= speed;
}

/* "flash_fwd_split_hdim64_bf16_sm80.2" is of the kind "flash_fwd_split"; what is not a kernel is a kind of its own. */
static size_t kind_length(const char *name)
{
	const char *dim = strstr(name, "_hdim");

	return dim ? (size_t)(dim - name) : strcspn(name, ".");
}

static int kind_of(const struct fa_units *u, size_t of)
{
	size_t len = kind_length(u->v[of].name);

	for (size_t i = 0; i < of; i++)
		if (kind_length(u->v[i].name) == len && !strncmp(u->v[i].name, u->v[of].name, len))
			return u->v[i].kind;
	return (int)of;
}

void fa_units_set(struct fa_units *u, const struct fa_strv *names, const struct fa_json *shipped,
                  const struct fa_json *measured, double speed)
{
	struct fa_gate_host host = u->host;

	fa_units_release(u);
	u->host = host;
	u->v = fa_calloc(names->n ? names->n : 1, sizeof(*u->v));
	u->n = names->n;
	for (size_t i = 0; i < u->n; i++) {
		u->v[i].name = fa_strdup(names->v[i]);
		u->v[i].kind = kind_of(u, i);
		u->v[i].began = -1;
		expect(&u->v[i], names, shipped, measured, speed);
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

static void set_priorities(struct fa_units *u)
{
	struct fa_gate_unit *g = fa_calloc(u->n ? u->n : 1, sizeof(*g));

	for (size_t i = 0; i < u->n; i++)
		g[i] = (struct fa_gate_unit){ .state = FA_GATE_WAITING,
			                      .expect_s = u->v[i].expect_s,
			                      .expect_mib = u->v[i].expect_mib };
	fa_gate_order(g, u->n, &u->host);
	for (size_t i = 0; i < u->n; i++)
		u->v[i].priority = g[i].priority;
	free(g);
}

void fa_units_print(struct fa_units *u, struct fa_buf *out)
{
	set_priorities(u);
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

/* A unit beside few gets further in a second than one beside many. */
static void advance(struct fa_units *u, double now)
{
	double speed = fa_gate_speed(&u->host, (int)fa_units_running(u));

	for (size_t i = 0; i < u->n && now > u->now; i++)
		if (u->v[i].state == FA_UNIT_RUNS)
			u->v[i].work += (now - u->now) * speed;
	if (now > u->now)
		u->now = now;
}

void fa_units_begin(struct fa_units *u, const char *name, double now)
{
	struct fa_unit *x = unit(u, name);

	if (!x)
		return;
	advance(u, now);
	x->state = FA_UNIT_RUNS;
	x->began = now;
	x->work = 0;
	u->any_begun = true;
}

void fa_units_again(struct fa_units *u, const char *name, double now)
{
	struct fa_unit *x = unit(u, name);

	advance(u, now);
	if (x)
		x->state = FA_UNIT_TO_DO;
}

void fa_units_end(struct fa_units *u, const char *name, double now, double took, double cpu, int64_t peak_mib)
{
	struct fa_unit *x = unit(u, name);

	if (!x)
		return;
	advance(u, now);
	x->state = FA_UNIT_DONE;
	x->took = took;
	x->cpu = cpu;
	x->peak_mib = peak_mib;
}

void fa_units_there(struct fa_units *u, const char *name)
{
	struct fa_unit *x = unit(u, name);

	if (x)
		x->state = FA_UNIT_DONE;
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

/* ---- how long still */

/* Seconds of work for each second expected, of all units that have shown it: those that are done, and those that run over their time.
 * `doubt` units' worth of doubt stand for `before`. kind -1: all kinds. */
static double speed_of(const struct fa_units *u, int kind, double before, double doubt)
{
	double work = 0, expected = 0, mean = 0, n = 0;

	for (size_t i = 0; i < u->n; i++) {
		const struct fa_unit *x = &u->v[i];
		bool tells = x->work > 0 &&
		             (x->state == FA_UNIT_DONE || (x->state == FA_UNIT_RUNS && x->work > before * x->expect_s));

		mean += x->expect_s / (double)u->n;
		if (!tells || (kind >= 0 && x->kind != kind))
			continue;
		work += x->work;
		expected += x->expect_s;
		n++;
	}
	return n > 0 && expected > 0 ? (work + doubt * mean * before) / (expected + doubt * mean) : before;
}

/* What the simulator is to count; only_running: the others as if done. */
static double left(struct fa_units *u, double now, bool only_running)
{
	struct fa_gate_unit *g = fa_calloc(u->n ? u->n : 1, sizeof(*g));
	double speed, seconds;

	advance(u, now);
	speed = speed_of(u, -1, 1, 1);
	for (size_t i = 0; i < u->n; i++) {
		const struct fa_unit *x = &u->v[i];
		double of_kind = speed_of(u, x->kind, speed, 1);

		g[i].state = x->state == FA_UNIT_RUNS                   ? FA_GATE_RUNNING
		             : x->state == FA_UNIT_DONE || only_running ? FA_GATE_FREE
		                                                        : FA_GATE_WAITING;
		g[i].expect_s = x->expect_s * of_kind;
		g[i].expect_mib = x->expect_mib;
		g[i].priority = x->priority;
		g[i].waited_s = x->state == FA_UNIT_RUNS ? x->work : 0;
	}
	seconds = fa_gate_simulate(g, u->n, &u->host, NULL).seconds;
	free(g);
	return seconds;
}

double fa_units_left(struct fa_units *u, double now)
{
	return u->any_begun ? left(u, now, false) : -1;
}

double fa_units_rest(struct fa_units *u, double now)
{
	return u->any_begun ? left(u, now, true) : -1;
}
