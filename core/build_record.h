/* The record of one build: the machine, each unit with its time and memory, and what was said on the way about how long it still takes.
 * It lies in the log folder as build.json and in the wheelhouse beside the wheel. `tests/proof/gate_simulate` replays it.
 *
 *   { "schema": "fainstall.build/1", "flash_attn": "2.8.3", "profile": "bf16.d128", "archs": ["90"], "cores": 16, "places": 16,
 *     "memory_mib": 120000, "seconds": 158.1, "preflight": 2.1, "speed": 1.02,
 *     "units": [ { "unit": "flash_api", "begin": 2.1, "seconds": 44.0, "cpu": 43.8, "busy": 15.9, "peak_mib": 1400, "expect_s": 45, "expect_mib": 1400 },
 *                { "unit": "profile", "kept": true, … } ],
 *     "estimates": [ [10.0, 150.2], … ] }
 *
 * Seconds count from the start of the build; an estimate is [when, how long still]. busy: cores of the machine that were busy while the unit
 * ran, by whomever. preflight: what the preflight's CUDA unit took; speed: what a second shipped was counted as. */
#ifndef FA_BUILD_RECORD_H
#define FA_BUILD_RECORD_H

#include "plan.h"
#include "units.h"

struct fa_json;
struct fa_expect;

/* Adds an estimate, when the last one is long enough ago. */
void fa_build_record_estimate(struct fa_json *estimates, double at, double left);

/* began: of the build, on the clock of the units. estimates is copied. The caller's. */
struct fa_json *fa_build_record(const struct fa_units *units, const struct fa_plan_build *plan, const char *version,
                                const char *profile, double began, double now, const struct fa_expect *expect,
                                const struct fa_json *estimates);

#endif
