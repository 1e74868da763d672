/* Trying rules on what is in hand, and the account of refusals: equal ones are folded into one row. */
#include "buf.h"
#include "json.h"
#include "resolve.h"
#include "version.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDED_KEPT = 8 };

bool fa_solve_can_mend(const struct fa_solve *s, const struct fa_kb_rule *r)
{
	if (r->replace && !(s->v[FA_NAME_KEPT] && !strcmp(s->v[FA_NAME_KEPT], "yes")))
		return false; /* another torch is the answer, and there are others in the list */
	return r->action != NULL;
}

static bool mend(struct fa_solve *s, const struct fa_kb_rule *r, const struct fa_verdict *why)
{
	if (!s->repairs || !fa_solve_can_mend(s, r))
		return false;
	for (size_t i = 0; i < s->repairs->n; i++)
		if (!strcmp(s->repairs->v[i].rule->action, r->action))
			return true;
	if (s->repairs->n < REPAIRS_MAX)
		s->repairs->v[s->repairs->n++] = (struct fa_repair){ r, *why };
	return true;
}

const struct fa_kb_rule *fa_solve_broken(struct fa_solve *s, enum fa_rule_on on, struct fa_verdict *why)
{
	struct fa_rule_memo *memo = s->kb->memo;

	for (size_t i = 0; i < s->kb->n_rules[on]; i++) {
		struct fa_kb_rule *r = &s->kb->rules[on][i];

		if (i < 64 && !(s->live[on] >> i & 1))
			continue;
		if (r->when.n && fa_rule_test_again(&r->when, s->v, memo, NULL) != FA_TRUE)
			continue;
		if (fa_rule_test_again(&r->need, s->v, memo, why) == FA_FALSE && !mend(s, r, why))
			return r;
	}
	return NULL;
}

static const struct fa_kb_rule *broken_card(struct fa_solve *s, const struct fa_card *c, const enum fa_rule_on *on, size_t n,
                                            struct fa_verdict *why)
{
	const struct fa_kb_rule *r = NULL;

	fa_solve_set_card(s, c);
	for (size_t i = 0; i < n && !r; i++)
		r = fa_solve_broken(s, on[i], why);
	return r;
}

/* First pass: every card that the line can serve at all; the second is content with one. With one card both are the same. */
const struct fa_kb_rule *fa_solve_broken_cards(struct fa_solve *s, const enum fa_rule_on *on, size_t n, struct fa_verdict *why)
{
	const struct fa_kb_rule *must = NULL, *may = NULL;
	struct fa_verdict must_why = { 0 }, may_why = { 0 };
	size_t good = 0;

	for (size_t i = 0; i < s->n_cards; i++) {
		const struct fa_kb_rule *r = broken_card(s, &s->cards[i], on, n, why);

		good += !r;
		if (r && !s->cards[i].hopeless && !must) {
			must = r;
			must_why = *why;
		} else if (r && !may) {
			may = r;
			may_why = *why;
		}
	}
	if (good && (s->any_card || !must))
		return NULL;
	*why = must ? must_why : may_why;
	return must ? must : may;
}

size_t fa_solve_count_served(struct fa_solve *s, const enum fa_rule_on *on, size_t n, bool mark)
{
	struct fa_verdict why;
	size_t served = 0;

	for (size_t i = 0; i < s->n_cards; i++) {
		bool good = !broken_card(s, &s->cards[i], on, n, &why);

		served += good;
		if (mark)
			s->cards[i].served = good;
	}
	return served;
}

/* ---- the account */

const char FA_SUBJECT_TORCH[] = "torch", FA_SUBJECT_SOURCE[] = "source fa2", FA_SUBJECT_SOURCE_FA3[] = "source fa3",
           FA_SUBJECT_CK[] = "ck fa2", FA_SUBJECT_TRITON[] = "triton fa2";

