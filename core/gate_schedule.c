#include "gate_schedule.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

double fa_gate_speed(const struct fa_gate_host *host, double busy)
{
	double share = host->cores > 1 ? (busy - 1) / (host->cores - 1) : 1;

	share = share > 1 ? 1 : share < 0 ? 0 : share;
	return (1 + host->company) / (1 + host->company * share);
}

static double share_of(const struct fa_gate_host *host, int running)
{
	double weight, by_weight, left;

	if (host->share <= 0 || running < 1)
		return 1;
	if (host->rivals < 0.5)
		return host->share * host->sharing / running;
	weight = host->cores / host->share - host->sharing; /* of all rivals together; a unit's is 1 */
	by_weight = host->cores / ((weight > 0 ? weight : 0) + running);
	left = (host->cores - host->rivals) / running;
	return by_weight > left ? by_weight : left;
}

double fa_gate_pace(const struct fa_gate_host *host, int running)
{
	double share = share_of(host, running);

	return (share < 1 ? share : 1) * fa_gate_speed(host, running + host->foreign);
}

/* ---- one run on paper */

static double left_of(const struct fa_gate_unit *u)
{
	double left = u->expect_s - u->waited_s, overdue = 0.1 * u->waited_s;

	if (u->state != FA_GATE_RUNNING)
		return u->expect_s > 0 ? u->expect_s : 1;
	if (overdue < 1)
		overdue = 1;
	return left > overdue ? left : overdue; /* late already: nobody knows how long still */
}

struct clock {
	struct fa_gate_unit *u; /* a copy of those that are not done */
	double *left;           /* of each, in seconds as expected */
	size_t *place;          /* of each in the caller's list */
	size_t n;
	double *starts; /* the caller's; NULL: not wanted */
	struct fa_gate_room room;
	struct fa_gate_outcome sum;
	int running;
	size_t asked; /* units whose end is waited for */
	int64_t running_mib;
};

static bool is_asked(const struct fa_gate_host *host, const struct fa_gate_unit *u)
{
	return !host->build || u->build == host->build;
}

static void count(struct clock *c, const struct fa_gate_unit *u)
{
	c->running++;
	c->running_mib += u->expect_mib;
	if (c->running > c->sum.most_running)
		c->sum.most_running = c->running;
	if (c->running_mib > c->sum.most_mib)
		c->sum.most_mib = c->running_mib;
}

static void start_what_may(struct clock *c)
{
	int i;

	while ((i = fa_gate_choose(c->u, c->n, &c->room)) >= 0) {
		c->u[i].state = FA_GATE_RUNNING;
		count(c, &c->u[i]);
		if (c->starts)
			c->starts[c->place[i]] = c->sum.seconds;
	}
}

static void take_out(struct clock *c, size_t i, const struct fa_gate_host *host)
{
	c->asked -= is_asked(host, &c->u[i]);
	c->running--;
	c->running_mib -= c->u[i].expect_mib;
	c->n--;
	c->u[i] = c->u[c->n];
	c->left[i] = c->left[c->n];
	c->place[i] = c->place[c->n];
}

/* To the end of the unit that ends first; false: none runs, or no end is waited for any more. */
static bool go_on(struct clock *c, const struct fa_gate_host *host)
{
	double least = -1;

	for (size_t i = 0; i < c->n; i++)
		if (c->u[i].state == FA_GATE_RUNNING && (least < 0 || c->left[i] < least))
			least = c->left[i];
	if (least < 0)
		return false;
	c->sum.seconds += least / fa_gate_pace(host, c->running);
	for (size_t i = c->n; i-- > 0;)
		if (c->u[i].state == FA_GATE_RUNNING && (c->left[i] -= least) <= 1e-9)
			take_out(c, i, host);
	return c->asked > 0;
}

static void run(struct clock *c, const struct fa_gate_unit *units, size_t n, const struct fa_gate_host *host)
{
	c->room = (struct fa_gate_room){ .cores = host->places > 0 ? host->places : 1, .available_mib = host->memory_mib };
	c->sum = (struct fa_gate_outcome){ 0 };
	c->running = 0;
	c->running_mib = 0;
	c->asked = 0;
	c->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct fa_gate_unit *u = &c->u[c->n];

		if (units[i].state == FA_GATE_FREE)
			continue;
		*u = units[i];
		c->left[c->n] = left_of(u);
		c->place[c->n++] = i;
		c->asked += is_asked(host, u);
		if (u->state == FA_GATE_RUNNING)
			count(c, u);
		u->rss_mib = 0; /* the whole peak is set aside from the start, as what will still grow */
		u->waited_s = FA_GATE_PATIENCE_S;
	}
	do
		start_what_may(c);
	while (c->asked && go_on(c, host));
}

static void clock_init(struct clock *c, size_t n)
{
	*c = (struct clock){ .u = fa_calloc(n + 1, sizeof(*c->u)),
		             .left = fa_calloc(n + 1, sizeof(*c->left)),
		             .place = fa_calloc(n + 1, sizeof(*c->place)) };
}

static void clock_release(struct clock *c)
{
	free(c->u);
	free(c->left);
	free(c->place);
}

struct fa_gate_outcome fa_gate_simulate(const struct fa_gate_unit *units, size_t n, const struct fa_gate_host *host,
                                        double *starts)
{
	struct clock c;

	clock_init(&c, n);
	c.starts = starts;
	run(&c, units, n, host);
	clock_release(&c);
	return c.sum;
}

