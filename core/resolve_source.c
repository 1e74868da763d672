/* Building from source: which release, which toolkit; and the two back ends for AMD. */
#include "buf.h"
#include "json.h"
#include "policy.h"
#include "resolve.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static const char *yes(bool b)
{
	return b ? "yes" : "no";
}

/* Upstream's archives hold their submodules, but composable_kernel only from one release on. */
bool fa_solve_archive_holds(const struct fa_solve *s, const char *submodule, const char *version)
{
	const char *since = fa_json_string(fa_json_at(fa_json_get(s->kb->submodules, submodule), 2));

	return !since || fa_version_compare(version, since) >= 0;
}

static bool sdist_cached(const struct fa_solve *s, const char *version)
{
	const struct fa_strv *cached = &s->facts->v[FA_FACT_CACHED].list;
	char *a, *b, *c;
	bool there;

	if (!cached->n)
		return false;
	a = fa_strf("flash_attn-%s.tar.gz", version);
	b = fa_strf("flash-attn-%s.tar.gz", version);
	c = fa_strf("flash_attn-%s.zip", version);
	there = fa_strv_has(cached, a) || fa_strv_has(cached, b) || fa_strv_has(cached, c);
	free(a);
	free(b);
	free(c);
	return there;
}

/* What a release without a list of architectures compiles with that nvcc. */
static const char *fixed_codes(const struct fa_kb_release *r, const char *nvcc)
{
	const char *codes = NULL;

	if (!r->profile || r->profile->archs_read)
		return NULL;
	fa_json_each (row, r->profile->gencode) {
		const char *least = fa_json_string(fa_json_at(row, 0));

		if (least && fa_version_compare(least, nvcc) <= 0)
			codes = fa_json_string(fa_json_at(row, 1));
	}
	return codes ? codes : "";
}

static const struct fa_kb_rule *toolkit_breaks(struct fa_solve *s, const struct fa_kb_release *r,
                                               const struct fa_toolkit_option *t, struct fa_verdict *why)
{
	static const enum fa_rule_on CARD[] = { FA_ON_TOOLKIT_CARD };
	const struct fa_kb_rule *broken;

	fa_solve_set_card(s, NULL);
	fa_solve_set_toolkit(s, t);
	s->v[FA_NAME_FILE_CODES] = fixed_codes(r, t->version);
	broken = fa_solve_broken(s, FA_ON_TOOLKIT, why);
	return broken || !s->n_cards ? broken : fa_solve_broken_cards(s, CARD, 1, why);
}

static void refuse(struct fa_solve *s, const char *kind, const char *subject, const char *name, const struct fa_kb_rule *r,
                   const struct fa_verdict *why)
{
	fa_solve_refuse(s, kind, subject, name, r->id, why);
}

/* An installed toolkit; CUDA of torch's minor is the best, then of its major. */
static int nearness(const struct fa_torch_option *t, const char *version)
{
	char *minor = fa_version_head(version, 2), *major = fa_version_head(version, 1);
	int near = (says(t->cuda, minor) ? 2 : 0) + (says(t->major, major) ? 1 : 0);

	free(minor);
	free(major);
	return near;
}

static bool installed_toolkit(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r,
                              struct fa_toolkit_option *out)
{
	struct fa_verdict why;
	int best = -1;

	for (size_t i = 0; i < s->facts->n_toolkits; i++) {
		const struct fa_toolkit *k = &s->facts->toolkits[i];
		struct fa_toolkit_option option = { .version = k->version, .home = k->home };
		const struct fa_kb_rule *broken;

		if (!says(k->kind, "cuda") || !k->version || nearness(t, k->version) <= best)
			continue;
		option.row = fa_kb_cuda(s->kb, k->version);
		broken = toolkit_breaks(s, r, &option, &why);
		if (broken) {
			refuse(s, "toolkit", "nvcc", k->version, broken, &why);
			continue;
		}
		best = nearness(t, k->version);
		*out = option;
	}
	return best >= 0;
}

/* A toolkit from wheels: torch's own minor, else the newest that passes. */
static bool brought_toolkit(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r,
                            struct fa_toolkit_option *out)
{
	struct fa_verdict why;
	bool found = false;

	if (fa_solve_wished(s, FA_WISH_OFFLINE))
		return false;
	for (size_t i = 0; i < s->kb->n_cuda; i++) {
		const struct fa_kb_cuda *c = &s->kb->cuda[i];
		struct fa_toolkit_option option = { .version = c->cuda, .row = c, .pip = true };

		if (!c->pip || !says(c->major, t->major) || (found && !says(c->cuda, t->cuda)))
			continue;
		if (toolkit_breaks(s, r, &option, &why))
			continue;
		*out = option;
		found = true;
	}
	return found;
}

