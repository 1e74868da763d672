/* Memory that may be used: the machine's, and what every control group around this process leaves of it. */
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

/* MiB that can be taken now: least of MemAvailable and, for this process's control group and each above it (v1 and v2),
 * limit - (use - page cache that can go). -1 unknown. NULL: this machine. */
int64_t fa_memory_available_mib(const struct fa_memory_reader *reader);

/* MiB there are at most: least of MemTotal and every limit. -1 unknown. */
int64_t fa_memory_total_mib(const struct fa_memory_reader *reader);

#endif
