/* The rule language of matrix/ and recipes/: `fact op value`, joined by `and`. Facts are the keys of fact.def and of the names
 * that the caller defines (those of the candidate in hand). Ops: == != < <= > >= (version order), in, has, lacks, known, unknown. */
#ifndef FA_RULE_H
#define FA_RULE_H

#include "err.h"

#include <stdbool.h>

struct fa_strv;

/* Values by name; returns false for "no such name" (a mistake in the data), sets *value NULL for "unknown". Borrowed. */
struct fa_scope {
	bool (*look_up)(void *ctx, const char *name, const char **value, const struct fa_strv **list);
	void *ctx;
};

enum fa_truth { FA_FALSE, FA_TRUE, FA_UNKNOWN };

struct fa_verdict {
	enum fa_truth truth;
	char fact[64];    /* of the term that decided */
	char needed[256]; /* ">= 525.60.13" */
	char found[256];  /* "470.82.01", "unknown" */
};

/* FA_USAGE for text that is no rule or names an unknown fact: `unknown fact "tourch"`. */
int fa_rule_eval(struct fa_verdict *out, const char *rule, const struct fa_scope *scope, struct fa_err *err);

#endif
