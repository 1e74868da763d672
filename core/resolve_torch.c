/* The torch that is there, or those that could be: which of them the machine and the wish allow. */
#include "buf.h"
#include "resolve.h"
#include "version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

char *fa_solve_torch_name(const struct fa_torch_option *t)
{
	return fa_strf("%s+%s", t->version, t->word);
}

/* ---- the one that is installed */

static bool is_build_label(const char *label)
{
	if (!strcmp(label, "cpu"))
		return true;
	if (!strncmp(label, "cu", 2))
		return strlen(label) >= 5 && strspn(label + 2, "0123456789") == strlen(label + 2);
	return !strncmp(label, "rocm", 4) && isdigit((unsigned char)label[4]) && strchr(label, '.') &&
	       strspn(label + 4, "0123456789.") == strlen(label + 4);
}

static const char *without_dots(struct fa_solve *s, const char *prefix, const char *version, int parts, bool dots)
{
	struct fa_buf b = FA_BUF_INIT;
	char *head = fa_version_head(version, parts);

	fa_buf_adds(&b, prefix);
	for (const char *p = head; *p; p++)
		if (dots || *p != '.')
			fa_buf_addc(&b, *p);
	free(head);
	return fa_solve_keep_text(s, fa_buf_detach(&b));
}

/* The label where it names a build, else what torch says of its CUDA or HIP. */
static const char *installed_build(struct fa_solve *s, const char *torch)
{
	const char *label = strchr(torch, '+'), *cuda = s->v[FA_NAME_FACT_TORCH_CUDA], *hip = s->v[FA_NAME_FACT_TORCH_HIP];

	if (label && is_build_label(label + 1))
		return fa_solve_keep_text(s, fa_strdup(label + 1));
	if (cuda && *cuda)
		return without_dots(s, "cu", cuda, 2, false);
	if (hip && *hip)
		return without_dots(s, "rocm", hip, 2, true);
	return cuda && hip ? "cpu" : cuda && !*cuda ? "cpu" : NULL;
}

static const char *cuda_of_build(struct fa_solve *s, const char *word)
{
	size_t n = word && !strncmp(word, "cu", 2) ? strlen(word + 2) : 0;

	return n >= 3 ? fa_solve_keep_text(s, fa_strf("%.*s.%s", (int)n - 1, word + 2, word + 2 + n - 1)) : NULL;
}

static const struct fa_kb_build *build_of(const struct fa_kb_torch *row, const char *word)
{
	for (size_t i = 0; row && word && i < row->n_builds; i++)
		if (!strcmp(row->builds[i].build, word))
			return &row->builds[i];
	return NULL;
}

/* Vendors' and nightly snapshots: 2.6.0a0+df5bbc09d1.nv24.12, 2.9.0.dev20250901+cu128, 2.8.0rc1. */
static bool is_release(const char *torch)
{
	char *public = fa_version_public(torch);
	bool letters = strpbrk(public, "abcdefghijklmnopqrstuvwxyz") != NULL && !strstr(public, "post");
	bool vendor = strstr(torch, ".nv") != NULL || strstr(torch, "+git") != NULL;

	free(public);
	return !letters && !vendor;
}

/* Whoever built it: all builds of that torch have the new ABI. */
static bool has_new_abi_only(const struct fa_kb_torch *row)
{
	for (size_t i = 0; i < row->n_builds; i++)
		if (row->builds[i].cuda && (!row->builds[i].abi || strcmp(row->builds[i].abi, "new") != 0))
			return false;
	return true;
}

static const char *installed_abi(const struct fa_solve *s, const struct fa_kb_torch *row, const struct fa_kb_build *build)
{
	const char *fact = s->v[FA_NAME_FACT_TORCH_CXX11ABI], *platform = s->v[FA_NAME_PLATFORM];

	if (fact)
		return !strcmp(fact, "yes") ? "new" : "old";
	if (!build && row && has_new_abi_only(row))
		return "new";
	return build && platform && !strcmp(platform, "linux-x86_64") ? build->abi : NULL;
}

