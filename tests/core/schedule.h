/* For tests and tests/proof/gate_simulate: the recorded full build, the best that any order can reach, and a build replayed through the
 * real estimator. */
#ifndef TESTS_SCHEDULE_H
#define TESTS_SCHEDULE_H

#include "buf.h"
#include "expect.h"
#include "file.h"
#include "gate_schedule.h"
#include "json.h"
#include "units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UNITS = 500, LOOKS = 60 };

/* ---- the 72 units of upstream's own build on a 16-core H200 host: "name seconds MiB" */

static inline size_t read_full_build(struct fa_gate_unit *u, struct fa_strv *names)
{
	FILE *f = fopen("tests/data/gate/full_build.txt", "r");
	char name[128];
	double seconds;
	long mib;
	size_t n = 0;

	while (f && n < MAX_UNITS && fscanf(f, "%127s %lf %ld", name, &seconds, &mib) == 3) {
		u[n++] = (struct fa_gate_unit){
			.state = FA_GATE_WAITING, .expect_s = seconds, .priority = seconds, .expect_mib = mib
		};
		if (names)
			fa_strv_push(names, name);
	}
	if (f)
		fclose(f);
	return n;
}

/* ---- the bound. Shares of the memory may be replaced by a dual feasible function: shares that fit together still sum to at most 1
 * (Fekete and Schepers, "New classes of fast lower bounds for bin packing problems", 2001). */

struct shares {
	int kind; /* 0 as they are, with those above 1 - e whole and those below e nothing; k > 0: floor((k + 1) x) / k; -1: 1/floor(1/e) from e */
	double e;
};

static inline double share_of(double x, const struct shares *s)
{
	double y = (s->kind + 1) * x;

	if (x > 1)
		x = 1;
	if (s->kind > 0)
		return fabs(y - round(y)) < 1e-9 ? x : floor(y) / s->kind;
	if (s->kind < 0)
		return x >= s->e ? 1 / floor(1 / s->e + 1e-12) : 0;
	return s->e <= 0 ? x : x > 1 - s->e ? 1 : x < s->e ? 0 : x;
}

static inline int longer_first(const void *a, const void *b)
{
	double x = ((const struct fa_gate_unit *)a)->expect_s, y = ((const struct fa_gate_unit *)b)->expect_s;

	return (x < y) - (x > y);
}

/* Sorted, each with its share: the work shared evenly; and of units longer than T / (p + 1) each stands over one of p moments, so
 * those that do not fit p times end after T. */
static inline double bound_of(const struct fa_gate_unit *u, const double *share, size_t n)
{
	double work = 0, sum = 0, best;
	int p = 1;

	for (size_t i = 0; i < n; i++)
		work += u[i].expect_s * share[i];
	best = work;
	for (size_t i = 0; i < n; i++)
		for (sum += share[i]; sum > p + 1e-9; p++)
			best = fmax(best, (p + 1) * u[i].expect_s);
	return best;
}

static inline double bound_by_memory(const struct fa_gate_unit *u, size_t n, double memory, int kind, double e)
{
	struct shares s = { kind, e };
	double share[MAX_UNITS];

	for (size_t i = 0; i < n; i++)
		share[i] = share_of((double)u[i].expect_mib / memory, &s);
	return bound_of(u, share, n);
}

/* No order can be faster than this many seconds. memory_mib -1: no limit. */
static inline double best_possible(const struct fa_gate_unit *units, size_t n, int cores, double memory_mib)
{
	struct fa_gate_unit u[MAX_UNITS];
	double share[MAX_UNITS], best;

	memcpy(u, units, n * sizeof(*u));
	qsort(u, n, sizeof(*u), longer_first);
	for (size_t i = 0; i < n; i++)
		share[i] = 1.0 / cores;
	best = fmax(u[0].expect_s, bound_of(u, share, n));
	for (int k = 0; memory_mib > 0 && k <= 40; k++)
		best = fmax(best, bound_by_memory(u, n, memory_mib, k, 0));
	for (size_t i = 0; memory_mib > 0 && i < n; i++) {
		double e = (double)u[i].expect_mib / memory_mib;

		if (e <= 1)
			best = fmax(best, bound_by_memory(u, n, memory_mib, -1, e));
		if (e <= 0.5)
			best = fmax(best, bound_by_memory(u, n, memory_mib, 0, e));
	}
	return best;
}

/* ---- a build as it was: build.json (core/build_record.h) */

