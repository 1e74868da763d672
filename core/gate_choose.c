#include "gate.h"

#include <string.h>

static int64_t still_to_grow(const struct fa_gate_unit *u)
{
	return u->expect_mib > u->rss_mib ? u->expect_mib - u->rss_mib : 0;
}

size_t fa_gate_kind(const char *unit)
{
	const char *dim = strstr(unit, "_hdim");

	return dim ? (size_t)(dim - unit) : strcspn(unit, ".");
}

/* It must be alone, and nothing else of its build is left to do. */
static bool is_due(const struct fa_gate_unit *units, size_t n, const struct fa_gate_unit *u)
{
	if (u->state != FA_GATE_WAITING || !u->alone)
		return false;
	for (size_t i = 0; i < n; i++)
		if (units[i].build == u->build && units[i].state != FA_GATE_FREE && !units[i].alone)
			return false;
	return true;
}

struct sums {
	int running;
	bool alone;      /* one that must be alone is running, or its turn has come */
	int64_t growing; /* MiB that the running ones will still take */
};

static struct sums sum(const struct fa_gate_unit *units, size_t n)
{
	struct sums s = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (units[i].state == FA_GATE_RUNNING) {
			s.running++;
			s.alone |= units[i].alone;
			s.growing += still_to_grow(&units[i]);
		} else if (units[i].alone) {
			s.alone |= is_due(units, n, &units[i]);
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
		return !s->running && is_due(units, n, u);
	if (s->alone || !within_jobs(units, n, u))
		return false;
	return fits(u, s, room) || (!s->running && u->waited_s >= FA_GATE_PATIENCE_S);
}

int fa_gate_choose(const struct fa_gate_unit *units, size_t n, const struct fa_gate_room *room)
{
	struct sums s = sum(units, n);
	int best = -1;

	if (s.running >= room->cores || (s.alone && s.running) || (s.running && room->pressure >= FA_GATE_PRESSURE))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (units[i].state == FA_GATE_WAITING && (best < 0 || units[i].priority > units[best].priority) &&
		    may_start(units, n, &units[i], &s, room))
			best = (int)i;
	return best;
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
