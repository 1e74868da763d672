/* The values that rules see: the machine, then the torch, release, file, toolkit and card in hand. */
#include "buf.h"
#include "json.h"
#include "resolve.h"
#include "version.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define V(name) s->v[FA_NAME_##name]

const char *fa_solve_keep(struct fa_solve *s, const char *text)
{
	return fa_texts_keep(&s->kb->texts, text);
}

const char *fa_solve_keep_text(struct fa_solve *s, char *text)
{
	return fa_texts_take(&s->kb->texts, text);
}

const char *fa_solve_wished(const struct fa_solve *s, enum fa_wish_id id)
{
	return fa_wish_get(s->wish, id);
}

const char *fa_solve_env(const struct fa_solve *s, const char *name)
{
	for (size_t i = 0; i < s->facts->n_env; i++)
		if (!strcmp(s->facts->env[i].name, name))
			return s->facts->env[i].value;
	return NULL;
}

static const char *yes(bool b)
{
	return b ? "yes" : "no";
}

static const char *fact_text(struct fa_solve *s, enum fa_fact id)
{
	const struct fa_fact_value *f = &s->facts->v[id];

	if (!f->known)
		return NULL;
	switch (fa_fact_type(id)) {
	case FA_FACT_TEXT: return fa_solve_keep(s, f->text);
	case FA_FACT_BOOL: return yes(f->number != 0);
	case FA_FACT_NUMBER: return fa_solve_keep_text(s, fa_strf("%lld", (long long)f->number));
	case FA_FACT_LIST: return fa_solve_keep_text(s, fa_strv_join(&f->list, " "));
	}
	return NULL;
}

/* "3.12.3" and "cp312" -> 3.12, 312; "cp314t" -> 314t. A wish for another Python wins. */
static void set_python(struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_PYTHON), *fact = V(FACT_PYTHON), *abi = V(FACT_PYTHON_ABI), *from;
	bool free_threaded;
	const char *minor, *dot;

	from = wish ? wish : fact && *fact ? fact : NULL;
	if (!from)
		return;
	minor = fa_solve_keep_text(s, fa_version_head(from, 2));
	free_threaded = wish ? wish[strlen(wish) - 1] == 't' : abi && *abi && abi[strlen(abi) - 1] == 't';
	dot = strchr(minor, '.');
	V(PYTHON_MINOR) = minor;
	V(FREE_THREADED) = yes(free_threaded);
	if (dot)
		V(PYTHON_TAG) = fa_solve_keep_text(s, fa_strf("%.*s%s%s", (int)(dot - minor), minor, dot + 1,
		                                              free_threaded ? "t" : ""));
}

/* "g++ 12.2.0" -> gcc, 12.2.0. */
static void set_compiler(struct fa_solve *s)
{
	const char *cxx = V(FACT_CXX), *os = V(FACT_OS), *version;

	if (os && !strcmp(os, "windows")) {
		if (!V(FACT_MSVC) || !*V(FACT_MSVC))
			return;
		V(COMPILER) = "msvc";
		V(COMPILER_VERSION) = V(COMPILER_MAJOR) = V(FACT_MSVC);
		return;
	}
	cxx = cxx && *cxx ? cxx : V(FACT_CC) && *V(FACT_CC) ? V(FACT_CC) : cxx;
	if (!cxx)
		return;
	V(COMPILER) = !*cxx                                           ? ""
	              : strstr(cxx, "clang")                          ? "clang"
	              : strstr(cxx, "g++") || !strncmp(cxx, "gcc", 3) ? "gcc"
	                                                              : "other";
	version = cxx + strcspn(cxx, " ");
	while (*version && !isdigit((unsigned char)*version))
		version++;
	if (!*version)
		return;
	V(COMPILER_VERSION) = fa_solve_keep_text(s, fa_strndup(version, strspn(version, "0123456789.")));
	V(COMPILER_MAJOR) = fa_solve_keep_text(s, fa_version_head(version, 1));
}

static const char *largest(struct fa_solve *s, const char *list)
{
	struct fa_strv words = FA_STRV_INIT;
	int most = 0;

	fa_strv_split(&words, list, ", ");
	for (size_t i = 0; i < words.n; i++)
		if (atoi(words.v[i]) > most)
			most = atoi(words.v[i]);
	fa_strv_release(&words);
	return fa_solve_keep_text(s, fa_strf("%d", most));
}

