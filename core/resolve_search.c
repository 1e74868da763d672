/* The search: classes of candidates in order of preference, each tried on every torch that fits, newest first. */
#include "buf.h"
#include "resolve.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

bool fa_solve_asked_version(const struct fa_solve *s, const char *version)
{
	const char *wish = fa_solve_wished(s, FA_WISH_FLASH_ATTN);

	return !wish || fa_version_matches(version, wish);
}

int fa_solve_exactness(const struct fa_solve *s, const char *version)
{
	return says(fa_solve_wished(s, FA_WISH_FLASH_ATTN), version);
}

const struct fa_kb_rule *fa_solve_release_fits(struct fa_solve *s, const char *line, const char *version,
                                               const struct fa_kb_release *r, struct fa_verdict *why)
{
	static const enum fa_rule_on CARD[] = { FA_ON_RELEASE_CARD };
	const struct fa_kb_rule *broken;

	fa_solve_set_release(s, line, version, r);
	fa_solve_set_card(s, NULL);
	broken = fa_solve_broken(s, FA_ON_RELEASE, why);
	return broken || !s->n_cards ? broken : fa_solve_broken_cards(s, CARD, 1, why);
}

/* ---- what is installed already */

static const struct {
	const char *line;
	enum fa_name fact;
} INSTALLED[] = { { "fa2", FA_NAME_FACT_FLASH_ATTN },
	          { "fa3", FA_NAME_FACT_FLASH_ATTN_3 },
	          { "fa4", FA_NAME_FACT_FLASH_ATTN_4 } };

static bool keep_line(struct fa_solve *s, const struct fa_torch_option *t, const char *line, const char *installed)
{
	char *version = installed && *installed ? fa_version_public(installed) : NULL;
	const struct fa_kb_rule *r;
	struct fa_verdict why;
	bool good = false;

	if (!version || !fa_solve_asked_version(s, version))
		goto done;
	fa_solve_set_file(s, NULL);
	s->v[FA_NAME_ROUTE] = "keep";
	r = fa_solve_release_fits(s, line, version, fa_kb_release(s->kb, line, version), &why);
	if (r && !says(r->id, "torch_prerelease")) {
		fa_solve_refuse(s, "keep", "installed", version, r->id, why.needed, why.found);
		goto done;
	}
	s->found = (struct fa_found){ .any = true, .class = FA_CLASS_KEEP, .line = line, .torch = t };
	s->found.version = fa_solve_keep_text(s, fa_strdup(version));
	s->found.release = fa_kb_release(s->kb, line, version);
	good = true;
done:
	free(version);
	return good;
}

static bool try_keep(struct fa_solve *s, const struct fa_torch_option *t, const char *line)
{
	if (!t->kept || fa_solve_wished(s, FA_WISH_SOURCE))
		return false;
	for (size_t i = 0; i < sizeof(INSTALLED) / sizeof(INSTALLED[0]); i++)
		if (says(INSTALLED[i].line, line) && keep_line(s, t, line, s->v[INSTALLED[i].fact]))
			return true;
	return false;
}

/* ---- wheels */

static char *file_subject(const struct fa_kb_file *f)
{
	return fa_strf("%s %s %s", f->source->name, f->line, f->version);
}

static void refuse_file(struct fa_solve *s, const struct fa_kb_file *f, const char *rule, const struct fa_verdict *why)
{
	bool other_torch = says(rule, "torch_minor");
	char *subject, *name;

	if (s->quiet)
		return;
	subject = file_subject(f);
	name = other_torch || !s->v[FA_NAME_PYTHON_TAG] ? fa_strdup("whl")
	                                                : fa_kb_file_name(s->kb, f, s->v[FA_NAME_PYTHON_TAG]);
	fa_solve_refuse(s, "wheel", subject, name, rule, why->needed, why->found);
	free(subject);
	free(name);
}

