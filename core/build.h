/* From an unpacked Flash-Attention source to a wheel. Upstream's setup.py runs unchanged, driven by recipes/build.py; the
 * compiler is called through the gate (gate.h). Nothing compiled is compiled again by a second run. */
#ifndef FA_BUILD_H
#define FA_BUILD_H

#include "err.h"
#include "event.h"
#include "plan.h"

struct fa_json;

struct fa_build_opts {
	const char *source;    /* unpacked folder, fixed: objects stay in its build/ */
	const char *python;    /* interpreter of the target environment */
	const char *cuda_home; /* of the toolkit with bin/nvcc */
	const char *rocm_home; /* of the one with bin/hipcc, for the CK build; then there is no cuda_home */
	const char *tools; /* folder of what only the build needs (setuptools, ninja, …): first in PYTHONPATH, its bin in PATH;
	                        * NULL: the environment has it */
	const char *wheel_dir; /* the wheel ends here */
	const char *log_dir;
	const struct fa_plan_build *build;
	bool relax_cuda;     /* a toolkit of another CUDA major than torch's is wanted; cudart is then linked statically */
	const char *version; /* flash-attn version; the local label of a profile is added */
	const volatile int *cancel; /* FA_BUILD_DRAIN: nothing new starts, the running units finish; another value: stop now */
};

enum { FA_BUILD_DRAIN = 2 };

/* The compiler of kernels: bin/nvcc or bin/hipcc of the home given; NULL: neither is. The caller's. */
char *fa_build_compiler(const struct fa_build_opts *opts);

/* One tiny CUDA unit and one tiny C++ unit, compiled, linked and loaded, seconds. FA_MACHINE with the cause by name. */
int fa_build_preflight(const struct fa_build_opts *opts, const struct fa_sink *sink, int step, struct fa_err *err);

/* wheel_out: the caller's path. record (NULL: not wanted): what build_record.h describes, the caller's; it lies in log_dir as build.json
 * too, also when the build stopped. FA_BUILD with the first real error line; FA_INTERRUPTED; FA_MACHINE (disk, memory). */
int fa_build_wheel(char **wheel_out, struct fa_json **record, const struct fa_build_opts *opts, const struct fa_sink *sink,
                   int step, struct fa_err *err);

#endif
