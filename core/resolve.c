/* Stage 2: facts + wish + knowledge -> choice. Who does what:
 * resolve_values.c what rules see; resolve_rules.c trying them, the account; resolve_torch.c which torch; resolve_search.c and
 * resolve_source.c the candidates; resolve_build.c jobs and time; resolve_choice.c choice, actions, warnings; resolve_tree.c the
 * decision tree; resolve_nearest.c what would work instead. */
#include "resolve.h"
#include "buf.h"
#include "json.h"
#include "matrix.h"
#include "matrix_data.h"
#include "version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define V(name) s->v[FA_NAME_##name]

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* ---- the cards to serve */

static bool has_card(const struct fa_solve *s, const char *arch)
{
	for (size_t i = 0; i < s->n_cards; i++)
		if (!strcmp(s->cards[i].arch, arch))
			return true;
	return false;
}

static void add_card(struct fa_solve *s, const char *arch, int index)
{
	if (has_card(s, arch))
		return;
	s->cards = fa_realloc(s->cards, s->n_cards + 1, sizeof(*s->cards));
	s->cards[s->n_cards++] =
	        (struct fa_card){ .arch = fa_solve_keep(s, arch), .row = fa_kb_arch(s->kb, arch), .index = index };
}

static const char *arch_of(const struct fa_solve *s, const struct fa_gpu *g)
{
	return g->arch && *g->arch ? g->arch : g->name ? fa_kb_arch_of_name(s->kb, g->name) : NULL;
}

/* Cards that a program would see: numbers in CUDA_VISIBLE_DEVICES count per vendor; anything else there is not understood. */
static bool is_visible(const struct fa_solve *s, const struct fa_gpu *g, int number)
{
	const char *list = fa_solve_env(s, says(g->vendor, "amd") ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
	struct fa_strv words = FA_STRV_INIT;
	bool visible = false, understood = true;

	if (!list || !*list)
		return true;
	fa_strv_split(&words, list, ", ");
	for (size_t i = 0; i < words.n; i++) {
		if (!isdigit((unsigned char)words.v[i][0]) && words.v[i][0] != '-')
			understood = false;
		else if (isdigit((unsigned char)words.v[i][0]) && atoi(words.v[i]) == number)
			visible = true;
	}
	fa_strv_release(&words);
	return visible || !understood;
}

static void add_cards_of(struct fa_solve *s, const char *vendor)
{
	int number = 0;

	for (size_t i = 0; i < s->facts->n_gpus; i++) {
		const struct fa_gpu *g = &s->facts->gpus[i];

		if (!says(g->vendor, vendor))
			continue;
		if (is_visible(s, g, number++) && arch_of(s, g))
			add_card(s, arch_of(s, g), (int)i);
	}
}

/* The vendor of the torch that is there, when it has a card here; else NVIDIA before AMD. */
static const char *vendor_first(const struct fa_solve *s)
{
	bool hip = V(FACT_TORCH_HIP) && *V(FACT_TORCH_HIP), torch = fa_facts_has(s->facts, FA_FACT_TORCH);

	return torch && hip ? "amd" : "nvidia";
}

static void find_cards(struct fa_solve *s)
{
	const char *first = vendor_first(s), *second = says(first, "amd") ? "nvidia" : "amd";

	add_cards_of(s, first);
	V(VENDOR) = s->n_cards ? first : NULL;
	if (s->n_cards)
		return;
	add_cards_of(s, second);
	V(VENDOR) = s->n_cards ? second : NULL;
}

static bool is_here(const struct fa_solve *s, const char *arch)
{
	for (size_t i = 0; i < s->facts->n_gpus; i++)
		if (says(arch_of(s, &s->facts->gpus[i]), arch))
			return true;
	return false;
}

/* "9.0" and "sm_90" mean 90. */
static const char *plain_arch(struct fa_solve *s, const char *word)
{
	struct fa_buf b = FA_BUF_INIT;

	if (!strncmp(word, "sm_", 3))
		word += 3;
	for (; *word; word++)
		if (*word != '.')
			fa_buf_addc(&b, *word);
	fa_buf_adds(&b, "");
	return fa_solve_keep_text(s, fa_buf_detach(&b));
}

static void wish_cards(struct fa_solve *s, const char *list)
{
	struct fa_strv words = FA_STRV_INIT;
	bool here = true;

	fa_strv_split(&words, list, ", ;");
	for (size_t i = 0; i < words.n; i++) {
		const char *arch = plain_arch(s, words.v[i]);

		add_card(s, arch, -1);
		here = here && is_here(s, arch);
	}
	fa_strv_release(&words);
	V(PLANNED) = here ? "no" : "yes";
	V(VENDOR) = !s->n_cards ? NULL : !strncmp(s->cards[0].arch, "gfx", 3) ? "amd" : "nvidia";
}

static void set_cards(struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_ARCH);

	V(PLANNED) = "no";
	if (wish) {
		wish_cards(s, wish);
		return;
	}
	find_cards(s);
	s->cards_unknown = !s->n_cards && !s->facts->gpus_known && s->facts->n_problems;
	s->no_card = !s->n_cards && !s->cards_unknown;
}

