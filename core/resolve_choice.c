/* From what the search found to the plan's choice, what must change on the machine first, and what to be warned of. */
#include "buf.h"
#include "json.h"
#include "resolve.h"
#include "version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define V(name) s->v[FA_NAME_##name]

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static const char *const ROUTES[] = {
	[FA_CLASS_KEEP] = "keep",     [FA_CLASS_WHEEL] = "wheel",   [FA_CLASS_CK] = "ck",
	[FA_CLASS_TRITON] = "triton", [FA_CLASS_SOURCE] = "source", [FA_CLASS_SDPA] = "sdpa",
};

/* ---- values as they stand for the choice */

static void mark_served(struct fa_solve *s)
{
	static const enum fa_rule_on KEEP[] = { FA_ON_TORCH_CARD, FA_ON_RELEASE_CARD };
	static const enum fa_rule_on WHEEL[] = { FA_ON_TORCH_CARD, FA_ON_RELEASE_CARD, FA_ON_FILE_CARD };
	static const enum fa_rule_on SOURCE[] = { FA_ON_TORCH_CARD, FA_ON_RELEASE_CARD, FA_ON_TOOLKIT_CARD };
	static const enum fa_rule_on CK[] = { FA_ON_TORCH_CARD, FA_ON_CK_CARD };
	static const enum fa_rule_on TRITON[] = { FA_ON_TORCH_CARD, FA_ON_TRITON_CARD };
	static const enum fa_rule_on SDPA[] = { FA_ON_TORCH_CARD };
	static const struct {
		const enum fa_rule_on *on;
		size_t n;
	} SETS[] = {
		[FA_CLASS_KEEP] = { KEEP, 2 },     [FA_CLASS_WHEEL] = { WHEEL, 3 },   [FA_CLASS_CK] = { CK, 2 },
		[FA_CLASS_TRITON] = { TRITON, 2 }, [FA_CLASS_SOURCE] = { SOURCE, 3 }, [FA_CLASS_SDPA] = { SDPA, 1 },
	};
	struct fa_repairs none = { .n = 0 };

	s->repairs = s->found.repairs.n ? &none : NULL;
	fa_solve_count_served(s, SETS[s->found.class].on, SETS[s->found.class].n, true);
	s->repairs = NULL;
}

static const struct fa_card *first_served(const struct fa_solve *s)
{
	for (size_t i = 0; i < s->n_cards; i++)
		if (s->cards[i].served)
			return &s->cards[i];
	return NULL;
}

static void set_values(struct fa_solve *s)
{
	const struct fa_found *f = &s->found;

	fa_solve_set_torch(s, f->torch);
	fa_solve_set_release(s, f->line, f->version, f->release);
	fa_solve_set_file(s, f->file);
	if (f->class == FA_CLASS_SOURCE)
		fa_solve_set_toolkit(s, f->toolkit.version ? &f->toolkit : NULL);
	if (f->class == FA_CLASS_SOURCE && f->toolkit.version && f->release && f->release->profile &&
	    !f->release->profile->archs_read)
		fa_json_each (row, f->release->profile->gencode)
			if (fa_version_compare(fa_json_string(fa_json_at(row, 0)), f->toolkit.version) <= 0)
				V(FILE_CODES) = fa_json_string(fa_json_at(row, 1));
	V(ROUTE) = ROUTES[f->class];
	mark_served(s);
	fa_solve_set_card(s, first_served(s) ? first_served(s) : s->n_cards ? &s->cards[0] : NULL);
}

/* ---- the choice */

static char *python_word(const struct fa_solve *s)
{
	return V(PYTHON_MINOR) ? fa_strf("%s%s", V(PYTHON_MINOR), says(V(FREE_THREADED), "yes") ? "t" : "") : NULL;
}

