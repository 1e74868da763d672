/* The machine: what was found, how sure, is anything wrong. With trouble: what, why, evidence, repair. */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FACTS = 6 };

struct shown {
	enum tui_sign sign;
	char text[256];
	char origin[256]; /* as recorded; "" unknown */
};

/* A row of the table: how it is said, the facts in it, and the words by which ids of problems, actions and warnings name it. */
struct fact_row {
	const char *name;
	int group;
	const char *words; /* between blanks */
	void (*say)(struct shown *out, const struct fa_facts *f);
	int facts[MAX_FACTS]; /* enum fa_fact + 1; 0 ends */
};

static void say(struct shown *out, enum tui_sign sign, const char *text)
{
	out->sign = sign;
	snprintf(out->text, sizeof out->text, "%s", text);
}

/* Appends a value between two texts; nothing at all when it is unknown or "". */
static void add(struct shown *out, const char *before, const char *value, const char *after)
{
	size_t len = strlen(out->text);
	if (value && *value)
		snprintf(out->text + len, sizeof out->text - len, "%s%s%s", before, value, after);
}

static bool card_equals(const struct fa_gpu *a, const struct fa_gpu *b)
{
	return tui_same(a->name, b->name) && tui_same(a->arch, b->arch) && a->memory_mib == b->memory_mib;
}

/* Cards equal to the one at i, that one too, as far as they follow it. */
static size_t equal_cards(const struct fa_facts *f, size_t i)
{
	size_t n = 1;
	while (i + n < f->n_gpus && card_equals(&f->gpus[i], &f->gpus[i + n]))
		n++;
	return n;
}

static bool unlike_cards(const struct fa_facts *f)
{
	return f->n_gpus && equal_cards(f, 0) < f->n_gpus;
}

static void describe_card(struct fa_buf *out, const struct fa_gpu *g)
{
	char number[32];
	fa_buf_adds(out, g->name ? g->name : "a card");
	if (g->arch)
		fa_buf_addf(out, ", %s%s", g->arch[0] >= '0' && g->arch[0] <= '9' ? "sm_" : "", g->arch);
	if (g->memory_mib >= 0)
		fa_buf_addf(out, ", %s MiB", tui_thousands(number, g->memory_mib));
	else
		fa_buf_adds(out, ", memory not known");
}

/* Unlike cards have rows of their own below. */
static void say_gpus(struct shown *out, const struct fa_facts *f)
{
	struct fa_buf b = FA_BUF_INIT;
	if (!f->gpus_known) {
		say(out, TUI_SIGN_UNKNOWN, "not known");
	} else if (!f->n_gpus) {
		say(out, TUI_SIGN_ABSENT, "none found");
	} else {
		if (unlike_cards(f))
			fa_buf_addf(&b, "%zu cards, not all alike", f->n_gpus);
		else if (f->n_gpus > 1)
			fa_buf_addf(&b, "%zu x ", f->n_gpus);
		if (!unlike_cards(f))
			describe_card(&b, &f->gpus[0]);
		say(out, TUI_SIGN_OK, fa_buf_str(&b));
	}
	fa_buf_release(&b);
	if (f->gpus_origin)
		snprintf(out->origin, sizeof out->origin, "%s", f->gpus_origin);
}

/* The value of a text: OK, "not found" for looked for and not there, "not known". */
static bool say_text(struct shown *out, const struct fa_facts *f, enum fa_fact id, const char *absent)
{
	const char *text = fa_facts_text(f, id);
	if (!text)
		say(out, TUI_SIGN_UNKNOWN, "not known");
	else if (!*text)
		say(out, TUI_SIGN_ABSENT, absent);
	else
		say(out, TUI_SIGN_OK, text);
	return text && *text;
}

static void say_driver(struct shown *out, const struct fa_facts *f)
{
	if (say_text(out, f, FA_FACT_DRIVER, "none found"))
		add(out, ", runs CUDA ", fa_facts_text(f, FA_FACT_DRIVER_CUDA), " and older");
	else if (fa_facts_has(f, FA_FACT_ROCM))
		say(out, TUI_SIGN_OK, "ROCm ");
	add(out, fa_facts_has(f, FA_FACT_DRIVER) ? ", ROCm " : "", fa_facts_text(f, FA_FACT_ROCM), "");
}