/* kind and rule are told apart by their addresses, subjects too: each is held once. */
static size_t *chain_of(struct fa_solve *s, const char *subject, const char *rule)
{
	uintptr_t key = (uintptr_t)subject / 8 ^ (uintptr_t)rule * 31;

	return &s->chains[(key ^ key >> 8) % FA_CHAINS];
}

static bool same_found(const struct fa_fold *f, const char *found)
{
	return !strcmp(f->found.n ? f->found.v[0] : "", found ? found : "");
}

/* What was found is one thing within a row: each of the values needed stands against it. */
static struct fa_fold *find_fold(const struct fa_solve *s, size_t first, const char *kind, const char *subject,
                                 const char *rule, const char *found)
{
	for (size_t i = first; i; i = s->folds[i - 1].next)
		if (s->folds[i - 1].rule == rule && s->folds[i - 1].kind == kind && s->folds[i - 1].subject == subject &&
		    same_found(&s->folds[i - 1], found))
			return &s->folds[i - 1];
	return NULL;
}

static struct fa_fold *fold_of(struct fa_solve *s, const char *kind, const char *subject, const char *rule, const char *found)
{
	size_t *chain = chain_of(s, subject, rule);
	struct fa_fold *f = find_fold(s, *chain, kind, subject, rule, found);

	if (f)
		return f;
	if ((s->n_folds & (s->n_folds - 1)) == 0)
		s->folds = fa_realloc(s->folds, s->n_folds ? 2 * s->n_folds : 1, sizeof(*s->folds));
	f = &s->folds[s->n_folds++];
	*f = (struct fa_fold){ .kind = kind, .rule = rule, .subject = subject, .next = *chain };
	*chain = s->n_folds;
	return f;
}

/* Are there names enough in that row? Then the next one need not be worked out. */
bool fa_solve_named_enough(struct fa_solve *s, const char *kind, const char *subject, const char *rule, const char *found,
                           size_t enough)
{
	const struct fa_fold *f = find_fold(s, *chain_of(s, subject, rule), kind, subject, rule, found);

	return f && f->names.n >= enough;
}

static void note(struct fa_strv *list, size_t max, const char *text)
{
	if (text && *text && list->n < max && !fa_strv_has(list, text))
		fa_strv_push(list, text);
}

struct fa_verdict fa_solve_why(const char *needed, const char *found)
{
	return (struct fa_verdict){ .truth = FA_FALSE, .fact = -1, .op = -1, .needed = needed, .found = found };
}

static void note_why(struct fa_fold *f, const struct fa_verdict *why)
{
	char *needed;

	if (why->fact >= 0 && f->last.fact == why->fact && f->last.needed == why->needed && f->last.found == why->found &&
	    f->last.op == why->op)
		return;
	f->last = *why;
	needed = fa_verdict_needed(why);
	note(&f->needed, NEEDED_KEPT, needed);
	note(&f->found, NEEDED_KEPT, why->found);
	free(needed);
}

void fa_solve_refuse(struct fa_solve *s, const char *kind, const char *subject, const char *name, const char *rule,
                     const struct fa_verdict *why)
{
	struct fa_fold *f;

	if (rule && !strncmp(rule, "policy_", 7))
		s->forbidden = true;
	if (s->quiet)
		return;
	f = fold_of(s, kind, subject, rule, why->found);
	f->count++;
	note(&f->names, FA_NAMES_KEPT, name);
	note_why(f, why);
}

static char *candidate_of(const struct fa_fold *f)
{
	struct fa_buf b = FA_BUF_INIT;

	fa_buf_adds(&b, f->subject);
	for (size_t i = 0; i < f->names.n; i++) {
		fa_buf_adds(&b, i ? ", " : *f->subject ? " " : "");
		fa_buf_adds(&b, f->names.v[i]);
	}
	if ((size_t)f->count > f->names.n && f->names.n)
		fa_buf_addf(&b, " and %d more", f->count - (int)f->names.n);
	else if (!f->names.n && f->count > 1 && !strcmp(f->kind, "wheel"))
		fa_buf_addf(&b, " (%d whl files)", f->count);
	return fa_buf_detach(&b);
}

