#include "load.h"

#include "buf.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "cpu" and "cpuN" lines stand first. Fields: user nice system idle iowait irq softirq steal, and more that are counted in the first two. */
static void read_stat(struct fa_load *out, const char *text)
{
	double v[8] = { 0 }, hz = (double)sysconf(_SC_CLK_TCK);
	int n = 0;

	if (strncmp(text, "cpu ", 4) != 0)
		return;
	for (const char *p = text + 3; n < 8 && *p == ' '; n++) {
		char *end;

		v[n] = strtod(p, &end);
		p = end;
	}
	out->busy = (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / hz;
	out->all = out->busy + (v[3] + v[4]) / hz;
	while ((text = strchr(text, '\n')) && !strncmp(++text, "cpu", 3))
		out->cpus++;
}

bool fa_load_read(struct fa_load *out)
{
	struct fa_buf stat = FA_BUF_INIT, average = FA_BUF_INIT;

	*out = (struct fa_load){ 0 };
	if (fa_file_read(&stat, "/proc/stat", 8 << 20, NULL) == 0)
		read_stat(out, fa_buf_str(&stat));
	if (fa_file_read(&average, "/proc/loadavg", 4096, NULL) == 0 &&
	    sscanf(fa_buf_str(&average), "%*s %*s %*s %d/", &out->runnable) != 1)
		out->runnable = 0;
	fa_buf_release(&stat);
	fa_buf_release(&average);
	return out->cpus > 0 && out->all > 0;
}

double fa_load_between(const struct fa_load *from, const struct fa_load *to)
{
	double all = to->all - from->all, busy = to->busy - from->busy;

	if (from->cpus < 1 || to->cpus < 1 || all <= 0 || busy < 0)
		return -1;
	return busy / all * to->cpus;
}
