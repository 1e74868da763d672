/* Parsers: nvidia-smi in its forms. */
#include "buf.h"
#include "cards.h"
#include "read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- versions: "Driver Version: 580.82.09", "KMD Version: 610.43.02", "CUDA UMD Version: 13.3", "<cuda_version>" */

struct versions {
	char *driver; /* all NULL when not told; "N/A" and "ERR!" stay as they are */
	char *cuda;
	char *smi;
	char *nvml;
	char *other; /* a label that nobody knows yet */
};

static void versions_release(struct versions *v)
{
	free(v->driver);
	free(v->cuda);
	free(v->smi);
	free(v->nvml);
	free(v->other);
}

static void keep(char **field, const char *text, size_t len)
{
	if (!*field)
		*field = fa_strndup(text, len);
}

/* Words before `at`, back to two blanks, a bar or the start of the line. */
static char *label_before(const char *line, const char *at)
{
	const char *from = at;

	while (from > line && from[-1] != '|' && from[-1] != ':' && from[-1] != '<' &&
	       !(from - line >= 2 && from[-1] == ' ' && from[-2] == ' '))
		from--;
	return fa_strndup(from, (size_t)(at - from));
}

static void keep_version(struct versions *v, const char *label, const char *value, size_t len)
{
	bool number = isdigit((unsigned char)*value);

	if (fa_read_find(label, "cuda"))
		keep(&v->cuda, value, len);
	else if (fa_read_find(label, "driver") || fa_read_find(label, "kmd"))
		keep(&v->driver, value, len);
	else if (fa_read_find(label, "nvml"))
		keep(&v->nvml, value, len);
	else if (fa_read_find(label, "nvidia-smi"))
		keep(&v->smi, value, len);
	else if (number)
		keep(&v->other, value, len);
}

static void versions_of_line(struct versions *v, const char *line)
{
	const char *smi = strstr(line, "NVIDIA-SMI "), *p = line;

	if (smi && isdigit((unsigned char)smi[strspn(smi + 11, " ") + 11])) {
		smi += 11 + strspn(smi + 11, " ");
		keep(&v->smi, smi, strspn(smi, "0123456789."));
	}
	while ((p = fa_read_find(p, "version"))) {
		char *label = label_before(line, p);
		const char *value = p + 7 + strspn(p + 7, " \t:>");
		size_t len = strcspn(value, " \t|<,)");

		if (value > p + 7 && len && memchr(p + 7, ':', (size_t)(value - p - 7)))
			keep_version(v, label, value, len);
		else if (value > p + 7 && len && p[7] == '>')
			keep_version(v, label, value, len);
		free(label);
		p += 7;
	}
}

/* Driver numbers of Windows have two parts (560.76), those of Linux three (560.28.03) or, for a .run of some branches, two. In
 * WSL the tool is the Linux one and the driver that of Windows. */
static bool is_wsl(const struct versions *v)
{
	const char *dot = v->driver ? strchr(v->driver, '.') : NULL, *smi_dot = v->smi ? strchr(v->smi, '.') : NULL;

	return dot && smi_dot && strcmp(v->driver, v->smi) != 0 && !strchr(dot + 1, '.') && strchr(smi_dot + 1, '.');
}

static void set_versions(struct fa_reading *r, const struct versions *v)
{
	const char *driver = v->driver ? v->driver : v->other;

	if (driver && isdigit((unsigned char)*driver)) {
		fa_facts_set_text(r->out, FA_FACT_DRIVER, driver, r->origin);
	} else if (v->smi) {
		fa_facts_set_text(r->out, FA_FACT_DRIVER, v->smi, r->origin);
		fa_facts_doubt(r->out, FA_FACT_DRIVER, "the number of nvidia-smi itself; the driver's own was not told");
	}
	if (v->cuda && isdigit((unsigned char)*v->cuda))
		fa_facts_set_text(r->out, FA_FACT_DRIVER_CUDA, v->cuda, r->origin);
	else if (v->cuda && driver)
		fa_facts_add_problem(
		        r->out, "driver_library_missing", r->tool,
		        "nvidia-smi tells no CUDA version: libcuda.so.1 of the driver is not found",
		        "install the driver's CUDA library; a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility");
	if (is_wsl(v)) {
		fa_facts_set_text(r->out, FA_FACT_OS, "linux", r->origin);
		fa_facts_set_bool(r->out, FA_FACT_WSL, true, r->origin);
	}
}