struct past_unit {
	char name[128];
	double begin, seconds; /* seconds 0: there from before */
	double cpu, busy;      /* cpu 0, busy -1: not in the record */
	uint64_t build;        /* 0: the one that is looked at; another: of another build beside it */
	double expect_s;
	int64_t mib, expect_mib;
};

struct past {
	struct past_unit v[MAX_UNITS];
	size_t n;
	struct fa_gate_host host;
	double seconds;                  /* of the whole build */
	double first, last;              /* of its units */
	double preflight, speed;         /* struct fa_expect; 0: not in the record */
	double spread;                   /* struct fa_units */
	const struct fa_json *estimates; /* borrowed */
};

static inline bool past_read(struct past *p, const struct fa_json *record)
{
	const struct fa_json *j = fa_json_get(record, "build") ? fa_json_get(record, "build") : record;

	memset(p, 0, sizeof(*p));
	p->host = (struct fa_gate_host){ .places = (int)fa_json_get_number(j, "places", 0),
		                         .memory_mib = (int64_t)fa_json_get_number(j, "memory_mib", -1),
		                         .cores = (int)fa_json_get_number(j, "cores", 0) };
	p->seconds = fa_json_get_number(j, "seconds", 0);
	p->estimates = fa_json_get(j, "estimates");
	p->preflight = fa_json_get_number(j, "preflight", 0);
	p->speed = fa_json_get_number(j, "speed", 0);
	p->first = p->seconds;
	fa_json_each (row, fa_json_get(j, "units")) {
		struct past_unit *u = &p->v[p->n];

		if (p->n == MAX_UNITS || !fa_json_get_string(row, "unit"))
			return false;
		snprintf(u->name, sizeof(u->name), "%s", fa_json_get_string(row, "unit"));
		u->begin = fa_json_get_number(row, "begin", 0);
		u->seconds = fa_json_get_number(row, "seconds", 0);
		u->cpu = fa_json_get_number(row, "cpu", 0);
		u->busy = fa_json_get_number(row, "busy", -1);
		u->mib = (int64_t)fa_json_get_number(row, "peak_mib", 0);
		u->expect_s = fa_json_get_number(row, "expect_s", 0);
		u->expect_mib = (int64_t)fa_json_get_number(row, "expect_mib", 0);
		if (u->seconds > 0) {
			p->first = fmin(p->first, u->begin);
			p->last = fmax(p->last, u->begin + u->seconds);
		}
		p->n++;
	}
	return p->n > 0 && p->host.places > 0 && p->seconds > 0;
}

static inline int past_running(const struct past *p, double at)
{
	int n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].seconds > 0 && p->v[i].begin <= at && at < p->v[i].begin + p->v[i].seconds;
	return n;
}

/* Seconds that a unit would have taken with every core busy. */
static inline double past_work(const struct past *p, const struct past_unit *u)
{
	double work = 0, step = u->seconds / 200;
	const struct fa_unit_use use = { .cpu = u->cpu, .busy = u->busy };

	if (u->cpu > 0 && u->busy >= 0)
		return fa_units_work(&p->host, &use);
	for (int i = 0; i < 200; i++)
		work += step * fa_gate_speed(&p->host, past_running(p, u->begin + (i + 0.5) * step));
	return work;
}

/* The units as the gate knew them, with what they were expected to take (`expected`) or what they took. */
static inline size_t past_units(struct fa_gate_unit *u, const struct past *p, bool expected)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].seconds > 0)
			u[n++] = (struct fa_gate_unit){ .state = FA_GATE_WAITING,
				                        .expect_s = expected ? p->v[i].expect_s : past_work(p, &p->v[i]),
				                        .expect_mib = p->v[i].expect_mib };
	return n;
}

/* ---- the estimator on a build that is known: begin and end of every unit are told it as they happen */

struct moment {
	double at;
	int unit;
	bool ends;
};

static inline int earlier(const void *a, const void *b)
{
	double x = ((const struct moment *)a)->at, y = ((const struct moment *)b)->at;

	return (x > y) - (x < y);
}

/* With what is known of company and spread, and of older records, whose times expected were the shipped ones, the machine's speed by its
 * preflight. */
static inline void past_expect(struct past *p, const struct fa_expect *e)
{
	bool corrected = p->speed > 0 || p->preflight <= 0 || e->reference <= 0;

	p->host.company = e->company;
	p->spread = e->spread;
	for (size_t i = 0; i < p->n; i++)
		p->v[i].expect_s *= corrected ? 1 : pow(p->preflight / e->reference, e->weight);
}