static void set_wish(struct fa_solve *s)
{
	const char *profile = fa_solve_wished(s, FA_WISH_PROFILE);

	if (profile)
		V(WANT_BACKWARD) = !strcmp(profile, "training") || !strcmp(profile, "full") ? "yes"
		                   : !strcmp(profile, "inference")                          ? "no"
		                                                                            : NULL;
	if (fa_solve_wished(s, FA_WISH_HEAD_DIM))
		V(WANT_HEAD_DIM) = largest(s, fa_solve_wished(s, FA_WISH_HEAD_DIM));
	V(WANT_PROFILE) = profile ? fa_solve_keep(s, profile)
	                  : fa_solve_wished(s, FA_WISH_DTYPE) || fa_solve_wished(s, FA_WISH_HEAD_DIM) ||
	                                  fa_solve_wished(s, FA_WISH_FEATURES)
	                          ? "custom"
	                          : "full";
	V(WANT_DTYPES) = fa_solve_keep(s, fa_solve_wished(s, FA_WISH_DTYPE));
	V(WANT_LINE) = fa_solve_keep(s, fa_solve_wished(s, FA_WISH_LINE));
	V(WANT_NEEDS) = fa_solve_keep(s, fa_solve_wished(s, FA_WISH_NEEDS));
	V(WANT_FEATURES) = fa_solve_keep(s, fa_solve_wished(s, FA_WISH_FEATURES));
	V(WANT_RELAX) = fa_solve_wished(s, FA_WISH_RELAX) ? fa_solve_keep(s, fa_solve_wished(s, FA_WISH_RELAX)) : "";
	V(WANT_OFFLINE) = yes(fa_solve_wished(s, FA_WISH_OFFLINE) != NULL);
}

static bool torch_cached(const struct fa_solve *s)
{
	const struct fa_strv *cached = &s->facts->v[FA_FACT_CACHED].list;

	for (size_t i = 0; i < cached->n; i++)
		if (!strncmp(cached->v[i], "torch-", 6) && isdigit((unsigned char)cached->v[i][6]))
			return true;
	return fa_facts_has(s->facts, FA_FACT_TORCH);
}

void fa_solve_host(struct fa_solve *s)
{
	for (int i = 0; i < FA_FACT_COUNT; i++)
		s->v[i] = fact_text(s, (enum fa_fact)i);
	if (V(FACT_OS) && V(FACT_MACHINE))
		V(PLATFORM) = fa_solve_keep_text(s, fa_strf("%s-%s", V(FACT_OS), V(FACT_MACHINE)));
	V(MEMORY) = V(FACT_RAM_AVAILABLE_MIB) ? V(FACT_RAM_AVAILABLE_MIB) : V(FACT_RAM_MIB);
	V(TORCH_CACHED) = yes(torch_cached(s));
	set_python(s);
	set_compiler(s);
	set_wish(s);
}

/* ---- rules that count for this question */

/* Names that stay the same as long as one question is asked (the vendor until cards are forgotten). */
static bool stays(int name)
{
	static const enum fa_name STAY[] = { FA_NAME_VENDOR,       FA_NAME_PYTHON_MINOR,     FA_NAME_PYTHON_TAG,
		                             FA_NAME_COMPILER,     FA_NAME_COMPILER_VERSION, FA_NAME_COMPILER_MAJOR,
		                             FA_NAME_WANT_DTYPES,  FA_NAME_WANT_HEAD_DIM,    FA_NAME_WANT_LINE,
		                             FA_NAME_WANT_NEEDS,   FA_NAME_WANT_FEATURES,    FA_NAME_WANT_PROFILE,
		                             FA_NAME_WANT_RELAX,   FA_NAME_WANT_OFFLINE,     FA_NAME_PLATFORM,
		                             FA_NAME_PLANNED,      FA_NAME_MEMORY,           FA_NAME_TORCH_CACHED,
		                             FA_NAME_FREE_THREADED };

	for (size_t i = 0; i < sizeof(STAY) / sizeof(STAY[0]); i++)
		if ((int)STAY[i] == name)
			return true;
	return name < FA_FACT_COUNT;
}

