/* NVIDIA cards and their driver. Evidence in order of cost: procfs, the PCI bus, NVML in a child, nvidia-smi. A driver that is
 * broken never hides a card: what the bus shows stays, and the fault becomes a problem. */
#include "cards.h"
#include "probe.h"
#include "read.h"
#include "sys_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct evidence {
	struct fa_facts kernel; /* /proc/driver/nvidia: driver, cards with names */
	struct fa_facts nvml;
	struct fa_facts bus; /* cards by PCI id */
	char *bus_driver;    /* of the first card: "nvidia", "nouveau", "vfio-pci", "-" */
	char *model;         /* of a board without PCI: "NVIDIA Jetson AGX Orin Developer Kit" */
	bool wsl;
	bool nvml_missing; /* the library is not there */
	bool nvml_hung;
};

static void evidence_release(struct evidence *e)
{
	fa_facts_release(&e->kernel);
	fa_facts_release(&e->nvml);
	fa_facts_release(&e->bus);
	free(e->bus_driver);
	free(e->model);
}

/* ---- gathering */

static void read_kernel(struct fa_probe *p, struct evidence *e)
{
	static const char version[] = "/proc/driver/nvidia/version", cards[] = "/proc/driver/nvidia/gpus";
	struct fa_strv names = FA_STRV_INIT;
	char *text = fa_probe_read(p, version);

	if (text)
		fa_read(&e->kernel, "proc-nvidia-version", version, text, strlen(text));
	free(text);
	if (p->sys->list(p->sys->ctx, cards, &names) != FA_SYS_DONE)
		names.n = 0;
	for (size_t i = 0; i < names.n; i++) {
		char *path = fa_strf("%s/%s/information", cards, names.v[i]);

		text = fa_probe_read(p, path);
		if (text)
			fa_read(&e->kernel, "proc-nvidia-gpu", "/proc/driver/nvidia/gpus", text, strlen(text));
		free(text);
		free(path);
	}
	fa_strv_release(&names);
}

/* "pci=0000:01:00.0 0x10de 0x2684 0x030000 nvidia" */
static void bus_line(struct evidence *e, const char *line)
{
	char address[32], driver[64];
	unsigned vendor, device, class;
	struct fa_gpu *g;

	if (sscanf(line, "pci=%31s %x %x %x %63s", address, &vendor, &device, &class, driver) != 5 || vendor != 0x10de)
		return;
	g = fa_facts_add_gpu(&e->bus);
	g->vendor = fa_strdup("nvidia");
	g->arch = fa_strdup(fa_cards_arch_by_pci(vendor, device));
	g->pci = fa_read_pci(address);
	if (!e->bus_driver)
		e->bus_driver = fa_strdup(driver);
}

static void read_bus(struct fa_probe *p, struct evidence *e)
{
	char *answer = fa_probe_ask(p, "pci", NULL);
	struct fa_strv lines = FA_STRV_INIT;

	fa_strv_split(&lines, answer, "\n");
	for (size_t i = 0; i < lines.n; i++)
		bus_line(e, lines.v[i]);
	if (e->bus.n_gpus)
		e->bus.gpus_origin = fa_strdup("/sys/bus/pci/devices");
	fa_strv_release(&lines);
	free(answer);
}

static void read_nvml(struct fa_probe *p, struct evidence *e)
{
	enum fa_sys_result result;
	char *answer = fa_probe_ask(p, "nvml", &result);

	e->nvml_hung = result == FA_SYS_TIMED_OUT;
	e->nvml_missing = strstr(answer, "nvml=missing") != NULL || result == FA_SYS_NOT_RECORDED;
	if (*answer && !e->nvml_missing)
		fa_read(&e->nvml, "nvml", "NVML", answer, strlen(answer));
	if (e->nvml_missing) {
		char *cuda = fa_probe_value(answer, "cuda");

		if (cuda)
			fa_facts_set_text(&e->nvml, FA_FACT_DRIVER_CUDA, cuda, "libcuda.so.1");
		free(cuda);
	}
	if (result == FA_SYS_CRASHED)
		fa_facts_add_problem(&e->nvml, "driver_library_crashed", "NVML",
		                     "The driver's library libnvidia-ml.so.1 crashed", "install the driver again");
	free(answer);
}

static void read_model(struct fa_probe *p, struct evidence *e)
{
	char *model = fa_probe_read(p, "/proc/device-tree/model");

	if (model && strstr(model, "NVIDIA"))
		e->model = model;
	else
		free(model);
}

/* ---- judging */

static bool kernel_works(const struct evidence *e)
{
	return fa_facts_has(&e->kernel, FA_FACT_DRIVER);
}