/* No toolkit passes: what would have to change on the one that comes nearest. */
static bool mend_toolkit(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r,
                         struct fa_toolkit_option *out, struct fa_repairs *repairs)
{
	static const struct fa_kb_rule MISSING = { .id = "toolkit", .action = "toolkit_missing" };
	const struct fa_toolkit *near = NULL;
	struct fa_verdict why = fa_solve_why("nvcc", "none");

	for (size_t i = 0; i < s->facts->n_toolkits; i++)
		if (says(s->facts->toolkits[i].kind, "cuda") && s->facts->toolkits[i].version &&
		    (!near || nearness(t, s->facts->toolkits[i].version) > nearness(t, near->version)))
			near = &s->facts->toolkits[i];
	*out = (struct fa_toolkit_option){ 0 };
	if (near) {
		*out = (struct fa_toolkit_option){ near->version, near->home, fa_kb_cuda(s->kb, near->version), false };
		s->repairs = repairs;
		return !toolkit_breaks(s, r, out, &why);
	}
	if (repairs->n < REPAIRS_MAX)
		repairs->v[repairs->n++] = (struct fa_repair){ &MISSING, why };
	return true;
}

static bool find_toolkit(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r,
                         struct fa_toolkit_option *out)
{
	struct fa_repairs *repairs = s->repairs;
	bool good;

	s->repairs = NULL;
	good = installed_toolkit(s, t, r, out) || brought_toolkit(s, t, r, out);
	if (!good && repairs)
		good = mend_toolkit(s, t, r, out, repairs);
	s->repairs = repairs;
	fa_solve_set_toolkit(s, good && out->version ? out : NULL);
	return good;
}

/* Where the source itself comes from: the archive of the index, upstream's repository, or the one that was named. */
static void set_origin(struct fa_solve *s, const struct fa_kb_release *r)
{
	const char *wish = fa_solve_wished(s, FA_WISH_SOURCE);

	s->v[FA_NAME_SDIST_CACHED] = yes(fa_solve_source_is_folder(s) || (r->published && sdist_cached(s, r->version)));

	if (fa_solve_clones(s)) {
		s->v[FA_NAME_SOURCE] = fa_solve_keep_text(s, fa_policy_word(wish));
		s->v[FA_NAME_TRUST] = "named";
	} else {
		s->v[FA_NAME_SOURCE] = r->published ? "pypi" : "official";
		s->v[FA_NAME_TRUST] = r->published ? "index" : "upstream";
	}
}

static const char *subject_of(const char *line)
{
	return says(line, "fa3") ? FA_SUBJECT_SOURCE_FA3 : FA_SUBJECT_SOURCE;
}

static bool build_release(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r)
{
	struct fa_toolkit_option toolkit = { 0 };
	const struct fa_kb_rule *broken;
	struct fa_verdict why;

	fa_solve_set_toolkit(s, NULL);
	set_origin(s, r);
	broken = fa_solve_release_fits(s, r->line, r->version, r, &why);
	if (!broken)
		broken = fa_solve_broken(s, FA_ON_SOURCE, &why);
	if (broken) {
		refuse(s, "source", subject_of(r->line), r->version, broken, &why);
		return false;
	}
	if (!find_toolkit(s, t, r, &toolkit)) {
		why = fa_solve_why(t->cuda ? t->cuda : "CUDA", "none fits");
		fa_solve_refuse(s, "source", subject_of(r->line), r->version, "toolkit", &why);
		return false;
	}
	broken = fa_solve_broken(s, FA_ON_SOURCE, &why); /* once more: some rules speak of the toolkit */
	if (broken) {
		refuse(s, "source", subject_of(r->line), r->version, broken, &why);
		return false;
	}
	s->found = (struct fa_found){
		.any = true, .class = FA_CLASS_SOURCE, .line = r->line, .torch = t, .release = r, .toolkit = toolkit
	};
	s->found.version = r->version;
	return true;
}

enum { NEWEST_TRIED = 4 }; /* beside a torch that can be chosen, an old release is no answer */

/* The release asked for exactly comes before its posts, else the newest; faulty ones that gave way are not offered unasked (FA3 is not
 * published at all). */
