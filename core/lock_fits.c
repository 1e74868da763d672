/* What a lock remembers of the machine and the choice that it was made for, and what that means on another machine. */
#include "lock.h"

#include "buf.h"
#include "source.h"
#include "url.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

/* ---- describe */

/* Facts that a lock holds: what the choice followed from. Left out: what changes by itself (memory, disk, kernel), what the
 * installation itself changes (torch, flash_attn, cached) and folders of one machine. */
static const enum fa_fact kept[] = {
	FA_FACT_OS,      FA_FACT_MACHINE,     FA_FACT_DISTRO, FA_FACT_DISTRO_VERSION, FA_FACT_GLIBC,
	FA_FACT_GLIBCXX, FA_FACT_WSL,         FA_FACT_JETSON, FA_FACT_CONTAINER,      FA_FACT_DRIVER,
	FA_FACT_ROCM,    FA_FACT_DRIVER_CUDA, FA_FACT_PYTHON, FA_FACT_PYTHON_ABI,     FA_FACT_CXX,
};
enum { N_KEPT = sizeof(kept) / sizeof(*kept) };

/* Wishes that say where and how fast, not what. */
static bool of_the_place(enum fa_wish_id id)
{
	return id == FA_WISH_ENV || id == FA_WISH_JOBS || id == FA_WISH_OFFLINE || id == FA_WISH_KEEP_TORCH;
}

/* The value as text, NULL when unknown. The caller's. */
static char *fact_text(const struct fa_facts *f, enum fa_fact id)
{
	if (!f->v[id].known)
		return NULL;
	switch (fa_fact_type(id)) {
	case FA_FACT_NUMBER: return fa_strf("%lld", (long long)f->v[id].number);
	case FA_FACT_BOOL: return fa_strdup(f->v[id].number ? "true" : "false");
	case FA_FACT_LIST: return fa_strv_join(&f->v[id].list, " ");
	case FA_FACT_TEXT: break;
	}
	return fa_strdup(f->v[id].text);
}

/* Architectures of the cards, each once, sorted; NULL when unknown. */
static char *gpus_text(const struct fa_facts *f)
{
	struct fa_strv archs = FA_STRV_INIT;
	char *text;

	if (!f->gpus_known)
		return NULL;
	for (size_t i = 0; i < f->n_gpus; i++)
		if (f->gpus[i].arch && !fa_strv_has(&archs, f->gpus[i].arch))
			fa_strv_push(&archs, f->gpus[i].arch);
	fa_strv_sort(&archs);
	text = fa_strv_join(&archs, " ");
	fa_strv_release(&archs);
	return text;
}

static char *toolkits_text(const struct fa_facts *f)
{
	struct fa_strv all = FA_STRV_INIT;
	char *text;

	if (!f->toolkits_known)
		return NULL;
	for (size_t i = 0; i < f->n_toolkits; i++)
		fa_strv_pushf(&all, "%s %s", f->toolkits[i].kind, f->toolkits[i].version ? f->toolkits[i].version : "?");
	fa_strv_sort(&all);
	text = fa_strv_join(&all, ", ");
	fa_strv_release(&all);
	return text;
}

static void set_taken(struct fa_lock *l, const char *key, char *value)
{
	if (value)
		fa_lock_set(l, key, "%s", value);
	free(value);
}

static void set_list_by(struct fa_lock *l, const char *key, const struct fa_strv *list, const char *between)
{
	if (list->n)
		set_taken(l, key, fa_strv_join(list, between));
}

static void set_list(struct fa_lock *l, const char *key, const struct fa_strv *list)
{
	set_list_by(l, key, list, ",");
}

static void set_text(struct fa_lock *l, const char *key, const char *value)
{
	if (value)
		fa_lock_set(l, key, "%s", value);
}

