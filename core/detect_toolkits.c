/* CUDA toolkits: where nvcc is, which one a build would take, and what is wrong with it. */
#include "file.h"
#include "json.h"
#include "probe.h"
#include "read.h"

#include <stdlib.h>
#include <string.h>

/* Folders that may be a toolkit, most wanted first: what torch's extension builder would take, then the rest. */
static void candidates(struct fa_strv *out, struct fa_probe *p, const char **why)
{
	static const char *const variables[] = { "CUDA_HOME", "CUDA_PATH" };
	struct fa_strv names = FA_STRV_INIT;
	char *nvcc, *bin, *home;

	*why = "/usr/local/cuda";
	for (size_t i = 2; i--;) {
		const char *set = p->sys->env(p->sys->ctx, variables[i]);

		if (!set || !*set)
			continue;
		*why = variables[i];
		fa_strv_release(out);
		fa_strv_push(out, set);
	}
	nvcc = p->sys->find(p->sys->ctx, "nvcc");
	if (nvcc) {
		bin = fa_path_dir(nvcc);
		home = fa_path_dir(bin);
		if (!out->n)
			*why = "nvcc in PATH";
		fa_strv_push(out, home);
		free(home);
		free(bin);
	}
	free(nvcc);
	fa_strv_push(out, "/usr/local/cuda");
	p->sys->list(p->sys->ctx, "/usr/local", &names);
	for (size_t i = names.n; i--;)
		if (!strncmp(names.v[i], "cuda-", 5))
			fa_strv_pushf(out, "/usr/local/%s", names.v[i]);
	if (p->target.is_conda)
		fa_strv_push(out, p->target.dir);
	fa_strv_release(&names);
}

static char *nvcc_path(const char *home)
{
	return fa_strf("%s/bin/nvcc", !strcmp(home, "/") ? "" : home);
}

static bool is_executable(struct fa_probe *p, const char *path)
{
	char *found = p->sys->find(p->sys->ctx, path);
	bool is = found != NULL;

	free(found);
	return is;
}

/* The first candidate that has an nvcc: the one whose nvcc is asked, since a version file cannot tell that it runs. */
static char *main_home(struct fa_probe *p, const char **why)
{
	struct fa_strv homes = FA_STRV_INIT;
	char *home = NULL;

	candidates(&homes, p, why);
	for (size_t i = 0; i < homes.n && !home; i++) {
		char *nvcc = nvcc_path(homes.v[i]);

		if (is_executable(p, nvcc))
			home = fa_strdup(homes.v[i]);
		free(nvcc);
	}
	fa_strv_release(&homes);
	return home;
}

void fa_detect_toolkits_begin(struct fa_probe *p)
{
	const char *why;
	char *home = main_home(p, &why), *nvcc = home ? nvcc_path(home) : NULL;
	const char *argv[] = { nvcc, "--version", NULL };

	if (nvcc)
		fa_probe_begin(p, argv);
	free(nvcc);
	free(home);
}

/* version.json: {"cuda_nvcc": {"name": …, "version": "13.0.88"}, …}; before 11.1 "CUDA Version 10.2.89" in version.txt */
static char *version_by_file(struct fa_probe *p, const char *home)
{
	char *path = fa_path_join(home, "version.json"), *text = fa_probe_read(p, path), *version = NULL;
	struct fa_json *j = NULL;

	if (text && fa_json_parse(&j, text, strlen(text), path, NULL) == 0)
		version = fa_strdup(fa_json_get_string(fa_json_get(j, "cuda_nvcc"), "version"));
	fa_json_free(j);
	free(path);
	free(text);
	if (version)
		return version;
	path = fa_path_join(home, "version.txt");
	text = fa_probe_read(p, path);
	version = text ? fa_read_version(text, false) : NULL;
	free(path);
	free(text);
	return version;
}

static bool known_version(const struct fa_facts *f, const char *version)
{
	for (size_t i = 0; i < f->n_toolkits; i++)
		if (f->toolkits[i].version && !strcmp(f->toolkits[i].version, version))
			return true;
	return false;
}

/* /usr/local/cuda is a link to one of its neighbours: /usr/local/cuda-12.8 is known when some 12.8 is. */
static bool known_by_name(const struct fa_facts *f, const char *home)
{
	const char *name = strstr(home, "/cuda-");
	size_t len = name ? strlen(name + 6) : 0;

	for (size_t i = 0; len && i < f->n_toolkits; i++) {
		const char *version = f->toolkits[i].version;

		if (version && !strncmp(version, name + 6, len) && (version[len] == '.' || !version[len]))
			return true;
	}
	return false;
}