static const char *codes_for(const struct fa_solve *s, const struct fa_kb_build *build)
{
	const char *machine = s->v[FA_NAME_FACT_MACHINE];

	return !build ? NULL : machine && !strcmp(machine, "aarch64") ? build->codes_aarch64 : build->codes;
}

/* What the headers of the nearest older release ask for: a snapshot or a newer torch is not milder. */
static const char *headers_of(const struct fa_solve *s, const char *version)
{
	for (size_t i = 0; i < s->kb->n_torch; i++)
		if (fa_version_compare(s->kb->torch[i].version, version) <= 0)
			return s->kb->torch[i].cxx;
	return NULL;
}

static void take_installed(struct fa_solve *s, const char *torch)
{
	struct fa_torch_option *t;
	const char *codes = s->v[FA_NAME_FACT_TORCH_ARCHS], *label = strchr(torch, '+'), *cuda = s->v[FA_NAME_FACT_TORCH_CUDA];

	s->torch = fa_realloc(s->torch, 1, sizeof(*s->torch));
	t = &s->torch[0];
	*t = (struct fa_torch_option){ .fits = -1 };
	s->n_torch = 1;
	t->version = fa_solve_keep_text(s, fa_version_public(torch));
	t->minor = fa_solve_keep_text(s, fa_version_head(torch, 2));
	t->word = installed_build(s, torch);
	t->kept = true;
	t->release = is_release(torch);
	t->row = t->release ? fa_kb_torch(s->kb, t->version) : NULL;
	t->build = label && is_build_label(label + 1) ? build_of(t->row, t->word) : NULL;
	t->cuda = cuda && *cuda ? fa_solve_keep_text(s, fa_version_head(cuda, 2)) : cuda_of_build(s, t->word);
	t->cuda_row = t->cuda ? fa_kb_cuda(s->kb, t->cuda) : NULL;
	t->major = t->cuda ? fa_solve_keep_text(s, fa_version_head(t->cuda, 1)) : NULL;
	t->rocm = t->word && !strncmp(t->word, "rocm", 4) ? t->word + 4 : NULL;
	t->vendor = t->cuda ? "nvidia" : t->rocm ? "amd" : t->word && !strcmp(t->word, "cpu") ? "none" : NULL;
	t->abi = installed_abi(s, t->row, t->build);
	t->codes = codes && *codes ? codes : codes_for(s, t->build);
	t->cxx = headers_of(s, t->version);
	t->pythons = t->row ? t->row->pythons : NULL;
	t->platforms = t->build ? t->build->platforms : NULL;
}

/* ---- those that could be */

static struct fa_torch_option option_of(const struct fa_solve *s, const struct fa_kb_offer *o, bool linux)
{
	const struct fa_kb_build *b = o->build;

	return (struct fa_torch_option){
		.row = o->row,
		.build = b,
		.version = o->row->version,
		.minor = o->row->minor,
		.word = b->build,
		.vendor = b->vendor,
		.cuda = b->cuda,
		.cuda_row = b->cuda_row,
		.major = b->major,
		.rocm = b->rocm,
		.abi = !linux ? NULL : b->abi,
		.codes = codes_for(s, b),
		.glibc = b->glibc,
		.cxx = o->row->cxx,
		.pythons = o->row->pythons,
		.platforms = b->platforms,
		.release = true,
		.pypi = o->pypi,
		.fits = -1,
	};
}

static bool asked_torch(const struct fa_solve *s, const char *version, const char *word)
{
	const char *wish = fa_solve_wished(s, FA_WISH_TORCH), *label = wish ? strchr(wish, '+') : NULL;
	char *public;
	bool fits;

	if (!wish)
		return true;
	public = fa_version_public(wish);
	fits = fa_version_matches(version, public) && (!label || (word && !strcmp(word, label + 1)));
	free(public);
	return fits;
}