static void say_system(struct shown *out, const struct fa_facts *f)
{
	if (!say_text(out, f, FA_FACT_DISTRO, "no distribution named"))
		say_text(out, f, FA_FACT_OS, "not named");
	add(out, " ", fa_facts_text(f, FA_FACT_DISTRO_VERSION), "");
	add(out, ", ", fa_facts_text(f, FA_FACT_MACHINE), "");
	add(out, ", glibc ", fa_facts_text(f, FA_FACT_GLIBC), "");
	add(out, ", in ", fa_facts_text(f, FA_FACT_CONTAINER), "");
	add(out, ", Jetson ", fa_facts_text(f, FA_FACT_JETSON), "");
	add(out, ", ", fa_facts_is(f, FA_FACT_WSL) ? "WSL" : NULL, "");
}

static void say_cores(struct shown *out, const struct fa_facts *f)
{
	char text[32];
	int64_t cores = fa_facts_number(f, FA_FACT_CORES, -1);
	snprintf(text, sizeof text, "%lld core%s", (long long)cores, cores == 1 ? "" : "s");
	say(out, cores < 0 ? TUI_SIGN_UNKNOWN : TUI_SIGN_OK, cores < 0 ? "not known" : text);
}

static void say_memory(struct shown *out, const struct fa_facts *f)
{
	char text[96], a[32], b[32];
	int64_t all = fa_facts_number(f, FA_FACT_RAM_MIB, -1), now = fa_facts_number(f, FA_FACT_RAM_AVAILABLE_MIB, -1);
	if (all >= 0 && now >= 0)
		snprintf(text, sizeof text, "%s of %s GiB available", tui_gib(a, now), tui_gib(b, all));
	else
		snprintf(text, sizeof text, all >= 0 ? "%s GiB" : "%s GiB available", tui_gib(a, all >= 0 ? all : now));
	say(out, all < 0 && now < 0 ? TUI_SIGN_UNKNOWN : TUI_SIGN_OK, all < 0 && now < 0 ? "not known" : text);
}

static void say_disk(struct shown *out, const struct fa_facts *f)
{
	char a[32];
	int64_t disk = fa_facts_number(f, FA_FACT_DISK_FREE_MIB, -1), tmp = fa_facts_number(f, FA_FACT_TMP_FREE_MIB, -1);
	if (disk < 0) {
		say(out, TUI_SIGN_UNKNOWN, "not known");
		return;
	}
	say(out, TUI_SIGN_OK, tui_gib(a, disk));
	add(out, "", " GiB free", "");
	if (tmp >= 0)
		add(out, ", ", tui_gib(a, tmp), " GiB for temporary files");
}

static void say_python(struct shown *out, const struct fa_facts *f)
{
	if (!say_text(out, f, FA_FACT_PYTHON, "none found"))
		return;
	if (f->v[FA_FACT_PYTHON_HEADERS].known)
		add(out, " ", fa_facts_is(f, FA_FACT_PYTHON_HEADERS) ? "with headers" : "without headers", "");
	add(out, ", pip ", fa_facts_text(f, FA_FACT_PIP), "");
	add(out, ", uv ", fa_facts_text(f, FA_FACT_UV), "");
}

static void say_torch(struct shown *out, const struct fa_facts *f)
{
	if (!say_text(out, f, FA_FACT_TORCH, "not installed"))
		return;
	const char *version = fa_facts_text(f, FA_FACT_TORCH);
	if (!strchr(version, '+'))
		add(out, " for CUDA ", fa_facts_text(f, FA_FACT_TORCH_CUDA), "");
	if (f->v[FA_FACT_TORCH_CXX11ABI].known)
		add(out, ", ", fa_facts_is(f, FA_FACT_TORCH_CXX11ABI) ? "new" : "old", " C++ ABI");
}

static void say_flash_attn(struct shown *out, const struct fa_facts *f)
{
	say_text(out, f, FA_FACT_FLASH_ATTN, "not installed");
	if (fa_facts_has(f, FA_FACT_FLASH_ATTN_3) || fa_facts_has(f, FA_FACT_FLASH_ATTN_4)) {
		if (!fa_facts_has(f, FA_FACT_FLASH_ATTN))
			say(out, TUI_SIGN_OK, "no 2");
		add(out, ", FA3 ", fa_facts_text(f, FA_FACT_FLASH_ATTN_3), "");
		add(out, ", FA4 ", fa_facts_text(f, FA_FACT_FLASH_ATTN_4), "");
	}
}

