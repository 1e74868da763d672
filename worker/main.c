/* fainstall-worker: what downloads, clones, unpacks, builds and installs. Started by fainstall with a job on stdin; called
 * under the name "nvcc" or "c++" it is the compiler gate. */
#include "gate.h"
#include "job.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];

	if (!strcmp(name, "nvcc") || !strcmp(name, "c++"))
		return fa_gate_main(argc, argv);
	if (argc > 1) {
		fprintf(stderr, "fainstall-worker is started by fainstall\nrun fainstall --help\n");
		return 2;
	}
	return fa_job_worker_main();
}
