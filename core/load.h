/* How busy the whole machine is, whoever keeps it busy. */
#ifndef FA_LOAD_H
#define FA_LOAD_H

#include <stdbool.h>

/* Seconds of all cores together since the machine started, from /proc/stat and /proc/loadavg. */
struct fa_load {
	double busy, all;
	int cpus;
	int runnable; /* threads that ran or wanted to, at this moment */
};

/* false: the kernel does not tell; all 0 then. */
bool fa_load_read(struct fa_load *out);

/* Cores that were busy on average between two looks; -1: unknown, or no time passed. */
double fa_load_between(const struct fa_load *from, const struct fa_load *to);

#endif