static bool term_stays(const struct fa_term *t)
{
	return stays(t->fact) && (t->other < 0 || stays(t->other));
}

/* Bit i: term i is about names that stay. */
static uint32_t staying_terms(const struct fa_rule *r)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < r->n && i < 32; i++)
		mask |= (uint32_t)term_stays(&r->terms[i]) << i;
	return mask;
}

static enum fa_truth test_staying(struct fa_solve *s, struct fa_rule *r, uint32_t staying)
{
	enum fa_truth all = FA_TRUE;

	for (; staying; staying &= staying - 1) {
		struct fa_rule one = { .terms = &r->terms[__builtin_ctz(staying)], .n = 1 };
		enum fa_truth truth = fa_rule_test_again(&one, s->v, s->kb->memo, NULL);

		if (truth == FA_FALSE)
			return FA_FALSE;
		all = truth == FA_UNKNOWN ? truth : all;
	}
	return all;
}

/* Can the rule be broken by anything that is tried on this machine with this wish? */
static bool counts(struct fa_solve *s, struct fa_kb_rule *r)
{
	bool whole = r->need.n < 32 && r->staying_need == (1u << r->need.n) - 1;

	return test_staying(s, &r->when, r->staying_when) == FA_TRUE &&
	       !(whole && test_staying(s, &r->need, r->staying_need) != FA_FALSE);
}

void fa_solve_choose_rules(struct fa_solve *s)
{
	for (int on = 0; on < FA_ON_COUNT; on++) {
		s->live[on] = 0;
		for (size_t i = 0; i < s->kb->n_rules[on] && i < 64; i++) {
			struct fa_kb_rule *r = &s->kb->rules[on][i];

			if (!r->staying_known) {
				r->staying_when = staying_terms(&r->when);
				r->staying_need = staying_terms(&r->need);
				r->staying_known = true;
			}
			s->live[on] |= (uint64_t)counts(s, r) << i;
		}
	}
}

static const char *driver_floor(const struct fa_solve *s, const struct fa_kb_cuda *c)
{
	return V(FACT_OS) && !strcmp(V(FACT_OS), "windows") ? c->driver_windows : c->driver;
}

/* A forward-compatibility package shows as a CUDA of the driver that is not below that of torch: nothing is asked of the number. */
static void set_driver_floor(struct fa_solve *s, const char *cuda, const struct fa_kb_cuda *c)
{
	const char *runs = V(FACT_DRIVER_CUDA);

	V(TORCH_DRIVER) = c ? driver_floor(s, c) : NULL;
	V(DRIVER_FLOOR) = runs && *runs && cuda && fa_version_compare(runs, cuda) >= 0 ? NULL : V(TORCH_DRIVER);
}

/* What rules see of the torch in hand: members of it, and what is worked out from the member that is named. Of those that could
 * be, none is kept and all are releases. */
static const struct fa_trait TORCH_TRAITS[] = {
#define MEMBER(name, member) \
	{ \
		FA_NAME_##name, offsetof(struct fa_torch_option, member), true \
	}
#define FROM(name, member) \
	{ \
		FA_NAME_##name, offsetof(struct fa_torch_option, member), false \
	}
	MEMBER(TORCH_VERSION, version), MEMBER(TORCH_MINOR, minor),     MEMBER(TORCH_BUILD, word),
	MEMBER(TORCH_VENDOR, vendor),   MEMBER(TORCH_X_CUDA, cuda),     MEMBER(TORCH_MAJOR, major),
	MEMBER(TORCH_ROCM, rocm),       MEMBER(TORCH_PYTHONS, pythons), MEMBER(TORCH_PLATFORMS, platforms),
	MEMBER(TORCH_CODES, codes),     MEMBER(TORCH_CXX, cxx),         MEMBER(TORCH_ABI, abi),
	FROM(TORCH_GLIBC, glibc),       FROM(TORCH_DRIVER, cuda),       FROM(DRIVER_FLOOR, cuda),
#undef MEMBER
#undef FROM
	{ FA_NAME_COUNT, 0, false },
};