static void say_toolkits(struct shown *out, const struct fa_facts *f)
{
	say(out, TUI_SIGN_UNKNOWN, "not known");
	if (f->toolkits_known)
		say(out, f->n_toolkits ? TUI_SIGN_OK : TUI_SIGN_ABSENT, f->n_toolkits ? "" : "none found");
	if (f->toolkits_origin)
		snprintf(out->origin, sizeof out->origin, "%s", f->toolkits_origin);
	for (size_t i = 0; i < f->n_toolkits; i++) {
		const struct fa_toolkit *t = &f->toolkits[i];
		add(out, "", i ? "; " : "", "");
		add(out, "", tui_same(t->kind, "cuda") ? NULL : t->kind, " ");
		add(out, "", t->version ? t->version : "version not known", "");
		add(out, " in ", t->home, "");
	}
}

static void say_compiler(struct shown *out, const struct fa_facts *f)
{
	if (fa_facts_has(f, FA_FACT_MSVC)) {
		say(out, TUI_SIGN_OK, "MSVC ");
		add(out, "", fa_facts_text(f, FA_FACT_MSVC), "");
	} else {
		say_text(out, f, fa_facts_text(f, FA_FACT_CXX) ? FA_FACT_CXX : FA_FACT_CC, "none found");
	}
}

static void say_ninja(struct shown *out, const struct fa_facts *f)
{
	say_text(out, f, FA_FACT_NINJA, "not installed; it is fetched when needed");
}

#define F(id) (FA_FACT_##id + 1)
static const struct fact_row table[] = {
	{ "GPU", 0, " gpu gpus arch card cards cuda_visible_devices ", say_gpus, { 0 } },
	{ "Driver", 0, " driver nvidia nvml rocm kernel_module ", say_driver, { F(DRIVER), F(DRIVER_CUDA), F(ROCM) } },
	{ "System",
	  1,
	  " glibc glibcxx libstdcxx os distro wsl container system platform ",
	  say_system,
	  { F(DISTRO), F(KERNEL), F(MACHINE), F(GLIBC), F(GLIBCXX), F(CONTAINER) } },
	{ "Processor", 1, " cores cpu jobs ", say_cores, { F(CORES) } },
	{ "Memory", 1, " memory ram swap ", say_memory, { F(RAM_AVAILABLE_MIB), F(RAM_MIB) } },
	{ "Disk", 1, " disk tmp space permission ", say_disk, { F(DISK_FREE_MIB), F(TMP_FREE_MIB) } },
	{ "Python",
	  2,
	  " python pip uv headers venv conda env environment ",
	  say_python,
	  { F(PYTHON), F(PYTHON_PATH), F(PYTHON_HEADERS), F(PIP), F(UV), F(CONDA) } },
	{ "PyTorch",
	  2,
	  " torch pytorch abi triton ",
	  say_torch,
	  { F(TORCH), F(TORCH_CUDA), F(TORCH_HIP), F(TORCH_CXX11ABI), F(TORCH_ARCHS), F(TRITON) } },
	{ "flash-attn",
	  2,
	  " flash fa2 fa3 fa4 sdpa third ",
	  say_flash_attn,
	  { F(FLASH_ATTN), F(FLASH_ATTN_3), F(FLASH_ATTN_4) } },
	{ "CUDA Toolkit", 2, " toolkit nvcc cuda ", say_toolkits, { F(CUDA_HOME) } },
	{ "Host compiler", 2, " compiler gcc cxx cc msvc clang ", say_compiler, { F(CXX), F(CC), F(MSVC) } },
	{ "Ninja", 2, " ninja git ", say_ninja, { F(NINJA), F(GIT) } },
};
#undef F

enum { N_TABLE = sizeof table / sizeof *table };

/* The row an id speaks of: its first word that a row knows. -1 none. */
static int row_of(const char *id)
{
	char word[64];
	for (size_t len; id && *id; id += len + (id[len] == '_' || id[len] == '-')) {
		len = strcspn(id, "_-");
		snprintf(word, sizeof word, " %.*s ", (int)(len < 60 ? len : 60), id);
		for (int i = 0; i < N_TABLE; i++)
			if (len && strstr(table[i].words, word))
				return i;
	}
	return -1;
}

static int row_of_problem(const struct fa_problem *p)
{
	int row = row_of(p->id);
	return row < 0 ? row_of(p->tool) : row;
}

/* ---- what is wrong with a row */

