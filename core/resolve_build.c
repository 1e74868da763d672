/* What a source build holds (profile), how many jobs fit the memory at the measured peaks, and how long it takes. */
#include "buf.h"
#include "json.h"
#include "resolve.h"
#include "version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* ---- the profile */

static void split_wish(const struct fa_solve *s, enum fa_wish_id id, struct fa_strv *out)
{
	if (fa_solve_wished(s, id))
		fa_strv_split(out, fa_solve_wished(s, id), ", ");
}

/* The line in hand is the one that rules see. */
static bool of_line(const struct fa_solve *s, const struct fa_kb_unit *u)
{
	return says(u->line, s->v[FA_NAME_LINE]);
}

/* Head dim of the recorded unit that stands for this one: 160, which only older releases have, is timed as 192. */
static int recorded_dim(const struct fa_solve *s, int wanted)
{
	int best = 0;

	for (size_t u = 0; u < s->kb->n_units; u++) {
		int dim = of_line(s, &s->kb->units[u]) ? s->kb->units[u].head_dim : 0;

		if (dim >= wanted && (!best || dim < best))
			best = dim;
	}
	return best ? best : wanted;
}

/* The release's kernel that serves a head dim, the next larger one: 120 by 128. */
static int kernel_dim(const struct fa_solve *s, int wanted)
{
	const char *have = s->v[FA_NAME_RELEASE_DIMS];
	struct fa_strv dims = FA_STRV_INIT;
	int best = 0;

	fa_strv_split(&dims, have ? have : "", " ");
	for (size_t i = 0; i < dims.n; i++) {
		int dim = atoi(dims.v[i]);

		if (dim >= wanted && (!best || dim < best))
			best = dim;
	}
	fa_strv_release(&dims);
	return best ? best : recorded_dim(s, wanted);
}

static void round_head_dims(const struct fa_solve *s, struct fa_strv *dims)
{
	struct fa_strv rounded = FA_STRV_INIT;

	for (size_t i = 0; i < dims->n; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", kernel_dim(s, atoi(dims->v[i])));
		if (!fa_strv_has(&rounded, text))
			fa_strv_push(&rounded, text);
	}
	fa_strv_release(dims);
	*dims = rounded;
}

/* The contents of a profile; of `custom` they are what was asked for, and full has nothing left out. */
static void set_contents(const struct fa_solve *s, struct fa_plan_build *b, const char *profile)
{
	bool narrow = says(profile, "training") || says(profile, "inference");

	b->profile = fa_strdup(profile);
	b->backward = !says(profile, "inference");
	if (says(profile, "full"))
		return;
	split_wish(s, FA_WISH_DTYPE, &b->dtypes);
	split_wish(s, FA_WISH_HEAD_DIM, &b->head_dims);
	split_wish(s, FA_WISH_FEATURES, &b->features);
	if (narrow && !b->dtypes.n && fa_json_get_string(s->kb->narrow, "dtypes"))
		fa_strv_push(&b->dtypes, fa_json_get_string(s->kb->narrow, "dtypes"));
	if (narrow && !b->head_dims.n && fa_json_get_string(s->kb->narrow, "head_dims"))
		fa_strv_push(&b->head_dims, fa_json_get_string(s->kb->narrow, "head_dims"));
	round_head_dims(s, &b->head_dims);
}

static void set_profile(const struct fa_solve *s, struct fa_plan_build *b)
{
	const char *wish = fa_solve_wished(s, FA_WISH_PROFILE);
	bool custom = fa_solve_wished(s, FA_WISH_DTYPE) || fa_solve_wished(s, FA_WISH_HEAD_DIM) ||
	              fa_solve_wished(s, FA_WISH_FEATURES);

	set_contents(s, b, says(wish, "training") || says(wish, "inference") ? wish : custom ? "custom" : "full");
}

