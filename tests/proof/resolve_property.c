/* 100,000 generated hosts (or as many as the argument says): what must hold for every plan holds. */
#include "../core/resolve_property.h"

int main(int argc, char **argv)
{
	unsigned hosts = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
	struct fa_err err = FA_ERR_INIT;
	struct fa_matrix *m;
	struct property_times t;
	int broken;

	if (fa_matrix_open(&m, &err) < 0) {
		printf("%s\n", err.text);
		return 1;
	}
	broken = run_properties(m, hosts, &t);
	printf("%u hosts, %d broken; CPU of one resolve: mean %.0f us, median %.0f, 99 of 100 within %.0f, most %.0f\n", hosts,
	       broken, t.mean * 1e6, t.median * 1e6, t.p99 * 1e6, t.most * 1e6);
	fa_matrix_close(m);
	return broken != 0;
}
