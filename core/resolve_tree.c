/* The decision tree: each question of the job with the answer taken, the facts that decided, and what speaks against the others. */
#include "buf.h"
#include "json.h"
#include "resolve.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

#define V(name) s->v[FA_NAME_##name]

enum { OTHERS_MAX = 12 };

static void add_fold(struct fa_node *n, const char *value, const struct fa_fold *f)
{
	char *needed = fa_fold_list(&f->needed), *found = fa_fold_list(&f->found);

	fa_node_add_other(n, value, f->rule, needed, found);
	free(needed);
	free(found);
}

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static const char *or_unknown(const char *text)
{
	return text && *text ? text : "unknown";
}

/* Adds a node; takes taken and because. */
static struct fa_node *node(struct fa_solve *s, const char *question, char *taken, char *because, const char *wish)
{
	struct fa_node *n = fa_plan_add_node(s->plan, question, taken, because);

	n->wish = fa_strdup(wish);
	free(taken);
	free(because);
	return n;
}

/* Folded refusals of one kind as answers not taken. */
static void add_refused(struct fa_solve *s, struct fa_node *n, const char *kind)
{
	for (size_t i = 0; i < s->n_folds && n->n_others < OTHERS_MAX; i++) {
		const struct fa_fold *f = &s->folds[i];
		struct fa_buf value = FA_BUF_INIT;

		if (strcmp(f->kind, kind) != 0)
			continue;
		fa_buf_adds(&value, !strcmp(kind, "torch") ? "" : f->subject);
		for (size_t k = 0; k < f->names.n; k++)
			fa_buf_addf(&value, "%s%s", value.len ? k ? ", " : " " : "", f->names.v[k]);
		if ((size_t)f->count > f->names.n && f->names.n)
			fa_buf_addf(&value, " and %d more", f->count - (int)f->names.n);
		add_fold(n, fa_buf_str(&value), f);
		fa_buf_release(&value);
	}
}

/* ---- the machine */

static char *cards_text(const struct fa_solve *s)
{
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < s->n_cards; i++)
		fa_buf_addf(&b, "%s%s", i ? ", " : "", s->cards[i].arch);
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

static char *card_names(const struct fa_solve *s)
{
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < s->n_cards; i++) {
		const struct fa_card *c = &s->cards[i];
		const char *name = c->index >= 0 ? s->facts->gpus[c->index].name : NULL;

		fa_buf_addf(&b, "%s%s%s%s%s", i ? "; " : "", name ? name : "named by --arch", c->row ? " (" : "",
		            c->row ? c->row->family : "", c->row ? ")" : "");
	}
	fa_buf_adds(&b, s->n_cards                        ? ""
	                : s->cards_unknown                ? "a fault hides the cards"
	                : s->facts->n_gpus && !s->no_card ? "no torch that this machine runs holds code for its cards"
	                                                  : "no card was seen and none was named");
	return fa_buf_detach(&b);
}

/* "ubuntu 24.04, glibc 2.39"; a glibc only where there is one. */
static char *system_words(const struct fa_solve *s)
{
	const char *os = V(FACT_OS), *distro = V(FACT_DISTRO) ? V(FACT_DISTRO) : or_unknown(os),
	           *version = V(FACT_DISTRO_VERSION);
	char *glibc = !os || !strcmp(os, "linux") ? fa_strf(", glibc %s", or_unknown(V(FACT_GLIBC))) : NULL;
	char *words = fa_strf("%s%s%s%s", distro, version ? " " : "", version ? version : "", glibc ? glibc : "");

	free(glibc);
	return words;
}

static void machine_nodes(struct fa_solve *s)
{
	struct fa_node *n;

	node(s, "system", fa_strdup(or_unknown(V(PLATFORM))), system_words(s), NULL);
	n = node(s, "vendor", fa_strdup(V(VENDOR) ? V(VENDOR) : "none"), card_names(s), NULL);
	for (size_t i = 0; i < s->facts->n_gpus && n->n_others < OTHERS_MAX; i++) {
		const struct fa_gpu *g = &s->facts->gpus[i];

		if (V(VENDOR) && g->vendor && strcmp(g->vendor, V(VENDOR)) != 0)
			fa_node_add_other(n, g->vendor, "torch_vendor", g->arch, V(TORCH_BUILD));
	}
	node(s, "architecture", s->n_cards ? cards_text(s) : fa_strdup("unknown"), card_names(s), "arch");
}