static void release_contents(struct fa_plan_build *b)
{
	fa_strv_release(&b->archs);
	fa_strv_release(&b->dtypes);
	fa_strv_release(&b->head_dims);
	fa_strv_release(&b->features);
	free(b->profile);
}

/* ---- what an earlier build of ours holds: the words of its local version, which recipes/profile_units.py writes */

/* Words of the label that name one of a kind ("fp16", "bf16"; "d64", "d128"); none: it holds all of the kind. */
static bool is_dtype(const char *word)
{
	return says(word, "fp16") || says(word, "bf16");
}

static bool is_head_dim(const char *word)
{
	return word[0] == 'd' && word[1] && strspn(word + 1, "0123456789") == strlen(word + 1);
}

static bool holds_kind(const struct fa_strv *words, bool (*is)(const char *word), const struct fa_strv *wanted,
                       const char *before)
{
	bool limited = false;

	for (size_t i = 0; i < words->n; i++)
		limited = limited || is(words->v[i]);
	if (!limited)
		return true;
	for (size_t i = 0; i < wanted->n; i++) {
		char *word = fa_strf("%s%s", before, wanted->v[i]);
		bool there = fa_strv_has(words, word);

		free(word);
		if (!there)
			return false;
	}
	return wanted->n > 0;
}

static bool holds_features(const struct fa_strv *words, const struct fa_strv *wanted)
{
	static const char *const lean[] = { "dropout", "alibi", "softcap", "local" };

	for (size_t i = 0; i < words->n; i++) {
		const char *word = words->v[i];

		if (!wanted->n && (says(word, "lean") || says(word, "bare") || !strncmp(word, "no", 2)))
			return false;
		if (says(word, "bare") && !(wanted->n == 1 && says(wanted->v[0], "none")))
			return false;
		if (!strncmp(word, "no", 2) && fa_strv_has(wanted, word + 2))
			return false;
		for (size_t k = 0; says(word, "lean") && k < sizeof(lean) / sizeof(*lean); k++)
			if (fa_strv_has(wanted, lean[k]))
				return false;
	}
	return true;
}

static bool holds_archs(const struct fa_strv *words, const struct fa_strv *wanted)
{
	for (size_t i = 0; i < wanted->n; i++) {
		char *word = fa_strf("%s%s", strncmp(wanted->v[i], "gfx", 3) != 0 ? "sm" : "", wanted->v[i]);
		bool there = fa_strv_has(words, word);

		free(word);
		if (!there)
			return false;
	}
	return true;
}

static void set_archs(struct fa_solve *s, struct fa_plan_build *b);

const char *fa_solve_build_lacks(struct fa_solve *s, const char *version)
{
	const char *label = version ? strstr(version, "+fa.") : NULL, *lacks = NULL;
	struct fa_plan_build b = { 0 };
	struct fa_strv words = FA_STRV_INIT;
	bool asked = fa_solve_wished(s, FA_WISH_PROFILE) || fa_solve_wished(s, FA_WISH_DTYPE) ||
	             fa_solve_wished(s, FA_WISH_HEAD_DIM) || fa_solve_wished(s, FA_WISH_FEATURES);

	if (!label)
		return NULL;
	fa_strv_split(&words, label + 1, ".");
	set_archs(s, &b);
	if (!holds_archs(&words, &b.archs))
		lacks = "arch";
	if (asked)
		set_profile(s, &b);
	if (asked && !lacks)
		lacks = !holds_kind(&words, is_dtype, &b.dtypes, "")          ? "dtype"
		        : !holds_kind(&words, is_head_dim, &b.head_dims, "d") ? "head_dim"
		        : b.backward && fa_strv_has(&words, "fwd")            ? "backward"
		        : !holds_features(&words, &b.features)                ? "features"
		                                                              : NULL;
	fa_strv_release(&words);
	release_contents(&b);
	return lacks;
}

/* ---- its units */

