/* Parsers: NVML's answers, what the driver tells in procfs, Tegra, the CUDA compiler and deviceQuery, PCI lists. */
#include "buf.h"
#include "cards.h"
#include "read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fa_gpu *add_card(struct fa_reading *r, const char *vendor)
{
	struct fa_gpu *g = fa_facts_add_gpu(r->out);

	g->vendor = fa_strdup(vendor);
	if (!r->out->gpus_origin)
		r->out->gpus_origin = fa_strdup(r->origin);
	return g;
}

static struct fa_gpu *last_card(struct fa_reading *r)
{
	return r->out->n_gpus ? &r->out->gpus[r->out->n_gpus - 1] : NULL;
}

/* ---- NVML: KEY=VALUE lines that sys_nvml.c writes; "gpu=N" begins a card */

static void nvml_card_line(struct fa_reading *r, const char *key, const char *value)
{
	struct fa_gpu *g = last_card(r);

	if (!strcmp(key, "gpu"))
		add_card(r, "nvidia")->index = atoi(value);
	else if (!g)
		return;
	else if (!strcmp(key, "name"))
		fa_gpu_set(&g->name, value);
	else if (!strcmp(key, "arch"))
		fa_gpu_set(&g->arch, value);
	else if (!strcmp(key, "memory_mib"))
		g->memory_mib = strtoll(value, NULL, 10);
	else if (!strcmp(key, "pci") && !g->pci)
		g->pci = fa_read_pci(value);
}

static void nvml_line(struct fa_reading *r, const char *key, const char *value)
{
	if (!strcmp(key, "driver"))
		fa_facts_set_text(r->out, FA_FACT_DRIVER, value, r->origin);
	else if (!strcmp(key, "cuda"))
		fa_facts_set_text(r->out, FA_FACT_DRIVER_CUDA, value, r->origin);
	else if (!strcmp(key, "cards"))
		r->out->gpus_known = true;
	else
		nvml_card_line(r, key, value);
}

static bool nvml_worked(const struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++)
		if (!strcmp(r->lines->v[i], "nvml=ok"))
			return true;
	return false;
}

/* What the library said went wrong, without our key in front. */
static void nvml_texts(const struct fa_reading *r, struct fa_strv *out)
{
	for (size_t i = 0; i < r->lines->n; i++)
		if (!strncmp(r->lines->v[i], "text=", 5))
			fa_strv_push(out, r->lines->v[i] + 5);
}

void fa_read_nvml(struct fa_reading *r)
{
	bool worked = nvml_worked(r), fault;
	struct fa_strv texts = FA_STRV_INIT;

	for (size_t i = 0; worked && i < r->lines->n; i++) {
		const char *equals = strchr(r->lines->v[i], '=');
		char *key = equals ? fa_strndup(r->lines->v[i], (size_t)(equals - r->lines->v[i])) : NULL;

		if (key)
			nvml_line(r, key, equals + 1);
		free(key);
	}
	nvml_texts(r, &texts);
	fault = fa_read_fault(r->out, "NVML", &texts);
	if (!worked && !fault)
		fa_read_unusable(r, "answer");
	fa_strv_release(&texts);
}

/* ---- /proc/driver/nvidia */

static bool is_driver_number(const char *word)
{
	size_t n = strspn(word, "0123456789."), first = strspn(word, "0123456789");

	return n == strlen(word) && first >= 2 && first <= 4 && word[first] == '.' && isdigit((unsigned char)word[first + 1]);
}

void fa_read_proc_nvidia_version(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n && !fa_facts_has(r->out, FA_FACT_DRIVER); i++) {
		struct fa_strv words = FA_STRV_INIT;

		if (!strstr(r->lines->v[i], "NVRM") && !strstr(r->lines->v[i], "Kernel Module"))
			continue;
		fa_strv_split(&words, r->lines->v[i], " \t");
		for (size_t w = 0; w < words.n; w++) {
			if (!strcmp(words.v[w], "x86_64") || !strcmp(words.v[w], "aarch64"))
				fa_facts_set_text(r->out, FA_FACT_MACHINE, words.v[w], r->origin);
			if (is_driver_number(words.v[w]) && !fa_facts_has(r->out, FA_FACT_DRIVER))
				fa_facts_set_text(r->out, FA_FACT_DRIVER, words.v[w], r->origin);
		}
		fa_strv_release(&words);
	}
	if (fa_facts_has(r->out, FA_FACT_DRIVER))
		return;
	if (fa_read_find(r->text, "No such file"))
		fa_facts_add_problem(r->out, "driver_not_loaded", r->tool,
		                     "/proc/driver/nvidia/version is not there: the kernel module is not loaded",
		                     "sudo modprobe nvidia; when that finds no module, install the driver again and restart");
	else
		fa_read_unusable(r, "driver number");
}

void fa_read_proc_nvidia_gpu(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *name = fa_read_value(r->lines->v[i], "Model"), *bus = fa_read_value(r->lines->v[i], "Bus Location");
		struct fa_gpu *g;

		if (name)
			add_card(r, "nvidia");
		g = last_card(r);
		if (name && strcmp(name, "Unknown") != 0)
			fa_read_card_name(g, name, strlen(name));
		if (bus && g && !g->pci)
			g->pci = fa_read_pci(bus);
	}
	if (!r->out->n_gpus)
		fa_read_unusable(r, "Model");
}