static bool read_versions(struct fa_reading *r)
{
	struct versions v = { 0 };
	bool any;

	for (size_t i = 0; i < r->lines->n; i++)
		if (!strstr(r->lines->v[i], "VBIOS") && !strstr(r->lines->v[i], "GSP"))
			versions_of_line(&v, r->lines->v[i]);
	any = v.driver || v.smi;
	if (any)
		set_versions(r, &v);
	versions_release(&v);
	return any;
}

static struct fa_gpu *add_card(struct fa_reading *r)
{
	struct fa_gpu *g = fa_facts_add_gpu(r->out);

	g->vendor = fa_strdup("nvidia");
	if (!r->out->gpus_origin)
		r->out->gpus_origin = fa_strdup(r->origin);
	return g;
}

/* "143771 MiB", "143771MiB" -> 143771; "N/A", "[Not Supported]" -> -1 */
static int64_t mebibytes(const char *text)
{
	char *end;
	long long n = strtoll(text, &end, 10);

	if (end == text || n < 0 || n > (1LL << 40))
		return -1;
	return strstr(end, "GiB") ? n * 1024 : n;
}

/* ---- the table */

/* Second cell of "|   0  NVIDIA H800    On  | 00000000:19:00.0 Off |   0 |"; NULL: another kind of line. */
static const char *card_line(const char *line, const char **name, size_t *len, int *index)
{
	const char *cell = strchr(line, '|'), *bar = cell ? strchr(cell + 1, '|') : NULL, *end, *bus;
	char *pci, *after;

	if (!bar)
		return NULL;
	*index = (int)strtol(cell + 1, &after, 10);
	bus = bar + 1 + strspn(bar + 1, " ");
	pci = fa_read_pci(bus);
	if (after == cell + 1 || !isspace((unsigned char)*after) || !pci || *index < 0 || *index > 4095) {
		free(pci);
		return NULL;
	}
	free(pci);
	*name = after + strspn(after, " ");
	for (end = bar; end > *name && end[-1] == ' ';)
		end--;
	while (end > *name && end[-1] != ' ') /* the last word: On, Off, WDDM, TCC, N/A */
		end--;
	*len = (size_t)(end - *name);
	return bus;
}

/* "| N/A   36C    P0    117W / 700W |  55857MiB / 81559MiB |      0%      Default |" */
static int64_t memory_line(const char *line)
{
	const char *cell = strchr(line, '|'), *slash;

	cell = cell ? strchr(cell + 1, '|') : NULL;
	slash = cell ? strchr(cell + 1, '/') : NULL;
	if (!slash || memchr(cell + 1, '|', (size_t)(slash - cell - 1)))
		return -1;
	return mebibytes(slash + 1);
}

static void windows_table(struct fa_reading *r, const char *line)
{
	if (strstr(line, "TCC/WDDM") || strstr(line, "Driver-Model"))
		fa_facts_set_text(r->out, FA_FACT_OS, "windows", r->origin);
}

/* The table of `nvidia-smi -l` comes again and again. */
static bool seen(const struct fa_facts *f, int index, const char *bus)
{
	char *pci = fa_read_pci(bus);
	bool is = false;

	for (size_t i = 0; i < f->n_gpus && !is; i++)
		is = f->gpus[i].index == index && f->gpus[i].pci && !strcmp(f->gpus[i].pci, pci);
	free(pci);
	return is;
}

static void read_table(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *name, *bus = NULL;
		size_t len = 0;
		int index = 0;
		struct fa_gpu *g;

		windows_table(r, r->lines->v[i]);
		if (strstr(r->lines->v[i], "MIG devices:") || strstr(r->lines->v[i], "Processes:"))
			return;
		bus = card_line(r->lines->v[i], &name, &len, &index);
		if (!bus || seen(r->out, index, bus))
			continue;
		g = add_card(r);
		g->index = index;
		g->pci = fa_read_pci(bus);
		fa_read_card_name(g, name, len);
		if (i + 1 < r->lines->n)
			g->memory_mib = memory_line(r->lines->v[i + 1]);
	}
}

