/* The search: classes of candidates in order of preference, each tried on every torch that fits, newest first. */
#include "buf.h"
#include "json.h"
#include "resolve.h"
#include "source.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

bool fa_solve_asked_version(struct fa_solve *s, const char *version)
{
	const char *wish = fa_solve_wished(s, FA_WISH_FLASH_ATTN);

	if (!wish)
		return true;
	if (s->asked.version != version)
		s->asked = (struct fa_asked){ version, fa_version_matches(version, wish) };
	return s->asked.matches;
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
	const char *version = installed && *installed ? fa_solve_keep_text(s, fa_version_public(installed)) : NULL;
	const struct fa_kb_rule *r;
	struct fa_verdict why;
	const char *lacks;

	if (!version || !fa_solve_asked_version(s, version))
		return false;
	fa_solve_set_file(s, NULL);
	s->v[FA_NAME_ROUTE] = "keep";
	r = fa_solve_release_fits(s, line, version, fa_kb_release(s->kb, line, version), &why);
	if (r && !says(r->id, "torch_prerelease")) {
		fa_solve_refuse(s, "keep", "installed", version, r->id, &why);
		return false;
	}
	lacks = fa_solve_build_lacks(s, installed);
	if (lacks) {
		why = fa_solve_why("as asked", "left out of this build");
		fa_solve_refuse(s, "keep", "installed", installed, lacks, &why);
		return false;
	}
	s->found = (struct fa_found){ .any = true, .class = FA_CLASS_KEEP, .line = line, .torch = t };
	s->found.version = version;
	s->found.release = fa_kb_release(s->kb, line, version);
	return true;
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

static void refuse_file(struct fa_solve *s, const struct fa_kb_file *f, const char *rule, const struct fa_verdict *why)
{
	bool other_torch = says(rule, "torch_minor");
	const char *tag = s->v[FA_NAME_PYTHON_TAG];
	char *name = NULL;

	if (s->quiet)
		return;
	if (tag && !fa_solve_named_enough(s, "wheel", f->subject, rule, why->found, other_torch ? 1 : FA_NAMES_KEPT))
		name = fa_kb_file_name(s->kb, f, tag);
	fa_solve_refuse(s, "wheel", f->subject, name, rule, why);
	free(name);
}

/* Refused for the rule, or for the one that refused a file before that is equal in all that counts. Files of one release come
 * one after the other. */
static const struct fa_kb_rule *file_breaks(struct fa_solve *s, const struct fa_kb_file *f, struct fa_verdict *why)
{
	static const enum fa_rule_on CARD[] = { FA_ON_RELEASE_CARD, FA_ON_FILE_CARD };
	const struct fa_kb_file *first = s->refusals->n ? s->refusals->v[0].item : NULL;
	const struct fa_refused *before;
	const struct fa_kb_rule *r;

	if (first && (first->version != f->version || first->release != f->release))
		s->refusals->n = 0;
	before = fa_solve_refused_before(s->refusals, f);
	if (before) {
		*why = before->why;
		return before->rule;
	}
	fa_solve_set_card(s, NULL);
	fa_solve_set_release(s, f->line, f->version, f->release);
	fa_solve_set_file(s, f);
	s->v[FA_NAME_ROUTE] = "wheel";
	s->v[FA_NAME_RELEASE_PYTHON] = NULL; /* a file that exists says itself what Python it is for */
	r = fa_solve_broken(s, FA_ON_FILE, why);
	if (r) {
		fa_solve_remember(s, s->refusals, f, r, why);
		return r;
	}
	r = fa_solve_broken(s, FA_ON_RELEASE, why);
	if (!r && s->n_cards)
		r = fa_solve_broken_cards(s, CARD, 2, why);
	return r;
}

/* Does its name say the C++ ABI that it has? */
static bool honest(const struct fa_kb_file *f)
{
	return !f->abi_word || !f->abi || says(f->abi, "new") == says(f->abi_word, "TRUE");
}

/* Is a better than b? The very version asked for, more cards, backward, newer release, a name
 * that does not lie, the same CUDA, a promised glibc. */
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
		c = (int)honest(a) - (int)honest(b);
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

struct best_file {
	const struct fa_kb_file *file;
	size_t served;
	const struct fa_kb_file *others[FALLBACKS_MAX]; /* that were best before */
	size_t n_others;
};

/* What passes as well, in order: taken when the binary of the choice fails its X-ray. */
static void note_fallback(struct best_file *b, const struct fa_kb_file *f, bool first)
{
	size_t n = b->n_others < FALLBACKS_MAX ? b->n_others : FALLBACKS_MAX - 1;

	if (!f || (!first && b->n_others == FALLBACKS_MAX))
		return;
	if (first)
		memmove(b->others + 1, b->others, n * sizeof(b->others[0]));
	b->others[first ? 0 : n] = f;
	b->n_others = n + 1;
}

/* Which torch it is does not count here: asked once for each file, and only where no refusal is written down. */
static bool misfits_machine(struct fa_solve *s, const struct fa_kb_file *f)
{
	struct fa_kb_rule *rules = s->kb->rules[FA_ON_FILE];
	size_t n = s->kb->n_rules[FA_ON_FILE], place = (size_t)(f - s->kb->files);
	bool misfits = false;

	if (!s->files)
		s->files = fa_calloc(s->kb->n_files, sizeof(*s->files));
	if (s->files[place])
		return s->files[place] > 0;
	if (n && !rules[n - 1].traits_known) /* rules of a policy come last */
		fa_solve_note_traits(s->kb, FA_ON_FILE);
	fa_solve_set_file(s, f);
	for (size_t i = 0; i < n && !misfits; i++)
		misfits = rules[i].of_machine && fa_rule_test_again(&rules[i].when, s->v, s->kb->memo, NULL) == FA_TRUE &&
		          fa_rule_test_again(&rules[i].need, s->v, s->kb->memo, NULL) == FA_FALSE;
	s->files[place] = misfits ? 1 : -1;
	return misfits;
}

static void try_file(struct fa_solve *s, const struct fa_kb_file *f, struct best_file *best)
{
	static const enum fa_rule_on CARD[] = { FA_ON_RELEASE_CARD, FA_ON_FILE_CARD };
	const struct fa_kb_rule *r;
	struct fa_verdict why;
	size_t served;

	if (!fa_solve_asked_version(s, f->version) || (s->quiet && misfits_machine(s, f)))
		return;
	r = file_breaks(s, f, &why);
	if (r) {
		refuse_file(s, f, r->id, &why);
		return;
	}
	served = s->n_cards > 1 ? fa_solve_count_served(s, CARD, 2, false) : s->n_cards;
	if (best->file && !better_file(s, f, served, best->file, best->served)) {
		note_fallback(best, f, false);
		return;
	}
	note_fallback(best, best->file, true);
	best->file = f;
	best->served = served;
}

/* Files for another torch are looked at only beside a torch that stays: their refusals belong to the account. */
static bool try_wheels(struct fa_solve *s, const struct fa_torch_option *t, const char *line, const struct fa_kb_source *source)
{
	const struct fa_kb_rack *rack = fa_kb_rack(s->kb, source, line);
	struct fa_refusals refusals;
	struct best_file best = { 0 };

	refusals.on = FA_ON_FILE;
	refusals.n = refusals.last = 0;
	s->refusals = &refusals;

	for (size_t i = 0; rack && i < rack->n; i++) {
		const struct fa_kb_shelf *shelf = &s->kb->shelves[rack->shelves[i]];

		if ((!t->kept || s->quiet) && shelf->torch && strcmp(shelf->torch, t->minor) != 0)
			continue;
		for (size_t k = 0; k < shelf->n; k++)
			try_file(s, &s->kb->files[shelf->files[k]], &best);
	}
	s->refusals = NULL;
	if (!best.file)
		return false;
	s->found = (struct fa_found){ .any = true, .class = FA_CLASS_WHEEL, .line = line, .torch = t, .file = best.file };
	s->found.served = best.served;
	memcpy(s->fallbacks, best.others, sizeof(best.others));
	s->n_fallbacks = s->any_card ? 0 : best.n_others; /* of some of the cards, another file may serve others */
	s->found.version = best.file->version;
	s->found.source = source->name;
	s->found.release = best.file->release;
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
		fa_solve_refuse(s, "sdpa", "torch's own attention", NULL, r->id, &why);
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

/* By its form, so that a plan for another machine needs nothing of this one (source.h tells folders of wheels apart). */
bool fa_solve_source_is_folder(const struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_SOURCE);

	return fa_solve_clones(s) && fa_source_is_folder(wish);
}

static bool sources_allow_building(const struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_SOURCE);

	return !wish || fa_solve_clones(s) || says(wish, "official") || says(wish, "pypi");
}

