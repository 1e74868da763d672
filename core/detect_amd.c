/* AMD cards by the topology that the kernel driver tells, and ROCm. */
#include "cards.h"
#include "probe.h"
#include "read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES "/sys/class/kfd/kfd/topology/nodes"

/* "gfx_target_version 90402": one "key value" a line. -1: not there. */
static int64_t property(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len) && line[len] == ' ')
			return strtoll(line + len, NULL, 10);
	}
	return -1;
}

/* Memory of its own: banks of kind 1 and 2 (public and private frame buffer). */
static int64_t node_memory_mib(struct fa_probe *p, const char *node)
{
	char *dir = fa_strf(NODES "/%s/mem_banks", node);
	struct fa_strv banks = FA_STRV_INIT;
	int64_t bytes = 0;

	p->sys->list(p->sys->ctx, dir, &banks);
	for (size_t i = 0; i < banks.n; i++) {
		char *path = fa_strf("%s/%s/properties", dir, banks.v[i]), *text = fa_probe_read(p, path);
		int64_t kind = text ? property(text, "heap_type") : -1, size = text ? property(text, "size_in_bytes") : -1;

		if ((kind == 1 || kind == 2) && size > 0)
			bytes += size;
		free(text);
		free(path);
	}
	fa_strv_release(&banks);
	free(dir);
	return bytes > 0 ? bytes >> 20 : -1;
}

static char *node_name(struct fa_probe *p, const char *pci)
{
	char *path = pci ? fa_strf("/sys/bus/pci/devices/%s/product_name", pci) : NULL;
	char *text = path ? fa_probe_read(p, path) : NULL;

	if (text)
		text[strcspn(text, "\n")] = '\0';
	free(path);
	return text;
}

static void add_node(struct fa_probe *p, const char *node, const char *properties)
{
	int64_t version = property(properties, "gfx_target_version"), location = property(properties, "location_id");
	int64_t domain = property(properties, "domain");
	struct fa_gpu *g;
	char *name;

	if (version <= 0)
		return;
	g = fa_facts_add_gpu(p->out);
	g->vendor = fa_strdup("amd");
	g->arch = fa_strf("gfx%d%d%x", (int)(version / 10000), (int)(version / 100 % 100), (unsigned)(version % 100));
	if (location > 0)
		g->pci = fa_strf("%04x:%02x:%02x.%x", (unsigned)(domain > 0 ? domain : 0) & 0xffff,
		                 (unsigned)(location >> 8) & 0xff, (unsigned)(location >> 3) & 0x1f, (unsigned)location & 7);
	g->memory_mib = node_memory_mib(p, node);
	name = node_name(p, g->pci);
	if (name && *name)
		fa_gpu_set(&g->name, name);
	free(name);
	if (p->out->n_gpus == 1)
		fa_gpu_set(&p->out->gpus_origin, NODES);
}

static bool read_topology(struct fa_probe *p)
{
	struct fa_strv nodes = FA_STRV_INIT;
	bool any;

	p->sys->list(p->sys->ctx, NODES, &nodes);
	any = nodes.n > 0;
	for (size_t i = 0; i < nodes.n; i++) {
		char *path = fa_strf(NODES "/%s/properties", nodes.v[i]), *text = fa_probe_read(p, path);

		if (text)
			add_node(p, nodes.v[i], text);
		free(text);
		free(path);
	}
	fa_strv_release(&nodes);
	return any;
}

/* A card that computes, on the bus but without its driver. Small processor graphics are not worth a word. */
static void read_bus(struct fa_probe *p)
{
	char *answer = fa_probe_ask(p, "pci", NULL);
	struct fa_strv lines = FA_STRV_INIT;

	fa_strv_split(&lines, answer, "\n");
	for (size_t i = 0; i < lines.n; i++) {
		char address[32], driver[64];
		unsigned vendor, device, class;
		struct fa_gpu *g;

		if (sscanf(lines.v[i], "pci=%31s %x %x %x %63s", address, &vendor, &device, &class, driver) != 5 ||
		    vendor != 0x1002 || !fa_cards_arch_by_pci(vendor, device) || p->out->n_gpus)
			continue;
		g = fa_facts_add_gpu(p->out);
		g->vendor = fa_strdup("amd");
		g->arch = fa_strdup(fa_cards_arch_by_pci(vendor, device));
		g->pci = fa_read_pci(address);
		fa_gpu_set(&p->out->gpus_origin, "/sys/bus/pci/devices");
		fa_probe_problem(p, "driver_amd_not_loaded", "sysfs",
		                 "sudo modprobe amdgpu, or install AMD's driver and restart",
		                 "The card at %s has no driver that computes: /sys/class/kfd is not there", g->pci);
	}
	fa_strv_release(&lines);
	free(answer);
}

/* Where torch's extension builder looks, but for hipcc in PATH. */
static const char *rocm_home(struct fa_probe *p)
{
	static const char *const variables[] = { "ROCM_HOME", "ROCM_PATH" };

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *set = p->sys->env(p->sys->ctx, variables[i]);

		if (set && *set)
			return set;
	}
	return "/opt/rocm";
}

/* Installed is what the version file says; a toolkit is one with its compiler, which the packages of the runtime do not bring. */
static void detect_rocm(struct fa_probe *p)
{
	const char *home = rocm_home(p);
	char *wanted = fa_strf("%s/bin/hipcc", home), *hipcc = p->sys->find(p->sys->ctx, wanted);
	char *path = fa_strf("%s/.info/version", home), *text = fa_probe_read(p, path);
	char *version = text ? fa_read_version(text, false) : NULL;

	if (!version)
		fa_probe_none(p, FA_FACT_ROCM, "read", path, path);
	else {
		fa_facts_set_text(p->out, FA_FACT_ROCM, version, path);
		if (hipcc) {
			fa_facts_add_toolkit(p->out, "rocm", version, home);
			if (p->out->n_toolkits == 1)
				fa_gpu_set(&p->out->toolkits_origin, hipcc);
		}
	}
	free(hipcc);
	free(wanted);
	free(version);
	free(text);
	free(path);
}

void fa_detect_amd(struct fa_probe *p)
{
	if (!read_topology(p) && !p->out->n_gpus)
		read_bus(p);
	detect_rocm(p);
}