static void ask_nvcc(struct fa_probe *p, const char *home)
{
	char *nvcc = nvcc_path(home);
	const char *argv[] = { nvcc, "--version", NULL };
	struct fa_facts found = FA_FACTS_INIT;
	struct fa_probe inner = { .out = &found, .sys = p->sys };

	fa_probe_tool(&inner, "nvcc", argv);
	if (found.n_toolkits) {
		fa_facts_add_toolkit(p->out, "cuda", found.toolkits[0].version, home);
		if (!p->out->toolkits_origin)
			p->out->toolkits_origin = fa_strf("%s --version", nvcc);
	} else {
		fa_probe_problem(p, "toolkit_broken", "nvcc", "install the CUDA toolkit again",
		                 "%s is there and does not tell its version%s%s", nvcc, found.n_problems ? ": " : "",
		                 found.n_problems ? found.problems[0].text : "");
	}
	fa_facts_release(&found);
	free(nvcc);
}

static bool lists(struct fa_probe *p, const char *dir, const char *name)
{
	struct fa_strv names = FA_STRV_INIT;
	bool has;

	p->sys->list(p->sys->ctx, dir, &names);
	has = fa_strv_has(&names, name);
	fa_strv_release(&names);
	return has;
}

/* A name that is there and cannot be run: a link to nowhere, or a file without the right to. */
static void tell_broken(struct fa_probe *p, const char *home)
{
	char *bin = fa_path_join(home, "bin"), *nvcc = nvcc_path(home);

	if (!is_executable(p, nvcc) && lists(p, bin, "nvcc"))
		fa_probe_problem(p, "toolkit_broken", "nvcc", "repair the link, or install the CUDA toolkit again",
		                 "%s is there but cannot be run: a broken link, or no permission", nvcc);
	free(bin);
	free(nvcc);
}

static void tell_wrong_home(struct fa_probe *p, const char *why, const char *set)
{
	char *nvcc = nvcc_path(set);

	if (!is_executable(p, nvcc))
		fa_probe_problem(p, "toolkit_home_wrong", why, "set it to the folder that holds bin/nvcc, or unset it",
		                 "%s=%s holds no bin/nvcc; a build would stop there", why, set);
	free(nvcc);
}

static bool known_home(const struct fa_facts *f, const char *home)
{
	for (size_t i = 0; i < f->n_toolkits; i++)
		if (f->toolkits[i].home && !strcmp(f->toolkits[i].home, home))
			return true;
	return known_by_name(f, home);
}

static void add_others(struct fa_probe *p, const struct fa_strv *homes)
{
	for (size_t i = 0; i < homes->n; i++) {
		char *nvcc = nvcc_path(homes->v[i]), *version = NULL;
		bool runs = is_executable(p, nvcc);

		tell_broken(p, homes->v[i]);
		free(nvcc);
		if (!runs || known_home(p->out, homes->v[i]))
			continue;
		version = version_by_file(p, homes->v[i]);
		if (!version)
			ask_nvcc(p, homes->v[i]);
		else if (!known_version(p->out, version))
			fa_facts_add_toolkit(p->out, "cuda", version, homes->v[i]);
		free(version);
	}
}

void fa_detect_toolkits(struct fa_probe *p)
{
	struct fa_strv homes = FA_STRV_INIT;
	const char *why, *set;
	char *home = main_home(p, &why);

	p->out->toolkits_known = home || !p->sys->recorded || p->sys->recorded(p->sys->ctx, "find", "nvcc");
	if (home)
		ask_nvcc(p, home);
	candidates(&homes, p, &why);
	add_others(p, &homes);
	if (p->out->toolkits_known && !p->out->toolkits_origin)
		p->out->toolkits_origin = fa_strdup("PATH, /usr/local");
	set = p->sys->env(p->sys->ctx, why);
	if (set && *set) {
		fa_facts_set_text(p->out, FA_FACT_CUDA_HOME, set, why);
		tell_wrong_home(p, why, set);
	} else if (home) {
		fa_facts_set_text(p->out, FA_FACT_CUDA_HOME, home, why);
	} else {
		fa_probe_none(p, FA_FACT_CUDA_HOME, "find", "nvcc", "PATH, /usr/local");
	}
	fa_strv_release(&homes);
	free(home);
}
