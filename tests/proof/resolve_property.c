/* 100,000 generated hosts (or as many as the argument says): what must hold for every plan holds. */
#include "../core/resolve_property.h"

int main(int argc, char **argv)
{
	unsigned hosts = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
	struct fa_err err = FA_ERR_INIT;
	struct fa_matrix *m;
	double each;
	int broken;

	if (fa_matrix_open(&m, &err) < 0) {
		printf("%s\n", err.text);
		return 1;
	}
	broken = run_properties(m, hosts, &each);
	printf("%u hosts, %d broken, %.3f ms each\n", hosts, broken, each * 1e3);
	fa_matrix_close(m);
	return broken != 0;
}
