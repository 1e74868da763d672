#include "gate.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

static int64_t still_to_grow(const struct fa_gate_unit *u)
{
	return u->expect_mib > u->rss_mib ? u->expect_mib - u->rss_mib : 0;
}

struct sums {
	int running;
	bool alone;      /* one that must be alone is running */
	int64_t growing; /* MiB that the running ones will still take */
	int waiting;     /* not counting those that must be alone */
};

static struct sums sum(const struct fa_gate_unit *units, size_t n)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (units[i].state == FA_GATE_RUNNING) {
			s.running++;
			s.alone |= units[i].alone;
			s.growing += still_to_grow(&units[i]);
		} else if (units[i].state == FA_GATE_WAITING && !units[i].alone) {
			s.waiting++;
		}
	}
	return s;
}

static bool within_jobs(const struct fa_gate_unit *units, size_t n, const struct fa_gate_unit *u)
{
	int running = 0;

	for (size_t i = 0; u->jobs && i < n; i++)
		running += units[i].state == FA_GATE_RUNNING && units[i].build == u->build;
	return !u->jobs || running < u->jobs;
}

static bool fits(const struct fa_gate_unit *u, const struct sums *s, const struct fa_gate_room *room)
{
	if (room->available_mib < 0)
		return true;
	return u->expect_mib <= room->available_mib - room->reserve_mib - s->growing;
}

static bool may_start(const struct fa_gate_unit *units, size_t n, const struct fa_gate_unit *u, const struct sums *s,
                      const struct fa_gate_room *room)
{
	if (u->alone)
		return !s->running && !s->waiting;
	if (!within_jobs(units, n, u))
		return false;
	return fits(u, s, room) || (!s->running && u->waited_s >= FA_GATE_PATIENCE_S);
}

int fa_gate_choose(const struct fa_gate_unit *units, size_t n, const struct fa_gate_room *room)
{
	struct sums s = sum(units, n);
	int best = -1;

	if (s.alone || s.running >= room->cores || (s.running && room->pressure >= FA_GATE_PRESSURE))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (units[i].state == FA_GATE_WAITING && (best < 0 || units[i].priority > units[best].priority) &&
		    may_start(units, n, &units[i], &s, room))
			best = (int)i;
	return best;
}

static double left_of(const struct fa_gate_unit *u)
{
	double left = u->expect_s - u->waited_s, overdue = 0.1 * u->waited_s;

	if (overdue < 1)
		overdue = 1;
	return left > overdue ? left : overdue; /* late already: nobody knows how long still */
}

/* The running unit that ends first; its end becomes the clock. */
static int first_end(const struct fa_gate_unit *units, const double *ends, size_t n)
{
	int first = -1;

	for (size_t i = 0; i < n; i++)
		if (units[i].state == FA_GATE_RUNNING && (first < 0 || ends[i] < ends[first]))
			first = (int)i;
	return first;
}

double fa_gate_simulate(const struct fa_gate_unit *units, size_t n, int cores, int64_t memory_mib)
{
	struct fa_gate_unit *u = fa_calloc(n ? n : 1, sizeof(*u));
	double *ends = fa_calloc(n ? n : 1, sizeof(*ends)), now = 0;
	struct fa_gate_room room = { .cores = cores > 0 ? cores : 1, .available_mib = memory_mib };
	int i;

	for (size_t k = 0; k < n; k++) {
		u[k] = units[k];
		u[k].rss_mib = 0; /* the whole peak is set aside from the start, as `growing` */
		if (u[k].state == FA_GATE_RUNNING)
			ends[k] = left_of(&u[k]);
		else
			u[k].waited_s = FA_GATE_PATIENCE_S;
	}
	for (;;) {
		while ((i = fa_gate_choose(u, n, &room)) >= 0) {
			u[i].state = FA_GATE_RUNNING;
			ends[i] = now + (u[i].expect_s > 0 ? u[i].expect_s : 1);
		}
		if ((i = first_end(u, ends, n)) < 0)
			break;
		now = ends[i];
		u[i].state = FA_GATE_FREE;
	}
	free(u);
	free(ends);
	return now;
}

