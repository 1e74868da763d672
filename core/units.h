/* The units of one build: what each is expected to take, which run, which are done, and from that how long it still takes. */
#ifndef FA_UNITS_H
#define FA_UNITS_H

#include "gate_schedule.h"
#include "gate_table.h"
#include "load.h"
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
	double factor; /* seconds that its kind takes in this build for each expected, as far as is known */
	enum { FA_UNIT_TO_DO, FA_UNIT_RUNS, FA_UNIT_DONE } state;
	double began; /* on the caller's clock; -1: not in this run */
	double took;  /* seconds; 0: there from before */
	double cpu;   /* of a unit that runs: used so far; 0: not known */
	double busy;  /* cores of the machine that were busy while it ran; -1: unknown */
	int64_t peak_mib;
	double work; /* done of it, in seconds of a core on a machine whose every core is taken */
};

/* What one unit took. */
struct fa_unit_use {
	double seconds, cpu; /* cpu 0: not known, the seconds stand for it */
	double busy;         /* as above */
	int64_t peak_mib;
};

struct fa_units {
	struct fa_unit *v;
	size_t n;
	bool any_begun;
	double now;               /* up to when `work` is counted */
	struct fa_gate_host host; /* the machine as it is now; the caller's to set */
	double spread;  /* by how much one unit differs from what is expected of its kind, as a share; the caller's to set */
	uint64_t build; /* ours, as the gate's table knows it, and how many of ours may run at a time (0: as the places); */
	int jobs;       /* the caller's to set */
	struct fa_gate_unit *others; /* units of other builds on this machine */
	size_t n_others;
	struct fa_gate_seen *seen; /* the table when it was looked at last */
	size_t n_seen;
	double seen_at;
	struct fa_load load;
	double share, sharing, rivals; /* of late, as in struct fa_gate_host; sharing 0: not known */
};

/* Names with what is expected: `measured` (of this machine) before `shipped` (matrix/units.json): objects {name: [s, MiB]}; NULL
 * allowed. speed: what this machine takes for each second shipped, 1 if unknown; kernels take it for each architecture. A part "name.2" of a divided
 * unit takes its share of the whole. What is the caller's to set is kept. */
void fa_units_set(struct fa_units *u, const struct fa_strv *names, const struct fa_json *shipped,
                  const struct fa_json *measured, double speed, int archs);
void fa_units_release(struct fa_units *u);

/* "name seconds MiB priority" lines, as the gate reads them; the priorities are those for u->host. */
void fa_units_print(struct fa_units *u, struct fa_buf *out);

void fa_units_begin(struct fa_units *u, const char *name, double now);
void fa_units_again(struct fa_units *u, const char *name, double now); /* it will be run once more */
void fa_units_end(struct fa_units *u, const char *name, double now, const struct fa_unit_use *use);
void fa_units_there(struct fa_units *u, const char *name); /* from before, not compiled now */
void fa_units_keep(struct fa_units *u, size_t to_do);      /* all but to_do are there from before: the longest count as kept */
size_t fa_units_done(const struct fa_units *u);
size_t fa_units_running(const struct fa_units *u);

/* What the gate's table shows: how far our units are, by the time they computed and not by the clock; the units of other builds; how much
 * of the machine all of them get. load: of the machine now. */
void fa_units_see(struct fa_units *u, const struct fa_gate_seen *seen, size_t n, const struct fa_load *load, double now);

/* What a unit is expected to take by what its kind has shown so far; 0: no such unit. */
double fa_units_expected(const struct fa_units *u, const char *name);

/* Seconds of a core with every core taken: what one that took so much would have taken then. */
double fa_units_work(const struct fa_gate_host *host, const struct fa_unit_use *use);

/* Seconds until the last unit is done on u->host; -1 while nothing is known. */
double fa_units_left(struct fa_units *u, double now);
double fa_units_whole(struct fa_units *u);            /* of all that is to do, before the first has begun */
double fa_units_rest(struct fa_units *u, double now); /* until those that run are done, nothing new starting */

#endif
