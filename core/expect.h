/* What units are expected to take: shipped in matrix/units.json, told by build.py for this profile, and measured on this machine
 * (units.json in the state folder, under "PROFILE UNIT": the same unit is another in each profile). */
#ifndef FA_EXPECT_H
#define FA_EXPECT_H

#include <stdint.h>

struct fa_json;

struct fa_expect {
	struct fa_json *shipped; /* {unit: [seconds, MiB]} */
	struct fa_json *measured;
	double company; /* struct fa_gate_host */
};

/* Either table may be missing; a damaged one counts as missing. */
void fa_expect_load(struct fa_expect *e);
void fa_expect_release(struct fa_expect *e);

void fa_expect_add(struct fa_expect *e, const struct fa_json *rows); /* to the shipped ones, {unit: [seconds, MiB]} */

/* What this machine has shown of a profile: {unit: [seconds, MiB]}. The caller's. */
struct fa_json *fa_expect_here(const struct fa_expect *e, const char *profile);

/* Seconds that this machine takes for one shipped of a kernel, as learnt from the last build; 1: nothing known. */
double fa_expect_speed(const struct fa_expect *e);

void fa_expect_remember(struct fa_expect *e, const char *profile, const char *unit, double seconds, int64_t peak_mib);

/* Keeps what was measured, and the speed that this profile's kernels show; they were compiled for so many architectures. */
void fa_expect_store(struct fa_expect *e, const char *profile, int archs);

#endif