/* ---- one question, one answer */

static void release(struct fa_solve *s)
{
	for (size_t i = 0; i < s->n_folds; i++) {
		fa_strv_release(&s->folds[i].found);
		fa_strv_release(&s->folds[i].needed);
		fa_strv_release(&s->folds[i].names);
	}
	free(s->folds);
	free(s->cards);
	free(s->torch);
	free(s->files);
	fa_strv_release(&s->pool);
}

/* Offline and nothing at hand: what would be done with network, and that its files must be brought. */
static int ask_with_network(struct fa_solve *s)
{
	const struct fa_json *row = fa_kb_id(s->kb, "offline_missing");
	struct fa_wish online = FA_WISH_INIT, asked = FA_WISH_INIT;
	struct fa_plan *p = s->plan;
	char *missing, *text, *command;
	int rc;

	fa_wish_copy(&online, s->wish);
	fa_wish_copy(&asked, s->wish);
	free(online.v[FA_WISH_OFFLINE]);
	online.v[FA_WISH_OFFLINE] = NULL;
	fa_plan_release(p);
	rc = fa_solve_once(p, s->facts, &online, s->kb,
	                   (s->free_torch ? FA_SOLVE_FREE_TORCH : 0u) | (s->quiet ? FA_SOLVE_QUIET : 0u));
	fa_wish_release(&p->wish);
	p->wish = asked;
	if (rc == 0 && p->status != FA_PLAN_IMPOSSIBLE &&
	    !(says(p->choice.route, "sdpa") && fa_facts_has(s->facts, FA_FACT_TORCH))) {
		missing = p->choice.wheel.name ? fa_strdup(p->choice.wheel.name)
		                               : fa_strf("%s %s", p->choice.package ? p->choice.package : "torch",
		                                         p->choice.flash_attn ? p->choice.flash_attn : "");
		fa_solve_extra(s, "missing", missing);
		text = fa_solve_text(s, fa_json_get_string(row, "text") ? fa_json_get_string(row, "text") : "offline", NULL);
		command = fa_json_get_string(row, "command") ? fa_solve_command(s, fa_json_get_string(row, "command"), NULL)
		                                             : NULL;
		fa_plan_act(p, "offline_missing", text, command);
		free(command);
		p->status = FA_PLAN_ACTION;
		free(text);
	}
	fa_wish_release(&online);
	return rc;
}

/* What would be done with the torch of the board's maker, and that it must be installed first. */
static int ask_with_torch_of_board(struct fa_solve *s)
{
	const struct fa_json *row = fa_kb_id(s->kb, "torch_of_board");
	const char *cuda = fa_json_get_string(s->board, "cuda"), *name = fa_json_get_string(s->board, "name");
	const char *pattern = fa_json_get_string(row, "text");
	struct fa_facts with = FA_FACTS_INIT;
	struct fa_strv archs = FA_STRV_INIT;
	struct fa_wish wish = FA_WISH_INIT;
	struct fa_plan *p = s->plan;
	char *text;
	int rc;

	fa_facts_merge(&with, s->facts);
	fa_facts_set_text(&with, FA_FACT_TORCH, fa_json_get_string(s->board, "torch"), NULL);
	fa_facts_set_text(&with, FA_FACT_TORCH_CUDA, cuda, NULL);
	fa_facts_set_text(&with, FA_FACT_TORCH_HIP, "", NULL);
	fa_facts_set_bool(&with, FA_FACT_TORCH_CXX11ABI, true, NULL);
	fa_strv_split(&archs, fa_json_get_string(s->board, "archs"), " ");
	fa_facts_set_list(&with, FA_FACT_TORCH_ARCHS, &archs, NULL);
	fa_wish_copy(&wish, s->wish);
	fa_plan_release(p);
	rc = fa_solve_once(p, &with, &wish, s->kb, s->quiet ? FA_SOLVE_QUIET : 0u);
	if (rc == 0 && p->status != FA_PLAN_IMPOSSIBLE) {
		fa_solve_extra(s, "board_torch", fa_strdup(name));
		text = fa_solve_text(s, pattern ? pattern : "torch_of_board", NULL);
		fa_plan_act(p, "torch_of_board", text, NULL);
		for (size_t i = 0; i < p->n_tree; i++)
			if (says(p->tree[i].question, "torch")) {
				free(p->tree[i].because);
				p->tree[i].because = fa_strdup(name);
			}
		p->status = FA_PLAN_ACTION;
		free(text);
	}
	fa_wish_release(&wish);
	fa_facts_release(&with);
	fa_strv_release(&archs);
	return rc;
}

