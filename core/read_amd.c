/* Parsers: rocminfo and rocm-smi. */
#include "buf.h"
#include "cards.h"
#include "read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- rocminfo: agents; processors are agents too, and an ISA has a "Name:" of its own */

struct agent {
	char *name;
	char *marketing;
	bool gpu;
	bool in_isa;
	bool in_global; /* a pool of the card's own memory */
	int64_t memory_mib;
	long bdf;
	long domain;
};

static struct agent agent_new(void)
{
	return (struct agent){ .memory_mib = -1, .bdf = -1 };
}

static void agent_end(struct fa_reading *r, struct agent *a)
{
	struct fa_gpu *g;

	if (a->gpu && a->name && !strncmp(a->name, "gfx", 3)) {
		g = fa_facts_add_gpu(r->out);
		g->vendor = fa_strdup("amd");
		g->arch = fa_arch_plain(a->name);
		if (a->marketing && *a->marketing)
			fa_gpu_set(&g->name, a->marketing);
		g->memory_mib = a->memory_mib;
		if (a->bdf >= 0)
			g->pci = fa_strf("%04lx:%02lx:%02lx.%lx", a->domain & 0xffff, a->bdf >> 8 & 0xff, a->bdf >> 3 & 0x1f,
			                 a->bdf & 7);
		if (!r->out->gpus_origin)
			r->out->gpus_origin = fa_strdup(r->origin);
	}
	free(a->name);
	free(a->marketing);
	*a = agent_new();
}

static void keep(char **field, const char *value)
{
	if (value && !*field)
		*field = fa_strdup(value);
}

static void agent_line(struct agent *a, const char *line)
{
	const char *value;

	if (strstr(line, "ISA Info") || strstr(line, "ISA 1"))
		a->in_isa = true;
	if (!a->in_isa)
		keep(&a->name, fa_read_value(line, "Name"));
	keep(&a->marketing, fa_read_value(line, "Marketing Name"));
	value = fa_read_value(line, "Device Type");
	if (value)
		a->gpu = !strncmp(value, "GPU", 3);
	value = fa_read_value(line, "BDFID");
	if (value)
		a->bdf = strtol(value, NULL, 10);
	value = fa_read_value(line, "Domain");
	if (value)
		a->domain = strtol(value, NULL, 10);
	value = fa_read_value(line, "Segment");
	if (value)
		a->in_global = !strncmp(value, "GLOBAL", 6);
	value = a->in_global ? fa_read_value(line, "Size") : NULL;
	if (value && a->memory_mib < 0 && isdigit((unsigned char)*value) && strstr(value, "KB"))
		a->memory_mib = strtoll(value, NULL, 10) / 1024;
}

static bool begins_agent(const char *line)
{
	const char *p = line + strspn(line, " ");

	return !strncmp(p, "Agent ", 6) && isdigit((unsigned char)p[6]);
}

void fa_read_rocminfo(struct fa_reading *r)
{
	struct agent a = agent_new();
	bool any = false;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i];

		if (begins_agent(line)) {
			agent_end(r, &a);
			any = true;
		} else if (any) {
			agent_line(&a, line);
		}
		if (strstr(line, "WSL environment detected")) {
			fa_facts_set_text(r->out, FA_FACT_OS, "linux", r->origin);
			fa_facts_set_bool(r->out, FA_FACT_WSL, true, r->origin);
		}
	}
	agent_end(r, &a);
	if (!any)
		fa_read_unusable(r, "agent");
	else
		r->out->gpus_known = true;
}

/* ---- rocm-smi: "0       2     0x75a0,   24959  60.0°C …" and "GPU[0] : Card Series: AMD Instinct MI300X" */

static struct fa_gpu *card_number(struct fa_reading *r, long index)
{
	struct fa_gpu *g;

	for (size_t i = 0; i < r->out->n_gpus; i++)
		if (r->out->gpus[i].index == index)
			return &r->out->gpus[i];
	g = fa_facts_add_gpu(r->out);
	g->index = (int)index;
	g->vendor = fa_strdup("amd");
	if (!r->out->gpus_origin)
		r->out->gpus_origin = fa_strdup(r->origin);
	return g;
}

static void smi_table_line(struct fa_reading *r, const char *line)
{
	struct fa_strv words = FA_STRV_INIT;
	const char *id = strstr(line, " 0x");
	long index;

	fa_strv_split(&words, line, " \t");
	index = words.n ? strtol(words.v[0], NULL, 10) : -1;
	if (words.n > 4 && words.v[0][strspn(words.v[0], "0123456789")] == '\0' && index >= 0 && index < 4096) {
		struct fa_gpu *g = card_number(r, index);

		if (id && !g->arch)
			g->arch = fa_strdup(fa_cards_arch_by_pci(0x1002, (unsigned)strtoul(id + 1, NULL, 16) & 0xffff));
	}
	fa_strv_release(&words);
}

static void smi_product_line(struct fa_reading *r, const char *line)
{
	char *end;
	long index = strtol(line + 4, &end, 10);
	const char *name, *gfx;
	struct fa_gpu *g;

	if (end == line + 4 || *end != ']' || index < 0 || index > 4095)
		return;
	g = card_number(r, index);
	end += 1 + strspn(end + 1, " \t:");
	name = fa_read_value(end, "Card Series");
	if (!name)
		name = fa_read_value(end, "Card series");
	gfx = fa_read_value(end, "GFX Version");
	if (gfx) {
		free(g->arch);
		g->arch = fa_arch_plain(gfx);
	}
	if (name && strcmp(name, "N/A") != 0)
		fa_read_card_name(g, name, strlen(name));
}

void fa_read_rocm_smi(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i];

		if (!strncmp(line, "GPU[", 4))
			smi_product_line(r, line);
		else if (isdigit((unsigned char)*line))
			smi_table_line(r, line);
	}
	if (!r->out->n_gpus)
		fa_read_unusable(r, "card");
}