/* ---- a better order than longest first */

enum { FIRST_TRIES = 700, MORE_TRIES = 5000, ORDER_UNITS = 400, LOOKS = 75000000 /* at units, in all tries: about a second */ };

static double by_seconds(const struct fa_gate_unit *u)
{
	return u->expect_s;
}

static double by_area(const struct fa_gate_unit *u)
{
	return u->expect_s * (double)u->expect_mib;
}

static double by_memory(const struct fa_gate_unit *u)
{
	return (double)u->expect_mib;
}

static void largest_first(int *order, const struct fa_gate_unit *units, size_t n, double (*of)(const struct fa_gate_unit *))
{
	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 0 && of(&units[order[k - 1]]) < of(&units[i]); k--)
			order[k] = order[k - 1];
		order[k] = (int)i;
	}
}

/* The k-th to start gets the k-th longest time: priorities stay comparable with those of other builds. */
static void give_priorities(struct fa_gate_unit *units, size_t n, const int *order, const int *longest)
{
	for (size_t k = 0; k < n; k++)
		units[order[k]].priority = units[longest[k]].expect_s + 1e-6 * (double)(n - k);
}

struct search {
	struct fa_gate_unit *units;
	size_t n;
	struct fa_gate_host host; /* time without company: the order is the same */
	struct clock clock;
	int *longest, *order, *kept;
	unsigned seed;
};

static double end_of(struct search *s)
{
	give_priorities(s->units, s->n, s->order, s->longest);
	run(&s->clock, s->units, s->n, &s->host);
	return s->clock.sum.seconds;
}

static size_t draw(struct search *s)
{
	s->seed = s->seed * 1103515245u + 12345u;
	return s->seed / 65536u % s->n;
}

/* Two change places, or one goes to the other's. */
static void change(struct search *s)
{
	size_t a = draw(s), b = draw(s);
	int moved = s->order[a];

	if (draw(s) % 2) {
		s->order[a] = s->order[b];
		s->order[b] = moved;
		return;
	}
	if (a < b)
		memmove(&s->order[a], &s->order[a + 1], (b - a) * sizeof(*s->order));
	else
		memmove(&s->order[b + 1], &s->order[b], (a - b) * sizeof(*s->order));
	s->order[b] = moved;
}

/* From one order by changes that do no harm; leaves it in s->order. */
static double improve(struct search *s, int tries, double good_enough)
{
	double end = end_of(s);

	for (int i = 0; i < tries && end > good_enough; i++) {
		double tried;

		memcpy(s->kept, s->order, s->n * sizeof(*s->order));
		change(s);
		tried = end_of(s);
		if (tried <= end)
			end = tried;
		else
			memcpy(s->order, s->kept, s->n * sizeof(*s->order));
	}
	return end;
}

/* What no order can be faster than. */
static double least_time(const struct search *s)
{
	double work = 0, area = 0, longest = 0, least;

	for (size_t i = 0; i < s->n; i++) {
		work += s->units[i].expect_s;
		area += by_area(&s->units[i]);
		if (s->units[i].expect_s > longest)
			longest = s->units[i].expect_s;
	}
	least = work / s->host.places > longest ? work / s->host.places : longest;
	area = s->host.memory_mib > 0 ? area / (double)s->host.memory_mib : 0;
	return area > least ? area : least;
}

/* A few tries from each start, many from what was best. */
static void search_orders(struct search *s)
{
	static double (*const starts[])(const struct fa_gate_unit *) = { by_seconds, by_area, by_memory };
	enum { N = sizeof(starts) / sizeof(*starts) };
	int *best = fa_calloc(s->n, sizeof(*best));
	double best_end = -1, enough = 1.005 * least_time(s),
	       scale = (double)LOOKS / (double)(s->n * s->n) / (N * FIRST_TRIES + MORE_TRIES);

	scale = scale > 1 ? 1 : scale;
	for (size_t i = 0; i <= N && (best_end < 0 || best_end > enough); i++) {
		double end;

		if (i < N)
			largest_first(s->order, s->units, s->n, starts[i]);
		else
			memcpy(s->order, best, s->n * sizeof(*best));
		end = improve(s, (int)(scale * (i < N ? FIRST_TRIES : MORE_TRIES)), enough);
		if (best_end < 0 || end < best_end) {
			best_end = end;
			memcpy(best, s->order, s->n * sizeof(*best));
		}
	}
	give_priorities(s->units, s->n, best, s->longest);
	free(best);
}

void fa_gate_order(struct fa_gate_unit *units, size_t n, const struct fa_gate_host *host)
{
	struct search s = { .units = units, .n = n, .host = *host, .seed = 3 };

	s.host.company = s.host.share = 0;
	s.host.build = 0;
	for (size_t k = 0; k < n; k++)
		units[k].priority = units[k].expect_s;
	if (host->places < 2 || n < 2 || n > ORDER_UNITS)
		return;
	clock_init(&s.clock, n);
	s.longest = fa_calloc(n, sizeof(*s.longest));
	s.order = fa_calloc(n, sizeof(*s.order));
	s.kept = fa_calloc(n, sizeof(*s.kept));
	largest_first(s.longest, units, n, by_seconds);
	search_orders(&s);
	clock_release(&s.clock);
	free(s.longest);
	free(s.order);
	free(s.kept);
}