static void driver_node(struct fa_solve *s)
{
	const char *driver = V(FACT_DRIVER), *floor = V(TORCH_DRIVER), *rocm = V(FACT_ROCM);
	bool amd = says(V(VENDOR), "amd");
	struct fa_node *n;

	n = node(s, "driver",
	         fa_strdup(amd                 ? or_unknown(rocm)
	                   : driver && *driver ? driver
	                                       : "none"),
	         amd     ? fa_strf("ROCm %s", or_unknown(rocm))
	         : floor ? fa_strf("torch %s needs driver %s or newer", or_unknown(V(TORCH_BUILD)), floor)
	                 : fa_strdup("nothing here asks for one"),
	         NULL);
	for (size_t i = 0; i < s->n_folds && n->n_others < OTHERS_MAX; i++)
		if (says(s->folds[i].rule, "driver") && says(s->folds[i].kind, "torch"))
			add_fold(n, s->folds[i].names.n ? s->folds[i].names.v[0] : "torch", &s->folds[i]);
}

/* ---- torch */

static char *why_torch(const struct fa_solve *s, const struct fa_torch_option *t)
{
	if (t->kept)
		return fa_strf("installed, and kept%s", t->release ? "" : ": a snapshot, which no release file fits");
	if (fa_solve_wished(s, FA_WISH_TORCH))
		return fa_strf("asked for: --torch %s", fa_solve_wished(s, FA_WISH_TORCH));
	if (s->found.class == FA_CLASS_SDPA)
		return fa_strdup("newest that this machine runs");
	return fa_strf("newest that this machine runs with a %s for it",
	               s->found.class == FA_CLASS_WHEEL ? "ready file" : "way to install");
}

static void torch_nodes(struct fa_solve *s)
{
	const struct fa_torch_option *t = s->found.torch;
	struct fa_node *n;

	node(s, "python", fa_strdup(s->plan->choice.python ? s->plan->choice.python : "unknown"),
	     fa_solve_wished(s, FA_WISH_PYTHON) ? fa_strdup("asked for")
	                                        : fa_strf("interpreter %s", or_unknown(V(FACT_PYTHON_ABI))),
	     "python");
	n = node(s, "torch", fa_strf("%s+%s", t->version, or_unknown(t->word)), why_torch(s, t), "torch");
	add_refused(s, n, "torch");
	node(s, t->rocm ? "ROCm" : "CUDA",
	     fa_strdup(t->cuda   ? t->cuda
	               : t->rocm ? t->rocm
	                         : "none"),
	     t->cuda ? fa_strf("torch is built for it; driver %s or newer runs any CUDA %s build", or_unknown(V(TORCH_DRIVER)),
	                       t->major)
	     : t->rocm ? fa_strf("torch is built for it; ROCm %s is here", or_unknown(V(FACT_ROCM)))
	               : fa_strdup("torch is not built for CUDA"),
	     "cuda");
}

/* ---- Flash-Attention */

/* Would the line serve? The rule of its newest release that says no, else "not_asked". */
static void add_line(struct fa_solve *s, struct fa_node *n, const struct fa_kb_line *l)
{
	const struct fa_kb_rule *r;
	struct fa_verdict why;
	char *needed;

	fa_solve_set_file(s, NULL);
	r = fa_solve_release_fits(s, l->line, "9999", NULL, &why);
	if (r) {
		needed = fa_verdict_needed(&why);
		fa_node_add_other(n, l->line, r->id, needed, why.found);
		free(needed);
	} else {
		fa_node_add_other(n, l->line, "not_asked", l->serves,
		                  fa_solve_wished(s, FA_WISH_LINE) ? "another line was asked for" : "not asked for");
	}
}

static void line_node(struct fa_solve *s)
{
	const char *taken = s->plan->choice.line;
	const struct fa_kb_line *l = fa_kb_line(s->kb, taken);
	struct fa_node *n;

	n = node(s, "line", fa_strdup(taken),
	         fa_solve_wished(s, FA_WISH_LINE) ? fa_strdup("asked for")
	         : l                              ? fa_strf("%s serves %s; it is what code imports", l->name, l->serves)
	                                          : fa_strdup("no line serves this machine"),
	         "line");
	for (size_t i = 0; i < s->kb->n_lines; i++)
		if (!says(s->kb->lines[i].line, taken))
			add_line(s, n, &s->kb->lines[i]);
	fa_node_add_other(n, "sdpa", "not_asked", "torch 2.0",
	                  says(taken, "none") ? "taken" : "torch's own attention, always there");
}