static const struct fa_kb_rule *file_breaks(struct fa_solve *s, const struct fa_kb_file *f, struct fa_verdict *why)
{
	static const enum fa_rule_on CARD[] = { FA_ON_RELEASE_CARD, FA_ON_FILE_CARD };
	const struct fa_kb_rule *r;

	fa_solve_set_card(s, NULL);
	fa_solve_set_release(s, f->line, f->version, fa_kb_release(s->kb, f->line, f->version));
	fa_solve_set_file(s, f);
	s->v[FA_NAME_ROUTE] = "wheel";
	s->v[FA_NAME_RELEASE_PYTHON] = NULL; /* a file that exists says itself what Python it is for */
	r = fa_solve_broken(s, FA_ON_FILE, why);
	if (!r)
		r = fa_solve_broken(s, FA_ON_RELEASE, why);
	if (!r && s->n_cards)
		r = fa_solve_broken_cards(s, CARD, 2, why);
	return r;
}

/* Is a better than b? The very version asked for, more cards, backward, newer release, the same CUDA, a promised glibc. */
static bool better_file(struct fa_solve *s, const struct fa_kb_file *a, size_t a_served, const struct fa_kb_file *b,
                        size_t b_served)
{
	int c = fa_solve_exactness(s, a->version) - fa_solve_exactness(s, b->version);
	const char *cuda = s->v[FA_NAME_TORCH_X_CUDA];

	if (!c && a_served != b_served)
		c = a_served > b_served ? 1 : -1;
	if (!c)
		c = (int)a->backward - (int)b->backward;
	if (!c)
		c = fa_version_compare(a->version, b->version);
	if (!c)
		c = (int)says(a->cuda, cuda) - (int)says(b->cuda, cuda);
	if (!c)
		c = fa_version_compare(a->cuda ? a->cuda : "0", b->cuda ? b->cuda : "0");
	if (!c)
		c = (int)(a->platform && strstr(a->platform, "many")) - (int)(b->platform && strstr(b->platform, "many"));
	return c > 0;
}

static bool names_source(const struct fa_solve *s, const struct fa_kb_source *source)
{
	const char *wish = fa_solve_wished(s, FA_WISH_SOURCE);

	return !wish || says(source->name, wish);
}

static bool try_wheels(struct fa_solve *s, const struct fa_torch_option *t, const char *line, const struct fa_kb_source *source)
{
	static const enum fa_rule_on CARD[] = { FA_ON_RELEASE_CARD, FA_ON_FILE_CARD };
	const struct fa_kb_file *best = NULL;
	size_t best_served = 0;
	struct fa_verdict why;

	for (size_t i = 0; i < s->kb->n_files; i++) {
		const struct fa_kb_file *f = &s->kb->files[i];
		const struct fa_kb_rule *r;
		size_t served;

		if (f->source != source || !says(f->line, line) || !fa_solve_asked_version(s, f->version))
			continue;
		r = file_breaks(s, f, &why);
		if (r) {
			refuse_file(s, f, r->id, &why);
			continue;
		}
		served = s->n_cards > 1 ? fa_solve_count_served(s, CARD, 2, false) : s->n_cards;
		if (best && !better_file(s, f, served, best, best_served))
			continue;
		best = f;
		best_served = served;
	}
	if (!best)
		return false;
	s->found = (struct fa_found){
		.any = true, .class = FA_CLASS_WHEEL, .line = line, .torch = t, .file = best, .served = best_served
	};
	s->found.version = best->version;
	s->found.source = source->name;
	s->found.release = fa_kb_release(s->kb, line, best->version);
	return true;
}

static bool try_sdpa(struct fa_solve *s, const struct fa_torch_option *t)
{
	struct fa_verdict why;
	const struct fa_kb_rule *r;

	fa_solve_set_card(s, NULL);
	fa_solve_set_file(s, NULL);
	s->v[FA_NAME_ROUTE] = "sdpa";
	r = fa_solve_broken(s, FA_ON_SDPA, &why);
	if (r) {
		fa_solve_refuse(s, "sdpa", "torch's own attention", NULL, r->id, why.needed, why.found);
		return false;
	}
	s->found = (struct fa_found){ .any = true, .class = FA_CLASS_SDPA, .line = "none", .torch = t };
	return true;
}

/* ---- the order of trying */