/* Faults stand outside the table, or as ERR! in a card's row. */
static void table_faults(struct fa_reading *r)
{
	struct fa_strv outside = FA_STRV_INIT;

	for (size_t i = 0; i < r->lines->n; i++)
		if (!strchr(r->lines->v[i], '|') || (strstr(r->lines->v[i], "ERR!") && !strstr(r->lines->v[i], "NVIDIA-SMI")))
			fa_strv_push(&outside, r->lines->v[i]);
	fa_read_fault(r->out, r->tool, &outside);
	fa_strv_release(&outside);
}

static bool looked_and_found_none(const struct fa_reading *r)
{
	return fa_read_find(r->text, "No devices were found") != NULL;
}

void fa_read_nvidia_smi(struct fa_reading *r)
{
	bool any = read_versions(r);

	read_table(r);
	if (looked_and_found_none(r))
		r->out->gpus_known = true;
	if (any || r->out->n_gpus)
		table_faults(r);
	else
		fa_read_unusable(r, "table of cards");
}

/* ---- nvidia-smi -L */

void fa_read_nvidia_smi_list(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i], *uuid;
		char *end;
		struct fa_gpu *g;
		long index;

		if (strncmp(line, "GPU ", 4) != 0)
			continue;
		index = strtol(line + 4, &end, 10);
		if (end == line + 4 || *end != ':' || index < 0 || index > 4095)
			continue;
		uuid = strstr(end, " (UUID:");
		g = add_card(r);
		g->index = (int)index;
		fa_read_card_name(g, end + 1, uuid ? (size_t)(uuid - end - 1) : strlen(end + 1));
	}
	if (looked_and_found_none(r))
		r->out->gpus_known = true;
	if (!r->out->n_gpus)
		fa_read_unusable(r, "list of cards");
	else
		table_faults(r);
}

/* ---- nvidia-smi --query-gpu=… --format=csv */

enum column { OTHER, INDEX, NAME, CAPABILITY, MEMORY, DRIVER, BUS };

static enum column column_by_title(const char *title)
{
	static const struct {
		const char *title;
		enum column column;
	} titles[] = {
		{ "name", NAME },           { "gpu_name", NAME },         { "compute_cap", CAPABILITY },
		{ "memory.total", MEMORY }, { "driver_version", DRIVER }, { "index", INDEX },
		{ "pci.bus_id", BUS },      { "gpu_bus_id", BUS },
	};
	size_t len = strcspn(title, " [");

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++)
		if (strlen(titles[i].title) == len && !strncmp(titles[i].title, title, len))
			return titles[i].column;
	return OTHER;
}

static bool only(const char *cell, const char *set)
{
	return *cell && cell[strspn(cell, set)] == '\0';
}

/* Without titles a cell tells by its form what it is. `first`: a small number there is the index. */
static enum column column_by_form(const char *cell, bool first)
{
	const char *dot = strchr(cell, '.');
	char *pci = fa_read_pci(cell);
	bool bus = pci != NULL;

	free(pci);
	if (bus)
		return BUS;
	if (!*cell || *cell == '[' || !strncmp(cell, "GPU-", 4) || !strcmp(cell, "N/A") || !strcmp(cell, "Enabled") ||
	    !strcmp(cell, "Disabled"))
		return OTHER;
	if (only(cell, "0123456789"))
		return first && strlen(cell) <= 3 ? INDEX : strlen(cell) >= 4 ? MEMORY : OTHER;
	if (strstr(cell, "MiB") && isdigit((unsigned char)*cell))
		return MEMORY;
	if (only(cell, "0123456789.") && dot)
		return dot - cell <= 2 && strlen(dot) == 2 ? CAPABILITY : DRIVER;
	return isalpha((unsigned char)*cell) ? NAME : OTHER;
}

static void query_cell(struct fa_reading *r, struct fa_gpu *g, enum column column, const char *cell)
{
	if (*cell == '[' || !strcmp(cell, "N/A"))
		return;
	switch (column) {
	case OTHER: break;
	case INDEX: g->index = atoi(cell) >= 0 && atoi(cell) < 4096 ? atoi(cell) : g->index; break;
	case NAME: fa_gpu_set(&g->name, cell); break;
	case MEMORY: g->memory_mib = mebibytes(cell); break;
	case DRIVER: fa_facts_set_text(r->out, FA_FACT_DRIVER, cell, r->origin); break;
	case CAPABILITY:
		free(g->arch);
		g->arch = fa_arch_plain(cell);
		break;
	case BUS:
		free(g->pci);
		g->pci = fa_read_pci(cell);
		break;
	}
}

