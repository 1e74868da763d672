/* The units of one build: what each is expected to take, which run, which are done, and from that how long it still takes. */
#ifndef FA_UNITS_H
#define FA_UNITS_H

#include "gate_schedule.h"
#include "strv.h"

#include <stdbool.h>
#include <stdint.h>

struct fa_json;
struct fa_buf;

struct fa_unit {
	char *name;
	int kind;        /* units of one kind ("flash_bwd") are late or early together */
	double expect_s; /* before anything is known of this build's speed; 0: unknown */
	int64_t expect_mib;
	double priority;
	enum { FA_UNIT_TO_DO, FA_UNIT_RUNS, FA_UNIT_DONE } state;
	double began; /* on the caller's clock; -1: not in this run */
	double took;  /* seconds; 0: there from before */
	double cpu;
	int64_t peak_mib;
	double work; /* done of it, in seconds on a machine whose every core is taken */
};

struct fa_units {
	struct fa_unit *v;
	size_t n;
	bool any_begun;
	double now;               /* up to when `work` is counted */
	struct fa_gate_host host; /* the machine as it is now; the caller's to set */
};

/* Names with what is expected: `measured` (of this machine) before `shipped` (matrix/units.json): objects {name: [s, MiB]}; NULL
 * allowed. speed: what this machine takes for each second shipped of a kernel, 1 if unknown. A part "name.2" of a divided unit takes its share of
 * the whole. host is kept. */
void fa_units_set(struct fa_units *u, const struct fa_strv *names, const struct fa_json *shipped,
                  const struct fa_json *measured, double speed);
void fa_units_release(struct fa_units *u);

/* "name seconds MiB priority" lines, as the gate reads them; the priorities are those for u->host. */
void fa_units_print(struct fa_units *u, struct fa_buf *out);

void fa_units_begin(struct fa_units *u, const char *name, double now);
void fa_units_again(struct fa_units *u, const char *name, double now); /* it will be run once more */
void fa_units_end(struct fa_units *u, const char *name, double now, double took, double cpu, int64_t peak_mib);
void fa_units_there(struct fa_units *u, const char *name); /* from before, not compiled now */
void fa_units_keep(struct fa_units *u, size_t to_do);      /* all but to_do are there from before: the longest count as kept */
size_t fa_units_done(const struct fa_units *u);
size_t fa_units_running(const struct fa_units *u);

/* Seconds until the last unit is done on u->host; -1 while nothing is known. */
double fa_units_left(struct fa_units *u, double now);
double fa_units_rest(struct fa_units *u, double now); /* until those that run are done, nothing new starting */

#endif