struct attempt {
	enum fa_class class;
	const char *line;
	const struct fa_kb_source *source;
	bool unasked; /* a line that nobody asked for: it must do all that fa2 does */
};

enum { ATTEMPTS_MAX = 256 };

struct attempts {
	struct attempt v[ATTEMPTS_MAX];
	size_t n;
};

static void add(struct attempts *a, enum fa_class class, const char *line, const struct fa_kb_source *source, bool unasked)
{
	if (a->n < ATTEMPTS_MAX)
		a->v[a->n++] = (struct attempt){ class, line, source, unasked };
}

static bool route_allows(const struct fa_solve *s, const char *route)
{
	const char *wish = fa_solve_wished(s, FA_WISH_ROUTE);

	return !wish || says(wish, route);
}

static void add_wheels(struct fa_solve *s, struct attempts *a, const char *line, bool unasked)
{
	for (int order = 0; order < 10; order++)
		for (size_t i = 0; i < s->kb->n_sources; i++)
			if (s->kb->sources[i].order == order && route_allows(s, "wheel") && names_source(s, &s->kb->sources[i]))
				add(a, FA_CLASS_WHEEL, line, &s->kb->sources[i], unasked);
}

/* A --source that is the name of no source of wheels is a repository to clone. */
bool fa_solve_clones(const struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_SOURCE);

	for (size_t i = 0; wish && i < s->kb->n_sources; i++)
		if (says(s->kb->sources[i].name, wish))
			return false;
	return wish != NULL;
}

static bool sources_allow_building(const struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_SOURCE);

	return !wish || fa_solve_clones(s) || says(wish, "official") || says(wish, "pypi");
}

static void plan_line(struct fa_solve *s, struct attempts *a, const char *line, bool unasked)
{
	bool fa2 = says(line, "fa2"), build = sources_allow_building(s);

	add(a, FA_CLASS_KEEP, line, NULL, unasked);
	if (!fa_solve_clones(s))
		add_wheels(s, a, line, unasked);
	if (fa2 && build && route_allows(s, "ck"))
		add(a, FA_CLASS_CK, line, NULL, unasked);
	if (fa2 && build && route_allows(s, "triton"))
		add(a, FA_CLASS_TRITON, line, NULL, unasked);
	if (fa2 && build && route_allows(s, "source"))
		add(a, FA_CLASS_SOURCE, line, NULL, unasked);
}

static void plan_attempts(struct fa_solve *s, struct attempts *a)
{
	const char *line = fa_solve_wished(s, FA_WISH_LINE);

	a->n = 0;
	if (says(fa_solve_wished(s, FA_WISH_ROUTE), "sdpa"))
		return;
	for (int order = 0; order < 10; order++)
		for (size_t i = 0; i < s->kb->n_lines; i++)
			if (s->kb->lines[i].order == order && (!line || says(line, s->kb->lines[i].line)))
				plan_line(s, a, s->kb->lines[i].line, !line && a->n);
}

static bool try_class(struct fa_solve *s, const struct attempt *a, const struct fa_torch_option *t)
{
	switch (a->class) {
	case FA_CLASS_KEEP: return try_keep(s, t, a->line);
	case FA_CLASS_WHEEL: return try_wheels(s, t, a->line, a->source);
	case FA_CLASS_CK:
	case FA_CLASS_TRITON: return fa_solve_amd(s, t, a->class);
	case FA_CLASS_SOURCE: return fa_solve_source(s, t);
	case FA_CLASS_SDPA: return try_sdpa(s, t);
	}
	return false;
}

/* One candidate class on every torch; what has to be mended for it is left in found.repairs. */
static bool attempt(struct fa_solve *s, const struct attempt *a, bool mend)
{
	const char *backward = s->v[FA_NAME_WANT_BACKWARD];
	bool good = false;

	if (a->unasked && !backward)
		s->v[FA_NAME_WANT_BACKWARD] = "yes";
	for (size_t i = 0; i < s->n_torch && !good; i++) {
		struct fa_repairs mended = { .n = 0 };

		s->repairs = mend || s->torch[i].kept ? &mended : NULL;
		if (fa_solve_torch_fits(s, &s->torch[i])) {
			s->repairs = mend ? &mended : NULL;
			good = try_class(s, a, &s->torch[i]);
		}
		s->repairs = NULL;
		if (good)
			s->found.repairs = mended;
	}
	s->v[FA_NAME_WANT_BACKWARD] = backward;
	return good;
}

