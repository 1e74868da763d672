#include "xray.h"

#include "buf.h"
#include "elf.h"
#include "file.h"
#include "json.h"

#include <elf.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct library {
	struct fa_elf *elf;
	char *name; /* as it was asked for */
};

struct scope {
	struct library *libs; /* in the order they are searched */
	size_t n;
	size_t expanded;      /* the needs of libs before this one are in libs too */
	struct fa_strv early; /* folders searched before RUNPATH: what torch has loaded already */
	struct fa_strv late;  /* folders after it */
	int machine;
	bool python; /* a Python program is among the libs */
	struct fa_xray *out;
};

/* Libraries that the GPU driver brings: a build host need not have them. Symbols by prefix, then an upper-case letter. */
static const struct {
	const char *name, *prefix;
} driver_libs[] = { { "libcuda.so.1", "cu" }, { "libnvidia-ml.so.1", "nvml" } };

/* ---- folders */

static void push_glob(struct fa_strv *out, const char *pattern)
{
	glob_t g;

	if (glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			fa_strv_push(out, g.gl_pathv[i]);
	globfree(&g);
}

static void push_globf(struct fa_strv *out, const char *folder, const char *rest)
{
	char *pattern = fa_path_join(folder, rest);

	push_glob(out, pattern);
	free(pattern);
}

/* Lines of ld.so.conf: a folder each, "include PATTERN", comments. */
static void push_ld_conf(struct fa_strv *out, const char *path, int depth)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_strv lines = FA_STRV_INIT, files = FA_STRV_INIT;

	if (depth > 4 || fa_file_read(&text, path, 1 << 20, NULL) < 0)
		goto done;
	fa_strv_split(&lines, fa_buf_str(&text), "\n");
	for (size_t i = 0; i < lines.n; i++) {
		char *line = lines.v[i];

		line[strcspn(line, "#")] = '\0';
		if (line[0] == '/')
			fa_strv_push(out, line);
		else if (!strncmp(line, "include", 7) && line[7])
			push_glob(&files, line + 7 + strspn(line + 7, " \t"));
	}
	for (size_t i = 0; i < files.n; i++)
		push_ld_conf(out, files.v[i], depth + 1);
done:
	fa_buf_release(&text);
	fa_strv_release(&lines);
	fa_strv_release(&files);
}

static void push_system(struct fa_strv *out)
{
	const char *path = getenv("LD_LIBRARY_PATH");

	if (path)
		fa_strv_split(out, path, ":");
	push_ld_conf(out, "/etc/ld.so.conf", 0);
	fa_strv_push(out, "/lib64");
	fa_strv_push(out, "/usr/lib64");
	fa_strv_push(out, "/lib");
	fa_strv_push(out, "/usr/lib");
	push_glob(out, "/lib/*-linux-gnu");
}

static void push_cuda(struct fa_strv *out, const char *cuda_home)
{
	push_globf(out, cuda_home, "lib64");
	push_globf(out, cuda_home, "lib");
	push_globf(out, cuda_home, "targets/*/lib");
	push_globf(out, cuda_home, "lib64/stubs"); /* names of the driver's symbols */
	push_globf(out, cuda_home, "targets/*/lib/stubs");
}

static void find_folders(struct scope *s, const char *site_packages, const char *cuda_home)
{
	if (site_packages) {
		push_globf(&s->early, site_packages, "torch/lib");
		push_globf(&s->early, site_packages, "nvidia/*/lib");
		push_globf(&s->early, site_packages, "_rocm_sdk_*/lib");
		push_globf(&s->late, site_packages, "*.libs"); /* what auditwheel put beside a package */
		push_globf(&s->late, site_packages, "../..");  /* PREFIX/lib: conda's libstdc++ */
	}
	if (cuda_home)
		push_cuda(&s->late, cuda_home);
	push_system(&s->late);
}

/* ---- libraries */

