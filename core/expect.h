/* What units are expected to take: shipped in matrix/units.json, told by build.py for this profile, and measured on this machine
 * (units.json in the state folder, under "PROFILE UNIT": the same unit is another in each profile). */
#ifndef FA_EXPECT_H
#define FA_EXPECT_H

#include <stdint.h>

struct fa_json;

struct fa_expect {
	struct fa_json *shipped; /* {unit: [seconds, MiB]} */
	struct fa_json *ck;      /* the table of CK's units; NULL: none */
	/* {"PROFILE UNIT": [seconds, MiB, trust, preflight]}, "speed": [ratio, preflight, builds], "preflight": [seconds, 1]. Seconds are those of a core on this
	 * machine with every core taken (fa_units_work), not of the clock: a build beside others leaves the same as one alone.
	 * trust 0..1: the share of a core that the unit got, all that there is to say how much the others disturbed it.
	 * preflight: what the preflight's CUDA unit took then; a home may be another machine's today. */
	struct fa_json *measured, *learnt; /* learnt: in this run */
	double company, spread;            /* struct fa_gate_host, struct fa_units */
	double preflight;      /* seconds that the preflight's CUDA unit took on this machine just now; 0: not known */
	double reference;      /* and on the machine that the shipped figures are of */
	double preflight_arch; /* what each further architecture adds to it, as a share */
	double weight;         /* how far that tells of kernels: their times go with this power of the ratio */
};

struct fa_expect_sample {
	double work;  /* seconds, as above */
	double trust; /* as above */
	int64_t peak_mib;
};

/* Either table may be missing; a damaged one counts as missing. */
void fa_expect_load(struct fa_expect *e);
void fa_expect_release(struct fa_expect *e);

void fa_expect_add(struct fa_expect *e, const struct fa_json *rows); /* to the shipped ones, {unit: [seconds, MiB]} */

/* What this machine has shown of a profile: {unit: [seconds, MiB]}; seconds 0: only the peak is known. The caller's. */
struct fa_json *fa_expect_here(const struct fa_expect *e, const char *profile);

/* Seconds that this machine takes for one shipped, as learnt from builds and the preflight; 1: nothing known. */
double fa_expect_speed(const struct fa_expect *e);

/* With what was known before, each by its trust; a unit that has become another (a third off, measured well) replaces what was known. A peak
 * is one whoever else computed: the last counts. */
void fa_expect_remember(struct fa_expect *e, const char *profile, const char *unit, const struct fa_expect_sample *sample);

/* A unit was killed at this peak, or outgrew it: the next build must not start it beside so many. */
void fa_expect_outgrown(struct fa_expect *e, const char *profile, const char *unit, int64_t peak_mib);

/* Keeps what was measured, and the speed that this profile's kernels show; they were compiled for so many architectures. */
void fa_expect_store(struct fa_expect *e, const char *profile, int archs);

/* Keeps what the preflight's CUDA unit took, for the build that follows. */
void fa_expect_store_preflight(double work);

#endif