static void set_members(struct fa_solve *s, const struct fa_trait *traits, const void *item)
{
	for (; traits->name != FA_NAME_COUNT; traits++)
		if (traits->member)
			s->v[traits->name] = *(const char *const *)(const void *)((const char *)item + traits->offset);
}

void fa_solve_set_torch(struct fa_solve *s, const struct fa_torch_option *t)
{
	set_members(s, TORCH_TRAITS, t);
	V(TORCH_RELEASE) = yes(t->release);
	V(TORCH_GLIBC) = V(FACT_OS) && !strcmp(V(FACT_OS), "linux") ? t->glibc : NULL;
	V(KEPT) = yes(t->kept);
	set_driver_floor(s, t->cuda, t->cuda_row);
}

void fa_solve_set_release(struct fa_solve *s, const char *line, const char *version, const struct fa_kb_release *r)
{
	const struct fa_kb_line *l = fa_kb_line(s->kb, line);
	const struct fa_kb_profile *p = r ? r->profile : NULL;

	V(LINE) = line;
	V(VERSION) = version;
	V(LINE_DTYPES) = l ? l->dtypes : NULL;
	V(LINE_SWITCHES) = l ? l->switches : NULL;
	V(LINE_HEAD_DIM) = l ? l->head_dim : NULL;
	V(LINE_FEATURES) = r && r->features ? r->features : l ? l->features : NULL;
	V(RELEASE_PYTHON) = r ? r->python : NULL;
	V(RELEASE_TORCH) = r ? r->torch : NULL;
	V(RELEASE_NVCC) = r ? r->nvcc : NULL;
	V(RELEASE_ROCM) = r ? r->rocm : NULL;
	V(RELEASE_CK) = r && r->ck ? r->ck : "";
	V(RELEASE_TRITON) = r ? yes(r->triton) : NULL;
	V(RELEASE_DIMS) = r ? r->head_dims : NULL;
	V(RELEASE_PUBLISHED) = r ? yes(r->published) : NULL;
	V(RELEASE_READS) = r ? r->reads : NULL;
	V(RELEASE_CXX) = p ? p->cxx : NULL;
	V(RELEASE_ARCHS_READ) = p ? yes(p->archs_read) : NULL;
	V(BACKWARD_LIMIT) = r ? r->backward : NULL;
}

static bool is_cached(struct fa_solve *s, const struct fa_kb_file *f)
{
	const struct fa_strv *at_hand = &s->facts->v[FA_FACT_CACHED].list;
	char *name = V(PYTHON_TAG) && at_hand->n ? fa_kb_file_name(s->kb, f, V(PYTHON_TAG)) : NULL;
	bool cached = name && fa_strv_has(at_hand, name);

	free(name);
	return cached;
}

/* Likewise of the file in hand; NEVER is never the same. */
static const struct fa_trait FILE_TRAITS[] = {
#define MEMBER(name, member) \
	{ \
		FA_NAME_##name, offsetof(struct fa_kb_file, member), true \
	}
#define NEVER(name) \
	{ \
		FA_NAME_##name, FA_TRAIT_NEVER, false \
	}
	MEMBER(PACKAGE, package),
	MEMBER(FILE_OS, os),
	MEMBER(FILE_MACHINE, machine),
	MEMBER(FILE_TORCH, torch),
	MEMBER(FILE_CUDA, cuda),
	MEMBER(FILE_MAJOR, major),
	MEMBER(FILE_PYTHONS, pythons),
	MEMBER(FILE_PYTHON_MIN, python_min),
	MEMBER(FILE_ABI, abi),
	MEMBER(FILE_GLIBC, glibc),
	MEMBER(FILE_CODES, codes),
	MEMBER(FILE_DRIVER, driver),
	MEMBER(FILE_DTYPES, dtypes),
	MEMBER(FILE_TORCH_MIN, torch_min),
	NEVER(FILE_NIGHTLY),
	NEVER(FILE_BACKWARD),
	NEVER(FILE_CACHED),
	NEVER(LINE_FEATURES),
#undef MEMBER
#undef NEVER
	{ FA_NAME_COUNT, 0, false },
};

