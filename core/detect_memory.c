/* The facts about memory and cores: least of the machine's and of every control group this process is in (memory.h). */
#include "buf.h"
#include "memory.h"
#include "probe.h"
#include "read.h"

#include <stdlib.h>
#include <string.h>

static bool read_probe(void *ctx, const char *path, struct fa_buf *out)
{
	char *text = fa_probe_read(ctx, path);
	bool there = text != NULL;

	if (there)
		fa_buf_adds(out, text);
	free(text);
	return there;
}

void fa_detect_memory(struct fa_probe *p)
{
	static const char path[] = "/proc/meminfo";
	struct fa_memory_reader reader = { read_probe, p };
	char *text = fa_probe_read(p, path), *origin = NULL;
	int64_t left, cores;

	if (text)
		fa_read(p->out, "meminfo", path, text, strlen(text));
	free(text);
	left = fa_memory_available_mib(&reader, &origin);
	if (left >= 0 && left < fa_facts_number(p->out, FA_FACT_RAM_AVAILABLE_MIB, INT64_MAX))
		fa_facts_set_number(p->out, FA_FACT_RAM_AVAILABLE_MIB, left, origin);
	free(origin);
	cores = fa_memory_cores(&reader, &origin);
	if (cores > 0 && cores < fa_facts_number(p->out, FA_FACT_CORES, 1 << 20))
		fa_facts_set_number(p->out, FA_FACT_CORES, cores, origin);
	free(origin);
}
