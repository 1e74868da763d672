#include "rule.h"

#include "buf.h"
#include "version.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum op { EQ, NE, LE, GE, LT, GT, IN, HAS, LACKS, KNOWN, UNKNOWN };

static const struct {
	const char *word;
	enum op op;
} OPS[] = {
	{ "==", EQ },   { "!=", NE },       { "<=", LE },       { ">=", GE },           { "<", LT }, { ">", GT }, { "in", IN },
	{ "has", HAS }, { "lacks", LACKS }, { "known", KNOWN }, { "unknown", UNKNOWN },
};

static const char *op_word(int op)
{
	for (size_t i = 0; i < sizeof(OPS) / sizeof(OPS[0]); i++)
		if ((int)OPS[i].op == op)
			return OPS[i].word;
	return "";
}

/* ---- words */

static bool is_between(char c)
{
	return c == ' ' || c == ',';
}

/* The next word at *p, its length; 0 at the end. */
static size_t next_word(const char **p, const char **word)
{
	size_t n = 0;

	while (is_between(**p))
		++*p;
	*word = *p;
	while ((*p)[n] && !is_between((*p)[n]))
		n++;
	*p += n;
	return n;
}

static bool has_word(const char *all, const char *word, size_t len)
{
	const char *w;
	size_t n;

	while ((n = next_word(&all, &w)))
		if (n == len && !memcmp(w, word, len))
			return true;
	return false;
}

bool fa_words_meet(const char *a, const char *b)
{
	const char *w;
	size_t n;

	while ((n = next_word(&a, &w)))
		if (has_word(b, w, n))
			return true;
	return false;
}

bool fa_words_has(const char *all, const char *wanted)
{
	const char *w;
	size_t n;

	while ((n = next_word(&wanted, &w)))
		if (!has_word(all, w, n))
			return false;
	return true;
}

/* ---- reading */

/* A piece of the rule: up to a blank, quotes taken off. */
static size_t next_token(const char **p, const char **token)
{
	size_t n = 0;

	while (isspace((unsigned char)**p))
		++*p;
	if (**p == '"') {
		*token = ++*p;
		while ((*p)[n] && (*p)[n] != '"')
			n++;
		*p += n + ((*p)[n] == '"');
		return n;
	}
	*token = *p;
	while ((*p)[n] && !isspace((unsigned char)(*p)[n]))
		n++;
	*p += n;
	return n;
}

static int find_op(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(OPS) / sizeof(OPS[0]); i++)
		if (strlen(OPS[i].word) == len && !memcmp(OPS[i].word, word, len))
			return (int)OPS[i].op;
	return -1;
}

static int find_fact(int *out, const char *name, size_t len, const char *rule, fa_name_find *find, void *ctx,
                     struct fa_err *err)
{
	*out = find(ctx, name, len);
	return *out >= 0 ? 0 : fa_err_set(err, FA_USAGE, "unknown fact \"%.*s\" in \"%s\"", (int)len, name, rule);
}

static int read_value(struct fa_term *t, const char **p, const char *rule, fa_name_find *find, void *ctx, struct fa_err *err)
{
	const char *token;
	bool quoted;
	size_t n;

	while (isspace((unsigned char)**p))
		++*p;
	quoted = **p == '"';
	n = next_token(p, &token);
	if (!n && !quoted)
		return fa_err_set(err, FA_USAGE, "no value after \"%s\" in \"%s\"", op_word(t->op), rule);
	if (n > 1 && token[0] == '$' && !quoted)
		return find_fact(&t->other, token + 1, n - 1, rule, find, ctx, err);
	t->word = fa_strndup(token, n);
	return 0;
}

