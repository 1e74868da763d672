/* What a build of some contents takes on this machine, before anything is compiled: the units on paper (gate_schedule.h), divided into parts
 * as recipes/profile_units.py divides them. Times, peaks and sizes are those of matrix/units.json. */
#include "buf.h"
#include "gate_schedule.h"
#include "json.h"
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 1024, CONTENTS_MAX = 256 };

struct content {           /* one unit of upstream's */
	double base, rest; /* seconds of its headers and types, whatever it holds; of its kernels */
	int mib;
	double uneven;                  /* the longest part against an equal share */
	int levels[8], n_levels, level; /* parts it may be divided into, fewest first */
};

struct forecast {
	struct content v[CONTENTS_MAX];
	size_t n;
	struct fa_gate_host host;
};

static double seconds_of(const struct content *c)
{
	int parts = c->levels[c->level];

	return (c->base + c->rest / parts) * (parts > 1 ? c->uneven : 1);
}

static bool has_word(const char *list, const char *word)
{
	struct fa_strv words = FA_STRV_INIT;
	bool has;

	fa_strv_split(&words, list ? list : "", " ");
	has = fa_strv_has(&words, word);
	fa_strv_release(&words);
	return has;
}

/* Is there no kernel of this feature in the release's build: it never had any, or they were left out? */
static bool left_out(const struct fa_plan_build *b, const struct fa_kb_release *r, const char *feature)
{
	bool stays = r && has_word(r->stays, feature);

	if (r && r->without && !stays && !has_word(r->without, feature))
		return true;
	return b->features.n && !fa_strv_has(&b->features, feature) && !stays;
}

/* Share of the optional features that are not in the build. */
static double lean_share(const struct fa_plan_build *b, const struct fa_json *table, const struct fa_kb_release *r)
{
	struct fa_strv extras = FA_STRV_INIT;
	double off = 0, share;

	fa_strv_split(&extras, fa_json_get_string(table, "extras") ? fa_json_get_string(table, "extras") : "", " ");
	for (size_t i = 0; i < extras.n; i++)
		off += left_out(b, r, extras.v[i]);
	share = extras.n ? off / (double)extras.n : 0;
	fa_strv_release(&extras);
	return share;
}

/* Kernels that none of these cards can reach are not compiled. */
static bool has_dead_kernels(const struct fa_plan_build *b, const struct fa_json *kind, int head_dim)
{
	char *dim = fa_strf("%d", head_dim);
	bool dead = has_word(fa_json_get_string(kind, "dead_dims"), dim) && b->archs.n;

	for (size_t i = 0; i < b->archs.n; i++)
		dead = dead && has_word(fa_json_get_string(kind, "dead_archs"), b->archs.v[i]);
	free(dim);
	return dead;
}

static void set_levels(struct content *c, const char *list)
{
	struct fa_strv words = FA_STRV_INIT;

	fa_strv_split(&words, list ? list : "1", " ");
	for (size_t i = 0; i < words.n && c->n_levels < 8; i++)
		c->levels[c->n_levels++] = atoi(words.v[i]) > 0 ? atoi(words.v[i]) : 1;
	fa_strv_release(&words);
}

static void add_content(struct forecast *f, const struct fa_plan_build *b, const struct fa_json *table, double lean,
                        const struct fa_kb_unit *u, double seconds)
{
	const struct fa_json *kind = fa_json_get(fa_json_get(table, "kinds"), u->kind);
	double archs = b->archs.n ? (double)b->archs.n : 1;
	struct content *c = &f->v[f->n];

	if (f->n == CONTENTS_MAX)
		return;
	*c = (struct content){ .base = fa_json_get_number(kind, "base_s", 0) * archs,
		               .mib = u->peak_mib,
		               .uneven = fa_json_get_number(table, "uneven", 1) };
	c->rest = seconds * archs > c->base ? seconds * archs - c->base : 0;
	if (!strcmp(b->profile, "full")) { /* as upstream has it */
		set_levels(c, "1");
	} else { /* compiled for the device alone */
		c->rest -= c->rest > fa_json_get_number(table, "host_s", 0) ? fa_json_get_number(table, "host_s", 0) : c->rest;
		c->rest *= 1 - lean * (1 - fa_json_get_number(table, "lean_kernels", 1));
		c->rest *= has_dead_kernels(b, kind, u->head_dim) ? fa_json_get_number(table, "dead_kernels", 1) : 1;
		set_levels(c, fa_json_get_string(kind, lean > 0.5 ? "lean_parts" : "parts"));
	}
	f->n++;
}

/* The longest file, and the others alike; in one file all of it. */
static void add_unit(struct forecast *f, const struct fa_plan_build *b, const struct fa_json *table, double lean,
                     const struct fa_kb_unit *u, int files)
{
	if (files == 1)
		add_content(f, b, table, lean, u, u->seconds);
	for (int k = 0; k < files && files > 1; k++)
		add_content(f, b, table, lean, u, !k ? u->longest : (u->seconds - u->longest) / (files - 1));
}