/* Versions in their order, whatever order they came in. */
char *fa_fold_list(const struct fa_strv *list)
{
	struct fa_strv sorted = FA_STRV_INIT;
	char *text;

	fa_strv_append(&sorted, list);
	for (size_t i = 1; i < sorted.n; i++)
		for (size_t k = i;
		     k > 0 && isdigit((unsigned char)sorted.v[k][0]) && fa_version_compare(sorted.v[k - 1], sorted.v[k]) > 0;
		     k--) {
			char *t = sorted.v[k];

			sorted.v[k] = sorted.v[k - 1];
			sorted.v[k - 1] = t;
		}
	text = fa_strv_join(&sorted, ", ");
	fa_strv_release(&sorted);
	return text;
}

static bool by_policy(const struct fa_fold *f)
{
	return !strncmp(f->rule, "policy_", 7);
}

/* What a policy refuses would be taken else: it comes first. */
/* Among the first n refusals of the plan, which came from asking the same in another way. */
static bool is_rejected(const struct fa_plan *p, size_t n, const char *candidate, const char *rule, const char *needed)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p->rejected[i].candidate, candidate) && !strcmp(p->rejected[i].rule, rule) &&
		    !strcmp(p->rejected[i].needed, needed))
			return true;
	return false;
}

void fa_solve_account(struct fa_solve *s)
{
	size_t before = s->plan->n_rejected;

	for (int policy = 1; policy >= 0; policy--)
		for (size_t i = 0; i < s->n_folds; i++) {
			const struct fa_fold *f = &s->folds[i];
			char *candidate, *needed, *found;

			if (by_policy(f) != policy)
				continue;
			candidate = candidate_of(f);
			needed = fa_strv_join(&f->needed, ", ");
			found = fa_strv_join(&f->found, ", ");
			if (!is_rejected(s->plan, before, candidate, f->rule, needed))
				fa_plan_reject(s->plan, candidate, f->rule, needed, found);
			free(candidate);
			free(needed);
			free(found);
		}
}

/* ---- texts */

static const char *value_of(const struct fa_solve *s, const char *name, size_t len, const struct fa_verdict *why)
{
	int i = fa_name_find_word(NULL, name, len);

	if (why && len == 5 && !memcmp(name, "found", 5))
		return why->found;
	for (size_t k = 0; k < s->n_extra; k++)
		if (strlen(s->extra[k].name) == len && !memcmp(s->extra[k].name, name, len))
			return s->extra[k].value;
	return i >= 0 && s->v[i] ? s->v[i] : NULL;
}

/* At least so much: without the ">= ". */
static void add_needed(struct fa_buf *b, const struct fa_verdict *why)
{
	char *needed = fa_verdict_needed(why);

	fa_buf_adds(b, needed + (strncmp(needed, ">= ", 3) ? 0 : 3));
	free(needed);
}

void fa_solve_extra(struct fa_solve *s, const char *name, char *value)
{
	if (value)
		fa_strv_take(&s->pool, value);
	for (size_t k = 0; k < s->n_extra; k++)
		if (!strcmp(s->extra[k].name, name)) {
			s->extra[k].value = value;
			return;
		}
	if (s->n_extra < FA_EXTRAS_MAX)
		s->extra[s->n_extra++] = (struct fa_extra){ name, value };
}

char *fa_solve_text(const struct fa_solve *s, const char *pattern, const struct fa_verdict *why)
{
	struct fa_buf b = FA_BUF_INIT;

	while (*pattern) {
		size_t n = *pattern == '{' ? strcspn(pattern, "}") : 0;
		const char *value;

		if (!n || !pattern[n]) {
			fa_buf_addc(&b, *pattern++);
			continue;
		}
		if (why && n == 7 && !memcmp(pattern, "{needed", 7)) {
			add_needed(&b, why);
		} else {
			value = value_of(s, pattern + 1, n - 1, why);
			fa_buf_adds(&b, value ? value : "?");
		}
		pattern += n + 1;
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}