/* Whose rule it is and whom to ask: the refusals themselves say what is forbidden. */
static void warn_of_policy(struct fa_solve *s)
{
	const struct fa_json *row = fa_kb_id(s->kb, "policy");
	char *text;

	fa_solve_extra(s, "policy_files", fa_strv_join(&s->kb->policies, ", "));
	fa_solve_extra(s, "policy_text",
	               fa_strf("%s%s", s->kb->policy_text ? " " : "", s->kb->policy_text ? s->kb->policy_text : ""));
	text = fa_solve_text(s, fa_json_get_string(row, "text") ? fa_json_get_string(row, "text") : "policy", NULL);
	for (size_t i = 0; i < s->plan->n_warnings; i++)
		if (!strcmp(s->plan->warnings[i].id, "policy")) {
			free(text);
			return;
		}
	fa_plan_warn(s->plan, "policy", text, s->kb->policies.n ? s->kb->policies.v[0] : NULL);
	free(text);
}

int fa_solve_once(struct fa_plan *out, const struct fa_facts *facts, const struct fa_wish *wish, struct fa_kb *kb, unsigned how)
{
	struct fa_solve s = { .kb = kb, .facts = facts, .wish = wish, .plan = out };
	bool quiet = (how & FA_SOLVE_QUIET) != 0;
	int rc = 0;

	s.free_torch = (how & FA_SOLVE_FREE_TORCH) != 0;
	s.quiet = quiet;
	s.ready = (how & FA_SOLVE_READY) && !says(fa_wish_get(wish, FA_WISH_ROUTE), "sdpa");

	*out = (struct fa_plan)FA_PLAN_INIT;
	fa_wish_copy(&out->wish, wish);
	fa_solve_host(&s);
	set_cards(&s);
	fa_solve_choose_rules(&s);
	fa_solve_search(&s);
	if (s.found.any) {
		fa_solve_choose(&s);
		if (!quiet)
			fa_solve_explain(&s);
	} else if (s.board) {
		rc = ask_with_torch_of_board(&s);
	} else if (fa_solve_wished(&s, FA_WISH_OFFLINE) && !s.ready) {
		rc = ask_with_network(&s);
	} else {
		out->status = FA_PLAN_IMPOSSIBLE;
	}
	if (!quiet)
		fa_solve_account(&s);
	if (s.forbidden)
		warn_of_policy(&s);
	if (!quiet && out->status == FA_PLAN_IMPOSSIBLE && !out->n_rejected)
		fa_plan_reject(out, "every candidate", "no_file", "a file or a way to build it", "none");
	release(&s);
	return rc;
}

static const char *const CHECKS[] = { "import", "symbols", "archs", "function", "speed", "memory", "used" };

int fa_resolve(struct fa_plan *out, const struct fa_facts *facts, const struct fa_wish *wish, struct fa_matrix *matrix,
               struct fa_err *err)
{
	struct fa_kb *kb;

	*out = (struct fa_plan)FA_PLAN_INIT;
	if (fa_matrix_kb(&kb, matrix, err) < 0)
		return -1;
	fa_kb_tidy(kb);
	fa_solve_once(out, facts, wish, kb, 0);
	if (fa_matrix_data(matrix)->notice)
		fa_plan_warn(out, "update_not_used", fa_matrix_data(matrix)->notice, "fainstall matrix show data");
	if (out->status == FA_PLAN_IMPOSSIBLE)
		fa_solve_nearest(out, facts, kb);
	else
		for (size_t i = 0; i < sizeof(CHECKS) / sizeof(CHECKS[0]); i++)
			fa_strv_push(&out->checks, CHECKS[i]);
	return 0;
}