/* Head dims of the profile: those named, else all of the release. */
static void profile_dims(const struct fa_solve *s, const struct fa_plan_build *b, struct fa_strv *out)
{
	if (b->head_dims.n)
		fa_strv_append(out, &b->head_dims);
	else if (s->v[FA_NAME_RELEASE_DIMS])
		fa_strv_split(out, s->v[FA_NAME_RELEASE_DIMS], " ");
}

static bool keeps_variant(const struct fa_plan_build *b, const struct fa_kb_unit *u)
{
	struct fa_strv words = FA_STRV_INIT;
	bool keeps = true;

	fa_strv_split(&words, u->variant, "_");
	for (size_t i = 0; i < words.n && keeps; i++)
		keeps = fa_strv_has(&b->features, words.v[i]);
	fa_strv_release(&words);
	return keeps;
}

int fa_solve_build_dims(const struct fa_solve *s, const struct fa_plan_build *b, const struct fa_kb_unit *u)
{
	struct fa_strv dims = FA_STRV_INIT;
	int n = 0;

	if (!says(u->line, s->v[FA_NAME_LINE]))
		return false;
	if (!of_line(s, u) || (b->dtypes.n && !fa_strv_has(&b->dtypes, u->dtype)))
		return 0;
	if (!b->backward && says(u->kind, "bwd"))
		return 0;
	if (b->features.n && strstr(u->kind, "split") && !fa_strv_has(&b->features, "split"))
		return 0;
	if (b->features.n && !keeps_variant(b, u))
		return 0;
	profile_dims(s, b, &dims);
	for (size_t i = 0; i < dims.n; i++)
		n += recorded_dim(s, atoi(dims.v[i])) == u->head_dim;
	n += !dims.n;
	fa_strv_release(&dims);
	return n;
}

int fa_solve_unit_files(const struct fa_solve *s, const struct fa_kb_unit *u)
{
	const char *apart = s->found.release ? s->found.release->apart : NULL;

	return !apart || fa_words_has(apart, u->kind) ? u->units : 1;
}

struct load {
	int units, peak;
	struct peak { /* of one kind of unit */
		int mib, units;
	} kinds[128];
	size_t n;
};

static int by_peak(const void *a, const void *b)
{
	return ((const struct peak *)b)->mib - ((const struct peak *)a)->mib;
}

static bool is_ck(const struct fa_solve *s)
{
	return s->found.class == FA_CLASS_CK;
}

static void measure_ck(const struct fa_solve *s, const struct fa_plan_build *b, struct load *l)
{
	struct fa_ck_units v[sizeof(l->kinds) / sizeof(l->kinds[0])];

	l->n = fa_solve_ck_units(s, b, v, sizeof(v) / sizeof(v[0]));
	for (size_t i = 0; i < l->n; i++) {
		l->kinds[i] = (struct peak){ v[i].peak_mib, v[i].units };
		l->units += v[i].units;
	}
}

static void measure(const struct fa_solve *s, const struct fa_plan_build *b, struct load *l)
{
	*l = (struct load){ 0 };
	if (is_ck(s))
		measure_ck(s, b, l);
	for (size_t i = 0; !is_ck(s) && i < s->kb->n_units; i++) {
		const struct fa_kb_unit *u = &s->kb->units[i];

		int dims = fa_solve_build_dims(s, b, u), files = dims * fa_solve_unit_files(s, u);

		if (!dims)
			continue;
		l->units += files;
		if (l->n < sizeof(l->kinds) / sizeof(l->kinds[0]))
			l->kinds[l->n++] = (struct peak){ u->peak_mib, files };
	}
	qsort(l->kinds, l->n, sizeof(l->kinds[0]), by_peak);
	l->peak = l->n ? l->kinds[0].mib : 0;
}

/* All of a release are what its setup.py lists. */
static int units_of(const struct fa_solve *s, const struct fa_plan_build *b, const struct load *l)
{
	const struct fa_kb_release *r = s->found.release;

	if (says(b->profile, "full") && is_ck(s))
		return fa_solve_ck_all(s);
	return says(b->profile, "full") && r && r->profile ? r->profile->units : l->units;
}

