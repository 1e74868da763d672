/* The rule language of matrix/ and recipes/: `fact op value`, joined by `and`. A fact is a name of the table that the caller
 * hands in; a value is a word, several words with commas between, "" for nothing, or $NAME for the value of another fact.
 *
 *   == !=          the same text or not
 *   < <= > >=      order of versions
 *   in             some word of the left is one of the right:  `card_codes in $file_codes`, `arch in 80,86`
 *   has, lacks     every, or no, word of the right is one of the left
 *   known, unknown without a value: is there an answer at all ("" is one)
 *
 * A term with an unknown on either side is unknown; the whole is false when one term is, else unknown when one is. */
#ifndef FA_RULE_H
#define FA_RULE_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>

enum fa_truth { FA_FALSE, FA_TRUE, FA_UNKNOWN };

/* Place of a name in the array of values, -1: there is no such fact. */
typedef int fa_name_find(void *ctx, const char *name, size_t len);

struct fa_term {
	int fact;
	int op;
	int other;  /* place of $NAME, -1: a word */
	char *word; /* NULL when other is used */
};

struct fa_rule {
	struct fa_term *terms;
	size_t n;
	char *text; /* as written */
};

struct fa_verdict {
	enum fa_truth truth;
	int fact;         /* of the term that decided, -1 none */
	char needed[256]; /* ">= 525.60.13" */
	char found[256];  /* "470.82.01", "unknown" */
};

/* "" or NULL is the empty rule, which is true. FA_USAGE for text that is no rule or names an unknown fact:
 * `unknown fact "tourch" in "tourch >= 2.2"`. */
int fa_rule_compile(struct fa_rule *out, const char *text, fa_name_find *find, void *ctx, struct fa_err *err);

/* values[i] is the value of the fact at place i, NULL unknown. why may be NULL; else it tells the first false (or, when none
 * is, the first unknown) term. */
enum fa_truth fa_rule_test(const struct fa_rule *r, const char *const *values, struct fa_verdict *why);

void fa_rule_release(struct fa_rule *r);

/* A rule that is tried once, on values that are looked up by name. look_up returns false for "no such name" (a mistake in the
 * data), leaves both NULL for "unknown". Borrowed. */
struct fa_strv;

struct fa_scope {
	bool (*look_up)(void *ctx, const char *name, const char **value, const struct fa_strv **list);
	void *ctx;
};

int fa_rule_eval(struct fa_verdict *out, const char *rule, const struct fa_scope *scope, struct fa_err *err);

/* Is some word of `a` (blanks or commas between) one of `b`? */
bool fa_words_meet(const char *a, const char *b);
bool fa_words_has(const char *all, const char *wanted); /* is every word of `wanted` one of `all`? */

#endif
