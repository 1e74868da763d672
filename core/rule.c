#include "rule.h"

#include "buf.h"
#include "strv.h"
#include "version.h"

#include <ctype.h>
#include <stdio.h>
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

/* ">= 525" of order and exclusion, the bare words of "one of". */
static void explain(struct fa_verdict *why, const struct fa_term *t, enum fa_truth truth, const char *const *values)
{
	const char *b = t->other >= 0 ? values[t->other] : t->word, *a = values[t->fact];
	bool bare = t->op == EQ || t->op == IN || t->op == HAS;

	why->truth = truth;
	why->fact = t->fact;
	if (t->op == NE && b && !*b)
		b = "nothing";
	snprintf(why->needed, sizeof(why->needed), "%s%s%s", bare ? "" : op_word(t->op), bare || !b ? "" : " ", b ? b : "");
	snprintf(why->found, sizeof(why->found), "%s", !a ? "unknown" : *a ? a : "none");
}

enum fa_truth fa_rule_test(const struct fa_rule *r, const char *const *values, struct fa_verdict *why)
{
	enum fa_truth result = FA_TRUE;

	if (why)
		*why = (struct fa_verdict){ .truth = FA_TRUE, .fact = -1 };
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

/* ---- once, by name */

struct looked_up {
	const struct fa_scope *scope;
	struct fa_strv pool; /* joined lists */
	const char *values[64];
	int n;
};

static int look_up(void *ctx, const char *name, size_t len)
{
	struct looked_up *l = ctx;
	char *word = fa_strndup(name, len);
	const struct fa_strv *list = NULL;
	const char *value = NULL;
	bool known =
	        l->n < (int)(sizeof(l->values) / sizeof(l->values[0])) && l->scope->look_up(l->scope->ctx, word, &value, &list);

	free(word);
	if (!known)
		return -1;
	if (!value && list) {
		char *joined = fa_strv_join(list, " ");

		fa_strv_take(&l->pool, joined);
		value = joined;
	}
	l->values[l->n] = value;
	return l->n++;
}

int fa_rule_eval(struct fa_verdict *out, const char *rule, const struct fa_scope *scope, struct fa_err *err)
{
	struct looked_up l = { .scope = scope };
	struct fa_rule r;
	int rc = -1;

	if (fa_rule_compile(&r, rule, look_up, &l, err) == 0) {
		fa_rule_test(&r, l.values, out);
		fa_rule_release(&r);
		rc = 0;
	}
	fa_strv_release(&l.pool);
	return rc;
}