int fa_solve_peak(struct fa_solve *s)
{
	struct fa_plan_build b = { 0 };
	int peak = 0;

	set_profile(s, &b);
	for (size_t i = 0; i < s->kb->n_units; i++)
		if (s->kb->units[i].peak_mib > peak && fa_solve_build_dims(s, &b, &s->kb->units[i]))
			peak = s->kb->units[i].peak_mib;
	release_contents(&b);
	return peak;
}

/* ---- jobs */

/* How many of the heaviest units fit at once; a twentieth of the memory stays free. Units are compiled in parts where cores are
 * left over (recipes/parts.json), and a part needs no more than its unit: what is left of the memory takes more of the heaviest. */
static int jobs_by_memory(const struct load *l, long memory_mib, int *sum)
{
	long room = memory_mib - memory_mib / 20;
	int jobs = 0;

	*sum = 0;
	for (size_t i = 0; i < l->n; i++)
		for (int u = 0; u < l->kinds[i].units; u++) {
			if (*sum + l->kinds[i].mib > room)
				return jobs;
			*sum += l->kinds[i].mib;
			jobs++;
		}
	return jobs + (l->peak > 0 ? (int)((room - *sum) / l->peak) : 0);
}

static int at_most(int jobs, const char *limit)
{
	return limit && atoi(limit) > 0 && atoi(limit) < jobs ? atoi(limit) : jobs;
}

/* By memory, cores and what was asked for. */
static int count_jobs(const struct fa_solve *s, const struct load *l)
{
	const char *memory = s->v[FA_NAME_MEMORY], *wish = fa_solve_wished(s, FA_WISH_JOBS), *env = fa_solve_env(s, "MAX_JOBS");
	int sum, fit = memory ? jobs_by_memory(l, atol(memory), &sum) : 1;

	fit = at_most(fit < 1 ? 1 : fit, s->v[FA_NAME_FACT_CORES]);
	return wish ? at_most(fit, wish) : at_most(fit, env);
}

/* What the heaviest of so many hold together. */
static int peak_of(const struct load *l, int jobs)
{
	int sum = 0;

	for (size_t i = 0; i < l->n; i++)
		for (int u = 0; u < l->kinds[i].units && jobs > 0; u++, jobs--)
			sum += l->kinds[i].mib;
	return sum + jobs * l->peak;
}

static void warn_of_jobs(struct fa_solve *s, int asked, int jobs, const char *id, const char *name)
{
	if (asked <= jobs)
		return;
	fa_solve_extra(s, name, fa_strf("%d", asked));
	fa_solve_extra(s, id, fa_strdup("yes"));
}

static void set_jobs(struct fa_solve *s, struct fa_plan_build *b, const struct load *l)
{
	const char *wish = fa_solve_wished(s, FA_WISH_JOBS), *env = fa_solve_env(s, "MAX_JOBS");

	b->jobs = count_jobs(s, l);
	b->peak_mib = peak_of(l, b->jobs);
	if (wish)
		warn_of_jobs(s, atoi(wish), b->jobs, "jobs_limited", "asked_jobs");
	else if (env)
		warn_of_jobs(s, atoi(env), b->jobs, "max_jobs_ignored", "max_jobs");
}

/* Features that were not asked for, and that this release has no switch for. */
static void warn_of_features(struct fa_solve *s, const struct fa_plan_build *b, const struct fa_kb_release *r)
{
	struct fa_strv stays = FA_STRV_INIT, unasked = FA_STRV_INIT;

	if (!b->features.n || !r || !r->stays)
		return;
	fa_strv_split(&stays, r->stays, " ");
	for (size_t i = 0; i < stays.n; i++)
		if (!fa_strv_has(&b->features, stays.v[i]))
			fa_strv_push(&unasked, stays.v[i]);
	if (unasked.n) {
		fa_solve_extra(s, "features_stay", fa_strv_join(&unasked, ", "));
		fa_solve_extra(s, "features_that_stay", fa_strdup("yes"));
	}
	fa_strv_release(&stays);
	fa_strv_release(&unasked);
}