static void choose_wheel(struct fa_solve *s, struct fa_choice *c)
{
	const struct fa_kb_file *f = s->found.file;

	c->wheel.name = fa_kb_file_name(s->kb, f, V(PYTHON_TAG) ? V(PYTHON_TAG) : "3");
	c->wheel.url = f->canonical ? fa_strdup(f->canonical) : fa_kb_file_url(s->kb, f, c->wheel.name);
	c->wheel.mirror = f->canonical ? fa_strdup(f->url) : NULL;
	c->wheel.source = fa_strdup(f->canonical ? f->copy_of->name : f->source->name);
	c->wheel.sha256 = fa_strdup(f->sha256);
	for (size_t i = 0; i < s->n_fallbacks; i++) {
		char *name = fa_kb_file_name(s->kb, s->fallbacks[i], V(PYTHON_TAG) ? V(PYTHON_TAG) : "3");
		char *url = fa_kb_file_url(s->kb, s->fallbacks[i], name);

		if (url) /* one of an index is another set of packages: that is another plan */
			fa_strv_push(&s->plan->fallbacks, url);
		free(url);
		free(name);
	}
	fa_solve_extra(s, "wheel_name", fa_strdup(c->wheel.name));
	fa_solve_extra(s, "source_text", fa_strdup(f->source->text ? f->source->text : f->source->name));
}

static char *package_of(const struct fa_solve *s)
{
	const struct fa_kb_line *l = fa_kb_line(s->kb, s->found.line);

	if (s->found.file && says(s->found.source, "pypi"))
		return fa_strdup(s->found.file->package);
	return fa_strdup(l ? l->package : NULL);
}

static void set_settings(struct fa_solve *s, struct fa_plan_build *b, const struct fa_json *settings)
{
	fa_json_each (row, fa_json_get(settings, "rows")) {
		struct fa_rule when;
		const char *set = fa_json_get_string(row, "set");

		if (!set || fa_rule_compile(&when, fa_json_get_string(row, "when"), fa_name_find_word, NULL, NULL) < 0)
			continue;
		if (fa_rule_test(&when, s->v, NULL) == FA_TRUE)
			fa_strv_take(&b->env, fa_solve_text(s, set, NULL));
		fa_rule_release(&when);
	}
}