static bool is_row(const struct fa_strv *cells, const struct fa_strv *titles)
{
	size_t typed = 0;

	for (size_t i = 0; i < cells->n; i++)
		typed += column_by_form(cells->v[i], i == 0) != OTHER;
	return titles->n ? cells->n == titles->n : typed > 0 && (cells->n > 1 || column_by_form(cells->v[0], true) != NAME);
}

static void query_row(struct fa_reading *r, const struct fa_strv *cells, const struct fa_strv *titles)
{
	struct fa_gpu *g = add_card(r);

	for (size_t i = 0; i < cells->n; i++)
		query_cell(r, g, titles->n ? column_by_title(titles->v[i]) : column_by_form(cells->v[i], i == 0), cells->v[i]);
	if (!g->arch && g->name)
		g->arch = fa_strdup(fa_cards_arch_by_name("nvidia", g->name));
}

static bool are_titles(const struct fa_strv *cells)
{
	for (size_t i = 0; i < cells->n; i++)
		if (column_by_title(cells->v[i]) != OTHER)
			return true;
	return false;
}

void fa_read_nvidia_smi_query(struct fa_reading *r)
{
	struct fa_strv titles = FA_STRV_INIT;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *asked = strstr(r->lines->v[i], "--query-gpu=");
		struct fa_strv cells = FA_STRV_INIT;

		if (asked) { /* the command stands above its output: it names the columns */
			char *fields = fa_strndup(asked + 12, strcspn(asked + 12, " "));

			fa_strv_release(&titles);
			fa_strv_split(&titles, fields, ",");
			free(fields);
			continue;
		}
		fa_strv_split(&cells, r->lines->v[i], ",");
		if (titles.n && are_titles(&cells))
			fa_strv_release(&titles);
		if (!titles.n && are_titles(&cells))
			fa_strv_append(&titles, &cells);
		else if (cells.n && is_row(&cells, &titles))
			query_row(r, &cells, &titles);
		fa_strv_release(&cells);
	}
	fa_strv_release(&titles);
	if (looked_and_found_none(r))
		r->out->gpus_known = true;
	if (!r->out->n_gpus)
		fa_read_unusable(r, "row of values");
	else
		fa_read_fault(r->out, r->tool, r->lines);
}

/* ---- nvidia-smi -q, and -q -x */

/* The value of "Product Name : X" or "<product_name>X</product_name>"; the caller's; NULL: not this line. */
static char *q_value(const char *line, const char *label, const char *tag)
{
	const char *value = fa_read_value(line, label), *open;

	if (value)
		return fa_strdup(value);
	open = strchr(line, '<');
	if (!open || strncmp(open + 1, tag, strlen(tag)) != 0 || open[1 + strlen(tag)] != '>')
		return NULL;
	open += 2 + strlen(tag);
	return fa_strndup(open, strcspn(open, "<"));
}

/* "GPU 00000000:00:06.0" or "<gpu id="00000000:00:06.0">" */
static char *q_card(const char *line)
{
	const char *xml = strstr(line, "<gpu id=\"");

	if (xml)
		return fa_read_pci(xml + 9);
	return strncmp(line, "GPU ", 4) == 0 ? fa_read_pci(line + 4) : NULL;
}

static void q_line(struct fa_reading *r, const char *line, bool *in_memory)
{
	struct fa_gpu *g = r->out->n_gpus ? &r->out->gpus[r->out->n_gpus - 1] : NULL;
	char *pci = q_card(line), *name, *total;

	if (pci) {
		add_card(r)->pci = pci;
		*in_memory = false;
		return;
	}
	if (!g)
		return;
	name = q_value(line, "Product Name", "product_name");
	if (name && !g->name)
		fa_read_card_name(g, name, strlen(name));
	free(name);
	if (strstr(line, "FB Memory Usage") || strstr(line, "<fb_memory_usage>"))
		*in_memory = true;
	total = *in_memory ? q_value(line, "Total", "total") : NULL;
	if (total) {
		if (g->memory_mib < 0)
			g->memory_mib = mebibytes(total);
		*in_memory = false;
	}
	free(total);
}

void fa_read_nvidia_smi_q(struct fa_reading *r)
{
	bool any = read_versions(r), in_memory = false;

	for (size_t i = 0; i < r->lines->n; i++)
		q_line(r, r->lines->v[i], &in_memory);
	if (!any && !r->out->n_gpus)
		fa_read_unusable(r, "Driver Version");
}