/* The units as they were before the build began, with what was expected of them. */
static inline void past_expected(struct fa_units *units, const struct past *p)
{
	struct fa_strv names = FA_STRV_INIT;

	*units = (struct fa_units){ .host = p->host, .spread = p->spread, .build = 1 };
	for (size_t i = 0; i < p->n; i++)
		if (!p->v[i].build)
			fa_strv_push(&names, p->v[i].name);
	fa_units_set(units, &names, NULL, NULL, 1, 1);
	for (size_t i = 0; i < units->n; i++) {
		units->v[i].expect_s = units->v[i].priority = p->v[i].expect_s;
		units->v[i].expect_mib = p->v[i].expect_mib;
		if (p->v[i].seconds <= 0)
			fa_units_there(units, p->v[i].name);
	}
	fa_strv_release(&names);
}

/* As the gate's table would have shown it: the time that each computed, spread evenly over the time that it ran. Other builds' units are
 * there from the start, and their build has told what it learnt of them. */
static inline void look_at(struct fa_units *units, const struct past *p, double at)
{
	static struct fa_gate_seen seen[MAX_UNITS];
	struct fa_load load = { .all = at * p->host.cores, .cpus = p->host.cores, .busy = at * p->host.cores };
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct past_unit *u = &p->v[i];
		bool runs = u->begin <= at;

		if (u->cpu <= 0 || u->begin + u->seconds <= at || (!runs && !u->build))
			continue;
		seen[n] = (struct fa_gate_seen){ .unit = { .state = runs ? FA_GATE_RUNNING : FA_GATE_WAITING,
			                                   .build = u->build ? u->build : units->build,
			                                   .expect_s = u->build ? u->cpu : u->expect_s,
			                                   .priority = u->expect_s,
			                                   .expect_mib = u->expect_mib },
			                         .slot = (int)i };
		seen[n].cpu_s = runs ? u->cpu * (at - u->begin) / u->seconds : 0;
		snprintf(seen[n].name, sizeof(seen[n].name), "%s", u->name);
		load.runnable += runs;
		n++;
	}
	load.runnable += (int)p->host.rivals;
	if (n)
		fa_units_see(units, seen, n, &load, at);
}

/* Worst error of the estimate between `from`, or the end of the first unit, and 95 % of the units' time, as a share of it. when (NULL: not wanted): the moment. */
static inline double replay_error(const struct past *p, double from, double *when)
{
	struct moment m[2 * MAX_UNITS];
	static struct fa_unit_use uses[MAX_UNITS];
	struct fa_units units;
	double total = p->last - p->first, worst = 0;
	size_t n = 0;

	past_expected(&units, p);
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].seconds <= 0 || p->v[i].build)
			continue;
		uses[i] = (struct fa_unit_use){ p->v[i].seconds, p->v[i].cpu, p->v[i].busy, p->v[i].mib };
		m[n++] = (struct moment){ p->v[i].begin, (int)i, false };
		m[n++] = (struct moment){ p->v[i].begin + p->v[i].seconds, (int)i, true };
	}
	qsort(m, n, sizeof(*m), earlier);
	for (size_t i = 0, k = 0; k < LOOKS; k++) { /* looks at even moments, as a reader does */
		double at = p->first + total * (double)k / LOOKS, off;

		for (; i < n && m[i].at <= at; i++)
			if (m[i].ends)
				fa_units_end(&units, p->v[m[i].unit].name, m[i].at, &uses[m[i].unit]);
			else
				fa_units_begin(&units, p->v[m[i].unit].name, m[i].at);
		look_at(&units, p, at);
		off = fabs(at - p->first + fa_units_left(&units, at) - total) / total;
		if ((double)k / LOOKS >= from && fa_units_done(&units) > 0 && (double)k / LOOKS < 0.95 && off > worst) {
			worst = off;
			if (when)
				*when = at - p->first;
		}
	}
	fa_units_release(&units);
	return worst;
}

/* The same of what was said on the way. */
static inline double said_error(const struct past *p, double from)
{
	double worst = 0;

	fa_json_each (pair, p->estimates) {
		double at = fa_json_number(fa_json_at(pair, 0)) - p->first, left = fa_json_number(fa_json_at(pair, 1));
		double total = p->last - p->first, off = fabs(at + left - total) / total;

		if (at >= from * total && at < 0.95 * total)
			worst = fmax(worst, off);
	}
	return worst;
}

/* A build that never was: units that take took[i] on this host, placed by the gate by their priorities. A host whose cores others want
 * too (rivals) leaves each unit a share. */
