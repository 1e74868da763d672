/* The facts about memory and cores: least of the machine's and of every control group this process is in (memory.h). */
#include "buf.h"
#include "memory.h"
#include "probe.h"
#include "read.h"

#include <stdlib.h>
#include <string.h>

static const char meminfo_path[] = "/proc/meminfo";

struct source {
	struct fa_probe *probe;
	char *meminfo; /* read once: it changes all the time, and a recording holds one answer */
};

static bool read_probe(void *ctx, const char *path, struct fa_buf *out)
{
	const struct source *s = ctx;
	bool known = !strcmp(path, meminfo_path), there;
	char *text = known ? NULL : fa_probe_read(s->probe, path);
	const char *answer = known ? s->meminfo : text;

	there = answer != NULL;
	if (there)
		fa_buf_adds(out, answer);
	free(text);
	return there;
}

void fa_detect_memory(struct fa_probe *p)
{
	struct source source = { p, fa_probe_read(p, meminfo_path) };
	struct fa_memory_reader reader = { read_probe, &source };
	char *origin = NULL;
	int64_t left, cores;

	if (source.meminfo)
		fa_read(p->out, "meminfo", meminfo_path, source.meminfo, strlen(source.meminfo));
	left = fa_memory_available_mib(&reader, &origin);
	if (left >= 0 && left < fa_facts_number(p->out, FA_FACT_RAM_AVAILABLE_MIB, INT64_MAX))
		fa_facts_set_number(p->out, FA_FACT_RAM_AVAILABLE_MIB, left, origin);
	free(origin);
	cores = fa_memory_cores(&reader, &origin);
	if (cores > 0 && cores < fa_facts_number(p->out, FA_FACT_CORES, 1 << 20))
		fa_facts_set_number(p->out, FA_FACT_CORES, cores, origin);
	free(origin);
	free(source.meminfo);
}