static void add_library(struct scope *s, struct fa_elf *elf, const char *name)
{
	s->libs = fa_realloc(s->libs, s->n + 1, sizeof(*s->libs));
	s->libs[s->n].elf = elf;
	s->libs[s->n].name = fa_strdup(name);
	s->n++;
}

static struct fa_elf *try_open(const struct scope *s, const char *folder, const char *name, bool *damaged)
{
	char *path = fa_path_join(folder, name);
	struct fa_elf *elf = NULL;

	if (fa_file_exists(path)) {
		if (fa_elf_open(&elf, path, NULL) < 0)
			*damaged = true;
		else if (fa_elf_machine(elf) != s->machine) {
			fa_elf_close(elf);
			elf = NULL;
		}
	}
	free(path);
	return elf;
}

static struct fa_elf *search(const struct scope *s, const struct fa_strv *folders, const char *name, bool *damaged)
{
	struct fa_elf *elf = NULL;

	for (size_t i = 0; i < folders->n && !elf; i++)
		elf = try_open(s, folders->v[i], name, damaged);
	return elf;
}

static const char *driver_prefix(const char *library)
{
	for (size_t i = 0; i < sizeof(driver_libs) / sizeof(driver_libs[0]); i++)
		if (!strcmp(driver_libs[i].name, library))
			return driver_libs[i].prefix;
	return NULL;
}

static void note_lost(struct scope *s, const char *name, bool damaged)
{
	if (driver_prefix(name) && !damaged)
		fa_strv_push(&s->out->driver_libs, name);
	else if (damaged)
		fa_strv_pushf(&s->out->missing_libs, "%s (damaged)", name);
	else
		fa_strv_push(&s->out->missing_libs, name);
}

static bool has_library(const struct scope *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->libs[i].name, name))
			return true;
	return false;
}

/* The libraries that `from` asks for, each once. Only those that the binary itself asks for count as missing: what a library of
 * torch lacks is torch's trouble and stops `import torch` first. */
static void add_needed(struct scope *s, const struct fa_elf *from, bool report)
{
	struct fa_strv names = FA_STRV_INIT, runpath = FA_STRV_INIT;

	fa_elf_needed(from, &names);
	fa_elf_runpath(from, &runpath);
	for (size_t i = 0; i < names.n; i++) {
		bool damaged = false;
		struct fa_elf *elf;

		if (has_library(s, names.v[i]))
			continue;
		elf = search(s, &s->early, names.v[i], &damaged);
		if (!elf)
			elf = search(s, &runpath, names.v[i], &damaged);
		if (!elf)
			elf = search(s, &s->late, names.v[i], &damaged);
		if (elf)
			add_library(s, elf, names.v[i]);
		else if (report)
			note_lost(s, names.v[i], damaged);
	}
	fa_strv_release(&names);
	fa_strv_release(&runpath);
}

/* PREFIX/lib/pythonX.Y/site-packages belongs to PREFIX/bin/python. The program exports Py*, or its libpython does. */
static void add_python(struct scope *s, const char *site_packages)
{
	static const char *const names[] = { "../../../bin/python3", "../../../bin/python", "../../../bin/pypy3" };
	struct fa_elf *elf = NULL;
	bool damaged = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !elf; i++)
		elf = try_open(s, site_packages, names[i], &damaged);
	if (!elf)
		elf = try_open(s, "/usr/bin", "python3", &damaged);
	if (!elf)
		return;
	s->python = true;
	add_library(s, elf, "python");
}

static void add_global_deps(struct scope *s, const char *site_packages)
{
	bool damaged = false;
	char *folder = fa_path_join(site_packages, "torch/lib");
	struct fa_elf *elf = try_open(s, folder, "libtorch_global_deps.so", &damaged);

	if (elf)
		add_library(s, elf, "libtorch_global_deps.so");
	free(folder);
}

/* The closure grows only while a symbol is still looked for: most are in the first few libraries. Breadth first. */
static bool grow_scope(struct scope *s)
{
	if (s->expanded >= s->n)
		return false;
	add_needed(s, s->libs[s->expanded++].elf, false);
	return true;
}