static inline void past_invent(struct past *p, const struct fa_gate_unit *expected, const double *took,
                               const struct fa_strv *names, const struct fa_gate_host *host)
{
	struct fa_gate_unit u[MAX_UNITS];
	struct fa_gate_host h = *host;
	double starts[MAX_UNITS];

	memset(p, 0, sizeof(*p));
	p->host = *host;
	p->n = names->n;
	memcpy(u, expected, p->n * sizeof(*u));
	for (size_t i = 0; i < p->n; i++) {
		u[i].expect_s = took[i];
		u[i].build = i + 1;
	}
	p->host.company = h.company = 0; /* what it takes is what it takes */
	p->seconds = p->last = fa_gate_simulate(u, p->n, &h, starts).seconds;
	for (size_t i = 0; i < p->n; i++) {
		struct past_unit *x = &p->v[i];

		snprintf(x->name, sizeof(x->name), "%s", names->v[i]);
		x->begin = starts[i];
		h.build = i + 1;
		x->seconds = h.share > 0 ? fa_gate_simulate(u, p->n, &h, NULL).seconds - starts[i] : took[i];
		x->cpu = h.share > 0 ? took[i] : 0;
		x->busy = host->cores;
		x->expect_s = expected[i].expect_s;
		x->mib = x->expect_mib = expected[i].expect_mib;
	}
	p->host.share = 0; /* to be found out */
}

/* Two builds of the same units at once: the second is the other one (past_unit.build 2). */
static inline void past_two(struct past *p, const struct fa_gate_unit *expected, const double *took,
                            const struct fa_strv *names, const struct fa_gate_host *host)
{
	static struct fa_gate_unit u[MAX_UNITS];
	double starts[MAX_UNITS];

	memset(p, 0, sizeof(*p));
	p->host = *host;
	p->host.company = 0;
	p->n = 2 * names->n;
	for (size_t i = 0; i < p->n; i++) {
		u[i] = expected[i % names->n];
		u[i].expect_s = took[i % names->n];
		u[i].build = i < names->n ? 0 : 2;
	}
	fa_gate_simulate(u, p->n, &p->host, starts);
	for (size_t i = 0; i < p->n; i++) {
		struct past_unit *x = &p->v[i];

		snprintf(x->name, sizeof(x->name), "%s", names->v[i % names->n]);
		x->begin = starts[i];
		x->seconds = x->cpu = took[i % names->n];
		x->busy = host->cores;
		x->build = u[i].build;
		x->expect_s = expected[i % names->n].expect_s;
		x->mib = x->expect_mib = expected[i % names->n].expect_mib;
		if (!x->build)
			p->last = fmax(p->last, x->begin + x->seconds);
	}
	p->seconds = p->last;
}

/* ---- invented builds. The machine is faster or slower than the one that the figures come from, each kind of unit by its own factor, and no
 * unit takes exactly what was expected. With about as many places as units nothing ends before the end does: there the expected times are
 * all there is to go by. */

enum invented {
	ALONE,
	AT_LOAD /* four threads of others for each core, each weighing as much as a unit */,
	TWO_AT_ONCE,
	INVENTED
};
static const char *const invented_words[] = { "alone", "at five times the load", "beside another build of the same units" };

static inline void past_invented(struct past *p, enum invented what, const struct fa_gate_unit *u, const struct fa_strv *names,
                                 const struct fa_gate_host *host, double speed, unsigned seed)
{
	struct fa_gate_host h = *host;
	double took[MAX_UNITS];

	for (size_t i = 0; i < names->n; i++) {
		double kind = strstr(names->v[i], "bwd") ? 1.2 : strstr(names->v[i], "split") ? 0.8 : 1;
		double noise = 1 + 0.15 * ((double)(rand_r(&seed) % 2001) / 1000 - 1);

		took[i] = u[i].expect_s * speed * kind * noise;
	}
	if (what == AT_LOAD) {
		h.share = 0.2;
		h.sharing = h.cores;
		h.rivals = 4.0 * h.cores;
	}
	if (what == TWO_AT_ONCE)
		past_two(p, u, took, names, &h);
	else
		past_invent(p, u, took, names, &h);
	p->spread = 0.15;
}

static const struct fa_gate_host invented_hosts[] = { { .places = 2, .memory_mib = 16000, .cores = 2 },
	                                              { .places = 8, .memory_mib = 32000, .cores = 8 },
	                                              { .places = 16, .memory_mib = 24000, .cores = 16 },
	                                              { .places = 16, .memory_mib = 120000, .cores = 16 },
	                                              { .places = 32, .memory_mib = 200000, .cores = 32 } };
static const double invented_speeds[] = { 0.25, 0.5, 1, 1.4, 3 };

#endif