/* Cards that no release of the line (or, without one, no line) serves. */
static void mark_hopeless(struct fa_solve *s)
{
	static const enum fa_rule_on CARD[] = { FA_ON_RELEASE_CARD };

	for (size_t c = 0; c < s->n_cards; c++)
		s->cards[c].hopeless = true;
	for (size_t l = 0; l < s->kb->n_lines; l++) {
		const char *line = s->kb->lines[l].line;

		if (fa_solve_wished(s, FA_WISH_LINE) && !says(fa_solve_wished(s, FA_WISH_LINE), line))
			continue;
		fa_solve_set_release(s, line, "9999", NULL);
		fa_solve_count_served(s, CARD, 1, true);
		for (size_t c = 0; c < s->n_cards; c++)
			s->cards[c].hopeless = s->cards[c].hopeless && !s->cards[c].served;
	}
}

static bool run(struct fa_solve *s, const struct attempts *a, bool mend)
{
	for (int some = 0; some < (s->n_cards > 1 ? 2 : 1); some++) {
		s->any_card = some;
		for (size_t i = 0; i < a->n; i++)
			if (attempt(s, &a->v[i], mend))
				return true;
	}
	return false;
}

/* Was Flash-Attention asked for by name? Then torch's own attention is no answer. */
static bool asked_by_name(const struct fa_solve *s)
{
	static const enum fa_wish_id NAMES[] = { FA_WISH_LINE,  FA_WISH_FLASH_ATTN, FA_WISH_NEEDS,
		                                 FA_WISH_DTYPE, FA_WISH_HEAD_DIM,   FA_WISH_SOURCE };
	const char *route = fa_solve_wished(s, FA_WISH_ROUTE);

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (fa_solve_wished(s, NAMES[i]))
			return !says(route, "sdpa");
	return route && !says(route, "sdpa");
}

/* A version that no release of ours has is refused once, with what there is. */
static void refuse_unknown_version(struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_FLASH_ATTN), *oldest = NULL, *newest = NULL;
	const char *line = fa_solve_wished(s, FA_WISH_LINE) ? fa_solve_wished(s, FA_WISH_LINE) : "fa2";
	char *needed, *subject;

	for (size_t i = 0; wish && i < s->kb->n_files; i++)
		if (fa_solve_asked_version(s, s->kb->files[i].version))
			return;
	for (size_t i = 0; wish && i < s->kb->n_releases; i++) {
		if (fa_solve_asked_version(s, s->kb->releases[i].version))
			return;
		if (!says(s->kb->releases[i].line, line))
			continue;
		newest = newest ? newest : s->kb->releases[i].version;
		oldest = s->kb->releases[i].version;
	}
	if (!wish)
		return;
	needed = newest ? fa_strf("%s to %s", oldest, newest) : fa_strdup("a release");
	subject = fa_strf("flash-attn %s", wish);
	fa_solve_refuse(s, "wheel", subject, NULL, "asked_flash_attn", needed, wish);
	free(needed);
	free(subject);
}

void fa_solve_search(struct fa_solve *s)
{
	const struct attempts sdpa = { .v = { { FA_CLASS_SDPA, "none", NULL, false } }, .n = 1 };
	bool own_attention = s->no_card && !asked_by_name(s);
	struct attempts a;

	mark_hopeless(s);
	refuse_unknown_version(s);
	fa_solve_torch_options(s);
	plan_attempts(s, &a);
	if (own_attention)
		a.n = 0;
	if (run(s, &a, false) || run(s, &a, true) || (fa_solve_wished(s, FA_WISH_OFFLINE) && a.n))
		return; /* what is missing offline is found out by asking once more with network */
	if (!asked_by_name(s) && !s->cards_unknown && !run(s, &sdpa, false))
		run(s, &sdpa, true);
}