/* A line that serves none of the cards in any release is refused as a whole. */
static bool serves_none(struct fa_solve *s, const char *line)
{
	const char *version = fa_solve_wished(s, FA_WISH_FLASH_ATTN);
	const struct fa_kb_rule *r;
	struct fa_verdict why;

	if (!s->n_torch || !s->n_cards)
		return false;
	fa_solve_set_torch(s, &s->torch[0]);
	r = fa_solve_release_fits(s, line, "9999", NULL, &why);
	if (!r || strncmp(r->id, "arch", 4) != 0)
		return false;
	fa_solve_refuse(s, "line", fa_solve_keep_text(s, fa_strf("%s %s", line, version ? version : "(every release)")), NULL,
	                r->id, &why);
	return true;
}

/* The back ends for AMD, where another vendor's cards are served, are refused only when asked for. */
static bool amd_may(struct fa_solve *s, const char *route)
{
	const char *vendor = s->v[FA_NAME_VENDOR];

	if (!route_allows(s, route))
		return false;
	if (!vendor || says(vendor, "amd"))
		return true;
	if (fa_solve_wished(s, FA_WISH_ROUTE)) {
		struct fa_verdict why = fa_solve_why("amd", vendor);

		fa_solve_refuse(s, "route", route, NULL, "vendor", &why);
	}
	return false;
}

