#include "facts.h"

#include "buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
	const char *key;
	enum fa_fact_type type;
	const char *label;
} rows[FA_FACT_COUNT] = {
#define FACT(id, key, type, label) { key, FA_FACT_##type, label },
#include "fact.def"
#undef FACT
};

const char *fa_fact_key(enum fa_fact id)
{
	return rows[id].key;
}

const char *fa_fact_label(enum fa_fact id)
{
	return rows[id].label;
}

enum fa_fact_type fa_fact_type(enum fa_fact id)
{
	return rows[id].type;
}

int fa_fact_find(enum fa_fact *out, const char *key)
{
	for (size_t i = 0; i < FA_FACT_COUNT; i++)
		if (!strcmp(rows[i].key, key)) {
			*out = (enum fa_fact)i;
			return 0;
		}
	return -1;
}

/* Length of the UTF-8 sequence at p, 0 when it is none. */
static size_t sequence(const unsigned char *p)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80) /* also stops at the final NUL */
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static char *clean(const char *text)
{
	struct fa_buf b = FA_BUF_INIT;

	if (!text)
		return NULL;
	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		size_t n = sequence(p);

		if (!n || *p < 0x20 || *p == 0x7f) {
			fa_buf_addc(&b, *p == '\n' || *p == '\t' ? ' ' : '?');
			p++;
			continue;
		}
		fa_buf_add(&b, p, n);
		p += n;
	}
	return b.len ? fa_buf_detach(&b) : fa_strdup("");
}

static void replace(char **field, char *text)
{
	free(*field);
	*field = text;
}

void fa_gpu_set(char **field, const char *text)
{
	replace(field, clean(text));
}

static struct fa_fact_value *begin(struct fa_facts *f, enum fa_fact id, const char *origin)
{
	struct fa_fact_value *v = &f->v[id];
	char *kept = clean(origin); /* may point into the value that goes */

	fa_facts_forget(f, id);
	v->known = true;
	v->origin = kept;
	return v;
}

void fa_facts_set_text(struct fa_facts *f, enum fa_fact id, const char *text, const char *origin)
{
	char *kept = clean(text);

	if (kept)
		begin(f, id, origin)->text = kept;
	else
		fa_facts_forget(f, id);
}

void fa_facts_set_number(struct fa_facts *f, enum fa_fact id, int64_t number, const char *origin)
{
	begin(f, id, origin)->number = number;
}

void fa_facts_set_bool(struct fa_facts *f, enum fa_fact id, bool value, const char *origin)
{
	begin(f, id, origin)->number = value;
}

void fa_facts_set_list(struct fa_facts *f, enum fa_fact id, const struct fa_strv *list, const char *origin)
{
	struct fa_strv kept = FA_STRV_INIT;

	for (size_t i = 0; i < list->n; i++)
		fa_strv_take(&kept, clean(list->v[i]));
	begin(f, id, origin)->list = kept;
}

void fa_facts_forget(struct fa_facts *f, enum fa_fact id)
{
	struct fa_fact_value *v = &f->v[id];

	free(v->text);
	fa_strv_release(&v->list);
	free(v->origin);
	free(v->doubt);
	*v = (struct fa_fact_value){ 0 };
}

void fa_facts_doubt(struct fa_facts *f, enum fa_fact id, const char *why)
{
	if (f->v[id].known)
		replace(&f->v[id].doubt, clean(why));
}

struct fa_gpu *fa_facts_add_gpu(struct fa_facts *f)
{
	struct fa_gpu *g;

	f->gpus = fa_realloc(f->gpus, f->n_gpus + 1, sizeof(*f->gpus));
	g = &f->gpus[f->n_gpus];
	*g = (struct fa_gpu){ .index = (int)f->n_gpus, .memory_mib = -1 };
	f->n_gpus++;
	f->gpus_known = true;
	return g;
}

