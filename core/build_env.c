#include "build_env.h"

#include "buf.h"
#include "file.h"
#include "gate_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Settings of other people's builds: each of these changes what is compiled, or how, without being in the plan. */
static const char *const loud[] = { "NVCC_PREPEND_FLAGS",
	                            "NVCC_APPEND_FLAGS",
	                            "CFLAGS",
	                            "CXXFLAGS",
	                            "CPPFLAGS",
	                            "LDFLAGS",
	                            "LDSHARED",
	                            "CPATH",
	                            "C_INCLUDE_PATH",
	                            "CPLUS_INCLUDE_PATH",
	                            "LIBRARY_PATH",
	                            "PYTHONPATH",
	                            "PYTHONHOME",
	                            "TORCH_CUDA_ARCH_LIST",
	                            "NVCC_CCBIN",
	                            "HIPCC_COMPILE_FLAGS_APPEND",
	                            "HIPCC_LINK_FLAGS_APPEND",
	                            "HIP_CLANG_PATH",
	                            "HIP_DEVICE_LIB_PATH",
	                            "DEVICE_LIB_PATH",
	                            "HIP_PLATFORM",
	                            "HCC_AMDGPU_TARGET",
	                            "PYTORCH_ROCM_ARCH",
	                            "OPT_DIM",
	                            "CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT",
	                            "CCC_OVERRIDE_OPTIONS",
	                            "COMPILER_PATH",
	                            "GCC_EXEC_PREFIX",
	                            NULL };
/* Named by us. */
static const char *const ours[] = { "PATH",
	                            "CUDA_HOME",
	                            "CUDA_PATH",
	                            "ROCM_HOME",
	                            "ROCM_PATH",
	                            "HIP_PATH",
	                            "GPU_ARCHS",
	                            "MAX_JOBS",
	                            "NVCC_THREADS",
	                            "NINJA_STATUS",
	                            "CC",
	                            "CXX",
	                            "PYTORCH_NVCC",
	                            "USE_NINJA",
	                            "BUILD_TARGET",
	                            "SOURCE_DATE_EPOCH",
	                            "MAKEFLAGS",
	                            "VERBOSE",
	                            "PYTHONDONTWRITEBYTECODE",
	                            "PYTHONSAFEPATH",
	                            "LC_ALL",
	                            "LANGUAGE",
	                            "TMPDIR",
	                            NULL };
static const char *const prefixes[] = {
	"FLASH_ATTENTION_", "FLASH_ATTN_", "DISTUTILS_", "SETUPTOOLS_", "FAINSTALL_GATE_", NULL
};

/* A moment that is the same for every build: 2020-01-01, after what a zip archive can tell. */
static const char *const epoch = "1577836800";

static bool is_one_of(const char *const *list, const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (; *list; list++)
		if (strcspn(*list, "=") == len && !strncmp(*list, entry, len))
			return true;
	return false;
}

static bool has_prefix(const char *entry)
{
	for (const char *const *p = prefixes; *p; p++)
		if (!strncmp(entry, *p, strlen(*p)))
			return true;
	return false;
}

static void inherit(struct fa_strv *out, const struct fa_sink *sink)
{
	struct fa_buf dropped = FA_BUF_INIT;

	for (char **e = environ; *e; e++) {
		bool gate_setting = !strncmp(*e, "FAINSTALL_GATE_", 15) && strncmp(*e, "FAINSTALL_GATE_DIR", 18);

		if (is_one_of(loud, *e))
			fa_buf_addf(&dropped, "%s%.*s", dropped.len ? ", " : "", (int)strcspn(*e, "="), *e);
		else if (gate_setting || (!is_one_of(ours, *e) && !has_prefix(*e)))
			fa_strv_push(out, *e);
	}
	if (dropped.len)
		fa_emit_text(sink, FA_EVENT_WARNING, "environment", "not used for the build: %s", fa_buf_str(&dropped));
	fa_buf_release(&dropped);
}

char *fa_build_compiler(const struct fa_build_opts *o)
{
	return o->rocm_home   ? fa_path_join(o->rocm_home, "bin/hipcc")
	       : o->cuda_home ? fa_path_join(o->cuda_home, "bin/nvcc")
	                      : NULL;
}

char *fa_build_find(const char *program, const char *path)
{
	struct fa_strv dirs = FA_STRV_INIT;
	char *found = NULL;

	if (strchr(program, '/'))
		return access(program, X_OK) == 0 ? fa_path_absolute(program) : NULL;
	fa_strv_split(&dirs, path, ":");
	for (size_t i = 0; i < dirs.n && !found; i++) {
		found = fa_path_join(dirs.v[i], program);
		if (access(found, X_OK) != 0 || fa_file_is_dir(found)) {
			free(found);
			found = NULL;
		}
	}
	fa_strv_release(&dirs);
	return found;
}

static char *search_path(const struct fa_build_opts *o)
{
	char *python = fa_path_dir(o->python);
	const char *have = getenv("PATH");
	struct fa_buf path = FA_BUF_INIT;

	if (o->tools)
		fa_buf_addf(&path, "%s/bin:", o->tools);
	fa_buf_addf(&path, "%s:", python);
	if (o->cuda_home || o->rocm_home)
		fa_buf_addf(&path, "%s/bin:", o->rocm_home ? o->rocm_home : o->cuda_home);
	fa_buf_adds(&path, have ? have : "/usr/bin:/bin");
	free(python);
	return fa_buf_detach(&path);
}