static void plan_line(struct fa_solve *s, struct attempts *a, const char *line, bool unasked)
{
	const struct fa_kb_line *l = fa_kb_line(s->kb, line);
	bool fa2 = says(line, "fa2"), build = sources_allow_building(s);

	if (serves_none(s, line))
		return;
	add(a, FA_CLASS_KEEP, line, NULL, unasked);
	if (!fa_solve_clones(s))
		add_wheels(s, a, line, unasked);
	for (int ck = 1; fa2 && build && ck >= 0; ck--)
		if (amd_may(s, ck ? "ck" : "triton"))
			add(a, ck ? FA_CLASS_CK : FA_CLASS_TRITON, line, NULL, unasked);
	if ((fa2 || (l && l->folder && !unasked)) && build && route_allows(s, "source"))
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
				plan_line(s, a, s->kb->lines[i].line, !line && order > s->kb->lines[0].order);
}

static bool try_class(struct fa_solve *s, const struct attempt *a, const struct fa_torch_option *t)
{
	switch (a->class) {
	case FA_CLASS_KEEP: return try_keep(s, t, a->line);
	case FA_CLASS_WHEEL: return try_wheels(s, t, a->line, a->source);
	case FA_CLASS_CK:
	case FA_CLASS_TRITON: return fa_solve_amd(s, t, a->class);
	case FA_CLASS_SOURCE: return fa_solve_source(s, t, a->line);
	case FA_CLASS_SDPA: return try_sdpa(s, t);
	}
	return false;
}

/* Does the torch fit? Asked again only when this pass mends or is content with less. */
static bool torch_fits(struct fa_solve *s, struct fa_torch_option *t)
{
	if (t->for_some && !s->any_card)
		return false;
	if (s->repairs || s->any_card || t->fits < 0)
		return fa_solve_torch_fits(s, t) == FA_FIT_YES;
	if (t->fits)
		fa_solve_set_torch(s, t);
	return t->fits;
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

		s->repairs = (mend || s->torch[i].kept) && !s->torch[i].for_some ? &mended : NULL;
		if (torch_fits(s, &s->torch[i])) {
			s->repairs = mend ? &mended : NULL;
			good = try_class(s, a, &s->torch[i]);
		}
		s->repairs = NULL;
		if (good)
			s->found.repairs = mended;
		if (good && s->torch[i].for_some)
			s->first.n = 0;
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
	bool quiet = s->quiet, good = false;

	for (int some = 0; some < (s->n_cards > 1 ? 2 : 1) && !good; some++) {
		s->any_card = some;
		s->quiet = quiet || some || mend; /* the first pass has written them down */
		for (size_t i = 0; i < a->n && !good; i++)
			good = attempt(s, &a->v[i], mend);
	}
	s->quiet = quiet;
	return good;
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

static void forget_cards(struct fa_solve *s)
{
	s->n_cards = 0;
	s->v[FA_NAME_VENDOR] = NULL;
	fa_solve_choose_rules(s);
	fa_solve_set_card(s, NULL);
	s->first.n = 0;
	s->n_torch = 0;
	fa_solve_torch_options(s);
}

static bool of_line(const struct fa_solve *s, const char *line)
{
	const char *wish = fa_solve_wished(s, FA_WISH_LINE);

	return !wish || says(wish, line);
}

/* A version that no release of ours has is refused once, with what there is. */
static bool refuse_unknown_version(struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_FLASH_ATTN), *oldest = NULL, *newest = NULL;
	const char *line = fa_solve_wished(s, FA_WISH_LINE) ? fa_solve_wished(s, FA_WISH_LINE) : "fa2";
	struct fa_verdict why;
	char *needed;

	if (!wish)
		return false;
	for (size_t i = 0; i < s->kb->n_files; i++)
		if (of_line(s, s->kb->files[i].line) && fa_solve_asked_version(s, s->kb->files[i].version))
			return false;
	for (size_t i = 0; i < s->kb->n_releases; i++) {
		if (of_line(s, s->kb->releases[i].line) && fa_solve_asked_version(s, s->kb->releases[i].version))
			return false;
		if (!says(s->kb->releases[i].line, line))
			continue;
		newest = newest ? newest : s->kb->releases[i].version;
		oldest = s->kb->releases[i].version;
	}
	needed = newest ? fa_strf("%s to %s", oldest, newest) : fa_strdup("a release");
	why = fa_solve_why(needed, wish);
	fa_solve_refuse(s, "wheel", fa_solve_keep_text(s, fa_strf("flash-attn %s", wish)), NULL, "asked_flash_attn", &why);
	free(needed);
	return true;
}