static int read_term(struct fa_rule *r, const char **p, fa_name_find *find, void *ctx, struct fa_err *err)
{
	struct fa_term *t;
	const char *token;
	size_t n;

	r->terms = fa_realloc(r->terms, r->n + 1, sizeof(*r->terms));
	t = &r->terms[r->n++];
	*t = (struct fa_term){ .other = -1 };
	n = next_token(p, &token);
	if (find_fact(&t->fact, token, n, r->text, find, ctx, err) < 0)
		return -1;
	n = next_token(p, &token);
	t->op = find_op(token, n);
	if (t->op < 0)
		return fa_err_set(err, FA_USAGE, "unknown comparison \"%.*s\" in \"%s\"", (int)n, token, r->text);
	return t->op == KNOWN || t->op == UNKNOWN ? 0 : read_value(t, p, r->text, find, ctx, err);
}

int fa_rule_compile(struct fa_rule *out, const char *text, fa_name_find *find, void *ctx, struct fa_err *err)
{
	const char *p = text ? text : "", *token;
	size_t n;

	*out = (struct fa_rule){ .text = fa_strdup(p) };
	while (isspace((unsigned char)*p))
		p++;
	while (*p) {
		if (read_term(out, &p, find, ctx, err) < 0)
			goto fail;
		n = next_token(&p, &token);
		if (!n)
			return 0;
		if (n != 3 || memcmp(token, "and", 3) != 0) {
			fa_err_set(err, FA_USAGE, "\"and\" expected, found \"%.*s\" in \"%s\"", (int)n, token, out->text);
			goto fail;
		}
		while (isspace((unsigned char)*p))
			p++;
		if (!*p) {
			fa_err_set(err, FA_USAGE, "nothing after \"and\" in \"%s\"", out->text);
			goto fail;
		}
	}
	return 0;
fail:
	fa_rule_release(out);
	return -1;
}

void fa_rule_release(struct fa_rule *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->terms[i].word);
	free(r->terms);
	free(r->text);
	*r = (struct fa_rule){ 0 };
}

/* ---- testing */

static bool holds(int op, const char *a, const char *b)
{
	switch ((enum op)op) {
	case EQ: return !strcmp(a, b);
	case NE: return strcmp(a, b) != 0;
	case LE: return fa_version_compare(a, b) <= 0;
	case GE: return fa_version_compare(a, b) >= 0;
	case LT: return fa_version_compare(a, b) < 0;
	case GT: return fa_version_compare(a, b) > 0;
	case IN: return fa_words_meet(a, b);
	case HAS: return fa_words_has(a, b);
	case LACKS: return !fa_words_meet(a, b);
	default: return false;
	}
}

static enum fa_truth test_term(const struct fa_term *t, const char *const *values)
{
	const char *a = values[t->fact], *b = t->other >= 0 ? values[t->other] : t->word;

	if (t->op == KNOWN || t->op == UNKNOWN)
		return (a != NULL) == (t->op == KNOWN) ? FA_TRUE : FA_FALSE;
	if (!a || !b)
		return FA_UNKNOWN;
	return holds(t->op, a, b) ? FA_TRUE : FA_FALSE;
}

/* The bare words of "one of"; an order or an exclusion before the others. Of "not nothing" and "known" remains "any", of "not no" "yes". */
static void explain(struct fa_verdict *why, const struct fa_term *t, enum fa_truth truth, const char *const *values)
{
	const char *b = t->other >= 0 ? values[t->other] : t->word, *a = values[t->fact];

	why->truth = truth;
	why->fact = t->fact;
	why->op = t->op == EQ || t->op == IN || t->op == HAS ? -1 : t->op;
	why->needed = b;
	if (t->op == NE && b && (!*b || !strcmp(b, "no") || !strcmp(b, "yes"))) {
		why->op = -1;
		why->needed = !*b ? "any" : *b == 'n' ? "yes" : "no";
	}
	if (t->op == KNOWN) {
		why->op = -1;
		why->needed = "any";
	}
	why->found = a && *a ? a : a || t->op == KNOWN ? "none" : "unknown";
}

char *fa_verdict_needed(const struct fa_verdict *why)
{
	const char *needed = why->needed ? why->needed : "";

	if (why->op < 0)
		return fa_strdup(needed);
	if (why->op == NE || why->op == LACKS)
		return fa_strf("%s %s", why->op == NE ? "other than" : "none of", needed);
	return fa_strf("%s%s%s", op_word(why->op), why->needed ? " " : "", needed);
}