/* "# R36 (release), REVISION: 4.3, GCID: …, BOARD: …, EABI: aarch64, DATE: …" */
void fa_read_tegra_release(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i], *release = strchr(line, 'R'), *revision = strstr(line, "REVISION:");
		char *number = revision ? fa_read_version(revision, false) : NULL, *text;

		if (!number || !release || release > revision || !isdigit((unsigned char)release[1])) {
			free(number);
			continue;
		}
		text = fa_strf("%.*s.%s", (int)(1 + strspn(release + 1, "0123456789")), release, number);
		fa_facts_set_text(r->out, FA_FACT_JETSON, text, r->origin);
		fa_facts_set_text(r->out, FA_FACT_OS, "linux", r->origin);
		if (strstr(line, "aarch64"))
			fa_facts_set_text(r->out, FA_FACT_MACHINE, "aarch64", r->origin);
		free(text);
		free(number);
		return;
	}
	fa_read_unusable(r, "L4T release");
}

/* ---- PCI */

/* "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)" */
static void lspci_line(struct fa_reading *r, const char *line)
{
	const char *ids = strstr(line, "[10de:"), *amd = strstr(line, "[1002:"), *name, *end;
	bool nvidia = ids || strstr(line, "NVIDIA");
	unsigned vendor = 0, device = 0;
	struct fa_gpu *g;
	char *pci;

	if (!strstr(line, "VGA") && !strstr(line, "3D controller") && !strstr(line, "Display controller") &&
	    !strstr(line, "Processing accelerators"))
		return;
	if (!nvidia && !amd && !strstr(line, "Advanced Micro Devices"))
		return;
	g = add_card(r, nvidia ? "nvidia" : "amd");
	pci = line[2] == ':' ? fa_strf("0000:%.*s", 7, line) : fa_strdup(line);
	g->pci = fa_read_pci(pci);
	free(pci);
	ids = ids ? ids : amd;
	if (ids && sscanf(ids, "[%4x:%4x", &vendor, &device) == 2)
		g->arch = fa_strdup(fa_cards_arch_by_pci(vendor, device));
	name = strstr(line, nvidia ? "NVIDIA Corporation" : "[AMD/ATI]");
	name = name ? strchr(name + 9, '[') : NULL;
	end = name ? strchr(name, ']') : NULL;
	if (end && name != ids)
		fa_read_card_name(g, name + 1, (size_t)(end - name - 1));
}

void fa_read_lspci(struct fa_reading *r)
{
	bool any = false;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i];

		if (!isxdigit((unsigned char)line[0]) || !strchr(line, ':') || strlen(line) < 8)
			continue;
		any = true;
		lspci_line(r, line);
	}
	if (any)
		r->out->gpus_known = true;
	else
		fa_read_unusable(r, "PCI device");
}

/* ---- nvcc */

/* "Cuda compilation tools, release 13.0, V13.0.88" */
static char *nvcc_version(const char *line)
{
	const char *release = strstr(line, "release "), *v = release ? strstr(release, ", V") : NULL;

	if (!release || !fa_read_find(line, "cuda"))
		return NULL;
	if (v && isdigit((unsigned char)v[3]))
		return fa_read_version(v + 3, false);
	return fa_read_version(release, false);
}

void fa_read_nvcc(struct fa_reading *r)
{
	bool any = false;

	for (size_t i = 0; i < r->lines->n && !any; i++) {
		char *version = nvcc_version(r->lines->v[i]);

		if (version) {
			fa_facts_add_toolkit(r->out, "cuda", version, NULL);
			fa_gpu_set(&r->out->toolkits_origin, r->origin);
			any = true;
		}
		free(version);
	}
	if (any)
		return;
	fa_read_unusable(r, "release");
	for (size_t i = 0; i < r->out->n_problems; i++)
		if (!strcmp(r->out->problems[i].id, "tool_not_installed"))
			r->out->toolkits_known = true; /* looked for, and not there */
}

/* ---- deviceQuery */

static void device_query_versions(struct fa_reading *r, const char *line)
{
	const char *p = fa_read_find(line, "CUDA Driver Version");
	char *version = p ? fa_read_version(p, false) : NULL;

	if (version)
		fa_facts_set_text(r->out, FA_FACT_DRIVER_CUDA, version, r->origin);
	free(version);
}

static void device_query_pci(struct fa_gpu *g, const char *line)
{
	unsigned domain, bus, device;
	const char *value = strchr(line, ':');

	if (strstr(line, "PCI Domain ID") && value && sscanf(value, ": %u / %u / %u", &domain, &bus, &device) == 3) {
		free(g->pci);
		g->pci = fa_strf("%04x:%02x:%02x.0", domain, bus, device);
	}
}

/* 'Device 0: "NVIDIA GeForce RTX 3090"' and what follows it. */
static void device_query_line(struct fa_reading *r, const char *line)
{
	const char *quote = strchr(line, '"'), *end = quote ? strchr(quote + 1, '"') : NULL, *value;
	struct fa_gpu *g;
	char *capability;

	if (!strncmp(line, "Device ", 7) && isdigit((unsigned char)line[7]) && end) {
		g = add_card(r, "nvidia");
		g->index = atoi(line + 7) < 4096 ? atoi(line + 7) : g->index;
		fa_read_card_name(g, quote + 1, (size_t)(end - quote - 1));
	}
	device_query_versions(r, line);
	g = last_card(r);
	if (!g)
		return;
	value = fa_read_find(line, "CUDA Capability");
	capability = value ? fa_read_version(value, false) : NULL;
	if (capability) {
		free(g->arch);
		g->arch = fa_arch_plain(capability);
		free(capability);
	}
	value = fa_read_value(line, "Total amount of global memory");
	if (value && isdigit((unsigned char)*value))
		g->memory_mib = strtoll(value, NULL, 10) < (1LL << 40) ? strtoll(value, NULL, 10) : -1;
	device_query_pci(g, line);
}

void fa_read_device_query(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++)
		device_query_line(r, r->lines->v[i]);
	if (!r->out->n_gpus)
		fa_read_unusable(r, "device");
}