/* "120" -> "12.0", "90" -> "9.0" */
static char *dotted(const struct fa_strv *archs)
{
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < archs->n; i++) {
		size_t n = strlen(archs->v[i]);

		fa_buf_addf(&b, "%s%.*s.%s", i ? ";" : "", (int)n - 1, archs->v[i], archs->v[i] + n - 1);
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

static void choose_build(struct fa_solve *s, struct fa_choice *c)
{
	struct fa_plan_build *b = &c->build;

	if (s->found.class == FA_CLASS_SOURCE || s->found.class == FA_CLASS_CK) {
		fa_solve_build(s, b);
	} else {
		b->wanted = true;
		b->profile = fa_strdup("full");
		b->backward = true;
		b->jobs = V(FACT_CORES) ? atoi(V(FACT_CORES)) : 1;
		if (V(MEMORY) && atoi(V(MEMORY)) / 6000 < b->jobs)
			b->jobs = atoi(V(MEMORY)) / 6000 > 0 ? atoi(V(MEMORY)) / 6000 : 1;
		fa_strv_append(&b->archs, &c->archs);
	}
	fa_solve_extra(s, "archs", fa_strv_join(&b->archs, ";"));
	fa_solve_extra(s, "archs_dotted", dotted(&b->archs));
	fa_solve_extra(s, "jobs", fa_strf("%d", b->jobs));
	fa_solve_extra(s, "units", fa_strf("%d", b->units));
	b->toolkit = fa_strdup(s->found.toolkit.version);
	b->toolkit_home = fa_strdup(s->found.toolkit.home);
	fa_solve_extra(s, "cuda_home_chosen", fa_strdup(s->found.toolkit.home ? s->found.toolkit.home : ""));
	set_settings(s, b, s->kb->settings);
}

static void choose(struct fa_solve *s)
{
	struct fa_choice *c = &s->plan->choice;
	const struct fa_found *f = &s->found;

	c->route = fa_strdup(ROUTES[f->class]);
	c->line = fa_strdup(f->line);
	c->flash_attn = fa_strdup(f->version);
	c->torch = fa_strdup(f->torch->version);
	c->torch_build = fa_strdup(f->torch->word);
	c->cuda = fa_strdup(f->torch->cuda);
	c->python = python_word(s);
	for (size_t i = 0; i < s->n_cards; i++)
		if (s->cards[i].served && !fa_strv_has(&c->archs, s->cards[i].arch))
			fa_strv_push(&c->archs, s->cards[i].arch);
	if (f->class == FA_CLASS_SDPA)
		return;
	c->package = package_of(s);
	if (f->class == FA_CLASS_WHEEL)
		choose_wheel(s, c);
	else if (f->class != FA_CLASS_KEEP)
		choose_build(s, c);
}

/* ---- actions */

static bool is_plain(const char *word)
{
	return *word &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,+:/@%=") == strlen(word);
}

/* The wish as words of a command, without the option that the command sets itself (after {and_wishes}) and what goes with it. */
static char *other_wishes(const struct fa_solve *s, const char *command)
{
	struct fa_wish rest = FA_WISH_INIT;
	struct fa_strv words = FA_STRV_INIT;
	struct fa_buf b = FA_BUF_INIT;
	enum fa_wish_id drop = strstr(command, "--arch")     ? FA_WISH_ARCH
	                       : strstr(command, "--torch ") ? FA_WISH_TORCH
	                                                     : FA_WISH_OFFLINE;

	fa_wish_copy(&rest, s->wish);
	free(rest.v[drop]);
	rest.v[drop] = NULL;
	if (drop == FA_WISH_TORCH) {
		free(rest.v[FA_WISH_KEEP_TORCH]);
		rest.v[FA_WISH_KEEP_TORCH] = NULL;
	}
	fa_wish_argv(&rest, &words);
	for (size_t i = 0; i < words.n; i++)
		fa_buf_addf(&b, is_plain(words.v[i]) ? " %s" : " '%s'", words.v[i]);
	fa_buf_adds(&b, "");
	fa_strv_release(&words);
	fa_wish_release(&rest);
	return fa_buf_detach(&b);
}

char *fa_solve_command(struct fa_solve *s, const char *command, const struct fa_verdict *why)
{
	if (strstr(command, "{and_wishes}"))
		fa_solve_extra(s, "and_wishes", other_wishes(s, command));
	return fa_solve_text(s, command, why);
}

static void act(struct fa_solve *s, const char *id, const struct fa_verdict *why)
{
	const struct fa_json *row = fa_kb_id(s->kb, id);
	const char *pattern = fa_json_get_string(row, "text"), *command = fa_json_get_string(row, "command");
	char *text, *line;

	for (size_t i = 0; i < s->plan->n_actions; i++)
		if (!strcmp(s->plan->actions[i].id, id))
			return;
	text = fa_solve_text(s, pattern ? pattern : id, why);
	line = command ? fa_solve_command(s, command, why) : NULL;
	fa_plan_act(s->plan, id, text, line);
	free(text);
	free(line);
}

static void act_on_repairs(struct fa_solve *s, const struct fa_repairs *repairs)
{
	for (size_t i = 0; i < repairs->n; i++) {
		fa_solve_extra(s, "found_codes", fa_verdict_needed(&repairs->v[i].why));
		act(s, repairs->v[i].rule->action, &repairs->v[i].why);
	}
}

/* Several tools may meet the same fault. */
static bool is_told(const struct fa_plan *p, const char *id, const char *text)
{
	for (size_t i = 0; i < p->n_actions; i++)
		if (!strcmp(p->actions[i].id, id) || !strcmp(p->actions[i].text, text))
			return true;
	return false;
}

static void act_on_faults(struct fa_solve *s)
{
	for (size_t i = 0; s->cards_unknown && i < s->facts->n_problems; i++) {
		const struct fa_problem *p = &s->facts->problems[i];
		char *text =
		        fa_strf("The cards could not be read: %s. %s%s", p->text ? p->text : p->id, p->repair ? p->repair : "",
		                p->repair ? ", then run fainstall again; --arch names the cards without it." : "");

		if (!is_told(s->plan, p->id ? p->id : "gpu_fault", text))
			fa_plan_act(s->plan, p->id ? p->id : "gpu_fault", text, NULL);
		free(text);
	}
}

/* Cards that are known from the bus though the driver has a fault: the plan stands, but nothing runs on them before it is mended. */
static void warn_of_faults(struct fa_solve *s)
{
	for (size_t i = 0; s->n_cards && i < s->facts->n_problems; i++) {
		const struct fa_problem *p = &s->facts->problems[i];
		char *text;

		if (!p->id || (strncmp(p->id, "driver_", 7) != 0 && strcmp(p->id, "gpu_lost") != 0))
			continue;
		text = fa_strf("%s. Mend it first: %s.", p->text ? p->text : p->id,
		               p->repair ? p->repair : "see the driver's log");
		fa_plan_warn(s->plan, p->id, text, p->tool);
		free(text);
	}
}

static long mib_of(const struct fa_solve *s, const char *what)
{
	return (long)fa_json_get_number(s->kb->disk_mib, what, 0);
}

/* What the plan puts on the disk. */
static void set_disk(struct fa_solve *s)
{
	const struct fa_found *f = &s->found;
	long mib = 0;

	if (!f->torch->kept)
		mib += says(f->torch->vendor, "none") ? mib_of(s, "torch_cpu") : mib_of(s, "torch");
	if (f->class == FA_CLASS_WHEEL || f->class == FA_CLASS_TRITON)
		mib += mib_of(s, "wheel");
	if (f->class == FA_CLASS_SOURCE || f->class == FA_CLASS_CK)
		mib += mib_of(s, "source") + (f->toolkit.pip ? mib_of(s, "toolkit") : 0);
	V(DISK_NEEDED) = fa_solve_keep_text(s, fa_strf("%ld", mib));
}

/* Are the cards missed? Not where torch's own attention was asked for with a torch that serves no card. */
bool fa_solve_needs_cards(const struct fa_solve *s)
{
	const char *torch = fa_solve_wished(s, FA_WISH_TORCH), *build = torch ? strchr(torch, '+') : NULL;
	bool processor = says(build, "+cpu") && says(fa_solve_wished(s, FA_WISH_ROUTE), "sdpa");

	return s->no_card && !processor && (says(V(FACT_OS), "linux") || says(V(FACT_OS), "windows"));
}

/* Without an architecture nothing can be chosen: say whether there is no card, or one that nobody knows. */
static void act_on_no_card(struct fa_solve *s)
{
	if (!s->facts->n_gpus) {
		act(s, "name_the_cards", NULL);
		return;
	}
	fa_solve_extra(s, "card", fa_strdup(s->facts->gpus[0].name ? s->facts->gpus[0].name : "without a name"));
	act(s, "arch_unknown", NULL);
}

/* uv and conda bring a Python of their own. */
bool fa_solve_no_python(const struct fa_solve *s)
{
	return says(V(FACT_PYTHON), "") && !fa_facts_has(s->facts, FA_FACT_UV) && !fa_facts_has(s->facts, FA_FACT_CONDA);
}

static void act_on_all(struct fa_solve *s)
{
	struct fa_repairs plan = { .n = 0 };
	struct fa_verdict why;

	fa_solve_extra(s, "missing",
	               s->found.class == FA_CLASS_SDPA || !s->found.version
	                       ? fa_strdup("torch")
	                       : fa_strf("the source archive of flash-attn %s", s->found.version));
	act_on_faults(s);
	warn_of_faults(s);
	if (fa_solve_needs_cards(s))
		act_on_no_card(s);
	if (fa_solve_no_python(s))
		act(s, "python_missing", NULL);
	act_on_repairs(s, &s->first);
	act_on_repairs(s, &s->found.repairs);
	set_disk(s);
	fa_solve_extra(s, "missing", fa_strdup("torch"));
	s->repairs = &plan;
	fa_solve_broken(s, FA_ON_PLAN, &why);
	s->repairs = NULL;
	act_on_repairs(s, &plan);
}

/* ---- warnings */

static void warn(struct fa_solve *s, const char *id)
{
	const struct fa_json *row = fa_kb_id(s->kb, id);
	const char *pattern = fa_json_get_string(row, "text");
	char *text = fa_solve_text(s, pattern ? pattern : id, NULL);

	for (size_t i = 0; i < s->plan->n_warnings; i++) /* several settings may be ignored, each for a reason of its own */
		if (!strcmp(s->plan->warnings[i].id, id) &&
		    (!says(id, "setting_ignored") || says(s->plan->warnings[i].text, text)))
			goto done;
	fa_plan_warn(s->plan, id, text, fa_json_get_string(row, "source"));
done:
	free(text);
}

static void warn_by_rules(struct fa_solve *s)
{
	for (size_t i = 0; i < s->kb->n_warnings; i++) {
		const struct fa_kb_rule *r = &s->kb->warnings[i];

		for (size_t c = 0; c == 0 || c < s->n_cards; c++) {
			if (c < s->n_cards && s->cards[c].served)
				fa_solve_set_card(s, &s->cards[c]);
			if (fa_rule_test(&r->when, s->v, NULL) == FA_TRUE) {
				warn(s, r->id);
				break;
			}
		}
	}
	fa_solve_set_card(s, first_served(s) ? first_served(s) : s->n_cards ? &s->cards[0] : NULL);
}

static char *duration(int seconds)
{
	if (seconds <= 0)
		return fa_strdup("an unknown time");
	if (seconds < 5400)
		return fa_strf("%d min", (seconds + 59) / 60);
	return fa_strf("%d h %02d min", seconds / 3600, seconds % 3600 / 60);
}

/* A pair of torch and file that needs no compiling: the answer to the same question when torch could be chosen. */
static char *older_pair(struct fa_solve *s)
{
	struct fa_plan p = FA_PLAN_INIT;
	struct fa_wish w = FA_WISH_INIT;
	char *text = NULL;

	fa_wish_copy(&w, s->wish);
	fa_wish_set(&w, FA_WISH_ROUTE, "wheel", NULL);
	fa_wish_set(&w, FA_WISH_LINE, s->found.line, NULL);
	if (fa_solve_once(&p, s->facts, &w, s->kb, FA_SOLVE_FREE_TORCH | FA_SOLVE_QUIET) == 0 &&
	    p.status != FA_PLAN_IMPOSSIBLE && p.choice.wheel.name)
		text = fa_strf("--torch %s+%s has %s", p.choice.torch, p.choice.torch_build, p.choice.wheel.name);
	fa_plan_release(&p);
	fa_wish_release(&w);
	return text ? text : fa_strdup("none is known for this machine");
}

static void warn_of_building(struct fa_solve *s)
{
	if (s->found.class != FA_CLASS_SOURCE || s->quiet)
		return;
	if (fa_solve_wished(s, FA_WISH_ROUTE))
		return;
	fa_solve_extra(s, "estimate", duration(s->plan->choice.build.estimate_s));
	fa_solve_extra(s, "older_pair", older_pair(s));
	warn(s, "source_build");
}

/* Why the toolkit that is here does not do, when the plan brings another. */
static void warn_of_toolkit(struct fa_solve *s)
{
	struct fa_buf why = FA_BUF_INIT;

	if (s->found.class != FA_CLASS_SOURCE || !s->found.toolkit.pip)
		return;
	for (size_t i = 0; i < s->n_folds; i++) {
		const struct fa_fold *f = &s->folds[i];

		if (!says(f->kind, "toolkit") || !f->names.n || !f->needed.n)
			continue;
		fa_buf_addf(&why, "%snvcc %s here does not do: %s, needed %s, found %s", why.len ? "; " : "", f->names.v[0],
		            f->rule, f->needed.v[0], f->found.n ? f->found.v[0] : "");
		if (!strncmp(f->rule, "compiler", 8))
			fa_buf_addf(&why, " (host compiler %s)", V(FACT_CXX) ? V(FACT_CXX) : "");
	}
	fa_buf_adds(&why, why.len ? "" : "no nvcc is here");
	fa_solve_extra(s, "why", fa_buf_detach(&why));
	warn(s, "toolkit_brought");
}

/* The user named a toolkit and another one compiles. */
static void warn_of_home(struct fa_solve *s)
{
	const char *asked = fa_solve_env(s, "CUDA_HOME"), *used = s->found.toolkit.home;

	if (s->found.class != FA_CLASS_SOURCE || !asked || !*asked || (used && says(used, asked)))
		return;
	if (!used && !s->found.toolkit.pip)
		return; /* an action says what is missing */
	fa_solve_extra(s, "cuda_home", fa_strdup(asked));
	fa_solve_extra(s, "instead", fa_strdup(used ? used : "the toolkit from wheels"));
	warn(s, "cuda_home_ignored");
}

static void warn_of_settings(struct fa_solve *s)
{
	fa_json_each (row, s->kb->bad_settings) {
		const char *name = fa_json_get_string(row, "name"), *unless = fa_json_get_string(row, "unless");
		const char *value = name ? fa_solve_env(s, name) : NULL;

		if (!value || !*value || says(value, unless))
			continue;
		fa_solve_extra(s, "setting", fa_strf("%s=%s", name, value));
		fa_solve_extra(s, "why", fa_strdup(fa_json_get_string(row, "why")));
		warn(s, "setting_ignored");
	}
}

static bool has_extra(const struct fa_solve *s, const char *name)
{
	for (size_t i = 0; i < s->n_extra; i++)
		if (!strcmp(s->extra[i].name, name))
			return true;
	return false;
}

static void warn_of_torch(struct fa_solve *s)
{
	const char *python = V(FACT_PYTHON), *wish = fa_solve_wished(s, FA_WISH_PYTHON);
	char *head = python && *python ? fa_version_head(python, 2) : NULL;

	if (fa_facts_has(s->facts, FA_FACT_TORCH) && !s->found.torch->kept && !s->first.n && !s->free_torch)
		warn(s, "torch_replaced");
	if (wish && head && strncmp(wish, head, strlen(head)) != 0)
		warn(s, "python_interpreter_needed");
	free(head);
}

static char *card_text(const struct fa_gpu *g, const char *arch)
{
	return fa_strf("%s (%s)", g->name ? g->name : g->vendor ? g->vendor : "card", arch ? arch : "unknown architecture");
}

static void warn_of_line(struct fa_solve *s)
{
	struct fa_buf b = FA_BUF_INIT;

	if (s->found.class != FA_CLASS_SDPA || says(fa_solve_wished(s, FA_WISH_ROUTE), "sdpa"))
		return;
	for (size_t i = 0; i < s->n_cards; i++) {
		const struct fa_card *c = &s->cards[i];
		char *text = c->index >= 0 ? card_text(&s->facts->gpus[c->index], c->arch) : fa_strdup(c->arch);

		fa_buf_addf(&b, "%s%s%s%s", i ? ", " : "", text, c->row ? ", " : "", c->row ? c->row->family : "");
		free(text);
	}
	for (size_t i = 0; !s->n_cards && i < s->facts->n_gpus; i++) {
		char *text = card_text(&s->facts->gpus[i], s->facts->gpus[i].arch);

		fa_buf_addf(&b, "%s%s", i ? ", " : "", text);
		free(text);
	}
	if (!s->n_cards && s->facts->n_gpus)
		fa_buf_adds(&b, ": no torch that it runs holds code for that");
	else if (!s->n_cards)
		fa_buf_adds(&b, says(V(FACT_OS), "darwin") ? "macOS: it needs CUDA or ROCm" : "no CUDA or ROCm card is known");
	fa_solve_extra(s, "served_not", fa_buf_detach(&b));
	warn(s, "no_line_serves");
}

static void warn_all(struct fa_solve *s)
{
	fa_solve_extra(s, "torch_was", fa_strdup(V(FACT_TORCH) ? V(FACT_TORCH) : ""));
	warn_of_line(s);
	warn_by_rules(s);
	warn_of_building(s);
	warn_of_toolkit(s);
	warn_of_home(s);
	warn_of_settings(s);
	warn_of_torch(s);
	if (has_extra(s, "features_that_stay"))
		warn(s, "features_that_stay");
	if (has_extra(s, "jobs_limited"))
		warn(s, "jobs_limited");
	if (has_extra(s, "max_jobs_ignored"))
		warn(s, "max_jobs_ignored");
}

/* ---- unlike cards */

static const struct fa_card *card_of(const struct fa_solve *s, const char *arch)
{
	for (size_t i = 0; arch && i < s->n_cards; i++)
		if (!strcmp(s->cards[i].arch, arch))
			return &s->cards[i];
	return NULL;
}

static bool unlike(const struct fa_facts *f)
{
	for (size_t i = 1; i < f->n_gpus; i++)
		if (f->gpus[i].arch && f->gpus[0].arch && strcmp(f->gpus[i].arch, f->gpus[0].arch) != 0)
			return true;
	return false;
}

static void serve_card(struct fa_solve *s, const struct fa_gpu *g, struct fa_buf *not_served)
{
	const struct fa_card *c = card_of(s, g->arch);
	const struct fa_choice *choice = &s->plan->choice;
	char *because, *name = card_text(g, g->arch);
	const char *by = c && c->served ? says(choice->line, "none") ? "sdpa" : choice->line : "none";

	if (c && c->served) {
		because = fa_strf("%s: code for it is in the %s", name, s->found.class == FA_CLASS_WHEEL ? "file" : "choice");
	} else if (!c) {
		because = fa_strf("%s: torch %s is not built for it, or it is hidden by CUDA_VISIBLE_DEVICES", name,
		                  choice->torch_build);
	} else if (c->hopeless) {
		by = "sdpa";
		because = fa_strf("%s: no Flash-Attention line serves %s; torch's own attention does", name,
		                  c->row ? c->row->family : c->arch);
	} else {
		by = "sdpa";
		because = fa_strf("%s: no code for it in the %s", name, s->found.class == FA_CLASS_WHEEL ? "file" : "choice");
	}
	fa_plan_serve(s->plan, g->index, g->arch, by, because);
	if (!(c && c->served))
		fa_buf_addf(not_served, "%s%s", not_served->len ? ", " : "", name);
	free(because);
	free(name);
}

static void serve_cards(struct fa_solve *s)
{
	struct fa_buf not_served = FA_BUF_INIT;

	if (!unlike(s->facts))
		return;
	for (size_t i = 0; i < s->facts->n_gpus; i++)
		serve_card(s, &s->facts->gpus[i], &not_served);
	if (not_served.len) {
		fa_solve_extra(s, "not_served", fa_buf_detach(&not_served));
		warn(s, "cards_not_served");
	}
	fa_buf_release(&not_served);
}

void fa_solve_choose(struct fa_solve *s)
{
	set_values(s);
	fa_solve_extra(s, "torch_was", fa_strdup(V(FACT_TORCH) ? V(FACT_TORCH) : ""));
	choose(s);
	act_on_all(s);
	warn_all(s);
	serve_cards(s);
	s->plan->status = s->plan->n_actions ? FA_PLAN_ACTION : FA_PLAN_READY;
}