static bool asked_cuda(const struct fa_solve *s, const char *cuda)
{
	const char *wish = fa_solve_wished(s, FA_WISH_CUDA);
	char *head = wish ? fa_version_head(wish, 2) : NULL;
	bool fits = !wish || (cuda && !strcmp(cuda, head));

	free(head);
	return fits;
}

static bool asked_python(const struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_PYTHON), *fact = s->v[FA_NAME_FACT_PYTHON],
	           *abi = s->v[FA_NAME_FACT_PYTHON_ABI];
	bool free_threaded = abi && *abi && abi[strlen(abi) - 1] == 't', wants;
	char *head, *number;
	bool same;

	if (!wish || !fact || !*fact)
		return true;
	wants = wish[strlen(wish) - 1] == 't';
	head = fa_version_head(fact, 2);
	number = fa_version_head(wish, 2);
	same = !strcmp(head, number) && wants == free_threaded;
	free(head);
	free(number);
	return same;
}

static bool is_kept(const struct fa_solve *s, const char *torch)
{
	char *public;
	bool kept;

	if (!torch || !*torch || s->free_torch || !asked_python(s))
		return false;
	public = fa_version_public(torch);
	kept = asked_torch(s, public, installed_build((struct fa_solve *)s, torch));
	free(public);
	return kept || fa_solve_wished(s, FA_WISH_KEEP_TORCH) != NULL;
}

/* Of the builds that could be, the version that was there comes first: the least that changes. */
static void prefer_version(struct fa_solve *s, const char *torch)
{
	size_t at = 0;

	for (size_t i = 0; torch && *torch && i < s->n_torch; i++) {
		struct fa_torch_option t = s->torch[i];

		if (fa_version_compare(t.version, torch) != 0)
			continue;
		memmove(&s->torch[at + 1], &s->torch[at], (i - at) * sizeof(t));
		s->torch[at++] = t;
	}
}

/* Would it fit if some of the cards were enough and all that can be mended were? */
static bool could_fit(struct fa_solve *s, const struct fa_torch_option *t)
{
	struct fa_refusals *refusals = s->refusals;
	bool any = s->any_card, quiet = s->quiet, could;
	struct fa_repairs mended = { .n = 0 };

	s->refusals = NULL;
	s->repairs = &mended;
	s->any_card = s->quiet = true;
	could = fa_solve_torch_fits(s, t) == FA_FIT_YES;
	s->refusals = refusals;
	s->repairs = NULL;
	s->any_card = any;
	s->quiet = quiet;
	return could;
}

/* Those that no change of the machine would make fit are refused once and left out. */
static void take_all(struct fa_solve *s)
{
	const char *os = s->v[FA_NAME_FACT_OS], *machine = s->v[FA_NAME_FACT_MACHINE];
	bool aarch64 = machine && !strcmp(machine, "aarch64"), linux = !os || !strcmp(os, "linux");
	bool strict = s->ready && s->n_cards < 2;
	enum fa_kb_buyer buyer = !linux ? FA_BUYER_OTHER : aarch64 ? FA_BUYER_LINUX_AARCH64 : FA_BUYER_LINUX;
	const struct fa_kb_offer *offers = fa_kb_offers(s->kb, buyer);
	struct fa_torch_option *all = fa_realloc(NULL, s->kb->n_offers, sizeof(*all));
	struct fa_refusals refusals;

	s->torch = fa_realloc(s->torch, s->kb->n_offers + 2, sizeof(*s->torch));
	refusals.on = FA_ON_TORCH;
	refusals.n = refusals.last = 0;
	s->refusals = &refusals;
	for (size_t i = 0; i < s->kb->n_offers; i++) {
		enum fa_fit fit;

		all[i] = option_of(s, &offers[i], linux);
		fit = fa_solve_torch_fits(s, &all[i]);
		all[i].fits = fit == FA_FIT_YES;
		if (fit == FA_FIT_YES || (fit == FA_FIT_NO && !strict && could_fit(s, &all[i])))
			s->torch[s->n_torch++] = all[i];
	}
	s->refusals = NULL;
	free(all);
}