static const struct fa_action *action_of(const struct tui_model *m, int row)
{
	for (size_t i = 0; m->plan && i < m->plan->n_actions; i++)
		if (row_of(m->plan->actions[i].id) == row)
			return &m->plan->actions[i];
	return NULL;
}

static const struct fa_problem *problem_of(const struct tui_model *m, int row)
{
	for (size_t i = 0; i < m->facts->n_problems; i++)
		if (row_of_problem(&m->facts->problems[i]) == row)
			return &m->facts->problems[i];
	return NULL;
}

static const struct fa_warning *warning_of(const struct tui_model *m, int row)
{
	for (size_t i = 0; m->plan && i < m->plan->n_warnings; i++)
		if (row_of(m->plan->warnings[i].id) == row)
			return &m->plan->warnings[i];
	return NULL;
}

static int warnings_of(const struct tui_model *m, int row)
{
	int n = 0;
	for (size_t i = 0; m->plan && i < m->plan->n_warnings; i++)
		n += row_of(m->plan->warnings[i].id) == row;
	return n;
}

static struct shown shown_row(const struct tui_model *m, int row)
{
	struct shown s = { TUI_SIGN_NONE, "", "" };
	table[row].say(&s, m->facts);
	for (int i = 0; i < MAX_FACTS && table[row].facts[i] && !s.origin[0]; i++) {
		const char *origin = m->facts->v[table[row].facts[i] - 1].origin;
		if (origin)
			snprintf(s.origin, sizeof s.origin, "%s", origin);
	}
	if (action_of(m, row))
		s.sign = TUI_SIGN_FAIL;
	else if ((s.sign == TUI_SIGN_OK || s.sign == TUI_SIGN_ABSENT) && (problem_of(m, row) || warning_of(m, row)))
		s.sign = TUI_SIGN_WARN;
	return s;
}

/* The shortest true name of an origin: what a path belongs to, a program by its name. */
static void short_origin(char *out, size_t size, const char *origin)
{
	static const struct {
		const char *part, *name;
	} known[] = { { "/proc/", "procfs" },
		      { "/sys/", "sysfs" },
		      { "libnvidia-ml", "NVML" },
		      { "site-packages", "its files" },
		      { "dist-packages", "its files" },
		      { "sched_getaffinity", "kernel" },
		      { "no environment", "no env. yet" } };
	size_t len = strcspn(origin, ", "), start = 0;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strstr(origin, known[i].part)) {
			snprintf(out, size, "%s", known[i].name);
			return;
		}
	}
	if (!strchr(origin, '/') && !strstr(origin, " -"))
		len = strcspn(origin, ",");
	for (size_t i = 0; i + 1 < len; i++)
		if (origin[i] == '/')
			start = i + 1;
	snprintf(out, size, "%.*s", (int)(len - start), origin + start);
}

/* ---- rows */

enum { ROW_FACT, ROW_CARD, ROW_BLANK, ROW_DETAIL, ROW_FOLD, ROW_TROUBLE };

static bool folded(const struct tui_model *m)
{
	return tui_blocked(m) && !tui_open(m, "machine/others");
}

static void add_details(struct tui_rows *out, const struct tui_model *m, int row)
{
	for (size_t i = 0; row == 0 && unlike_cards(m->facts) && i < m->facts->n_gpus; i += equal_cards(m->facts, i))
		tui_rows_add(out, ROW_CARD, row, (int)i, false);
	if (!tui_open(m, table[row].name))
		return;
	for (int i = 0; i < MAX_FACTS && table[row].facts[i]; i++)
		if (m->facts->v[table[row].facts[i] - 1].known)
			tui_rows_add(out, ROW_DETAIL, row, i, false);
	for (size_t i = 0; row == 0 && i < m->facts->n_gpus; i++)
		tui_rows_add(out, ROW_DETAIL, row, (int)i, false);
}

static void machine_rows(struct tui_rows *out, const struct tui_model *m)
{
	bool fold = folded(m), wrong[N_TABLE];
	int hidden = 0;
	for (int i = 0; i < N_TABLE; i++)
		wrong[i] = action_of(m, i) || (problem_of(m, i) && tui_blocked(m));
	for (int i = 0; i < N_TABLE; i++) {
		bool shown = !fold || wrong[i] || i == 0;
		hidden += !shown;
		if (!shown)
			continue;
		if (!tui_blocked(m) && i && table[i].group != table[i - 1].group)
			tui_rows_add(out, ROW_BLANK, 0, 0, false);
		tui_rows_add(out, ROW_FACT, i, 0, true);
		add_details(out, m, i);
	}
	for (size_t i = 0; tui_blocked(m) && i < m->plan->n_actions; i++)
		if (row_of(m->plan->actions[i].id) < 0)
			tui_rows_add(out, ROW_TROUBLE, (int)i, 0, true);
	if (tui_blocked(m))
		tui_rows_add(out, ROW_FOLD, hidden, 0, true);
}

