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
	struct fa_compared {
		const char *a, *b;
		unsigned age; /* of the memo */
		bool holds;
	} last; /* comparison through a memo: most values stay the same from one trial to the next */
};

struct fa_rule {
	struct fa_term *terms;
	size_t n;
	char *text; /* as written */
};

struct fa_verdict { /* borrowed from the rule and the values: good as long as they are */
	enum fa_truth truth;
	int fact;           /* of the term that decided, -1 none */
	int op;             /* that stands before `needed`, -1 none */
	const char *needed; /* "525.60.13" */
	const char *found;  /* "470.82.01", "unknown", "none" */
};

char *fa_verdict_needed(const struct fa_verdict *why); /* ">= 525.60.13"; the caller's */

/* "" or NULL is the empty rule, which is true. FA_USAGE for text that is no rule or names an unknown fact:
 * `unknown fact "tourch" in "tourch >= 2.2"`. */
int fa_rule_compile(struct fa_rule *out, const char *text, fa_name_find *find, void *ctx, struct fa_err *err);

/* values[i] is the value of the fact at place i, NULL unknown. why may be NULL; else it tells the first false (or, when none
 * is, the first unknown) term. */
enum fa_truth fa_rule_test(const struct fa_rule *r, const char *const *values, struct fa_verdict *why);

void fa_rule_release(struct fa_rule *r);

/* The same, for rules that are tried thousands of times on the same few values: comparisons made once are remembered by the
 * addresses of their values. So a text must stay at its address, and the address must not get another text, as long as the memo
 * is used: texts of an fa_texts, or literals. */
struct fa_rule_memo;

struct fa_rule_memo *fa_rule_memo_new(void);
void fa_rule_memo_clear(struct fa_rule_memo *m);
void fa_rule_memo_free(struct fa_rule_memo *m);
/* `why` is set when the answer is FA_FALSE; NULL allowed. */
enum fa_truth fa_rule_test_again(struct fa_rule *r, const char *const *values, struct fa_rule_memo *m, struct fa_verdict *why);

/* Is some word of `a` (blanks or commas between) one of `b`? */
bool fa_words_meet(const char *a, const char *b);
bool fa_words_has(const char *all, const char *wanted); /* is every word of `wanted` one of `all`? */

#endif
