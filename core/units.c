#include "units.h"

#include "buf.h"
#include "json.h"

#include <math.h>
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
                   const struct fa_json *measured, double speed, int archs)
{
	size_t len = strlen(u->name), whole = strcspn(u->name, "."), parts;
	const struct fa_json *here = find(measured, u->name, len), *row = here;
	double share = 1;

	guess(u);
	if (fa_json_number(fa_json_at(here, 0)) > 0)
		speed = archs = 1; /* it is of this machine, for these architectures */
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
	if (fa_json_number(fa_json_at(here, 1)) > 0)
		u->expect_mib = (int64_t)fa_json_number(fa_json_at(here, 1));
	u->expect_s *= speed * (strstr(u->name, "_hdim") ? archs : 1);
}

static int kind_of(const struct fa_units *u, size_t of)
{
	size_t len = fa_gate_kind(u->v[of].name);

	for (size_t i = 0; i < of; i++)
		if (fa_gate_kind(u->v[i].name) == len && !strncmp(u->v[i].name, u->v[of].name, len))
			return u->v[i].kind;
	return (int)of;
}

void fa_units_set(struct fa_units *u, const struct fa_strv *names, const struct fa_json *shipped,
                  const struct fa_json *measured, double speed, int archs)
{
	struct fa_units kept = { .host = u->host, .spread = u->spread, .build = u->build, .jobs = u->jobs };

	fa_units_release(u);
	*u = kept;
	u->v = fa_calloc(names->n ? names->n : 1, sizeof(*u->v));
	u->n = names->n;
	for (size_t i = 0; i < u->n; i++) {
		u->v[i].name = fa_strdup(names->v[i]);
		u->v[i].kind = kind_of(u, i);
		u->v[i].began = u->v[i].busy = -1;
		u->v[i].factor = 1;
		expect(&u->v[i], names, shipped, measured, speed, archs);
		u->v[i].priority = u->v[i].expect_s;
	}
}

void fa_units_release(struct fa_units *u)
{
	for (size_t i = 0; i < u->n; i++)
		free(u->v[i].name);
	free(u->v);
	free(u->others);
	free(u->seen);
	*u = (struct fa_units){ 0 };
}