/* How many at a time changes no bit, and folders are those of one machine. */
bool fa_lock_of_the_machine(const char *assignment)
{
	static const char *const names[] = { "MAX_JOBS=", "CUDA_HOME=", "CUDA_PATH=", "NVCC_THREADS=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(assignment, names[i], strlen(names[i])))
			return true;
	return false;
}

static void describe_build(struct fa_lock *l, const struct fa_plan_build *b)
{
	set_list(l, "build.archs", &b->archs);
	set_text(l, "build.profile", b->profile);
	set_list(l, "build.dtypes", &b->dtypes);
	set_list(l, "build.head_dims", &b->head_dims);
	set_list(l, "build.features", &b->features);
	set_text(l, "build.backward", b->backward ? "true" : "false");
	for (size_t i = 0; i < b->env.n; i++) {
		char *equals = strchr(b->env.v[i], '=');
		char *key = equals ? fa_strf("build.env.%.*s", (int)(equals - b->env.v[i]), b->env.v[i]) : NULL;

		if (key && !fa_lock_of_the_machine(b->env.v[i]))
			fa_lock_set(l, key, "%s", equals + 1);
		free(key);
	}
}

static void describe_choice(struct fa_lock *l, const struct fa_choice *c)
{
	set_text(l, "route", c->route);
	set_text(l, "line", c->line);
	set_text(l, "package", c->package);
	set_text(l, "flash_attn", c->flash_attn);
	set_text(l, "torch", c->torch);
	set_text(l, "torch_build", c->torch_build);
	set_text(l, "cuda", c->cuda);
	set_text(l, "python", c->python);
	set_list(l, "archs", &c->archs);
	set_text(l, "wheel.name", c->wheel.name);
	if (c->wheel.source) {
		char *source = fa_url_plain(c->wheel.source);

		set_text(l, "wheel.source", c->wheel.url && *c->wheel.url == '/' ? "wheels" : source);
		free(source);
	}
	if (c->build.wanted)
		describe_build(l, &c->build);
}

/* Does the source say only where a file was taken from? A mirror and a folder of this machine do: configuration, not part of a lock. */
static bool is_mirror(const struct fa_choice *c, const struct fa_wish *wish)
{
	const char *source = fa_wish_get(wish, FA_WISH_SOURCE);

	return c->wheel.mirror || (c->wheel.url && *c->wheel.url == '/') || (source && fa_source_is_folder(source));
}

static void describe_wish(struct fa_lock *l, const struct fa_wish *wish, const struct fa_choice *c)
{
	struct fa_wish kept_wish = FA_WISH_INIT;
	struct fa_strv words = FA_STRV_INIT;

	fa_wish_copy(&kept_wish, wish);
	for (int i = 0; i < FA_WISH_COUNT; i++)
		if (of_the_place((enum fa_wish_id)i) || (i == FA_WISH_SOURCE && is_mirror(c, wish))) {
			free(kept_wish.v[i]);
			kept_wish.v[i] = NULL;
		}
	if (kept_wish.v[FA_WISH_SOURCE]) { /* without the key to it */
		char *plain = fa_url_plain(kept_wish.v[FA_WISH_SOURCE]);

		free(kept_wish.v[FA_WISH_SOURCE]);
		kept_wish.v[FA_WISH_SOURCE] = fa_strndup(plain, strcspn(plain, "?"));
		free(plain);
	}
	fa_wish_argv(&kept_wish, &words);
	set_list_by(l, "wish", &words, " ");
	fa_strv_release(&words);
	fa_wish_release(&kept_wish);
}

void fa_lock_describe(struct fa_lock *l, const struct fa_plan *plan, const struct fa_facts *facts)
{
	for (int i = 0; i < N_KEPT; i++) {
		char *key = fa_strf("fact.%s", fa_fact_key(kept[i]));

		set_taken(l, key, fact_text(facts, kept[i]));
		free(key);
	}
	set_taken(l, "fact.gpus", gpus_text(facts));
	set_taken(l, "fact.toolkits", toolkits_text(facts));
	describe_choice(l, &plan->choice);
	describe_wish(l, &plan->wish, &plan->choice);
}

/* ---- wish */

static int wish_words(struct fa_wish *out, const char *words, struct fa_err *err)
{
	struct fa_strv w = FA_STRV_INIT;
	enum fa_wish_id id;
	int rc = -1;

	fa_strv_split(&w, words, " ");
	for (size_t i = 0; i < w.n; i++) {
		if (strncmp(w.v[i], "--", 2) != 0 || fa_wish_find(&id, w.v[i] + 2) < 0) {
			fa_err_set(err, FA_USAGE, "the lock's wish has a word that this fainstall does not know: \"%s\"",
			           w.v[i]);
			goto done;
		}
		if (fa_wish_row(id)->kind == FA_WISH_FLAG) {
			if (fa_wish_set(out, id, "yes", err) < 0)
				goto done;
		} else if (++i == w.n) {
			fa_err_set(err, FA_USAGE, "the lock's wish ends after \"%s\"", w.v[i - 1]);
			goto done;
		} else if (fa_wish_set(out, id, w.v[i], err) < 0) {
			goto done;
		}
	}
	rc = 0;
done:
	fa_strv_release(&w);
	return rc;
}

static int wish_entry(struct fa_wish *out, enum fa_wish_id id, const char *value, struct fa_err *err)
{
	return value && *value ? fa_wish_set(out, id, value, err) : 0;
}

static int wish_torch(struct fa_wish *out, const struct fa_lock *l, struct fa_err *err)
{
	const char *torch = fa_lock_get(l, "torch"), *build = fa_lock_get(l, "torch_build");
	char *both = torch && build ? fa_strf("%s+%s", torch, build) : fa_strdup(torch);
	int rc = wish_entry(out, FA_WISH_TORCH, both, err);

	free(both);
	return rc;
}

int fa_lock_wish(struct fa_wish *out, const struct fa_lock *l, struct fa_err *err)
{
	static const struct {
		enum fa_wish_id id;
		const char *key;
	} pins[] = {
		{ FA_WISH_FLASH_ATTN, "flash_attn" },
		{ FA_WISH_PYTHON, "python" },
		{ FA_WISH_ROUTE, "route" },
		{ FA_WISH_ARCH, "archs" },
		{ FA_WISH_PROFILE, "build.profile" },
		{ FA_WISH_DTYPE, "build.dtypes" },
		{ FA_WISH_HEAD_DIM, "build.head_dims" },
	};
	const char *words = fa_lock_get(l, "wish"), *line = fa_lock_get(l, "line"), *route = fa_lock_get(l, "route");
	int rc = -1;

	*out = (struct fa_wish)FA_WISH_INIT;
	if (words && wish_words(out, words, err) < 0)
		goto done;
	if (line && strcmp(line, "none") != 0 && wish_entry(out, FA_WISH_LINE, line, err) < 0)
		goto done;
	if (wish_torch(out, l, err) < 0)
		goto done;
	for (size_t i = 0; i < sizeof(pins) / sizeof(*pins); i++) {
		bool keep = pins[i].id == FA_WISH_ROUTE && route && !strcmp(route, "keep");

		if (!keep && wish_entry(out, pins[i].id, fa_lock_get(l, pins[i].key), err) < 0)
			goto done;
	}
	rc = 0;
done:
	if (rc < 0)
		fa_wish_release(out);
	return rc;
}

/* ---- fits */

enum verdict { NO_MATTER, DOUBT, MATTERS };

struct fit {
	const struct fa_lock *lock;
	const struct fa_facts *facts;
	struct fa_buf *out;
	struct fa_err *err;
	int n_matter;
};

static void tell(struct fit *f, const char *fact, const char *here, const char *locked, enum verdict v, const char *because)
{
	static const char *const words[] = { "does not matter", "may matter", "matters" };

	fa_buf_addf(f->out, "%s: %s here, %s in the lock: %s: %s\n", fact, *here ? here : "none", *locked ? locked : "none",
	            words[v], because);
	if (v == MATTERS && f->n_matter++ == 0) {
		fa_err_set(f->err, FA_MACHINE, "the lock does not fit this machine: %s is %s here and %s in the lock: %s", fact,
		           *here ? here : "none", *locked ? locked : "none", because);
		fa_err_next(f->err, "make a lock for this machine: fainstall install --write-lock FILE");
	}
}

static enum verdict judge_equal(const struct fit *f, const char *here, const char *locked, const char **because)
{
	(void)f, (void)here, (void)locked;
	*because = "the files of the lock are for the other one";
	return MATTERS;
}

static enum verdict judge_python(const struct fit *f, const char *here, const char *locked, const char **because)
{
	char *a = fa_version_head(here, 2), *b = fa_version_head(locked, 2);
	bool same = !strcmp(a, b);

	(void)f;
	free(a);
	free(b);
	*because = same ? "the same minor version" : "binary packages are made for one minor version of Python";
	return same ? NO_MATTER : MATTERS;
}

static enum verdict judge_glibc(const struct fit *f, const char *here, const char *locked, const char **because)
{
	const char *need = fa_lock_get(f->lock, "need.glibc");

	*because = "newer serves older";
	if (fa_version_compare(here, locked) >= 0)
		return NO_MATTER;
	if (!need) {
		*because = "older; what the binaries need is not recorded";
		return DOUBT;
	}
	*because = "older, and enough for the binaries of the lock";
	if (fa_version_compare(here, need) >= 0)
		return NO_MATTER;
	*because = "older than the binaries of the lock need";
	return MATTERS;
}

static enum verdict judge_glibcxx(const struct fit *f, const char *here, const char *locked, const char **because)
{
	(void)f;
	*because = fa_version_compare(here, locked) >= 0 ? "newer serves older" : "older; the X-ray of the binary decides";
	return fa_version_compare(here, locked) >= 0 ? NO_MATTER : DOUBT;
}

static enum verdict judge_driver(const struct fit *f, const char *here, const char *locked, const char **because)
{
	const char *cuda = fa_lock_get(f->lock, "cuda"), *runs = fa_facts_text(f->facts, FA_FACT_DRIVER_CUDA);

	*because = "newer serves older";
	if (!*here) {
		*because = "nothing can be run here, only installed";
		return DOUBT;
	}
	if (*locked && fa_version_compare(here, locked) >= 0)
		return NO_MATTER;
	if (!cuda || !runs || !*runs) {
		*because = "older; what it runs is not known";
		return DOUBT;
	}
	*because = "it runs the CUDA of this lock (minor versions are compatible)";
	if (atoi(runs) >= atoi(cuda))
		return NO_MATTER;
	*because = "it is too old for the CUDA of this lock";
	return MATTERS;
}

static enum verdict judge_driver_cuda(const struct fit *f, const char *here, const char *locked, const char **because)
{
	(void)f, (void)here, (void)locked;
	*because = "see driver";
	return NO_MATTER;
}

static enum verdict judge_rocm(const struct fit *f, const char *here, const char *locked, const char **because)
{
	char *a = fa_version_head(here, 1), *b = fa_version_head(locked, 1);
	bool same = !strcmp(a, b);

	(void)f;
	free(a);
	free(b);
	*because = same ? "the same major version" : "ROCm libraries change with the major version";
	return same ? NO_MATTER : MATTERS;
}

static enum verdict judge_compiler(const struct fit *f, const char *here, const char *locked, const char **because)
{
	(void)f, (void)here, (void)locked;
	*because = "only when the wheel must be built again";
	return NO_MATTER;
}

static enum verdict judge_name(const struct fit *f, const char *here, const char *locked, const char **because)
{
	(void)f, (void)here, (void)locked;
	*because = "what binaries need of it stands in its own line";
	return NO_MATTER;
}

/* Code for 8.0 runs on every 8.x from 8.0 on; "90a" on 9.0 only; "gfx942" on itself. */
static bool serves(const char *code, const char *card)
{
	size_t len = strlen(code);
	long built, has;
	char *end;

	if (!strcmp(code, card))
		return true;
	built = strtol(code, &end, 10);
	if (end == code)
		return false;
	if (*end)
		return strlen(card) == len - 1 && !strncmp(code, card, len - 1);
	has = strtol(card, NULL, 10);
	return built / 10 == has / 10 && built <= has;
}

static enum verdict judge_gpus(const struct fit *f, const char *here, const char **because)
{
	const char *binary = fa_lock_get(f->lock, "binary.archs");
	const char *code = binary ? binary : fa_lock_get(f->lock, "build.archs");
	struct fa_strv cards = FA_STRV_INIT, codes = FA_STRV_INIT;
	enum verdict v = NO_MATTER;

	*because = "the binaries of the lock hold code for them";
	if (!*here || !code) {
		*because = *here ? "verification decides" : "nothing can be run here, only installed";
		return DOUBT;
	}
	fa_strv_split(&cards, here, " ");
	fa_strv_split(&codes, code, ", ");
	for (size_t i = 0; i < cards.n; i++) {
		bool served = false;

		for (size_t k = 0; k < codes.n; k++)
			served |= serves(codes.v[k], cards.v[i]);
		if (!served)
			v = MATTERS;
	}
	if (v == MATTERS)
		*because = "the binaries of the lock hold no code for a card here";
	fa_strv_release(&cards);
	fa_strv_release(&codes);
	return v;
}

static const struct {
	enum fa_fact fact;
	enum verdict (*judge)(const struct fit *f, const char *here, const char *locked, const char **because);
} rules[] = {
	{ FA_FACT_OS, judge_equal },         { FA_FACT_MACHINE, judge_equal },
	{ FA_FACT_PYTHON_ABI, judge_equal }, { FA_FACT_PYTHON, judge_python },
	{ FA_FACT_GLIBC, judge_glibc },      { FA_FACT_GLIBCXX, judge_glibcxx },
	{ FA_FACT_DRIVER, judge_driver },    { FA_FACT_DRIVER_CUDA, judge_driver_cuda },
	{ FA_FACT_ROCM, judge_rocm },        { FA_FACT_CXX, judge_compiler },
	{ FA_FACT_DISTRO, judge_name },      { FA_FACT_DISTRO_VERSION, judge_name },
	{ FA_FACT_CONTAINER, judge_name },   { FA_FACT_WSL, judge_name },
	{ FA_FACT_JETSON, judge_name },
};

static void fit_fact(struct fit *f, size_t row)
{
	char *key = fa_strf("fact.%s", fa_fact_key(rules[row].fact));
	const char *locked = fa_lock_get(f->lock, key), *because = "";
	char *here = fact_text(f->facts, rules[row].fact);
	enum verdict v;

	if (locked && here && strcmp(locked, here) != 0) {
		v = rules[row].judge(f, here, locked, &because);
		tell(f, fa_fact_key(rules[row].fact), here, locked, v, because);
	}
	free(here);
	free(key);
}

static void fit_lists(struct fit *f)
{
	const char *gpus = fa_lock_get(f->lock, "fact.gpus"), *toolkits = fa_lock_get(f->lock, "fact.toolkits");
	char *here = gpus_text(f->facts), *kits = toolkits_text(f->facts);
	const char *because = "";
	enum verdict v;

	if (here && gpus && strcmp(here, gpus) != 0) {
		v = judge_gpus(f, here, &because);
		tell(f, "gpus", here, gpus, v, because);
	}
	if (kits && toolkits && strcmp(kits, toolkits) != 0)
		tell(f, "toolkits", kits, toolkits, NO_MATTER, "only when the wheel must be built again");
	free(here);
	free(kits);
}

int fa_lock_fits(const struct fa_lock *l, const struct fa_facts *facts, bool frozen, struct fa_buf *out, struct fa_err *err)
{
	struct fit f = { .lock = l, .facts = facts, .out = out, .err = err };

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		fit_fact(&f, i);
	fit_lists(&f);
	if (!f.n_matter)
		return 0;
	if (frozen && err)
		err->status = FA_INTEGRITY;
	return -1;
}
