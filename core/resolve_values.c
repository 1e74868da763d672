/* The values that rules see: the machine, then the torch, release, file, toolkit and card in hand. */
#include "buf.h"
#include "json.h"
#include "resolve.h"
#include "version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define V(name) s->v[FA_NAME_##name]

const char *fa_solve_keep_text(struct fa_solve *s, char *text)
{
	if (text)
		fa_strv_take(&s->pool, text);
	return text;
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
	case FA_FACT_TEXT: return f->text;
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
	char *minor, *dot;

	from = wish ? wish : fact && *fact ? fact : NULL;
	if (!from)
		return;
	minor = fa_version_head(from, 2);
	free_threaded = wish ? wish[strlen(wish) - 1] == 't' : abi && *abi && abi[strlen(abi) - 1] == 't';
	dot = strchr(minor, '.');
	V(PYTHON_MINOR) = fa_solve_keep_text(s, minor);
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
	V(WANT_DTYPES) = fa_solve_wished(s, FA_WISH_DTYPE);
	V(WANT_LINE) = fa_solve_wished(s, FA_WISH_LINE);
	V(WANT_NEEDS) = fa_solve_wished(s, FA_WISH_NEEDS);
	V(WANT_RELAX) = fa_solve_wished(s, FA_WISH_RELAX) ? fa_solve_wished(s, FA_WISH_RELAX) : "";
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

void fa_solve_set_torch(struct fa_solve *s, const struct fa_torch_option *t)
{
	V(TORCH_VERSION) = t->version;
	V(TORCH_MINOR) = t->minor;
	V(TORCH_BUILD) = t->word;
	V(TORCH_VENDOR) = t->vendor;
	V(TORCH_X_CUDA) = t->cuda;
	V(TORCH_MAJOR) = t->major;
	V(TORCH_ROCM) = t->rocm;
	V(TORCH_RELEASE) = yes(t->release);
	V(TORCH_PYTHONS) = t->row ? t->row->pythons : NULL;
	V(TORCH_PLATFORMS) = t->build ? t->build->platforms : NULL;
	V(TORCH_GLIBC) = V(FACT_OS) && !strcmp(V(FACT_OS), "linux") ? t->glibc : NULL;
	V(TORCH_CODES) = t->codes;
	V(TORCH_CXX) = t->cxx;
	V(TORCH_ABI) = t->abi;
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
	V(RELEASE_CXX) = p ? p->cxx : NULL;
	V(RELEASE_ARCHS_READ) = p ? yes(p->archs_read) : NULL;
	V(BACKWARD_LIMIT) = r ? r->backward : NULL;
}

static bool is_cached(struct fa_solve *s, const struct fa_kb_file *f)
{
	char *name = V(PYTHON_TAG) ? fa_kb_file_name(s->kb, f, V(PYTHON_TAG)) : NULL;
	bool cached = name && fa_strv_has(&s->facts->v[FA_FACT_CACHED].list, name);

	free(name);
	return cached;
}

void fa_solve_set_file(struct fa_solve *s, const struct fa_kb_file *f)
{
	static const struct fa_kb_file none;
	bool any = f != NULL;

	f = f ? f : &none;
	V(PACKAGE) = f->package;
	V(SOURCE) = f->source ? f->source->word : NULL;
	V(TRUST) = f->source ? f->source->trust : NULL;
	V(FILE_OS) = f->os;
	V(FILE_MACHINE) = f->machine;
	V(FILE_TORCH) = f->torch;
	V(FILE_CUDA) = f->cuda;
	V(FILE_MAJOR) = f->major;
	V(FILE_PYTHONS) = f->pythons;
	V(FILE_PYTHON_MIN) = f->python_min;
	V(FILE_ABI) = f->abi;
	V(FILE_NIGHTLY) = any ? yes(f->nightly) : NULL;
	V(FILE_GLIBC) = f->glibc;
	V(FILE_CODES) = f->codes;
	V(FILE_DRIVER) = f->driver;
	V(FILE_BACKWARD) = any ? yes(f->backward) : NULL;
	V(FILE_DTYPES) = f->dtypes;
	V(FILE_TORCH_MIN) = f->torch_min;
	V(FILE_CACHED) = any && fa_solve_wished(s, FA_WISH_OFFLINE) ? yes(is_cached(s, f)) : NULL;
	if (any && f->features)
		V(LINE_FEATURES) = f->features;
}

void fa_solve_set_toolkit(struct fa_solve *s, const struct fa_toolkit_option *t)
{
	const struct fa_kb_cuda *c = t ? t->row : NULL;
	const char *kind = V(COMPILER) ? V(COMPILER) : "";

	V(TOOLKIT) = t ? t->version : NULL;
	V(TOOLKIT_MAJOR) = t && t->version ? fa_solve_keep_text(s, fa_version_head(t->version, 1)) : NULL;
	V(TOOLKIT_FROM_PIP) = t ? yes(t->pip) : NULL;
	V(TOOLKIT_CODES) = c ? c->codes : NULL;
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
