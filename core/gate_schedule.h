/* A build on paper: when its units start and end on a machine, by the gate's own decision (fa_gate_choose) on a clock of its own. From
 * it come the order of the units, the estimates, and the simulator (tests/proof/gate_simulate). */
#ifndef FA_GATE_SCHEDULE_H
#define FA_GATE_SCHEDULE_H

#include "gate.h"

/* The machine as far as time goes. */
struct fa_gate_host {
	int places;         /* units at a time: cores, or less by --jobs */
	int64_t memory_mib; /* for all units together, the reserve taken off; -1: no limit */
	/* Expected seconds are those of a unit on a machine whose every core compiles. Beside fewer it is faster: a unit alone takes
	 * 1 / (1 + company) of them. 0: always the same. */
	int cores;
	double company;
	double foreign; /* cores that programs other than compilers keep busy: company too */
	/* Where there is not a core for everybody: the share of one that each of `sharing` units got while so many threads of others wanted to
	 * run too. share 0: each gets a core. */
	double share, sharing, rivals;
	uint64_t build; /* only the end of this build's units is asked for; 0: of all */
};

struct fa_gate_outcome {
	double seconds;   /* until all that is asked for is done */
	int64_t most_mib; /* of all units that ran at a time, at their peaks */
	int most_running;
};

/* What a second of a core is worth while `busy` of them are: 1 when every core is taken, more beside fewer. */
double fa_gate_speed(const struct fa_gate_host *host, double busy);

/* Seconds as expected that a unit gets done in one second while `running` of them run. Rivals keep their weight against each unit, but
 * none of them takes more than a core; without rivals it is a quota, shared evenly. */
double fa_gate_pace(const struct fa_gate_host *host, int running);

/* FREE units are done and not counted; a RUNNING one has waited_s behind it, of seconds as expect_s counts them. starts (n of them;
 * NULL: not wanted): when each began. */
struct fa_gate_outcome fa_gate_simulate(const struct fa_gate_unit *units, size_t n, const struct fa_gate_host *host,
                                        double *starts);

/* Gives the units priorities: longest first, then better. Longest first wastes up to a tenth with a handful of units for each core, and
 * up to a quarter where memory is the limit; other orders are tried, always the same ones, and the best is kept. */
void fa_gate_order(struct fa_gate_unit *units, size_t n, const struct fa_gate_host *host);

#endif
