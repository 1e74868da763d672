/* Operating system, container, cores, memory, disk. */
#include "file.h"
#include "probe.h"
#include "read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_text(struct fa_probe *p, enum fa_fact id, const char *text, const char *origin)
{
	fa_facts_set_text(p->out, id, text, origin);
}

/* ---- kernel and C library */

static void detect_kernel(struct fa_probe *p, const char *answer)
{
	char *sysname = fa_probe_value(answer, "sysname"), *release = fa_probe_value(answer, "release");
	char *machine = fa_probe_value(answer, "machine"), *glibc = fa_probe_value(answer, "glibc");
	char *line = sysname && release && machine ? fa_strf("%s - %s %s", sysname, release, machine) : NULL;

	if (line)
		fa_read(p->out, "uname", "uname", line, strlen(line));
	if (glibc)
		set_text(p, FA_FACT_GLIBC, glibc, "gnu_get_libc_version");
	free(sysname);
	free(release);
	free(machine);
	free(glibc);
	free(line);
}

static void detect_distro(struct fa_probe *p)
{
	static const char *const paths[] = { "/etc/os-release", "/usr/lib/os-release" };

	for (size_t i = 0; i < 2; i++) {
		char *text = fa_probe_read(p, paths[i]);

		if (text) {
			fa_read(p->out, "os-release", paths[i], text, strlen(text));
			free(text);
			return;
		}
	}
}

static void detect_glibcxx(struct fa_probe *p)
{
	const char *machine = fa_facts_text(p->out, FA_FACT_MACHINE);
	char *own = p->target.is_conda ? fa_strf("%s/lib/libstdc++.so.6", p->target.dir) : NULL;
	char *multiarch = machine ? fa_strf("/usr/lib/%s-linux-gnu/libstdc++.so.6", machine) : NULL;
	const char *const paths[] = { own, multiarch, "/usr/lib64/libstdc++.so.6", "/usr/lib/libstdc++.so.6",
		                      "/lib64/libstdc++.so.6" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths) && !p->out->v[FA_FACT_GLIBCXX].known; i++) {
		char *question = paths[i] ? fa_strf("glibcxx %s", paths[i]) : NULL;
		char *answer = question ? fa_probe_ask(p, question, NULL) : NULL;
		char *version = answer ? fa_probe_value(answer, "glibcxx") : NULL;

		if (version)
			set_text(p, FA_FACT_GLIBCXX, version, paths[i]);
		free(version);
		free(answer);
		free(question);
	}
	free(own);
	free(multiarch);
}

/* ---- container and Jetson */

static const char *container_by_cgroup(struct fa_probe *p)
{
	static const char *const words[][2] = { { "kubepods", "kubernetes" },
		                                { "docker", "docker" },
		                                { "libpod", "podman" },
		                                { "lxc", "lxc" },
		                                { "containerd", "containerd" } };
	char *text = fa_probe_read(p, "/proc/1/cgroup");
	const char *found = NULL;

	for (size_t i = 0; text && !found && i < sizeof(words) / sizeof(*words); i++)
		if (strstr(text, words[i][0]))
			found = words[i][1];
	free(text);
	return found;
}

static void detect_container(struct fa_probe *p)
{
	static const struct {
		const char *variable, *name;
	} variables[] = { { "APPTAINER_CONTAINER", "apptainer" },
		          { "SINGULARITY_CONTAINER", "apptainer" },
		          { "KUBERNETES_SERVICE_HOST", "kubernetes" } };
	const char *word;

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		if (p->sys->env(p->sys->ctx, variables[i].variable)) {
			set_text(p, FA_FACT_CONTAINER, variables[i].name, variables[i].variable);
			return;
		}
	if (fa_probe_there(p, "/.dockerenv")) {
		set_text(p, FA_FACT_CONTAINER, "docker", "/.dockerenv");
		return;
	}
	if (fa_probe_there(p, "/run/.containerenv")) {
		set_text(p, FA_FACT_CONTAINER, "podman", "/run/.containerenv");
		return;
	}
	word = p->sys->env(p->sys->ctx, "container");
	if (word && *word) {
		set_text(p, FA_FACT_CONTAINER, word, "container (environment)");
		return;
	}
	word = container_by_cgroup(p);
	if (word)
		set_text(p, FA_FACT_CONTAINER, word, "/proc/1/cgroup");
	else
		fa_probe_none(p, FA_FACT_CONTAINER, "read", "/.dockerenv", "/.dockerenv");
}

static void detect_jetson(struct fa_probe *p)
{
	static const char path[] = "/etc/nv_tegra_release";
	char *text = fa_probe_read(p, path);

	if (text)
		fa_read(p->out, "nv_tegra_release", path, text, strlen(text));
	else
		fa_probe_none(p, FA_FACT_JETSON, "read", path, path);
	free(text);
}

/* ---- disk */

static void detect_disk(struct fa_probe *p)
{
	const char *tmp = p->sys->env(p->sys->ctx, "TMPDIR");
	int64_t free_mib = p->target.dir ? p->sys->free_mib(p->sys->ctx, p->target.dir) : -1;

	if (free_mib >= 0)
		fa_facts_set_number(p->out, FA_FACT_DISK_FREE_MIB, free_mib, p->target.dir);
	tmp = tmp && *tmp == '/' ? tmp : "/tmp";
	free_mib = p->sys->free_mib(p->sys->ctx, tmp);
	if (free_mib >= 0)
		fa_facts_set_number(p->out, FA_FACT_TMP_FREE_MIB, free_mib, tmp);
}

void fa_detect_system(struct fa_probe *p)
{
	char *answer = fa_probe_ask(p, "system", NULL), *cores = fa_probe_value(answer, "cores");

	detect_kernel(p, answer);
	if (cores && atoi(cores) > 0)
		fa_facts_set_number(p->out, FA_FACT_CORES, atoi(cores), "sched_getaffinity");
	detect_distro(p);
	detect_glibcxx(p);
	detect_container(p);
	detect_jetson(p);
	detect_disk(p);
	free(cores);
	free(answer);
}