/* torch's own attention and a line of Flash-Attention cannot both be had. */
static bool contradicts(struct fa_solve *s)
{
	const char *line = fa_solve_wished(s, FA_WISH_LINE), *version = fa_solve_wished(s, FA_WISH_FLASH_ATTN);

	struct fa_verdict why = fa_solve_why("a route of Flash-Attention", "--route sdpa");

	if (!says(fa_solve_wished(s, FA_WISH_ROUTE), "sdpa") || (!line && !version))
		return false;
	fa_solve_refuse(s, "route", line ? line : version, NULL, "asked_route", &why);
	return true;
}

/* Would files have to be brought for what was found offline? Then what is best with network says which. */
static bool brings_files(struct fa_solve *s)
{
	for (size_t i = 0; fa_solve_wished(s, FA_WISH_OFFLINE) && i < s->found.repairs.n; i++)
		if (says(s->found.repairs.v[i].rule->action, "offline_missing")) {
			s->found = (struct fa_found){ .any = false };
			return true;
		}
	return false;
}

/* A torch for the cards was asked for, and none such has code for them: then their processor is no answer. */
static bool asked_for_cards(const struct fa_solve *s)
{
	const char *torch = fa_solve_wished(s, FA_WISH_TORCH);

	return s->n_cards && (fa_solve_wished(s, FA_WISH_CUDA) || (torch && !strstr(torch, "+cpu")));
}

/* Will something have to change first, whatever is chosen? */
static bool acts_anyway(const struct fa_solve *s)
{
	return s->first.n || s->cards_unknown || fa_solve_no_python(s) || fa_solve_needs_cards(s);
}

/* The board whose maker's torch is needed, since no other has code for the cards; a row of ids.json. */
static const struct fa_json *board_of(struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_TORCH);
	const struct fa_json *found = NULL;

	if (s->n_torch || !s->n_cards || s->ready || fa_solve_wished(s, FA_WISH_PYTHON))
		return NULL;
	fa_solve_set_card(s, &s->cards[0]);
	fa_json_each (row, fa_json_get(fa_kb_id(s->kb, "torch_of_board"), "boards")) {
		struct fa_rule when;

		if (found || fa_rule_compile(&when, fa_json_get_string(row, "when"), fa_name_find_word, NULL, NULL) < 0)
			continue;
		if (fa_rule_test(&when, s->v, NULL) == FA_TRUE &&
		    !says(s->v[FA_NAME_FACT_TORCH], fa_json_get_string(row, "torch")) &&
		    (!wish || fa_version_matches(fa_json_get_string(row, "torch"), wish)) &&
		    fa_words_meet(s->v[FA_NAME_CARD_CODES], fa_json_get_string(row, "archs")))
			found = row;
		fa_rule_release(&when);
	}
	return found;
}

void fa_solve_search(struct fa_solve *s)
{
	const struct attempts sdpa = { .v = { { FA_CLASS_SDPA, "none", NULL, false } }, .n = 1 };
	bool own_attention = s->no_card && !asked_by_name(s), unknown;
	struct attempts a;

	if (contradicts(s) || fa_solve_unknown_torch(s))
		return;
	unknown = refuse_unknown_version(s);
	if (s->ready && acts_anyway(s))
		return;
	mark_hopeless(s);
	fa_solve_torch_options(s);
	if (s->ready && acts_anyway(s))
		return;
	plan_attempts(s, &a);
	if (own_attention || unknown)
		a.n = 0;
	if (s->ready) {
		run(s, &a, false);
		return;
	}
	if (run(s, &a, false) || (run(s, &a, true) && !brings_files(s)) || (fa_solve_wished(s, FA_WISH_OFFLINE) && a.n))
		return; /* what is missing offline is found out by asking once more with network */
	s->board = board_of(s);
	if (s->board)
		return; /* asked once more as if that torch were here */
	if (asked_by_name(s) || (s->cards_unknown && !fa_solve_wished(s, FA_WISH_ROUTE)) || run(s, &sdpa, false) ||
	    run(s, &sdpa, true))
		return;
	if (asked_for_cards(s))
		return;
	forget_cards(s); /* no torch has code for them: its attention on the processor is what is left */
	run(s, &sdpa, false);
}