static void draw_detail(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	if (r->index == 0 && !table[0].facts[0]) {
		const struct fa_gpu *c = &m->facts->gpus[r->sub];
		tui_putf(g, at, 7, 25, TUI_DIM, "card %d", c->index);
		tui_putf(g, at, 26, tui_width(m), TUI_TEXT, "%s, arch %s, PCI %s", c->name ? c->name : "name not known",
		         c->arch ? c->arch : "not known", c->pci ? c->pci : "not known");
		return;
	}
	int id = table[r->index].facts[r->sub] - 1, end = g->cols - 1, half = 26 + (end - 26) / 2;
	const struct fa_fact_value *v = &m->facts->v[id];
	char *list = fa_strv_join(&v->list, " "), number[32];
	const char *text = v->text ? v->text : v->list.n ? list : "";
	if (fa_fact_type(id) == FA_FACT_NUMBER)
		text = tui_thousands(number, v->number);
	else if (fa_fact_type(id) == FA_FACT_BOOL)
		text = v->number ? "yes" : "no";
	tui_put_name(g, at, 7, 25, TUI_DIM, fa_fact_key(id));
	tui_put_path(g, at, 26, half, TUI_TEXT, *text ? text : "not there");
	tui_put_path(g, at, half + 1, end, TUI_TEXT, v->doubt ? v->doubt : v->origin);
	free(list);
}

static void draw_card(struct tui_grid *g, const struct tui_model *m, size_t i, int at)
{
	struct fa_buf text = FA_BUF_INIT;
	size_t n = equal_cards(m->facts, i);
	if (n > 1)
		fa_buf_addf(&text, "%zu x ", n);
	describe_card(&text, &m->facts->gpus[i]);
	if (n > 1)
		tui_putf(g, at, 7, 19, TUI_TEXT, "cards %d-%d", m->facts->gpus[i].index, m->facts->gpus[i + n - 1].index);
	else
		tui_putf(g, at, 7, 19, TUI_TEXT, "card %d", m->facts->gpus[i].index);
	tui_put_name(g, at, 20, tui_width(m), TUI_TEXT, fa_buf_str(&text));
	fa_buf_release(&text);
}

static void draw_row(struct tui_grid *g, const struct tui_model *m, const struct tui_row *r, int at)
{
	char origin[128];
	int from = tui_width(m) - 13;
	if (r->kind == ROW_FACT) {
		struct shown s = shown_row(m, r->index);
		short_origin(origin, sizeof origin, table[r->index].say == say_disk && s.origin[0] ? "statvfs" : s.origin);
		tui_put_sign(g, at, 3, s.sign);
		tui_put(g, at, 5, 19, TUI_TEXT, table[r->index].name);
		tui_put_name(g, at, 20, from - 1, TUI_TEXT, s.text);
		tui_put_name(g, at, from, tui_width(m), TUI_TEXT, origin);
	} else if (r->kind == ROW_CARD) {
		draw_card(g, m, (size_t)r->sub, at);
	} else if (r->kind == ROW_DETAIL) {
		draw_detail(g, m, r, at);
	} else if (r->kind == ROW_TROUBLE) {
		tui_put_sign(g, at, 3, TUI_SIGN_FAIL);
		tui_put_name(g, at, 5, tui_width(m), TUI_TEXT, m->plan->actions[r->index].text);
	} else if (r->kind == ROW_FOLD) {
		tui_put_sign(g, at, 3, folded(m) ? TUI_SIGN_CLOSED : TUI_SIGN_OPEN);
		if (folded(m))
			tui_putf(g, at, 5, g->cols, TUI_TEXT, "%d more facts, nothing to repair among them", r->index);
		else
			tui_put(g, at, 5, g->cols, TUI_TEXT, "All facts are shown");
	}
}

/* ---- the block about one trouble */