static bool scope_defines(struct scope *s, const char *name)
{
	size_t k = 0;

	do {
		for (; k < s->n; k++)
			if (fa_elf_defines(s->libs[k].elf, name))
				return true;
	} while (grow_scope(s));
	return false;
}

/* ---- judging */

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_unjudged(const struct scope *s, const char *symbol)
{
	for (size_t i = 0; i < s->out->driver_libs.n; i++) {
		const char *prefix = driver_prefix(s->out->driver_libs.v[i]);

		if (!strncmp(symbol, prefix, strlen(prefix)) && is_upper(symbol[strlen(prefix)]))
			return true;
	}
	return !s->python && (!strncmp(symbol, "Py", 2) || !strncmp(symbol, "_Py", 3));
}

static void judge_symbols(struct scope *s, const struct fa_elf *target)
{
	struct fa_strv symbols = FA_STRV_INIT;

	fa_elf_undefined(target, &symbols);
	s->out->n_symbols = (int)symbols.n;
	for (size_t i = 0; i < symbols.n; i++) {
		char *name = symbols.v[i];

		name[strcspn(name, "@")] = '\0';
		if (!scope_defines(s, name))
			fa_strv_push(is_unjudged(s, name) ? &s->out->unjudged : &s->out->missing, name);
	}
	fa_strv_release(&symbols);
}

/* 1.2 < 1.10; only digits and dots are compared. */
static int compare_dotted(const char *a, const char *b)
{
	while (*a || *b) {
		char *enda, *endb;
		long x = strtol(a, &enda, 10), y = strtol(b, &endb, 10);

		if (x != y)
			return x < y ? -1 : 1;
		a = *enda == '.' ? enda + 1 : "";
		b = *endb == '.' ? endb + 1 : "";
	}
	return 0;
}

static void keep_highest(char **highest, const char *version, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(version, prefix, len) || version[len] < '0' || version[len] > '9')
		return;
	if (*highest && compare_dotted(*highest, version + len) >= 0)
		return;
	free(*highest);
	*highest = fa_strdup(version + len);
}

static void judge_versions(struct scope *s, const struct fa_elf *target)
{
	struct fa_strv versions = FA_STRV_INIT;

	fa_elf_versions_needed(target, &versions);
	for (size_t i = 0; i < versions.n; i++) {
		char *library = versions.v[i], *version = strrchr(library, ':');

		*version++ = '\0';
		keep_highest(&s->out->glibc, version, "GLIBC_");
		keep_highest(&s->out->glibcxx, version, "GLIBCXX_");
		for (size_t k = 0; k < s->n; k++)
			if (!strcmp(s->libs[k].name, library) && !fa_elf_defines_version(s->libs[k].elf, version) &&
			    !fa_strv_has(&s->out->missing_versions, version))
				fa_strv_push(&s->out->missing_versions, version);
	}
	fa_strv_release(&versions);
}

static void list_gpu_code(struct fa_xray *out, const struct fa_elf *target)
{
	struct fa_elf_gpu *v;
	size_t n = fa_elf_gpu_code(target, &v);

	for (size_t i = 0; i < n; i++) {
		fa_strv_push(&out->archs, v[i].arch);
		out->n_images += v[i].count;
	}
	free(v);
}

int fa_xray(struct fa_xray *out, const char *so, const char *site_packages, const char *cuda_home, struct fa_err *err)
{
	struct scope s = { .out = out };
	struct fa_elf *target;

	*out = (struct fa_xray)FA_XRAY_INIT;
	if (fa_elf_open(&target, so, err) < 0)
		return -1;
	s.machine = fa_elf_machine(target);
	find_folders(&s, site_packages, cuda_home);
	fa_elf_needed(target, &out->needed);
	add_needed(&s, target, true);
	if (site_packages) {
		add_python(&s, site_packages);
		add_global_deps(&s, site_packages);
	}
	judge_symbols(&s, target);
	judge_versions(&s, target);
	list_gpu_code(out, target);
	for (size_t i = 0; i < s.n; i++) {
		fa_elf_close(s.libs[i].elf);
		free(s.libs[i].name);
	}
	free(s.libs);
	fa_strv_release(&s.early);
	fa_strv_release(&s.late);
	fa_elf_close(target);
	return 0;
}