/* Rules that the installed torch breaks: what can be mended is remembered, what is mended by another torch makes the list free. */
static bool must_be_replaced(struct fa_solve *s)
{
	struct fa_repairs mended = { .n = 0 };
	bool replace = false;

	s->repairs = &mended;
	fa_solve_torch_fits(s, &s->torch[0]);
	s->repairs = NULL;
	for (size_t i = 0; i < mended.n; i++)
		replace = replace || mended.v[i].rule->replace;
	for (size_t i = 0; i < mended.n; i++)
		if (s->first.n < REPAIRS_MAX && mended.v[i].rule->replace == replace)
			s->first.v[s->first.n++] = mended.v[i];
	return replace;
}

/* Builds of the torch that was asked for without its label; NULL: there is no such torch. */
static char *builds_asked_for(const struct fa_solve *s, const char *version)
{
	struct fa_strv words = FA_STRV_INIT;
	char *joined;

	for (size_t i = 0; i < s->kb->n_torch; i++) {
		const struct fa_kb_torch *t = &s->kb->torch[i];

		for (size_t b = 0; fa_version_matches(t->version, version) && b < t->n_builds; b++)
			if (!fa_strv_has(&words, t->builds[b].build))
				fa_strv_push(&words, t->builds[b].build);
	}
	joined = words.n ? fa_strv_join(&words, ", ") : NULL;
	fa_strv_release(&words);
	return joined;
}

bool fa_solve_unknown_torch(struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_TORCH);
	char *version, *builds, *needed;
	struct fa_verdict why;

	if (!wish || !s->kb->n_torch || is_kept(s, s->v[FA_NAME_FACT_TORCH]))
		return false;
	for (size_t i = 0; i < s->kb->n_torch; i++)
		for (size_t b = 0; b < s->kb->torch[i].n_builds; b++)
			if (asked_torch(s, s->kb->torch[i].version, s->kb->torch[i].builds[b].build))
				return false;
	version = fa_version_public(wish);
	builds = builds_asked_for(s, version);
	needed = builds ? builds : fa_strf("%s to %s", s->kb->torch[s->kb->n_torch - 1].version, s->kb->torch[0].version);
	why = fa_solve_why(needed, builds ? strchr(wish, '+') + 1 : wish);
	fa_solve_refuse(s, "torch", fa_solve_keep_text(s, fa_strf("torch %s", wish)), NULL, "asked_torch", &why);
	free(needed);
	free(version);
	return true;
}

/* Has the installed torch code for some of several unlike cards, and nothing else against it? Then only one that serves them all
 * is better. */
static bool serves_some(struct fa_solve *s)
{
	bool quiet = s->quiet, some;

	if (s->n_cards < 2)
		return false;
	s->any_card = s->quiet = true;
	some = fa_solve_torch_fits(s, &s->torch[0]) == FA_FIT_YES;
	s->any_card = false;
	s->quiet = quiet;
	return some;
}

void fa_solve_torch_options(struct fa_solve *s)
{
	const char *torch = s->v[FA_NAME_FACT_TORCH];
	struct fa_torch_option installed;
	bool some;

	s->kept = is_kept(s, torch);
	if (!s->kept) {
		take_all(s);
		return;
	}
	take_installed(s, torch);
	installed = s->torch[0];
	some = serves_some(s);
	if (!must_be_replaced(s))
		return;
	if (fa_solve_wished(s, FA_WISH_ENV))
		s->first.n = 0; /* a new environment: nothing there has to change first */
	s->n_torch = 0;
	s->kept = false;
	take_all(s);
	prefer_version(s, torch);
	if (!some)
		return;
	memmove(&s->torch[1], &s->torch[0], s->n_torch++ * sizeof(*s->torch));
	s->torch[0] = installed;
	s->torch[0].for_some = true;
}