static const struct fa_action *trouble_at(const struct tui_model *m, const struct tui_row *at)
{
	const struct fa_action *a = NULL;
	if (!tui_blocked(m) || !m->plan->n_actions)
		return NULL;
	if (at && at->kind == ROW_TROUBLE)
		a = &m->plan->actions[at->index];
	else if (at && at->kind == ROW_FACT)
		a = action_of(m, at->index);
	return a ? a : &m->plan->actions[0];
}

static int draw_block(struct tui_grid *g, int row, int last, const char *name, enum tui_role role, const char *text)
{
	if (!text || !*text || row > last)
		return row;
	tui_put(g, row, 1, 12, TUI_DIM, name);
	return tui_put_wrapped(g, row, last, 13, g->cols > 101 ? 101 : g->cols - 1, role, text) + 1;
}

static void draw_trouble(struct tui_grid *g, const struct tui_model *m, const struct tui_row *at, int row)
{
	const struct fa_action *a = trouble_at(m, at);
	const struct fa_problem *p = NULL;
	int last = tui_body_end(m) - 1;
	char evidence[1200] = "";
	if (!a)
		return;
	for (size_t i = 0; i < m->facts->n_problems && !p; i++)
		p = tui_same(m->facts->problems[i].id, a->id) ? &m->facts->problems[i] : NULL;
	p = p ? p : problem_of(m, row_of(a->id));
	if (p)
		snprintf(evidence, sizeof evidence, "%s%s%s", p->tool ? p->tool : "", p->tool ? ": " : "",
		         p->text ? p->text : "");
	row = draw_block(g, row, last, "What", TUI_TEXT, a->text);
	row = draw_block(g, row, last, "Evidence", TUI_MARK, evidence);
	row = draw_block(g, row, last, "Repair", TUI_STRONG, a->command);
	if (a->command && strstr(a->command, "sudo") && row <= last)
		tui_put_wrapped(g, row, last, 1, tui_width(m), TUI_TEXT,
		                "fainstall itself never needs root: run the command in another terminal.");
}

static int trouble_lines(const struct tui_model *m)
{
	return tui_blocked(m) ? 11 : 0;
}

static int machine_height(const struct tui_model *m, const struct tui_rows *rows)
{
	int room = tui_body_end(m) - TUI_BODY - 1 - trouble_lines(m);
	return (int)rows->n < room ? (int)rows->n : room;
}

/* ---- headline */

/* What the plan warns of, and faults of the machine that it does not mention. */
static int remarks(const struct tui_model *m)
{
	int n = m->plan ? (int)m->plan->n_warnings : 0;
	for (int i = 0; i < N_TABLE; i++)
		n += problem_of(m, i) && !warning_of(m, i);
	return n;
}

static const char *answer(const struct tui_model *m)
{
	const char *route = m->plan->choice.route ? m->plan->choice.route : "";
	bool here = !m->facts->gpus_known || m->facts->n_gpus;
	if (!here && !strcmp(route, "wheel"))
		return "The cards that were named need no compiling.";
	if (!here && !strcmp(route, "source"))
		return "For the cards that were named it is compiled here.";
	if (!strcmp(route, "keep"))
		return "What is installed here is right already.";
	if (!strcmp(route, "wheel"))
		return "This machine can run Flash-Attention without compiling.";
	if (!strcmp(route, "sdpa"))
		return "This machine is served by PyTorch's own attention.";
	return "This machine can run Flash-Attention, compiled here.";
}

static void headline(char *out, size_t size, const struct tui_model *m)
{
	char word[32];
	if (m->reading) {
		snprintf(out, size, "The machine is being read ...");
	} else if (!m->plan) {
		snprintf(out, size, "There is no plan: %.400s.",
		         m->plan_err.text[0] ? m->plan_err.text : "the knowledge was not read");
	} else if (m->plan->status == FA_PLAN_IMPOSSIBLE) {
		snprintf(out, size, "Nothing that is known fits this machine and these wishes. The tree says why.");
	} else if (tui_blocked(m)) {
		int n = (int)m->plan->n_actions;
		snprintf(out, size, "%s repair%s needed before anything is installed; nothing was changed.",
		         tui_number_word(word, n, true), n == 1 ? " is" : "s are");
	} else {
		int n = remarks(m);
		snprintf(out, size, "%s %s %s", answer(m), n ? tui_number_word(word, n, true) : "Nothing",
		         !n       ? "to repair."
		         : n == 1 ? "thing to know."
		                  : "things to know.");
	}
}