bool fa_xray_fits(const struct fa_xray *x)
{
	return !x->missing.n && !x->missing_libs.n && !x->missing_versions.n;
}

static void add_some(struct fa_buf *out, const struct fa_strv *names)
{
	for (size_t i = 0; i < names->n && i < 3; i++)
		fa_buf_addf(out, "%s%s", i ? ", " : "", names->v[i]);
	if (names->n > 3)
		fa_buf_adds(out, ", …");
}

static void add_lack(struct fa_buf *out, const struct fa_strv *names, const char *one, const char *many)
{
	if (!names->n)
		return;
	fa_buf_addf(out, "%s%zu %s missing (", out->len ? "; " : "", names->n, names->n == 1 ? one : many);
	add_some(out, names);
	fa_buf_addc(out, ')');
}

static void add_archs(struct fa_buf *out, const struct fa_xray *x)
{
	if (!x->archs.n) {
		fa_buf_adds(out, ", no GPU code");
		return;
	}
	fa_buf_addf(out, ", %d GPU image%s for ", x->n_images, x->n_images == 1 ? "" : "s");
	for (size_t i = 0; i < x->archs.n; i++) {
		const char *arch = x->archs.v[i];

		fa_buf_addf(out, "%s%s%s", i ? ", " : "", arch[0] >= '0' && arch[0] <= '9' ? "sm_" : "", arch);
	}
}

char *fa_xray_sentence(const struct fa_xray *x)
{
	struct fa_buf b = FA_BUF_INIT;

	add_lack(&b, &x->missing_libs, "library", "libraries");
	add_lack(&b, &x->missing_versions, "version", "versions");
	add_lack(&b, &x->missing, "symbol", "symbols");
	if (!b.len) {
		size_t found = (size_t)x->n_symbols - x->unjudged.n;

		fa_buf_addf(&b, "%zu symbol%s found", found, found == 1 ? "" : "s");
		if (x->unjudged.n)
			fa_buf_addf(&b, " (%zu of %s not judged here)", x->unjudged.n,
			            x->driver_libs.n ? "the driver or Python" : "Python");
		add_archs(&b, x);
	}
	return fa_buf_detach(&b);
}

struct fa_json *fa_xray_to_json(const struct fa_xray *x)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_bool(j, "fits", fa_xray_fits(x));
	fa_json_set(j, "archs", fa_json_new_strv(&x->archs));
	fa_json_set_number(j, "images", x->n_images);
	fa_json_set(j, "needed", fa_json_new_strv(&x->needed));
	fa_json_set_number(j, "symbols", x->n_symbols);
	fa_json_set(j, "missing", fa_json_new_strv(&x->missing));
	fa_json_set(j, "missing_libs", fa_json_new_strv(&x->missing_libs));
	fa_json_set(j, "missing_versions", fa_json_new_strv(&x->missing_versions));
	fa_json_set(j, "driver_libs", fa_json_new_strv(&x->driver_libs));
	fa_json_set_number(j, "unjudged", (double)x->unjudged.n);
	fa_json_set_string(j, "glibc", x->glibc);
	fa_json_set_string(j, "glibcxx", x->glibcxx);
	return j;
}

void fa_xray_release(struct fa_xray *x)
{
	fa_strv_release(&x->archs);
	fa_strv_release(&x->needed);
	fa_strv_release(&x->missing);
	fa_strv_release(&x->missing_libs);
	fa_strv_release(&x->missing_versions);
	fa_strv_release(&x->driver_libs);
	fa_strv_release(&x->unjudged);
	free(x->glibc);
	free(x->glibcxx);
	*x = (struct fa_xray)FA_XRAY_INIT;
}
