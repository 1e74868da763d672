/* The gate's schedule on paper: over the recorded units of upstream's full build, and against builds as they were. See the script of the
 * same name. */
#include "schedule.h"

#include "expect.h"

static const int cores[] = { 1, 2, 4, 8, 16, 32, 64, 128 };
static const int gib[] = { 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 0 };
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void upstream_order(struct fa_gate_unit *u, size_t n)
{
	for (size_t i = 0; i < n; i++)
		u[i].priority = (double)(n - i); /* the file is sorted by name */
}

/* One row: the gate's end as a multiple of the best possible; below it upstream's order under the same limits. */
static bool row(struct fa_gate_unit *u, size_t n, int places)
{
	double upstream[COUNT(gib)];
	bool within = true;

	printf("%4d cores  ", places);
	for (size_t g = 0; g < COUNT(gib); g++) {
		struct fa_gate_host host = { .places = places, .memory_mib = gib[g] ? gib[g] * 1024 : -1 };
		double best = best_possible(u, n, places, gib[g] * 1024.0);
		struct fa_gate_outcome got;

		upstream_order(u, n);
		upstream[g] = fa_gate_simulate(u, n, &host, NULL).seconds / best;
		fa_gate_order(u, n, &host);
		got = fa_gate_simulate(u, n, &host, NULL);
		within &= got.seconds <= best * (places >= 48 && (gib[g] == 160 || gib[g] == 192) ? 1.10 : 1.05);
		within &= host.memory_mib < 0 || got.most_mib <= host.memory_mib;
		printf(" %6.3f", got.seconds / best);
		fflush(stdout);
	}
	printf("\n  upstream  ");
	for (size_t g = 0; g < COUNT(gib); g++)
		printf(" %6.3f", upstream[g]);
	puts("");
	return within;
}

static bool table(void)
{
	struct fa_gate_unit u[MAX_UNITS];
	struct fa_gate_host host = { .places = 16, .memory_mib = -1 };
	size_t n = read_full_build(u, NULL);
	bool within = n == 72;
	double got;

	puts("End of the build as a multiple of the best that any order can reach; GiB for all units together:");
	printf("            ");
	for (size_t g = 0; g < COUNT(gib); g++)
		if (gib[g])
			printf(" %6d", gib[g]);
		else
			printf(" %6s", "any");
	puts("");
	for (size_t c = 0; c < COUNT(cores); c++)
		within &= row(u, n, cores[c]);
	upstream_order(u, n);
	got = fa_gate_simulate(u, n, &host, NULL).seconds;
	printf("upstream's build, 16 cores: %.0f s on paper, 1249 s measured, %+.1f %%\n", got, 100 * (got / 1249 - 1));
	printf("the gate, more than 1.05 nowhere (1.10 where 48 and more cores meet 160 to 192 GiB), never above the memory: "
	       "%s\n",
	       within ? "yes" : "NO");
	return within && fabs(got / 1249 - 1) < 0.1;
}

/* Worst error of the estimate over hosts, speeds and noises. */
static bool estimates(void)
{
	static struct past p;
	struct fa_gate_unit u[MAX_UNITS];
	struct fa_strv names = FA_STRV_INIT;
	double worst[INVENTED] = { 0 };
	bool within = true;

	read_full_build(u, &names);
	for (size_t h = 0; h < COUNT(invented_hosts); h++) {
		fa_gate_order(u, names.n, &invented_hosts[h]);
		for (size_t i = 0; i < COUNT(invented_speeds) * INVENTED * 3; i++) {
			int what = (int)i % INVENTED;

			past_invented(&p, what, u, &names, &invented_hosts[h],
			              invented_speeds[i / INVENTED % COUNT(invented_speeds)],
			              1 + (unsigned)(i / INVENTED / COUNT(invented_speeds)));
			worst[what] = fmax(worst[what], replay_error(&p, 1.0 / 3, NULL));
		}
	}
	for (int what = 0; what < INVENTED; what++) {
		printf("estimate from a third on, a build %s: within %.0f %%\n", invented_words[what], 100 * worst[what]);
		within &= worst[what] < 0.15;
	}
	fa_strv_release(&names);
	return within;
}

static double on_paper(const struct past *p)
{
	struct fa_gate_unit u[MAX_UNITS];
	size_t n = past_units(u, p, false);

	fa_gate_order(u, n, &p->host);
	return fa_gate_simulate(u, n, &p->host, NULL).seconds;
}

/* By the estimator, before the first unit began. */
static double predicted(const struct past *p)
{
	struct fa_units u;
	double seconds;

	past_expected(&u, p);
	seconds = fa_units_whole(&u);
	fa_units_release(&u);
	return seconds;
}

static bool record(const char *path, const struct fa_expect *e)
{
	static struct past p;
	struct fa_json *j = NULL;
	struct fa_err err = FA_ERR_INIT;
	double real, paper, when = 0, worst;

	if (fa_json_read_file(&j, path, &err) < 0 || !past_read(&p, j)) {
		printf("%s: %s\n", path, err.text[0] ? err.text : "no record of a build");
		fa_json_free(j);
		return false;
	}
	past_expect(&p, e);
	real = p.last - p.first;
	paper = on_paper(&p);
	worst = replay_error(&p, 1.0 / 3, &when);
	printf("%s\n  %zu units, %d places of %d cores, %lld MiB; %.1f s, of which the units %.1f s\n", path, p.n,
	       p.host.places, p.host.cores, (long long)p.host.memory_mib, p.seconds, real);
	printf("  on paper, by their own times      %8.1f s  %+6.1f %%\n", paper, 100 * (paper / real - 1));
	paper = predicted(&p);
	printf("  on paper, by the times expected   %8.1f s  %+6.1f %%\n", paper, 100 * (paper / real - 1));
	printf("  estimate from a third on: said within %.0f %%, replayed within %.0f %% (worst after %.0f s)\n",
	       100 * said_error(&p, 1.0 / 3), 100 * worst, when);
	fa_json_free(j);
	return fabs(on_paper(&p) / real - 1) < 0.1 && fabs(paper / real - 1) < 0.1 && worst < 0.15;
}

/* Without arguments the table; else each record. Exit 1 when something is out of its limits. */
int main(int argc, char **argv)
{
	struct fa_expect e;
	bool fine = true;

	if (argc < 2)
		return table() & estimates() ? 0 : 1;
	fa_expect_load(&e);
	for (int i = 1; i < argc; i++)
		fine &= record(argv[i], &e);
	fa_expect_release(&e);
	return fine ? 0 : 1;
}