enum fa_truth fa_rule_test(const struct fa_rule *r, const char *const *values, struct fa_verdict *why)
{
	enum fa_truth result = FA_TRUE;

	if (why)
		*why = (struct fa_verdict){ .truth = FA_TRUE, .fact = -1, .op = -1 };
	for (size_t i = 0; i < r->n; i++) {
		enum fa_truth truth = test_term(&r->terms[i], values);

		if (truth == FA_TRUE || (truth == FA_UNKNOWN && result == FA_UNKNOWN))
			continue;
		if (why)
			explain(why, &r->terms[i], truth, values);
		result = truth;
		if (truth == FA_FALSE)
			break;
	}
	return result;
}

/* ---- testing again */

enum { MEMO_SIZE = 4096 }; /* a power of two */

struct fa_rule_memo {
	struct fa_compared v[MEMO_SIZE];
	signed char op[MEMO_SIZE];
	unsigned age; /* counts the clearings; what is older does not count */
};

struct fa_rule_memo *fa_rule_memo_new(void)
{
	struct fa_rule_memo *m = fa_calloc(1, sizeof(*m));

	m->age = 1;
	return m;
}

void fa_rule_memo_clear(struct fa_rule_memo *m)
{
	m->age++;
}

void fa_rule_memo_free(struct fa_rule_memo *m)
{
	free(m);
}

static size_t place_of(int op, const char *a, const char *b)
{
	uint64_t key =
	        (uint64_t)(uintptr_t)a * 0x9e3779b97f4a7c15u ^ ((uint64_t)(uintptr_t)b + (uint64_t)op) * 0xc2b2ae3d27d4eb4fu;

	return key >> 40 & (MEMO_SIZE - 1);
}

static bool compared(const struct fa_compared *c, const struct fa_rule_memo *m, const char *a, const char *b)
{
	return c->a == a && c->b == b && c->age == m->age;
}

static bool holds_again(struct fa_rule_memo *m, int op, const char *a, const char *b)
{
	size_t i = place_of(op, a, b);

	if (!compared(&m->v[i], m, a, b) || m->op[i] != op) {
		m->v[i] = (struct fa_compared){ a, b, m->age, holds(op, a, b) };
		m->op[i] = (signed char)op;
	}
	return m->v[i].holds;
}

static bool term_holds(struct fa_term *t, struct fa_rule_memo *m, const char *a, const char *b)
{
	if (!compared(&t->last, m, a, b)) {
		bool simple = t->op == EQ || t->op == NE;

		t->last = (struct fa_compared){ a, b, m->age, simple ? holds(t->op, a, b) : holds_again(m, t->op, a, b) };
	}
#ifdef __SANITIZE_ADDRESS__
	assert(t->last.holds == holds(t->op, a, b)); /* a text has changed at its address */
#endif
	return t->last.holds;
}

static enum fa_truth test_again(struct fa_term *t, const char *const *values, struct fa_rule_memo *m)
{
	const char *a = values[t->fact], *b = t->other >= 0 ? values[t->other] : t->word;

	if (t->op == KNOWN || t->op == UNKNOWN)
		return (a != NULL) == (t->op == KNOWN) ? FA_TRUE : FA_FALSE;
	if (!a || !b)
		return FA_UNKNOWN;
	return term_holds(t, m, a, b) ? FA_TRUE : FA_FALSE;
}

enum fa_truth fa_rule_test_again(struct fa_rule *r, const char *const *values, struct fa_rule_memo *m, struct fa_verdict *why)
{
	enum fa_truth result = FA_TRUE;

	for (size_t i = 0; i < r->n; i++) {
		enum fa_truth truth = test_again(&r->terms[i], values, m);

		if (truth == FA_FALSE) {
			if (why)
				explain(why, &r->terms[i], truth, values);
			return FA_FALSE;
		}
		if (truth == FA_UNKNOWN)
			result = FA_UNKNOWN;
	}
	return result;
}
