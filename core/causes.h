/* The knowledge of diagnose, read from matrix/causes.json and compiled once: texts that a log can hold (signals), what a rule may
 * ask for (names), and the causes that follow. Const afterwards, but for the patterns, which are compiled when first needed. */
#ifndef FA_CAUSES_H
#define FA_CAUSES_H

#include "err.h"
#include "facts.h"
#include "rule.h"
#include "strv.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct fa_json;
struct fa_words;

enum fa_signal_kind { FA_SIGNAL_CONTEXT, FA_SIGNAL_ERROR, FA_SIGNAL_ECHO, FA_SIGNAL_NOISE };

struct fa_pattern {       /* POSIX extended, either case; group 1 is the value */
	const char *text; /* NULL: the word alone is enough */
	bool exact;       /* the case of letters counts */
	bool compiled;
	regex_t re;
};

struct fa_signal {
	const char *id;
	enum fa_signal_kind kind;
	const char *meaning; /* NOISE: why it is harmless */
	struct fa_pattern pattern;
	size_t first_word, n_words; /* its texts */
};

struct fa_cause_rule {
	struct fa_rule when;
	double confidence;
	size_t evidence; /* place of a signal */
};

struct fa_repair {
	struct fa_rule when; /* empty: always */
	const char *text;    /* "${name}" stands for the value of a name; a repair with an unknown one is left out */
};

struct fa_cause_row {
	const char *id, *title, *because, *source;
	struct fa_cause_rule *rules; /* best first */
	size_t n_rules;
	struct fa_repair *repairs;
	size_t n_repairs;
};

struct fa_derived {      /* a name for what a pattern finds in another value: "torch_is_cpu" in "2.9.1+cpu" */
	size_t name, of; /* places of names */
	struct fa_pattern pattern;
};

/* Names that are worked out in C, after the facts and the signals. NAME(id, word, meaning) */
enum fa_diagnose_name {
#define NAME(id, word, meaning) FA_DIAGNOSE_##id,
#include "diagnose.def"
#undef NAME
	FA_DIAGNOSE_COUNT,
};

struct fa_causes {
	const struct fa_json *table; /* borrowed: all texts point into it */
	struct fa_signal *signals;
	size_t n_signals;
	struct fa_words *words;
	size_t *signal_of;              /* [word] */
	struct fa_strv names;           /* facts, signals, those of diagnose.def, derived ones: in this order */
	size_t first_signal, first_own; /* places in names */
	struct fa_derived *derived;
	size_t n_derived;
	struct fa_pattern *quotes; /* lines that only quote a message: a skipped test's reason, source, a search's result */
	size_t n_quotes;
	struct fa_cause_row *rows;
	size_t n_rows;
};

/* FA_INTERNAL names the row that is wrong: an unknown name in a rule, a bad pattern, evidence that is no signal. `table` stays
 * the caller's and must outlive it. */
int fa_causes_load(struct fa_causes *out, const struct fa_json *table, struct fa_err *err);
void fa_causes_release(struct fa_causes *c);

int fa_causes_name(const struct fa_causes *c, const char *name, size_t len); /* place in names, -1 none */
int fa_causes_signal(const struct fa_causes *c, const char *id);             /* place in signals, -1 none */
bool fa_pattern_find(struct fa_pattern *p, const char *text,
                     char **value_out); /* value: group 1, NULL when it is empty; the caller's */

#endif