static bool each_release(struct fa_solve *s, const struct fa_torch_option *t, const char *line,
                         bool (*try)(struct fa_solve *, const struct fa_torch_option *, const struct fa_kb_release *))
{
	bool asked = fa_solve_wished(s, FA_WISH_FLASH_ATTN) != NULL;
	int left = t->kept || asked ? 10000 : NEWEST_TRIED;

	for (int exact = asked; exact >= 0; exact--)
		for (size_t i = 0; i < s->kb->n_releases; i++) {
			const struct fa_kb_release *r = &s->kb->releases[i];

			if (strcmp(r->line, line) != 0 || fa_solve_exactness(s, r->version) != exact ||
			    !fa_solve_asked_version(s, r->version))
				continue;
			if (says(line, "fa2") && !r->published && !asked)
				continue;
			if (try(s, t, r))
				return true;
			if (--left == 0)
				return false;
		}
	return false;
}

bool fa_solve_source(struct fa_solve *s, const struct fa_torch_option *t, const char *line)
{
	if (!says(t->vendor, "nvidia")) {
		struct fa_verdict why = fa_solve_why("nvidia", t->vendor);

		fa_solve_refuse(s, "source", subject_of(line), NULL, "torch_vendor", &why);
		return false;
	}
	s->v[FA_NAME_LINE] = line;
	s->peak = s->peak && s->peak_line == line ? s->peak : fa_solve_peak(s);
	s->peak_line = line;
	s->v[FA_NAME_MEMORY_NEEDED] = fa_solve_keep_text(s, fa_strf("%d", s->peak));
	fa_solve_set_file(s, NULL);
	s->v[FA_NAME_ROUTE] = "source";
	return each_release(s, t, line, build_release);
}

/* ---- AMD */

static void set_rocm_toolkit(struct fa_solve *s)
{
	fa_solve_set_toolkit(s, NULL);
	for (size_t i = 0; i < s->facts->n_toolkits; i++)
		if (says(s->facts->toolkits[i].kind, "rocm"))
			s->v[FA_NAME_TOOLKIT] = fa_solve_keep(s, s->facts->toolkits[i].version);
}

static const struct fa_kb_rule *amd_breaks(struct fa_solve *s, bool ck, struct fa_verdict *why)
{
	static const enum fa_rule_on CK_CARD[] = { FA_ON_CK_CARD }, TRITON_CARD[] = { FA_ON_TRITON_CARD };
	const struct fa_kb_rule *broken = fa_solve_broken(s, FA_ON_AMD, why);

	if (!broken && s->n_cards)
		broken = fa_solve_broken_cards(s, ck ? CK_CARD : TRITON_CARD, 1, why);
	if (!broken)
		broken = fa_solve_broken(s, ck ? FA_ON_CK : FA_ON_TRITON, why);
	return broken;
}

static bool amd_release(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r, bool ck)
{
	const struct fa_kb_rule *broken;
	struct fa_verdict why;

	set_origin(s, r);
	if (ck && !fa_solve_source_is_folder(s) && !fa_solve_archive_holds(s, "composable_kernel", r->version))
		s->v[FA_NAME_SDIST_CACHED] = yes(false);
	broken = fa_solve_release_fits(s, "fa2", r->version, r, &why);
	if (!broken)
		broken = amd_breaks(s, ck, &why);
	if (broken) {
		refuse(s, ck ? "ck" : "triton", ck ? FA_SUBJECT_CK : FA_SUBJECT_TRITON, r->version, broken, &why);
		return false;
	}
	s->found = (struct fa_found){ .any = true, .line = "fa2", .torch = t, .release = r, .version = r->version };
	s->found.class = ck ? FA_CLASS_CK : FA_CLASS_TRITON;
	return true;
}

static bool ck_release(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r)
{
	return amd_release(s, t, r, true);
}

static bool triton_release(struct fa_solve *s, const struct fa_torch_option *t, const struct fa_kb_release *r)
{
	return amd_release(s, t, r, false);
}

bool fa_solve_amd(struct fa_solve *s, const struct fa_torch_option *t, enum fa_class class)
{
	if (!says(t->vendor, "amd") && !t->kept)
		return false;
	fa_solve_set_file(s, NULL);
	set_rocm_toolkit(s);
	if (class == FA_CLASS_CK)
		s->v[FA_NAME_MEMORY_NEEDED] = fa_solve_keep_text(s, fa_strf("%d", fa_solve_ck_peak(s)));
	s->v[FA_NAME_ROUTE] = class == FA_CLASS_CK ? "ck" : "triton";
	return each_release(s, t, "fa2", class == FA_CLASS_CK ? ck_release : triton_release);
}