static void forecast(const struct fa_solve *s, struct fa_plan_build *b)
{
	if (is_ck(s))
		fa_solve_ck_forecast(s, b);
	else
		fa_solve_forecast(s, b);
}

/* ---- the profiles beside each other */

static void offer(const struct fa_solve *s, struct fa_plan_build *b, const char *profile)
{
	struct fa_plan_offer *o = &b->offers[b->n_offers++];
	struct fa_plan_build other = { 0 };
	struct load l;

	if (says(profile, b->profile)) {
		*o = (struct fa_plan_offer){ fa_strdup(profile), b->units, b->estimate_s, b->peak_mib, b->wheel_mb };
		return;
	}
	set_contents(s, &other, profile);
	fa_strv_append(&other.archs, &b->archs);
	measure(s, &other, &l);
	other.jobs = count_jobs(s, &l);
	forecast(s, &other);
	*o = (struct fa_plan_offer){ fa_strdup(profile), units_of(s, &other, &l), other.estimate_s, peak_of(&l, other.jobs),
		                     other.wheel_mb };
	release_contents(&other);
}

static void set_offers(const struct fa_solve *s, struct fa_plan_build *b)
{
	static const char *const profiles[] = { "full", "training", "inference" };
	enum { N = sizeof(profiles) / sizeof(*profiles) };

	b->offers = fa_calloc(N + 1, sizeof(*b->offers));
	for (size_t i = 0; i < N; i++)
		offer(s, b, profiles[i]);
	if (says(b->profile, "custom"))
		offer(s, b, "custom");
}

/* ---- what is compiled */

/* Of a release's own list what the cards run; all of it where no card is known. build.py gives nvcc these, whatever setup.py says. */
static void set_fixed_archs(const struct fa_solve *s, const char *fixed, struct fa_strv *archs)
{
	struct fa_strv all = FA_STRV_INIT;

	fa_strv_release(archs);
	fa_strv_split(&all, fixed, " ");
	for (size_t i = 0; i < all.n; i++)
		for (size_t k = 0; k < s->n_cards; k++)
			if (s->cards[k].served && s->cards[k].row && fa_words_has(s->cards[k].row->codes, all.v[i]) &&
			    !fa_strv_has(archs, all.v[i]))
				fa_strv_push(archs, all.v[i]);
	if (!archs->n)
		fa_strv_append(archs, &all);
	fa_strv_release(&all);
}

static void set_archs(struct fa_solve *s, struct fa_plan_build *b)
{
	const char *fixed = s->v[FA_NAME_FILE_CODES], *read = s->v[FA_NAME_RELEASE_ARCHS_READ];

	for (size_t i = 0; i < s->n_cards; i++) {
		const struct fa_card *c = &s->cards[i];

		if (c->served && c->row && c->row->compile && !fa_strv_has(&b->archs, c->row->compile))
			fa_strv_push(&b->archs, c->row->compile);
	}
	if (fixed && *fixed && says(read, "no"))
		set_fixed_archs(s, fixed, &b->archs);
	fa_strv_sort(&b->archs);
}

void fa_solve_build(struct fa_solve *s, struct fa_plan_build *b)
{
	const struct fa_kb_release *r = s->found.release;
	struct load l;

	b->wanted = true;
	set_profile(s, b);
	if (is_ck(s))
		fa_strv_append(&b->archs, &s->plan->choice.archs);
	else
		set_archs(s, b);
	measure(s, b, &l);
	b->units = units_of(s, b, &l);
	set_jobs(s, b, &l);
	warn_of_features(s, b, r);
	forecast(s, b);
	set_offers(s, b);
}