static void machine_draw(struct tui_grid *g, const struct tui_model *m, const struct tui_rows *rows)
{
	char text[600];
	int end = TUI_BODY + 1 + machine_height(m, rows);
	headline(text, sizeof text, m);
	tui_headline(g, m, text);
	tui_put(g, TUI_BODY, 5, 19, TUI_DIM, "Fact");
	tui_put(g, TUI_BODY, 20, 60, TUI_DIM, "Found");
	tui_put(g, TUI_BODY, tui_width(m) - 13, g->cols, TUI_DIM, "Known from");
	tui_draw_list(g, m, rows, TUI_BODY + 1, end, draw_row);
	if (tui_blocked(m))
		draw_trouble(g, m, tui_at(m, rows), end + 1);
}

static void machine_hint(char *out, size_t size, const struct tui_model *m, const struct tui_row *at)
{
	if (!at || at->kind != ROW_FACT) {
		snprintf(out, size, "%s", m->plan_err.next);
		return;
	}
	const struct fa_warning *w = warning_of(m, at->index);
	const struct fa_problem *p = problem_of(m, at->index);
	struct shown s = shown_row(m, at->index);
	if (tui_blocked(m) && action_of(m, at->index))
		out[0] = '\0';
	else if (w && warnings_of(m, at->index) > 1)
		snprintf(out, size, "%.400s %d more in the tree.", w->text, warnings_of(m, at->index) - 1);
	else if (w)
		snprintf(out, size, "%s", w->text);
	else if (p)
		snprintf(out, size, "%s: %s%s%s", p->tool, p->text, p->repair ? " " : "", p->repair ? p->repair : "");
	else
		snprintf(out, size, s.origin[0] ? "Known from: %s" : "No record says where this comes from.", s.origin);
}

/* ---- keys */

static void toggle(struct tui_model *m, const struct tui_row *at, int way) /* 1 open, -1 close, 0 the other */
{
	const char *name = !at || at->kind == ROW_TROUBLE ? NULL
	                   : at->kind == ROW_FOLD         ? "machine/others"
	                                                  : table[at->index].name;
	if (name)
		tui_set_open(m, name, way ? way > 0 : !tui_open(m, name));
}

static void copy_command(struct tui_model *m, const struct tui_row *at)
{
	const struct fa_action *a = trouble_at(m, at);
	tui_copy(m, a && a->command ? fa_strdup(a->command) : tui_command(m));
}

static void read_again(struct tui_model *m)
{
	m->want |= TUI_WANT_FACTS | TUI_WANT_PLAN;
	m->reading = true;
}

/* A repair of another machine cannot be seen from here. */
static bool waits_for_repair(const struct tui_model *m)
{
	return tui_blocked(m) && !m->plan_on && !m->start.foreign;
}

/* Nothing to repair, but something to say: which cards the result is for. */
static bool waits_for_cards(const struct tui_model *m)
{
	return tui_blocked(m) && !m->plan_on && m->plan->n_actions && tui_same(m->plan->actions[0].id, "name_the_cards");
}

static void machine_act(struct tui_model *m, enum tui_action action, const struct tui_row *at)
{
	switch (action) {
	case TUI_ACT_NEXT:
		if (waits_for_cards(m))
			tui_edit(m, FA_WISH_ARCH);
		else if (waits_for_repair(m))
			read_again(m);
		else
			tui_go(m, TUI_GOAL_SCREEN);
		break;
	case TUI_ACT_READ_AGAIN: read_again(m); break;
	case TUI_ACT_PLAN_ON:
		m->plan_on = true;
		tui_go(m, TUI_GOAL_SCREEN);
		break;
	case TUI_ACT_CHOOSE: toggle(m, at, 0); break;
	case TUI_ACT_OPEN: toggle(m, at, 1); break;
	case TUI_ACT_CLOSE: toggle(m, at, -1); break;
	case TUI_ACT_COPY: copy_command(m, at); break;
	default: break;
	}
}

static const char *machine_enter(const struct tui_model *m)
{
	if (m->reading)
		return NULL;
	return waits_for_cards(m) ? "Name the cards" : waits_for_repair(m) ? "Check again" : "Continue";
}

const struct tui_screen_def tui_machine_screen = {
	.title = "Machine",
	.rows = machine_rows,
	.list_height = machine_height,
	.draw = machine_draw,
	.act = machine_act,
	.enter = machine_enter,
	.hint = machine_hint,
};