static bool any_card(const struct evidence *e)
{
	return e->kernel.n_gpus || e->bus.n_gpus || e->nvml.n_gpus;
}

static void tell_missing_driver(struct fa_probe *p, const struct evidence *e)
{
	static const char id[] = "driver_not_installed", how[] = "install NVIDIA's driver for this distribution, then restart";

	if (e->bus_driver && !strcmp(e->bus_driver, "nouveau"))
		fa_probe_problem(p, "driver_nouveau", "sysfs", how, "The card at %s is driven by nouveau, which runs no CUDA",
		                 e->bus.gpus[0].pci);
	else if (e->bus_driver && !strncmp(e->bus_driver, "vfio", 4))
		fa_probe_problem(p, "driver_vfio", "sysfs",
		                 "give the card back to the nvidia driver, or run in the virtual machine that has it",
		                 "The card at %s is set aside for a virtual machine (%s)", e->bus.gpus[0].pci, e->bus_driver);
	else if (fa_facts_has(p->out, FA_FACT_CONTAINER))
		fa_probe_problem(p, "driver_not_in_container", "procfs",
		                 "start the container with its cards: docker run --gpus all",
		                 "The card at %s is on the bus, but the driver is not in this container", e->bus.gpus[0].pci);
	else
		fa_probe_problem(p, id, "procfs", how, "The card at %s has no driver: /proc/driver/nvidia is not there",
		                 e->bus.gpus[0].pci);
}

static bool devices_there(struct fa_probe *p)
{
	struct fa_strv names = FA_STRV_INIT;
	enum fa_sys_result result = p->sys->list(p->sys->ctx, "/dev", &names);
	bool there = result != FA_SYS_DONE || fa_strv_has(&names, "nvidiactl");

	fa_strv_release(&names);
	return there;
}

static void tell_missing_library(struct fa_probe *p)
{
	if (fa_facts_has(p->out, FA_FACT_CONTAINER) || !devices_there(p))
		fa_probe_problem(p, "driver_not_in_container", "NVML",
		                 "start the container with its cards: docker run --gpus all",
		                 "The driver runs, but its library libnvidia-ml.so.1 is not in this container");
	else
		fa_probe_problem(p, "driver_library_missing", "NVML",
		                 "install the user part of the driver, of the same version",
		                 "The driver's kernel module runs, but its library libnvidia-ml.so.1 is not there");
}

static void tell_faults(struct fa_probe *p, struct evidence *e)
{
	if (e->nvml_hung)
		fa_probe_problem(p, "driver_hangs", "NVML", "look for Xid in: sudo dmesg; restart the machine",
		                 "The driver's library gave no answer in %d s", FA_ASK_TIMEOUT_MS / 1000);
	else if (e->bus.n_gpus && !kernel_works(e) && !e->wsl && !e->nvml.n_gpus)
		tell_missing_driver(p, e);
	else if (e->nvml_missing && kernel_works(e) && !e->model && !e->nvml.n_gpus &&
	         !e->nvml.n_problems) /* boards had none for years */
		tell_missing_library(p);
	for (size_t i = 0; i < e->nvml.n_problems; i++)
		fa_facts_add_problem(p->out, e->nvml.problems[i].id, e->nvml.problems[i].tool, e->nvml.problems[i].text,
		                     e->nvml.problems[i].repair);
	if (e->nvml.gpus_known && !e->nvml.n_gpus && e->bus.n_gpus && kernel_works(e))
		fa_probe_problem(p, "driver_finds_no_card", "NVML",
		                 "look for NVRM in: sudo dmesg; NVIDIA_VISIBLE_DEVICES of a container does this too",
		                 "The driver runs and finds no card, but the bus shows one at %s", e->bus.gpus[0].pci);
}

/* ---- putting together */

static const struct fa_gpu *by_pci(const struct fa_facts *f, const char *pci)
{
	for (size_t i = 0; pci && i < f->n_gpus; i++)
		if (f->gpus[i].pci && !strcmp(f->gpus[i].pci, pci))
			return &f->gpus[i];
	return NULL;
}

static void fill(char **field, const char *text)
{
	if (!*field)
		*field = fa_strdup(text);
}

static void complete(struct fa_gpu *g, const struct fa_gpu *more)
{
	if (!more)
		return;
	fill(&g->name, more->name);
	fill(&g->arch, more->arch);
	if (g->memory_mib < 0)
		g->memory_mib = more->memory_mib;
}