static void set_priorities(struct fa_units *u)
{
	struct fa_gate_unit *g = fa_calloc(u->n ? u->n : 1, sizeof(*g));
	struct fa_gate_host host = u->host;

	if (u->jobs > 0 && u->jobs < host.places)
		host.places = u->jobs;
	for (size_t i = 0; i < u->n; i++)
		g[i] = (struct fa_gate_unit){ .state = FA_GATE_WAITING,
			                      .expect_s = u->v[i].expect_s,
			                      .expect_mib = u->v[i].expect_mib };
	fa_gate_order(g, u->n, &host);
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

/* Those of which nobody knows how much they computed are taken to have computed all the time, as far as others let them. */
static void advance(struct fa_units *u, double now)
{
	double pace = fa_gate_pace(&u->host, (int)fa_units_running(u));

	for (size_t i = 0; i < u->n && now > u->now; i++)
		if (u->v[i].state == FA_UNIT_RUNS && u->v[i].cpu <= 0)
			u->v[i].work += (now - u->now) * pace;
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
	x->work = x->cpu = 0;
	u->any_begun = true;
}

void fa_units_again(struct fa_units *u, const char *name, double now)
{
	struct fa_unit *x = unit(u, name);

	advance(u, now);
	if (x)
		x->state = FA_UNIT_TO_DO;
}

double fa_units_work(const struct fa_gate_host *host, const struct fa_unit_use *use)
{
	return use->cpu * fa_gate_speed(host, use->busy >= 0 ? use->busy : host->cores);
}

void fa_units_end(struct fa_units *u, const char *name, double now, const struct fa_unit_use *use)
{
	struct fa_unit *x = unit(u, name);

	if (!x)
		return;
	advance(u, now);
	x->state = FA_UNIT_DONE;
	x->took = use->seconds;
	x->cpu = use->cpu;
	x->busy = use->busy;
	x->peak_mib = use->peak_mib;
	if (use->cpu > 0)
		x->work = fa_units_work(&u->host, use);
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

/* ---- what the gate's table shows */

static const double look_back_s = 20; /* of this much the mean is taken */

static const struct fa_gate_seen *seen_before(const struct fa_units *u, const struct fa_gate_seen *s)
{
	for (size_t i = 0; i < u->n_seen; i++)
		if (u->seen[i].slot == s->slot && u->seen[i].unit.build == s->unit.build && !strcmp(u->seen[i].name, s->name))
			return &u->seen[i];
	return NULL;
}

static int running_of(const struct fa_gate_seen *seen, size_t n)
{
	int running = 0;

	for (size_t i = 0; i < n; i++)
		running += seen[i].unit.state == FA_GATE_RUNNING;
	return running;
}

/* Shares of a core that those got which ran at both looks, of all builds; and what is left of the machine's work is that of others. */
static void measure_share(struct fa_units *u, const struct fa_gate_seen *seen, size_t n, const struct fa_load *load,
                          double passed)
{
	double got = 0, counted = 0, running = running_of(seen, n), busy = fa_load_between(&u->load, load),
	       weight = u->sharing > 0 && passed < look_back_s ? passed / look_back_s : 1;

	for (size_t i = 0; i < n; i++) {
		const struct fa_gate_seen *was = seen_before(u, &seen[i]);

		if (seen[i].unit.state != FA_GATE_RUNNING || !was || was->unit.state != FA_GATE_RUNNING ||
		    seen[i].cpu_s < was->cpu_s)
			continue;
		got += (seen[i].cpu_s - was->cpu_s) / passed;
		counted++;
	}
	if (counted < 1)
		return;
	u->share += weight * (got / counted - u->share);
	u->sharing += weight * (running - u->sharing);
	u->rivals += weight * ((load->runnable > running ? load->runnable - running : 0) - u->rivals);
	if (busy < 0 || counted < running || counted < running_of(u->seen, u->n_seen))
		return;
	u->host.foreign += weight * ((busy > got ? busy - got : 0) - u->host.foreign);
}

static void take_others(struct fa_units *u, const struct fa_gate_seen *seen, size_t n)
{
	u->others = fa_realloc(u->others, n ? n : 1, sizeof(*u->others));
	u->n_others = 0;
	for (size_t i = 0; i < n; i++) {
		struct fa_gate_unit *g = &u->others[u->n_others];

		if (seen[i].unit.build == u->build)
			continue;
		*g = seen[i].unit;
		if (g->state == FA_GATE_RUNNING) /* as for ours: what is behind it is what it computed */
			g->waited_s = seen[i].cpu_s * fa_gate_speed(&u->host, u->host.cores);
		if (g->expect_s <= 0)
			g->expect_s = USUAL_S;
		u->n_others++;
	}
}

static void take_ours(struct fa_units *u, const struct fa_gate_seen *s, double busy)
{
	struct fa_unit *x = unit(u, s->name);

	if (!x || x->state != FA_UNIT_RUNS || s->unit.state != FA_GATE_RUNNING || s->cpu_s <= x->cpu)
		return;
	x->work = x->cpu > 0 ? x->work + (s->cpu_s - x->cpu) * fa_gate_speed(&u->host, busy)
	                     : s->cpu_s * fa_gate_speed(&u->host, busy);
	x->cpu = s->cpu_s;
}

void fa_units_see(struct fa_units *u, const struct fa_gate_seen *seen, size_t n, const struct fa_load *load, double now)
{
	static const double enough = 0.93; /* of a core: the rest is starting up and reading files */
	double passed = now - u->seen_at;

	advance(u, now);
	for (size_t i = 0; i < n; i++)
		if (seen[i].unit.build == u->build)
			take_ours(u, &seen[i], running_of(seen, n) + u->host.foreign);
	take_others(u, seen, n);
	if (u->seen && passed < 1)
		return;
	if (u->seen)
		measure_share(u, seen, n, load, passed);
	u->seen = fa_realloc(u->seen, n ? n : 1, sizeof(*u->seen));
	if (n)
		memcpy(u->seen, seen, n * sizeof(*seen));
	u->n_seen = n;
	u->seen_at = now;
	u->load = *load;
	u->host.share = u->sharing > 0 && u->share < enough ? (u->share > 0.01 ? u->share : 0.01) : 0;
	u->host.sharing = u->sharing;
	u->host.rivals = u->rivals;
}

/* ---- how long still */

/* The standard normal distribution and its inverse (Abramowitz and Stegun 26.2.23, off by at most 4.5e-4). */
static double normal_share(double z)
{
	return 0.5 * erfc(-z / sqrt(2));
}

static double normal_at(double share)
{
	double tail = share < 0.5 ? share : 1 - share, t, z;

	if (tail < 1e-9)
		tail = 1e-9;
	t = sqrt(-2 * log(tail));
	z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
	return share < 0.5 ? -z : z;
}

/* Seconds of work for each second expected, of all units that have shown it: those that are done, and those that run over their time.
 * One unit's worth of doubt stands for `before`. kind -1: all kinds. */
static double speed_of(const struct fa_units *u, int kind, double before)
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
	return n > 0 && expected > 0 ? (work + mean * before) / (expected + mean) : before;
}

static void learn_factors(struct fa_units *u)
{
	double all = speed_of(u, -1, 1);

	for (size_t i = 0; i < u->n; i++) {
		size_t first = 0;

		while (u->v[first].kind != u->v[i].kind)
			first++;
		u->v[i].factor = first < i ? u->v[first].factor : speed_of(u, u->v[i].kind, all);
	}
}

double fa_units_expected(const struct fa_units *u, const char *name)
{
	for (size_t i = 0; i < u->n; i++)
		if (!strcmp(u->v[i].name, name))
			return u->v[i].expect_s * u->v[i].factor;
	return 0;
}

/* One of the times that a unit may take, which has `behind` it already: spread log-normally about the mean. share 0..1. */
static double possible(double mean, double behind, double spread, double share)
{
	double lasted = behind > 0 ? normal_share(log(behind / mean) / spread + spread / 2) : 0;

	return mean * exp(spread * normal_at(lasted + (1 - lasted) * share) - spread * spread / 2);
}

/* The draw-th of DRAWS, in another order for each unit: evenly spread, the same each time. */
enum { DRAWS = 16 };

static double share_of(size_t unit, int draw)
{
	static const int steps[] = { 1, 3, 5, 7, 9, 11, 13, 15 };

	return (((size_t)draw * (size_t)steps[unit * 5 % 8] + unit * 7) % DRAWS + 0.5) / DRAWS;
}

static int smaller(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What the simulator is to count; only_running: the others as if done. */
static size_t list(const struct fa_units *u, struct fa_gate_unit *g, bool only_running)
{
	size_t n = u->n;

	for (size_t i = 0; i < u->n; i++) {
		const struct fa_unit *x = &u->v[i];

		g[i] = (struct fa_gate_unit){ .build = u->build,
			                      .jobs = u->jobs,
			                      .expect_s = x->expect_s * x->factor,
			                      .expect_mib = x->expect_mib,
			                      .priority = x->priority,
			                      .waited_s = x->state == FA_UNIT_RUNS ? x->work : 0 };
		g[i].state = x->state == FA_UNIT_RUNS                   ? FA_GATE_RUNNING
		             : x->state == FA_UNIT_DONE || only_running ? FA_GATE_FREE
		                                                        : FA_GATE_WAITING;
	}
	for (size_t i = 0; i < u->n_others; i++)
		g[n++] = u->others[i];
	return n;
}

/* No unit takes exactly what is expected, and the last of several is later than each is on average: the middle one of several ends. */
static double left(struct fa_units *u, double now, bool only_running)
{
	struct fa_gate_unit *g = fa_calloc(u->n + u->n_others + 1, sizeof(*g)), *tried;
	struct fa_gate_host host = u->host;
	double ends[DRAWS] = { 0 };
	size_t n;
	int draws = u->spread > 0 ? DRAWS : 1;

	advance(u, now);
	learn_factors(u);
	host.build = u->build;
	n = list(u, g, only_running);
	tried = fa_calloc(n + 1, sizeof(*tried));
	for (int k = 0; k < draws; k++) {
		memcpy(tried, g, n * sizeof(*g));
		for (size_t i = 0; i < n && u->spread > 0; i++)
			tried[i].expect_s =
			        possible(g[i].expect_s > 0 ? g[i].expect_s : 1,
			                 g[i].state == FA_GATE_RUNNING ? g[i].waited_s : 0, u->spread, share_of(i, k));
		ends[k] = fa_gate_simulate(tried, n, &host, NULL).seconds;
	}
	qsort(ends, (size_t)draws, sizeof(*ends), smaller);
	free(g);
	free(tried);
	return draws > 1 ? (ends[draws / 2 - 1] + ends[draws / 2]) / 2 : ends[0];
}

double fa_units_left(struct fa_units *u, double now)
{
	return u->any_begun ? left(u, now, false) : -1;
}

double fa_units_whole(struct fa_units *u)
{
	return left(u, u->now, false);
}

double fa_units_rest(struct fa_units *u, double now)
{
	return u->any_begun ? left(u, now, true) : -1;
}