void fa_facts_clear_gpus(struct fa_facts *f)
{
	for (size_t i = 0; i < f->n_gpus; i++) {
		free(f->gpus[i].vendor);
		free(f->gpus[i].name);
		free(f->gpus[i].arch);
		free(f->gpus[i].pci);
	}
	free(f->gpus);
	replace(&f->gpus_origin, NULL);
	f->gpus = NULL;
	f->n_gpus = 0;
	f->gpus_known = true;
}

static struct fa_toolkit *add_toolkit(struct fa_facts *f)
{
	f->toolkits = fa_realloc(f->toolkits, f->n_toolkits + 1, sizeof(*f->toolkits));
	f->toolkits[f->n_toolkits] = (struct fa_toolkit){ 0 };
	f->toolkits_known = true;
	return &f->toolkits[f->n_toolkits++];
}

void fa_facts_add_toolkit(struct fa_facts *f, const char *kind, const char *version, const char *home)
{
	struct fa_toolkit *t = add_toolkit(f);

	t->kind = clean(kind);
	t->version = clean(version);
	t->home = clean(home);
}

void fa_facts_clear_toolkits(struct fa_facts *f)
{
	for (size_t i = 0; i < f->n_toolkits; i++) {
		free(f->toolkits[i].kind);
		free(f->toolkits[i].version);
		free(f->toolkits[i].home);
	}
	free(f->toolkits);
	replace(&f->toolkits_origin, NULL);
	f->toolkits = NULL;
	f->n_toolkits = 0;
	f->toolkits_known = true;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

void fa_facts_add_problem(struct fa_facts *f, const char *id, const char *tool, const char *text, const char *repair)
{
	struct fa_problem *p;

	for (size_t i = 0; i < f->n_problems; i++)
		if (same(f->problems[i].id, id) && same(f->problems[i].text, text))
			return;
	f->problems = fa_realloc(f->problems, f->n_problems + 1, sizeof(*f->problems));
	p = &f->problems[f->n_problems++];
	p->id = clean(id);
	p->tool = clean(tool);
	p->text = clean(text);
	p->repair = clean(repair);
}

static void clear_problems(struct fa_facts *f)
{
	for (size_t i = 0; i < f->n_problems; i++) {
		free(f->problems[i].id);
		free(f->problems[i].tool);
		free(f->problems[i].text);
		free(f->problems[i].repair);
	}
	free(f->problems);
	f->problems = NULL;
	f->n_problems = 0;
}

void fa_facts_add_env(struct fa_facts *f, const char *name, const char *value)
{
	struct fa_setting *s;

	for (size_t i = 0; i < f->n_env; i++)
		if (!strcmp(f->env[i].name, name)) {
			replace(&f->env[i].value, clean(value));
			return;
		}
	f->env = fa_realloc(f->env, f->n_env + 1, sizeof(*f->env));
	s = &f->env[f->n_env++];
	s->name = clean(name);
	s->value = clean(value);
}

static void clear_env(struct fa_facts *f)
{
	for (size_t i = 0; i < f->n_env; i++) {
		free(f->env[i].name);
		free(f->env[i].value);
	}
	free(f->env);
	f->env = NULL;
	f->n_env = 0;
}

void fa_facts_release(struct fa_facts *f)
{
	for (int i = 0; i < FA_FACT_COUNT; i++)
		fa_facts_forget(f, (enum fa_fact)i);
	fa_facts_clear_gpus(f);
	fa_facts_clear_toolkits(f);
	clear_problems(f);
	clear_env(f);
	*f = (struct fa_facts)FA_FACTS_INIT;
}

/* ---- reading */

const char *fa_facts_text(const struct fa_facts *f, enum fa_fact id)
{
	return f->v[id].known ? f->v[id].text : NULL;
}

int64_t fa_facts_number(const struct fa_facts *f, enum fa_fact id, int64_t otherwise)
{
	return f->v[id].known ? f->v[id].number : otherwise;
}

bool fa_facts_is(const struct fa_facts *f, enum fa_fact id)
{
	return f->v[id].known && rows[id].type == FA_FACT_BOOL && f->v[id].number != 0;
}

bool fa_facts_has(const struct fa_facts *f, enum fa_fact id)
{
	const struct fa_fact_value *v = &f->v[id];

	if (!v->known)
		return false;
	if (rows[id].type == FA_FACT_TEXT)
		return v->text && *v->text;
	return rows[id].type == FA_FACT_LIST ? v->list.n > 0 : true;
}

/* ---- merging */

static void copy_value(struct fa_facts *to, enum fa_fact id, const struct fa_fact_value *from)
{
	struct fa_fact_value *v = begin(to, id, from->origin);

	v->text = fa_strdup(from->text);
	v->number = from->number;
	fa_strv_append(&v->list, &from->list);
	v->doubt = fa_strdup(from->doubt);
}

static bool agree(const char *a, const char *b)
{
	return !a || !b || !strcmp(a, b);
}

/* The same cards, told by two sources? Then what one does not know may come from the other. */
static bool complete_each_other(const struct fa_facts *a, const struct fa_facts *b)
{
	if (!a->gpus_known || !b->gpus_known || a->n_gpus != b->n_gpus)
		return false;
	for (size_t i = 0; i < a->n_gpus; i++) {
		const struct fa_gpu *x = &a->gpus[i], *y = &b->gpus[i];

		if (!agree(x->vendor, y->vendor) || !agree(x->name, y->name) || !agree(x->arch, y->arch) ||
		    !agree(x->pci, y->pci) || (x->memory_mib >= 0 && y->memory_mib >= 0 && x->memory_mib != y->memory_mib))
			return false;
	}
	return true;
}

static void fill(char **field, const char *text)
{
	if (!*field)
		*field = fa_strdup(text);
}

static void fill_gpu(struct fa_gpu *to, const struct fa_gpu *from)
{
	fill(&to->vendor, from->vendor);
	fill(&to->name, from->name);
	fill(&to->arch, from->arch);
	fill(&to->pci, from->pci);
	if (to->memory_mib < 0)
		to->memory_mib = from->memory_mib;
}

static void merge_gpus(struct fa_facts *base, const struct fa_facts *top)
{
	char *origin = fa_strdup(top->gpus_origin);

	if (complete_each_other(base, top)) {
		if (base->gpus_origin && origin)
			replace(&origin, strstr(base->gpus_origin, origin) ? fa_strdup(base->gpus_origin)
			                                                   : fa_strf("%s, %s", base->gpus_origin, origin));
	} else {
		fa_facts_clear_gpus(base);
		for (size_t i = 0; i < top->n_gpus; i++)
			fa_facts_add_gpu(base)->index = top->gpus[i].index;
	}
	for (size_t i = 0; i < top->n_gpus; i++)
		fill_gpu(&base->gpus[i], &top->gpus[i]);
	if (origin)
		replace(&base->gpus_origin, origin);
}

static void merge_toolkits(struct fa_facts *base, const struct fa_facts *top)
{
	fa_facts_clear_toolkits(base);
	for (size_t i = 0; i < top->n_toolkits; i++)
		fa_facts_add_toolkit(base, top->toolkits[i].kind, top->toolkits[i].version, top->toolkits[i].home);
	base->toolkits_origin = fa_strdup(top->toolkits_origin);
}

void fa_facts_merge(struct fa_facts *base, const struct fa_facts *top)
{
	for (int i = 0; i < FA_FACT_COUNT; i++)
		if (top->v[i].known)
			copy_value(base, (enum fa_fact)i, &top->v[i]);
	if (top->gpus_known)
		merge_gpus(base, top);
	if (top->toolkits_known)
		merge_toolkits(base, top);
	for (size_t i = 0; i < top->n_problems; i++)
		fa_facts_add_problem(base, top->problems[i].id, top->problems[i].tool, top->problems[i].text,
		                     top->problems[i].repair);
	for (size_t i = 0; i < top->n_env; i++)
		fa_facts_add_env(base, top->env[i].name, top->env[i].value);
}

/* ---- --set */

static int no_such_fact(const char *key, struct fa_err *err)
{
	struct fa_buf b = FA_BUF_INIT;

	for (int i = 0; i < FA_FACT_COUNT; i++)
		fa_buf_addf(&b, "%s, ", rows[i].key);
	fa_err_set(err, FA_USAGE, "--set %s: there is no such fact", key);
	fa_err_next(err, "the facts are: %sgpus.N.arch, toolkits.N.version, env.NAME", fa_buf_str(&b));
	fa_buf_release(&b);
	return -1;
}

static int parse_number(int64_t *out, const char *key, const char *value, struct fa_err *err)
{
	char *end;

	errno = 0;
	*out = strtoll(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno)
		return fa_err_set(err, FA_USAGE, "--set %s=%s: needs a whole number", key, value);
	return 0;
}

static int parse_bool(bool *out, const char *key, const char *value, struct fa_err *err)
{
	static const char *const words[] = { "false", "true", "no", "yes", "0", "1" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(value, words[i])) {
			*out = i % 2;
			return 0;
		}
	return fa_err_set(err, FA_USAGE, "--set %s=%s: needs true or false", key, value);
}

static int assign_fact(struct fa_facts *f, enum fa_fact id, const char *value, struct fa_err *err)
{
	struct fa_strv list = FA_STRV_INIT;
	int64_t number = 0;
	bool yes = false;

	switch (rows[id].type) {
	case FA_FACT_TEXT: fa_facts_set_text(f, id, value, "--set"); return 0;
	case FA_FACT_NUMBER:
		if (parse_number(&number, rows[id].key, value, err) < 0)
			return -1;
		fa_facts_set_number(f, id, number, "--set");
		return 0;
	case FA_FACT_BOOL:
		if (parse_bool(&yes, rows[id].key, value, err) < 0)
			return -1;
		fa_facts_set_bool(f, id, yes, "--set");
		return 0;
	case FA_FACT_LIST: break;
	}
	fa_strv_split(&list, value, ",");
	fa_facts_set_list(f, id, &list, "--set");
	fa_strv_release(&list);
	return 0;
}

/* "gpus.0.arch" -> 0 and "arch"; only the next free place may be new. */
static int parse_place(size_t *place, const char **field, const char *key, size_t n, struct fa_err *err)
{
	char *end;
	const char *digits = strchr(key, '.') + 1;
	unsigned long at = strtoul(digits, &end, 10);

	if (*digits < '0' || *digits > '9' || *end != '.')
		return fa_err_set(err, FA_USAGE, "--set %s: needs a number and a field, as in gpus.0.arch=86", key);
	if (at > n)
		return fa_err_set(err, FA_USAGE, "--set %s: there are %zu of them, so the next is number %zu", key, n, n);
	*place = at;
	*field = end + 1;
	return 0;
}

static int assign_gpu(struct fa_facts *f, const char *key, const char *value, struct fa_err *err)
{
	const char *field;
	struct fa_gpu *g;
	int64_t number = -1;
	size_t at;
	bool is_number;

	if (parse_place(&at, &field, key, f->n_gpus, err) < 0)
		return -1;
	is_number = !strcmp(field, "memory_mib") || !strcmp(field, "index");
	if (!is_number && strcmp(field, "vendor") != 0 && strcmp(field, "name") != 0 && strcmp(field, "arch") != 0 &&
	    strcmp(field, "pci") != 0)
		return fa_err_set(err, FA_USAGE, "--set %s: a card has vendor, index, name, arch, memory_mib and pci", key);
	if (is_number && parse_number(&number, key, value, err) < 0)
		return -1;
	g = at < f->n_gpus ? &f->gpus[at] : fa_facts_add_gpu(f);
	if (!strcmp(field, "memory_mib"))
		g->memory_mib = number;
	else if (!strcmp(field, "index"))
		g->index = (int)number;
	else if (!strcmp(field, "vendor"))
		fa_gpu_set(&g->vendor, value);
	else if (!strcmp(field, "name"))
		fa_gpu_set(&g->name, value);
	else if (!strcmp(field, "pci"))
		fa_gpu_set(&g->pci, value);
	else
		replace(&g->arch, fa_arch_plain(value));
	if (g->arch && !g->vendor)
		g->vendor = fa_strdup(fa_arch_vendor(g->arch));
	replace(&f->gpus_origin, fa_strdup("--set"));
	return 0;
}

static int assign_toolkit(struct fa_facts *f, const char *key, const char *value, struct fa_err *err)
{
	const char *field;
	struct fa_toolkit *t;
	size_t at;

	if (parse_place(&at, &field, key, f->n_toolkits, err) < 0)
		return -1;
	if (strcmp(field, "kind") != 0 && strcmp(field, "version") != 0 && strcmp(field, "home") != 0)
		return fa_err_set(err, FA_USAGE, "--set %s: a toolkit has kind, version and home", key);
	t = at < f->n_toolkits ? &f->toolkits[at] : add_toolkit(f);
	fa_gpu_set(!strcmp(field, "kind") ? &t->kind : !strcmp(field, "version") ? &t->version : &t->home, value);
	if (!t->kind)
		t->kind = fa_strdup("cuda");
	replace(&f->toolkits_origin, fa_strdup("--set"));
	return 0;
}

/* "gpus=", "toolkits=", "problems=" with nothing or "unknown" behind it. */
static int assign_list(struct fa_facts *f, const char *key, const char *value, struct fa_err *err)
{
	bool unknown = !strcmp(value, "unknown");

	if (*value && !unknown)
		return fa_err_set(err, FA_USAGE, "--set %s=%s: say %s.0.…=VALUE for one of them, or %s= for none", key, value,
		                  key, key);
	if (!strcmp(key, "gpus")) {
		fa_facts_clear_gpus(f);
		f->gpus_known = !unknown;
	} else if (!strcmp(key, "toolkits")) {
		fa_facts_clear_toolkits(f);
		f->toolkits_known = !unknown;
	} else {
		clear_problems(f);
	}
	return 0;
}

static int assign(struct fa_facts *f, const char *key, const char *value, struct fa_err *err)
{
	enum fa_fact id;

	if (!strncmp(key, "gpus.", 5))
		return assign_gpu(f, key, value, err);
	if (!strncmp(key, "toolkits.", 9))
		return assign_toolkit(f, key, value, err);
	if (!strcmp(key, "gpus") || !strcmp(key, "toolkits") || !strcmp(key, "problems"))
		return assign_list(f, key, value, err);
	if (!strncmp(key, "env.", 4) && key[4]) {
		fa_facts_add_env(f, key + 4, value);
		return 0;
	}
	if (fa_fact_find(&id, key) < 0)
		return no_such_fact(key, err);
	if (!strcmp(value, "unknown")) {
		fa_facts_forget(f, id);
		return 0;
	}
	return assign_fact(f, id, value, err);
}

int fa_facts_assign(struct fa_facts *f, const char *assignment, struct fa_err *err)
{
	const char *equals = strchr(assignment, '=');
	char *key;
	int rc;

	if (!equals || equals == assignment)
		return fa_err_set(err, FA_USAGE, "--set %s: needs FACT=VALUE", assignment);
	key = fa_strndup(assignment, (size_t)(equals - assignment));
	rc = assign(f, key, equals + 1, err);
	free(key);
	return rc;
}

/* ---- architectures */

char *fa_arch_plain(const char *text)
{
	char *plain = clean(text), *to = plain;

	for (const char *p = !strncmp(plain, "sm_", 3) ? plain + 3 : plain; *p && *p != ':'; p++)
		if (*p != '.' || !strncmp(plain, "gfx", 3))
			*to++ = *p;
	*to = '\0';
	return plain;
}

const char *fa_arch_vendor(const char *arch)
{
	return !strncmp(arch, "gfx", 3) ? "amd" : "nvidia";
}