static void set_cards(struct fa_probe *p, const struct evidence *e)
{
	const struct fa_facts *best = e->nvml.n_gpus ? &e->nvml : e->kernel.n_gpus ? &e->kernel : &e->bus;

	for (size_t i = 0; i < best->n_gpus; i++) {
		struct fa_gpu *g = fa_facts_add_gpu(p->out);

		g->vendor = fa_strdup("nvidia");
		g->index = best->gpus[i].index;
		g->pci = fa_strdup(best->gpus[i].pci);
		complete(g, &best->gpus[i]);
		complete(g, by_pci(&e->bus, g->pci));
		complete(g, by_pci(&e->kernel, g->pci));
		if (!g->arch && g->name)
			g->arch = fa_strdup(fa_cards_arch_by_name("nvidia", g->name));
	}
	if (best->n_gpus)
		p->out->gpus_origin = fa_strdup(best->gpus_origin);
}

/* Jetson boards before the driver's library came to them. */
static void set_board(struct fa_probe *p, const struct evidence *e)
{
	const char *arch = fa_cards_arch_by_name("nvidia", e->model);
	struct fa_gpu *g;

	if (!arch)
		return;
	g = fa_facts_add_gpu(p->out);
	g->vendor = fa_strdup("nvidia");
	fa_gpu_set(&g->name, e->model);
	g->arch = fa_strdup(arch);
	p->out->gpus_origin = fa_strdup("/proc/device-tree/model");
}

static void copy_text(struct fa_probe *p, enum fa_fact id, const struct fa_facts *from)
{
	if (from->v[id].known)
		fa_facts_set_text(p->out, id, from->v[id].text, from->v[id].origin);
}

static void set_driver(struct fa_probe *p, const struct evidence *e)
{
	copy_text(p, FA_FACT_DRIVER, &e->nvml);
	copy_text(p, FA_FACT_DRIVER, &e->kernel);
	copy_text(p, FA_FACT_DRIVER_CUDA, &e->nvml);
	if (p->out->v[FA_FACT_DRIVER].known || e->model || e->nvml_hung || e->nvml.n_problems || e->wsl)
		return;
	fa_probe_none(p, FA_FACT_DRIVER, "read", "/proc/driver/nvidia/version", "/proc/driver/nvidia/version");
	if (!p->out->v[FA_FACT_DRIVER_CUDA].known)
		fa_probe_none(p, FA_FACT_DRIVER_CUDA, "read", "/proc/driver/nvidia/version", "/proc/driver/nvidia/version");
}

static bool all_recognised(const struct fa_facts *f)
{
	for (size_t i = 0; i < f->n_gpus; i++)
		if (!f->gpus[i].arch || !f->gpus[i].name || strstr(f->gpus[i].name, "..."))
			return false;
	return true;
}

/* Last resort, when the library cannot be loaded by us but the tool is there. Its table cuts names, so that the second form is
 * needed for some; only the first tells the driver's CUDA. */
static void ask_tool(struct fa_probe *p, struct evidence *e)
{
	static const char *const table[] = { "nvidia-smi", NULL }, *const query[] = {
		"nvidia-smi", "--query-gpu=index,name,compute_cap,memory.total,pci.bus_id", "--format=csv", NULL
	};
	struct fa_facts more = FA_FACTS_INIT;
	struct fa_probe inner = { .out = &e->nvml, .sys = p->sys, .timeout_ms = FA_PROBE_DRIVER_MS };
	char *path = p->sys->find(p->sys->ctx, table[0]);

	if (path)
		fa_probe_tool(&inner, "nvidia-smi", table);
	if (path && !all_recognised(&e->nvml)) {
		inner.out = &more;
		fa_probe_tool(&inner, "nvidia-smi-query", query);
		if (more.n_gpus == e->nvml.n_gpus && !more.n_problems)
			fa_facts_merge(&e->nvml, &more);
	}
	fa_facts_release(&more);
	free(path);
}

void fa_detect_nvidia(struct fa_probe *p)
{
	struct evidence e = { .wsl = fa_facts_is(p->out, FA_FACT_WSL) };

	read_kernel(p, &e);
	read_bus(p, &e);
	read_model(p, &e);
	read_nvml(p, &e);
	if (e.nvml_missing)
		ask_tool(p, &e);
	set_driver(p, &e);
	if (any_card(&e))
		set_cards(p, &e);
	else if (e.model)
		set_board(p, &e);
	tell_faults(p, &e);
	/* all places were looked at, and none of them has a fault that could hide a card */
	if (!e.nvml_hung && !e.nvml.n_problems && !e.model &&
	    (!p->sys->recorded || p->sys->recorded(p->sys->ctx, "ask", "pci")))
		p->out->gpus_known = true;
	if (p->out->gpus_known && !p->out->gpus_origin)
		p->out->gpus_origin = fa_strdup("/sys/bus/pci/devices, NVML");
	evidence_release(&e);
}
