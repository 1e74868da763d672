#include "load.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool fa_load_read(struct fa_load *out)
{
	FILE *f = fopen("/proc/stat", "re");
	double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0, steal = 0,
	       hz = (double)sysconf(_SC_CLK_TCK);
	char line[512];

	*out = (struct fa_load){ 0 };
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f) && !strncmp(line, "cpu", 3)) {
		if (line[3] != ' ')
			out->cpus++;
		else if (sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &waiting, &irq,
		                &soft, &steal) < 4)
			break;
	}
	fclose(f);
	f = fopen("/proc/loadavg", "re");
	if (f && fscanf(f, "%*s %*s %*s %d/", &out->runnable) != 1)
		out->runnable = 0;
	if (f)
		fclose(f);
	out->busy = (user + nice + system + irq + soft + steal) / hz;
	out->all = out->busy + (idle + waiting) / hz;
	return out->cpus > 0 && out->all > 0;
}

double fa_load_between(const struct fa_load *from, const struct fa_load *to)
{
	double all = to->all - from->all, busy = to->busy - from->busy;

	if (from->cpus < 1 || to->cpus < 1 || all <= 0 || busy < 0)
		return -1;
	return busy / all * to->cpus;
}