static const char *name_of_source(const struct fa_found *f)
{
	return f->source ? f->source : "source";
}

static void version_node(struct fa_solve *s)
{
	const struct fa_choice *c = &s->plan->choice;
	struct fa_node *n;

	if (!c->flash_attn)
		return;
	n = node(s, "version", fa_strdup(c->flash_attn),
	         fa_solve_wished(s, FA_WISH_FLASH_ATTN) ? fa_strdup("asked for") : fa_strdup("newest that fits"), "flash-attn");
	for (size_t i = 0; i < s->n_folds && n->n_others < OTHERS_MAX; i++) {
		const struct fa_fold *f = &s->folds[i];
		const char *version = strrchr(f->subject, ' ');

		if (!says(f->kind, "wheel") || !version || fa_version_compare(version + 1, c->flash_attn) < 0)
			continue;
		add_fold(n, f->subject, f);
	}
}

static void add_route(struct fa_solve *s, struct fa_node *n, const char *route, const char *kind)
{
	if (says(route, s->plan->choice.route))
		return;
	for (size_t i = 0; i < s->n_folds; i++) {
		if (!says(s->folds[i].kind, kind))
			continue;
		add_fold(n, route, &s->folds[i]);
		return;
	}
	fa_node_add_other(n, route, fa_solve_wished(s, FA_WISH_ROUTE) ? "asked_route" : "not_asked", "",
	                  fa_solve_wished(s, FA_WISH_ROUTE) ? "another route was asked for" : "comes after what was taken");
}

static void route_node(struct fa_solve *s)
{
	const struct fa_choice *c = &s->plan->choice;
	struct fa_node *n;

	n = node(s, "route", fa_strdup(c->route),
	         c->wheel.name                       ? fa_strf("%s has %s", name_of_source(&s->found), c->wheel.name)
	         : says(c->route, "keep")            ? fa_strdup("what is installed fits")
	         : says(c->route, "sdpa")            ? fa_strdup("part of torch")
	         : fa_solve_wished(s, FA_WISH_ROUTE) ? fa_strdup("asked for")
	                                             : fa_strdup("no ready file fits"),
	         "route");
	add_route(s, n, "wheel", "wheel");
	if (says(V(VENDOR), "amd")) {
		add_route(s, n, "ck", "ck");
		add_route(s, n, "triton", "triton");
	} else {
		add_route(s, n, "source", "source");
	}
	if (!says(c->route, "sdpa"))
		fa_node_add_other(n, "sdpa", "not_asked", "", "comes after what was taken");
}

static void flags_node(struct fa_solve *s)
{
	const struct fa_plan_build *b = &s->plan->choice.build;
	struct fa_node *n;
	char *archs;

	if (!b->wanted)
		return;
	archs = fa_strv_join(&b->archs, ";");
	n = node(s, "flags", fa_strf("architectures %s, %d jobs, profile %s", archs, b->jobs, b->profile),
	         b->units ? fa_strf("%d units at most %s MiB each, %s MiB of memory, %s cores", b->units,
	                            or_unknown(V(MEMORY_NEEDED)), or_unknown(V(MEMORY)), or_unknown(V(FACT_CORES)))
	                  : fa_strf("%s MiB of memory, %s cores", or_unknown(V(MEMORY)), or_unknown(V(FACT_CORES))),
	         "profile");
	if (s->found.toolkit.version)
		fa_node_add_other(n, s->found.toolkit.version, s->found.toolkit.pip ? "toolkit_from_pip" : "toolkit", "",
		                  s->found.toolkit.home ? s->found.toolkit.home : "brought by the plan");
	add_refused(s, n, "toolkit");
	free(archs);
}

void fa_solve_explain(struct fa_solve *s)
{
	const struct fa_card *served = NULL;

	machine_nodes(s);
	driver_node(s);
	torch_nodes(s);
	line_node(s);
	for (size_t i = 0; i < s->n_cards && !served; i++)
		served = &s->cards[i];
	fa_solve_set_card(s, served);
	version_node(s);
	route_node(s);
	flags_node(s);
}