/* All parts of all units, and the C++ files; returns how many. */
static size_t list_parts(struct fa_gate_unit *g, const struct forecast *f, const struct fa_json *table)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		for (int k = 0; k < f->v[i].levels[f->v[i].level] && n < PARTS_MAX; k++)
			g[n++] = (struct fa_gate_unit){ .state = FA_GATE_WAITING,
				                        .expect_s = seconds_of(&f->v[i]),
				                        .priority = seconds_of(&f->v[i]),
				                        .expect_mib = f->v[i].mib };
	fa_json_each (row, fa_json_get(table, "others"))
		if (n < PARTS_MAX)
			g[n++] = (struct fa_gate_unit){ .state = FA_GATE_WAITING,
				                        .expect_s = fa_json_number(fa_json_at(row, 0)),
				                        .priority = fa_json_number(fa_json_at(row, 0)),
				                        .expect_mib = (int64_t)fa_json_number(fa_json_at(row, 1)) };
	return n;
}

static double end_of(const struct forecast *f, const struct fa_json *table, const struct fa_gate_host *host)
{
	static struct fa_gate_unit g[PARTS_MAX];
	size_t n = list_parts(g, f, table);

	return fa_gate_simulate(g, n, host, NULL).seconds;
}

/* The longest units one step further, or back. */
static int step(struct forecast *f, double longest, int by)
{
	int n = 0;

	for (size_t i = 0; i < f->n; i++) {
		struct content *c = &f->v[i];

		if (by > 0 && c->level + 1 < c->n_levels && seconds_of(c) > 0.9 * longest) {
			c->level++;
			n++;
		}
	}
	return n;
}

/* Units are divided as long as the end of the whole comes nearer by a fiftieth. */
static void divide(struct forecast *f, const struct fa_json *table)
{
	struct fa_gate_host host = f->host;
	double end;

	host.company = 0;
	host.memory_mib = -1;
	for (end = end_of(f, table, &host);;) {
		struct forecast before = *f;
		double longest = 0, shorter;

		for (size_t i = 0; i < f->n; i++)
			if (f->v[i].level + 1 < f->v[i].n_levels && seconds_of(&f->v[i]) > longest)
				longest = seconds_of(&f->v[i]);
		if (!step(f, longest, 1))
			return;
		shorter = end_of(f, table, &host);
		if (shorter < 0.98 * end) {
			end = shorter;
			continue;
		}
		for (size_t i = 0; i < f->n; i++) { /* those that were tried stay as they were, for good */
			if (f->v[i].level != before.v[i].level)
				before.v[i].n_levels = before.v[i].level + 1;
		}
		*f = before;
	}
}

static double wheel_mb(const struct fa_plan_build *b, const struct fa_json *table, double lean, size_t units)
{
	double each = fa_json_get_number(table, "wheel_mb", 0);

	return (double)units * each * (1 - lean * (1 - fa_json_get_number(table, "lean_wheel", 1))) *
	       (b->archs.n ? (double)b->archs.n : 1);
}

static bool says_fa3(const struct fa_solve *s)
{
	return s->v[FA_NAME_LINE] && !strcmp(s->v[FA_NAME_LINE], "fa3");
}

void fa_solve_forecast(const struct fa_solve *s, struct fa_plan_build *b)
{
	static struct forecast f;
	const char *memory = s->v[FA_NAME_MEMORY], *cores = s->v[FA_NAME_FACT_CORES];
	const struct fa_json *table = says_fa3(s) ? s->kb->units_table_fa3 : s->kb->units_table;
	const struct fa_kb_release *r = s->found.release;
	double lean = table ? lean_share(b, table, r) : 0;

	if (b->jobs < 1 || !table)
		return;
	f = (struct forecast){ .host = { .places = b->jobs, .memory_mib = -1, .cores = cores ? atoi(cores) : b->jobs } };
	f.host.company = fa_json_get_string(table, "company") ? strtod(fa_json_get_string(table, "company"), NULL) : 0;
	if (memory)
		f.host.memory_mib = atol(memory) - atol(memory) / 20;
	for (size_t i = 0; i < s->kb->n_units; i++) {
		const struct fa_kb_unit *u = &s->kb->units[i];

		for (int dims = fa_solve_build_dims(s, b, u); dims > 0; dims--)
			add_unit(&f, b, table, lean, u, fa_solve_unit_files(s, u));
	}
	if (!f.n)
		return;
	divide(&f, table);
	b->estimate_s = (int)(end_of(&f, table, &f.host) + fa_json_get_number(table, "after_s", 0) * (double)f.n + 0.5);
	b->wheel_mb = (int)(wheel_mb(b, table, lean, f.n) + 0.5);
	if (b->wheel_mb < 1)
		b->wheel_mb = 1;
}