/* ---- a better order than longest first */

enum { ORDER_TRIES = 4000, ORDER_UNITS = 400 };

/* The k-th of `order` goes to the core that is free first. Returns when the last one ends. */
static double list_end(const struct fa_gate_unit *units, const int *order, size_t n, double *ends, int cores)
{
	double last = 0;

	for (int c = 0; c < cores; c++)
		ends[c] = 0;
	for (size_t k = 0; k < n; k++) {
		int first = 0;

		for (int c = 1; c < cores; c++)
			if (ends[c] < ends[first])
				first = c;
		ends[first] += units[order[k]].expect_s;
		if (ends[first] > last)
			last = ends[first];
	}
	return last;
}

static void longest_first(const struct fa_gate_unit *units, int *order, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 0 && units[order[k - 1]].expect_s < units[i].expect_s; k--)
			order[k] = order[k - 1];
		order[k] = (int)i;
	}
}

static void swap(int *a, int *b)
{
	int t = *a;

	*a = *b;
	*b = t;
}

void fa_gate_order(struct fa_gate_unit *units, size_t n, int cores)
{
	int *order = fa_calloc(n ? n : 1, sizeof(*order)), usable = cores > 0 && cores < (int)n ? cores : 0;
	double *ends = fa_calloc(cores > 0 ? (size_t)cores : 1, sizeof(*ends)), end;
	unsigned seed = 1;

	longest_first(units, order, n);
	end = list_end(units, order, n, ends, usable ? usable : 1);
	for (int i = 0; i < ORDER_TRIES && usable > 1 && n <= ORDER_UNITS; i++) {
		int *a = &order[(seed = seed * 1103515245u + 12345u) / 65536u % n];
		int *b = &order[(seed = seed * 1103515245u + 12345u) / 65536u % n];
		double tried;

		swap(a, b);
		tried = list_end(units, order, n, ends, usable);
		if (tried <= end)
			end = tried;
		else
			swap(a, b);
	}
	for (size_t k = 0; k < n; k++)
		units[k].priority = units[k].expect_s;
	if (usable >
	    1) { /* the k-th to start gets the k-th longest time: priorities stay comparable with those of other builds */
		int *sorted = fa_calloc(n, sizeof(*sorted));

		longest_first(units, sorted, n);
		for (size_t k = 0; k < n; k++)
			units[order[k]].priority = units[sorted[k]].expect_s + 1e-6 * (double)(n - k);
		free(sorted);
	}
	free(order);
	free(ends);
}

/* ---- what a compiler says */

static bool has(const char *line, size_t len, const char *word)
{
	return memmem(line, len, word, strlen(word)) != NULL;
}

static bool says_error(const char *line, size_t len)
{
	static const char *const words[] = { "error:",
		                             " error ",
		                             "error C",
		                             "fatal error",
		                             "fatal   :",
		                             "nvcc fatal",
		                             "ptxas fatal",
		                             "#error",
		                             "undefined reference",
		                             "No space left",
		                             "died due to signal",
		                             "Killed",
		                             "cannot find",
		                             "not found" };

	if (has(line, len, "warning"))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (has(line, len, words[i]))
			return true;
	return false;
}

const char *fa_gate_first_error(const char *text, size_t *len)
{
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		while (line < end && (*line == ' ' || *line == '\t'))
			line++;
		if (says_error(line, (size_t)(end - line))) {
			*len = (size_t)(end - line);
			return line;
		}
	}
	return NULL;
}

bool fa_gate_speaks_of_memory(const char *text)
{
	static const char *const words[] = {
		"died due to signal 9", "signal 9 ",     "terminated signal", "Killed",
		"out of memory",        "Out of memory", "bad_alloc",         "Cannot allocate memory"
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}