/* The host compiler: the user's own choice if there is one. */
static char *host_compiler(const char *path, struct fa_err *err)
{
	const char *const names[] = { getenv("CXX"), "c++", "g++", "clang++" };
	char *found = NULL;

	for (size_t i = 0; i < 4 && !found; i++)
		if (names[i] && *names[i])
			found = fa_build_find(names[i], path);
	if (!found) {
		fa_err_set(err, FA_MACHINE, "no C++ compiler in PATH; a build needs one");
		fa_err_next(err, "install g++");
	}
	return found;
}

/* setup.py's own list, of the one vendor or the other. */
static void add_archs(struct fa_strv *out, const struct fa_build_opts *o)
{
	const struct fa_strv *archs = &o->build->archs;
	struct fa_buf list = FA_BUF_INIT;

	for (size_t i = 0; i < archs->n; i++)
		fa_buf_addf(&list, "%s%s", i ? ";" : "", archs->v[i]);
	fa_strv_pushf(out, "%s=%s", o->rocm_home ? "GPU_ARCHS" : "FLASH_ATTN_CUDA_ARCHS", fa_buf_str(&list));
	if (o->rocm_home)
		fa_strv_push(out, "BUILD_TARGET=rocm");
	fa_buf_release(&list);
}

static bool is_plain(const char *path)
{
	return strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+@,=") == strlen(path);
}

char *fa_build_gate_bin(const char *gate_dir, struct fa_err *err)
{
	char *own, *bin = fa_path_join(gate_dir, "bin");
	int rc;

	if (is_plain(bin))
		return fa_file_mkdirs(bin, err) == 0 ? bin : (free(bin), NULL);
	free(bin);
	own = fa_gate_table_folder("/tmp", err);
	bin = own ? fa_strf("%s/bin-%016llx", own, (unsigned long long)fa_gate_build_id(gate_dir)) : NULL;
	rc = bin ? fa_file_mkdirs(bin, err) : -1;
	free(own);
	if (rc == 0)
		return bin;
	free(bin);
	return NULL;
}

static void add_gate(struct fa_strv *out, const struct fa_build_opts *o, const char *dir, const char *bin, const char *objects,
                     const char *cxx)
{
	char *compiler = fa_build_compiler(o);

	if (compiler) {
		fa_strv_pushf(out, "PYTORCH_NVCC=%s/%s", bin, fa_path_base(compiler));
		fa_strv_pushf(out, "FAINSTALL_GATE_NVCC=%s", compiler);
	}
	free(compiler);
	fa_strv_pushf(out, "CXX=%s/c++", bin);
	fa_strv_pushf(out, "FAINSTALL_GATE_DIR=%s", dir);
	fa_strv_pushf(out, "FAINSTALL_GATE_CXX=%s", cxx);
	fa_strv_pushf(out, "FAINSTALL_GATE_OBJECTS=%s", objects);
	fa_strv_pushf(out, "FAINSTALL_GATE_JOBS=%d", o->build->jobs);
}

int fa_build_env(struct fa_strv *out, const struct fa_build_opts *o, const char *gate_dir, const char *objects, int started,
                 const struct fa_sink *sink, struct fa_err *err)
{
	char *path = search_path(o), *cxx = host_compiler(path, err), *bin = NULL;
	int rc = -1;

	if (!cxx || (gate_dir && !(bin = fa_build_gate_bin(gate_dir, err))))
		goto done;
	inherit(out, sink);
	fa_strv_pushf(out, "PATH=%s", path);
	if (o->rocm_home) {
		fa_strv_pushf(out, "ROCM_HOME=%s", o->rocm_home);
		fa_strv_pushf(out, "ROCM_PATH=%s", o->rocm_home);
	} else if (o->cuda_home) {
		fa_strv_pushf(out, "CUDA_HOME=%s", o->cuda_home);
	}
	if (o->tools)
		fa_strv_pushf(out, "PYTHONPATH=%s", o->tools);
	fa_strv_pushf(out, "SOURCE_DATE_EPOCH=%s", epoch);
	fa_strv_push(out, "PYTHONDONTWRITEBYTECODE=1");
	fa_strv_push(out, "LC_ALL=C.UTF-8");
	fa_strv_push(out, "FLASH_ATTENTION_FORCE_BUILD=TRUE");
	fa_strv_push(out, "NVCC_THREADS=1");
	fa_strv_pushf(out, "MAX_JOBS=%d", started);
	if (getenv("CXX")) /* nvcc's host compiler too */
		fa_strv_pushf(out, "NVCC_CCBIN=%s", cxx);
	if (o->relax_cuda)
		fa_strv_push(out, "FAINSTALL_RELAX_CUDA=1");
	add_archs(out, o);
	if (gate_dir)
		add_gate(out, o, gate_dir, bin, objects, cxx);
	else
		fa_strv_pushf(out, "CXX=%s", cxx);
	for (size_t i = 0; i < o->build->env.n; i++) /* the plan's own, where it is not settled above */
		if (!is_one_of((const char *const *)out->v, o->build->env.v[i]))
			fa_strv_push(out, o->build->env.v[i]);
	rc = 0;
done:
	free(path);
	free(cxx);
	free(bin);
	return rc;
}