static void refuse(struct fa_solve *s, const struct fa_torch_option *t, const char *rule, const struct fa_verdict *why)
{
	char *name = NULL;

	if (s->quiet)
		return;
	if (!fa_solve_named_enough(s, "torch", FA_SUBJECT_TORCH, rule, why->found, FA_NAMES_KEPT))
		name = fa_solve_torch_name(t);
	fa_solve_refuse(s, "torch", FA_SUBJECT_TORCH, name, rule, why);
	free(name);
}

/* "torch-2.8.0+cu128-cp312-…" or "torch-2.8.0-cp312-…" among the files at hand. */
static bool is_cached(const struct fa_solve *s, const struct fa_torch_option *t)
{
	const struct fa_strv *cached = &s->facts->v[FA_FACT_CACHED].list;
	const char *tag = s->v[FA_NAME_PYTHON_TAG];
	char *with, *without, *python;
	bool found = false;

	if (!cached->n)
		return false;
	with = fa_strf("torch-%s+%s-", t->version, t->word);
	without = fa_strf("torch-%s-", t->version);
	python = fa_strf("-cp%s-", tag ? tag : "");
	for (size_t i = 0; i < cached->n && !found; i++) {
		bool named = !strncmp(cached->v[i], with, strlen(with)) ||
		             (t->pypi && !strncmp(cached->v[i], without, strlen(without)));

		found = named && (!tag || strstr(cached->v[i], python));
	}
	free(with);
	free(without);
	free(python);
	return found;
}

/* The torch is what the wish asks for; else the rule that says no. */
static const char *not_asked(struct fa_solve *s, const struct fa_torch_option *t, struct fa_verdict *why)
{
	if (!asked_torch(s, t->version, t->word)) {
		*why = fa_solve_why(fa_solve_wished(s, FA_WISH_TORCH), "");
		return "asked_torch";
	}
	if (!asked_cuda(s, t->cuda)) {
		*why = fa_solve_why(fa_solve_wished(s, FA_WISH_CUDA), t->cuda ? t->cuda : "none");
		return "asked_cuda";
	}
	if (fa_solve_wished(s, FA_WISH_OFFLINE) && !t->kept && !is_cached(s, t)) {
		*why = fa_solve_why("at hand", "not at hand");
		return "offline_torch";
	}
	return NULL;
}

enum fa_fit fa_solve_torch_fits(struct fa_solve *s, const struct fa_torch_option *t)
{
	static const enum fa_rule_on CARD[] = { FA_ON_TORCH_CARD };
	const struct fa_refused *before = s->refusals ? fa_solve_refused_before(s->refusals, t) : NULL;
	const struct fa_kb_rule *r;
	const char *rule;
	struct fa_verdict why;

	if (before) {
		refuse(s, t, before->rule->id, &before->why);
		return FA_FIT_NEVER;
	}
	if (s->quiet && not_asked(s, t, &why))
		return FA_FIT_NEVER;
	fa_solve_set_card(s, NULL);
	fa_solve_set_torch(s, t);
	r = fa_solve_broken(s, FA_ON_TORCH, &why);
	if (r) {
		refuse(s, t, r->id, &why);
		if (fa_solve_can_mend(s, r))
			return FA_FIT_NO;
		if (s->refusals)
			fa_solve_remember(s, s->refusals, t, r, &why);
		return FA_FIT_NEVER;
	}
	r = s->n_cards ? fa_solve_broken_cards(s, CARD, 1, &why) : NULL;
	if (r) {
		refuse(s, t, r->id, &why);
		return s->n_cards > 1 || fa_solve_can_mend(s, r) ? FA_FIT_NO : FA_FIT_NEVER;
	}
	rule = s->quiet ? NULL : not_asked(s, t, &why);
	if (rule)
		refuse(s, t, rule, &why);
	return rule ? FA_FIT_NEVER : FA_FIT_YES;
}
