/* Memory and cores that may be used: the machine's, and what every control group around this process leaves of them. */
#ifndef FA_MEMORY_H
#define FA_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct fa_buf;

/* Reads a (small) file into out, appended; false when it is not there. */
struct fa_memory_reader {
	bool (*read)(void *ctx, const char *path, struct fa_buf *out);
	void *ctx;
};

/* All readers may be NULL: this machine. */

/* MiB that can be taken now: least of MemAvailable and, for this process's control group and each above it (v1 and v2),
 * limit - (use - page cache that can go). -1 unknown. origin (NULL: not wanted): the file or folder that said it; the caller's, NULL
 * with -1. */
int64_t fa_memory_available_mib(const struct fa_memory_reader *reader, char **origin);

/* MiB there are at most: least of MemTotal and every limit. -1 unknown. */
int64_t fa_memory_total_mib(const struct fa_memory_reader *reader);

/* Cores by the tightest quota of a control group, "400000 100000" being 4; -1: no quota. origin as above. */
int fa_memory_cores(const struct fa_memory_reader *reader, char **origin);

/* Share of the last 10 s in which everything stood still for memory, percent; 0 where the kernel does not tell. */
double fa_memory_pressure(const struct fa_memory_reader *reader);

#endif
