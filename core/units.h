/* The units of one build: what each is expected to take, which run, which are done, and from that how long it still takes. */
#ifndef FA_UNITS_H
#define FA_UNITS_H

#include "gate.h"
#include "strv.h"

#include <stdbool.h>
#include <stdint.h>

struct fa_json;
struct fa_buf;

struct fa_unit {
	char *name;
	double expect_s; /* before anything is known of this build's speed; 0: unknown */
	int64_t expect_mib;
	double priority;
	enum { FA_UNIT_TO_DO, FA_UNIT_RUNS, FA_UNIT_DONE } state;
	double began, took;
};

struct fa_units {
	struct fa_unit *v;
	size_t n;
	bool any_begun;
	double speed; /* seconds taken for each second expected, as learnt so far; 1 at first */
};

/* Names with what is expected: `measured` (of this machine) before `shipped` (matrix/units.json): objects {name: [s, MiB]}; NULL
 * allowed. A part "name.2" of a divided unit takes its share of the whole. */
void fa_units_set(struct fa_units *u, const struct fa_strv *names, const struct fa_json *shipped,
                  const struct fa_json *measured);
void fa_units_release(struct fa_units *u);

/* "name seconds MiB priority" lines, as the gate reads them; the priorities are those for so many places. */
void fa_units_print(struct fa_units *u, int jobs, struct fa_buf *out);

void fa_units_begin(struct fa_units *u, const char *name, double now);
void fa_units_again(struct fa_units *u, const char *name); /* it will be run once more */
void fa_units_end(struct fa_units *u, const char *name, double seconds);
void fa_units_keep(struct fa_units *u, size_t to_do); /* all but to_do are there from before: the longest count as kept */
size_t fa_units_done(const struct fa_units *u);
size_t fa_units_running(const struct fa_units *u);

/* Seconds until the last unit is done with `jobs` places and memory_mib (-1: enough); -1 while nothing is known. */
double fa_units_left(const struct fa_units *u, double now, int jobs, int64_t memory_mib);

#endif
