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

static struct fa_torch_option *add_option(struct fa_solve *s)
{
	if ((s->n_torch & (s->n_torch - 1)) == 0)
		s->torch = fa_realloc(s->torch, s->n_torch ? 2 * s->n_torch : 1, sizeof(*s->torch));
	s->torch[s->n_torch] = (struct fa_torch_option){ .fits = -1 };
	return &s->torch[s->n_torch++];
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
	struct fa_torch_option *t = add_option(s);
	const char *codes = s->v[FA_NAME_FACT_TORCH_ARCHS], *label = strchr(torch, '+'), *cuda = s->v[FA_NAME_FACT_TORCH_CUDA];

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
}

/* ---- those that could be */

static void take_build(struct fa_solve *s, const struct fa_kb_torch *row, const struct fa_kb_build *b)
{
	struct fa_torch_option *t = add_option(s);
	const char *os = s->v[FA_NAME_FACT_OS], *machine = s->v[FA_NAME_FACT_MACHINE];
	bool aarch64 = machine && !strcmp(machine, "aarch64"), linux = !os || !strcmp(os, "linux");

	t->row = row;
	t->build = b;
	t->version = row->version;
	t->minor = row->minor;
	t->word = b->build;
	t->vendor = b->vendor;
	t->cuda = b->cuda;
	t->cuda_row = b->cuda_row;
	t->major = b->major;
	t->rocm = b->rocm;
	t->abi = !linux ? NULL : b->abi;
	t->codes = codes_for(s, b);
	t->glibc = b->glibc;
	t->cxx = row->cxx;
	t->release = true;
	t->pypi = linux ? aarch64 ? b->pypi_aarch64 : b->pypi : !strcmp(b->build, "cpu");
}

/* Newest torch first; of one torch what the package index has, then the newest CUDA. */
static int by_preference(const void *a, const void *b)
{
	const struct fa_torch_option *x = a, *y = b;
	int c = fa_version_compare(y->version, x->version);

	if (!c)
		c = (int)y->pypi - (int)x->pypi;
	if (!c)
		c = fa_version_compare(y->cuda ? y->cuda : "0", x->cuda ? x->cuda : "0");
	if (!c)
		c = fa_version_compare(y->rocm ? y->rocm : "0", x->rocm ? x->rocm : "0");
	return c ? c : strcmp(x->word, y->word);
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

/* Those that no change of the machine would make fit are refused once and left out. */
static void leave_out(struct fa_solve *s)
{
	bool any = s->any_card, quiet = s->quiet;
	size_t n = 0;

	for (size_t i = 0; i < s->n_torch; i++) {
		struct fa_repairs mended = { .n = 0 };
		bool could = true;

		s->torch[i].fits = fa_solve_torch_fits(s, &s->torch[i]);
		if (!s->torch[i].fits) {
			s->repairs = &mended;
			s->any_card = s->quiet = true;
			could = fa_solve_torch_fits(s, &s->torch[i]);
			s->repairs = NULL;
			s->any_card = any;
			s->quiet = quiet;
		}
		if (could)
			s->torch[n++] = s->torch[i];
	}
	s->n_torch = n;
}

static void take_all(struct fa_solve *s)
{
	for (size_t i = 0; i < s->kb->n_torch; i++)
		for (size_t b = 0; b < s->kb->torch[i].n_builds; b++)
			take_build(s, &s->kb->torch[i], &s->kb->torch[i].builds[b]);
	if (s->n_torch)
		qsort(s->torch, s->n_torch, sizeof(*s->torch), by_preference);
	leave_out(s);
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

void fa_solve_torch_options(struct fa_solve *s)
{
	const char *torch = s->v[FA_NAME_FACT_TORCH];

	s->kept = is_kept(s, torch);
	if (!s->kept) {
		take_all(s);
		return;
	}
	take_installed(s, torch);
	if (!must_be_replaced(s))
		return;
	if (fa_solve_wished(s, FA_WISH_ENV))
		s->first.n = 0; /* a new environment: nothing there has to change first */
	s->n_torch = 0;
	s->kept = false;
	take_all(s);
	prefer_version(s, torch);
}

static bool refuse(struct fa_solve *s, const struct fa_torch_option *t, const char *rule, const char *needed, const char *found)
{
	char *name;

	if (s->quiet)
		return false;
	name = fa_solve_torch_name(t);
	fa_solve_refuse(s, "torch", "torch", name, rule, needed, found);
	free(name);
	return false;
}

/* "torch-2.8.0+cu128-cp312-…" or "torch-2.8.0-cp312-…" among the files at hand. */
static bool is_cached(const struct fa_solve *s, const struct fa_torch_option *t)
{
	const struct fa_strv *cached = &s->facts->v[FA_FACT_CACHED].list;
	const char *tag = s->v[FA_NAME_PYTHON_TAG];
	char *with = fa_strf("torch-%s+%s-", t->version, t->word), *without = fa_strf("torch-%s-", t->version);
	char *python = fa_strf("-cp%s-", tag ? tag : "");
	bool found = false;

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

bool fa_solve_torch_fits(struct fa_solve *s, const struct fa_torch_option *t)
{
	static const enum fa_rule_on CARD[] = { FA_ON_TORCH_CARD };
	const struct fa_kb_rule *r;
	struct fa_verdict why;

	fa_solve_set_card(s, NULL);
	fa_solve_set_torch(s, t);
	r = fa_solve_broken(s, FA_ON_TORCH, &why);
	if (!r && s->n_cards)
		r = fa_solve_broken_cards(s, CARD, 1, &why);
	if (r)
		return refuse(s, t, r->id, why.needed, why.found);
	if (!asked_torch(s, t->version, t->word))
		return refuse(s, t, "asked_torch", fa_solve_wished(s, FA_WISH_TORCH), "");
	if (!asked_cuda(s, t->cuda))
		return refuse(s, t, "asked_cuda", fa_solve_wished(s, FA_WISH_CUDA), t->cuda ? t->cuda : "none");
	if (fa_solve_wished(s, FA_WISH_OFFLINE) && !t->kept && !is_cached(s, t))
		return refuse(s, t, "offline_torch", "at hand", "not at hand");
	return true;
}