void fa_solve_set_file(struct fa_solve *s, const struct fa_kb_file *f)
{
	static const struct fa_kb_file none;
	bool any = f != NULL;

	f = f ? f : &none;
	set_members(s, FILE_TRAITS, f);
	V(SOURCE) = f->source ? f->source->word : NULL;
	V(TRUST) = f->source ? f->source->trust : NULL;
	V(FILE_NIGHTLY) = any ? yes(f->nightly) : NULL;
	V(FILE_BACKWARD) = any ? yes(f->backward) : NULL;
	V(FILE_CACHED) = any && fa_solve_wished(s, FA_WISH_OFFLINE) ? yes(is_cached(s, f)) : NULL;
	if (any && f->features)
		V(LINE_FEATURES) = f->features;
}

/* ---- refused for the same reason as one before */

static const struct fa_trait *traits_of(enum fa_rule_on on)
{
	return on == FA_ON_TORCH ? TORCH_TRAITS : FILE_TRAITS;
}

static uint32_t traits_in(const struct fa_trait *traits, const struct fa_rule *r)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; traits[k].name != FA_NAME_COUNT; k++)
			if ((int)traits[k].name == r->terms[i].fact || (int)traits[k].name == r->terms[i].other)
				mask |= 1u << k;
	return mask;
}

static bool is_of_file(int name)
{
	for (const struct fa_trait *t = FILE_TRAITS; t->name != FA_NAME_COUNT; t++)
		if ((int)t->name == name)
			return name != FA_NAME_LINE_FEATURES; /* of the release, where the file says nothing */
	return false;
}

static bool looks_at_machine_and_file(const struct fa_rule *r)
{
	for (size_t i = 0; i < r->n; i++)
		if ((!stays(r->terms[i].fact) && !is_of_file(r->terms[i].fact)) ||
		    (r->terms[i].other >= 0 && !stays(r->terms[i].other) && !is_of_file(r->terms[i].other)))
			return false;
	return true;
}

void fa_solve_note_traits(struct fa_kb *kb, enum fa_rule_on on)
{
	const struct fa_trait *traits = traits_of(on);
	uint32_t mask = 0;

	for (size_t i = 0; i < kb->n_rules[on]; i++) {
		struct fa_kb_rule *r = &kb->rules[on][i];

		mask |= traits_in(traits, &r->when) | traits_in(traits, &r->need);
		r->traits = mask;
		r->of_machine = on == FA_ON_FILE && !r->action && looks_at_machine_and_file(&r->when) &&
		                looks_at_machine_and_file(&r->need);
		r->traits_known = true;
	}
}

static bool same_traits(const struct fa_trait *traits, uint32_t mask, const void *a, const void *b)
{
	for (; mask; mask &= mask - 1) {
		size_t offset = traits[__builtin_ctz(mask)].offset;

		if (offset == FA_TRAIT_NEVER || *(const char *const *)(const void *)((const char *)a + offset) !=
		                                        *(const char *const *)(const void *)((const char *)b + offset))
			return false;
	}
	return true;
}

const struct fa_refused *fa_solve_refused_before(struct fa_refusals *r, const void *item)
{
	const struct fa_trait *traits = traits_of(r->on);
	size_t n = r->n < FA_REFUSALS_KEPT ? r->n : FA_REFUSALS_KEPT;

	if (r->last < n && same_traits(traits, r->v[r->last].traits, r->v[r->last].item, item))
		return &r->v[r->last];
	for (size_t i = 0; i < n; i++)
		if (same_traits(traits, r->v[i].traits, r->v[i].item, item)) {
			r->last = i;
			return &r->v[i];
		}
	return NULL;
}

void fa_solve_remember(struct fa_solve *s, struct fa_refusals *r, const void *item, const struct fa_kb_rule *rule,
                       const struct fa_verdict *why)
{
	if (!rule->traits_known)
		fa_solve_note_traits(s->kb, r->on);
	r->v[r->n++ % FA_REFUSALS_KEPT] = (struct fa_refused){ item, rule->traits, rule, *why };
}

/* Members of cudaDeviceProp that lie elsewhere in this CUDA than in torch's; NULL: one of the two is not known. */
static const char *moved_members(struct fa_solve *s, const struct fa_kb_cuda *c)
{
	const struct fa_kb_cuda *of_torch = V(TORCH_X_CUDA) ? fa_kb_cuda(s->kb, V(TORCH_X_CUDA)) : NULL;
	struct fa_buf words = FA_BUF_INIT;

	if (!c || !c->device_prop || !of_torch || !of_torch->device_prop)
		return NULL;
	fa_json_each (at, c->device_prop)
		if (fa_json_number(at) != fa_json_get_number(of_torch->device_prop, fa_json_key(at), -1))
			fa_buf_addf(&words, "%s%s", words.len ? " " : "", fa_json_key(at));
	return fa_solve_keep_text(s, fa_buf_detach(&words));
}

void fa_solve_set_toolkit(struct fa_solve *s, const struct fa_toolkit_option *t)
{
	const struct fa_kb_cuda *c = t ? t->row : NULL;
	const char *kind = V(COMPILER) ? V(COMPILER) : "";

	V(TOOLKIT) = t ? fa_solve_keep(s, t->version) : NULL;
	V(TOOLKIT_MAJOR) = t && t->version ? fa_solve_keep_text(s, fa_version_head(t->version, 1)) : NULL;
	V(TOOLKIT_FROM_PIP) = t ? yes(t->pip) : NULL;
	V(TOOLKIT_CODES) = c ? c->codes : NULL;
	V(TOOLKIT_MOVED) = fa_solve_wished(s, FA_WISH_RELAX) ? moved_members(s, c) : NULL;
	V(TOOLKIT_COMPILER_MIN) = !c                       ? NULL
	                          : !strcmp(kind, "clang") ? c->clang_min
	                          : !strcmp(kind, "msvc")  ? c->msvc_min
	                                                   : c->gcc_min;
	V(TOOLKIT_COMPILER_MAX) = !c                       ? NULL
	                          : !strcmp(kind, "clang") ? c->clang_max
	                          : !strcmp(kind, "msvc")  ? c->msvc_below
	                                                   : c->gcc_max;
	if (fa_solve_wished(s, FA_WISH_RELAX) && t && t->version)
		set_driver_floor(s, t->version, c);
}

/* Least toolkit, of torch's CUDA major, that compiles for the architecture. */
static const char *card_toolkit(const struct fa_solve *s, const char *compile)
{
	const char *least = NULL,
	           *major = s->v[FA_NAME_TOOLKIT_MAJOR] ? s->v[FA_NAME_TOOLKIT_MAJOR] : s->v[FA_NAME_TORCH_MAJOR];

	for (size_t i = 0; i < s->kb->n_cuda; i++)
		if ((!major || !strcmp(s->kb->cuda[i].major, major)) && fa_words_has(s->kb->cuda[i].codes, compile))
			least = s->kb->cuda[i].cuda;
	if (!least)
		for (size_t i = 0; i < s->kb->n_cuda; i++)
			if (fa_words_has(s->kb->cuda[i].codes, compile))
				least = s->kb->cuda[i].cuda;
	return least;
}

/* What setup.py of the release compiles for the card: its own list where it reads none. */
static const char *compile_arch(const struct fa_solve *s, const struct fa_card *c)
{
	const char *read = s->v[FA_NAME_RELEASE_ARCHS_READ], *codes = s->v[FA_NAME_FILE_CODES];

	if (!read || (c->row && !strcmp(read, "yes")))
		return c->row && c->row->compile ? c->row->compile : "";
	return codes && c->row && fa_words_meet(c->row->codes, codes) ? codes : "";
}

void fa_solve_set_card(struct fa_solve *s, const struct fa_card *c)
{
	V(ARCH) = c ? c->arch : NULL;
	V(CARD_CODES) = !c ? NULL : c->row ? c->row->codes : c->arch;
	V(CARD_FAMILY) = c && c->row ? c->row->family : NULL;
	V(CARD_TRITON) = c ? yes(c->row && c->row->triton) : NULL;
	V(COMPILE_ARCH) = c ? compile_arch(s, c) : NULL;
	V(CARD_TOOLKIT) = c && V(TOOLKIT) && c->row && c->row->compile ? card_toolkit(s, c->row->compile) : NULL;
}
