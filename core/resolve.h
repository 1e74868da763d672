/* Inside of the resolver: shared by resolve*.c and steps.c only. */
#ifndef FA_RESOLVE_H
#define FA_RESOLVE_H

#include "kb.h"
#include "plan.h"

#include <stdbool.h>
#include <stdint.h>

struct fa_card { /* one kind of card to serve */
	const char *arch;
	const struct fa_kb_arch *row; /* NULL: an architecture nobody has told us about */
	int index;                    /* of its first card; -1: named by the wish */
	bool hopeless;                /* the line in hand serves it in no release */
	bool served;                  /* by the choice */
};

struct fa_torch_option {
	const struct fa_kb_torch *row;   /* NULL: a torch that is in no table */
	const struct fa_kb_build *build; /* NULL likewise */
	const char *version, *minor, *word, *vendor, *cuda, *major, *rocm, *abi, *codes, *glibc, *cxx, *pythons, *platforms;
	const struct fa_kb_cuda *cuda_row;
	bool kept, release, pypi;
	bool for_some;    /* kept where one that serves all cards is not found */
	signed char fits; /* with every card and nothing mended: 1 yes, 0 no, -1 not asked yet */
};

struct fa_repair { /* a rule that something on the machine must change for */
	const struct fa_kb_rule *rule;
	struct fa_verdict why;
};

struct fa_trait { /* a name that rules see of what is in hand */
	enum fa_name name;
	size_t offset; /* of the member that decides it */
	bool member;   /* it is the member */
};

#define FA_TRAIT_NEVER SIZE_MAX

enum { FA_REFUSALS_KEPT = 16 };

/* Things of one kind that a rule refused: another one, equal in all that the rules up to it looked at, is refused alike. */
struct fa_refusals {
	enum fa_rule_on on; /* FA_ON_TORCH: what could be; FA_ON_FILE: files of one release */
	struct fa_refused {
		const void *item;
		uint32_t traits; /* that were looked at */
		const struct fa_kb_rule *rule;
		struct fa_verdict why;
	} v[FA_REFUSALS_KEPT];
	size_t n;    /* ever remembered */
	size_t last; /* that was met */
};

enum { REPAIRS_MAX = 12, FALLBACKS_MAX = 3 };

struct fa_repairs {
	struct fa_repair v[REPAIRS_MAX];
	size_t n;
};

enum fa_class { FA_CLASS_KEEP, FA_CLASS_WHEEL, FA_CLASS_CK, FA_CLASS_TRITON, FA_CLASS_SOURCE, FA_CLASS_SDPA };

struct fa_toolkit_option {
	const char *version, *home; /* home NULL: brought by the plan */
	const struct fa_kb_cuda *row;
	bool pip;
};

struct fa_found { /* what the search ended with */
	bool any;
	enum fa_class class;
	const char *line, *version, *source;
	const struct fa_torch_option *torch;
	const struct fa_kb_file *file;
	const struct fa_kb_release *release;
	struct fa_toolkit_option toolkit;
	struct fa_repairs repairs;
	size_t served;
};

struct fa_fold {          /* equal refusals in one */
	const char *kind; /* torch, wheel, source, ck, triton, keep, line */
	const char *rule;
	const char *subject;
	struct fa_strv needed, names, found;
	struct fa_verdict last; /* that was noted */
	int count;
	size_t next; /* of its chain: place + 1, 0 the last */
};

struct fa_asked { /* does the version fit the wish? */
	const char *version;
	bool matches;
};

enum { FA_EXTRAS_MAX = 32, FA_CHAINS = 64, FA_NAMES_KEPT = 3 };

struct fa_extra {
	const char *name, *value;
};

struct fa_solve {
	struct fa_kb *kb;
	const struct fa_facts *facts;
	const struct fa_wish *wish;
	struct fa_plan *plan;
	const char *v[FA_NAME_COUNT]; /* values that rules see */
	struct fa_strv pool;          /* texts of messages, worked out here */
	struct fa_card *cards;
	size_t n_cards;
	bool cards_unknown; /* a fault hides them: rules about cards are passed over */
	bool no_card;       /* none was found and none was named */
	struct fa_torch_option *torch;
	size_t n_torch;
	bool kept;                    /* the list holds what is installed, alone */
	const struct fa_json *board;  /* whose own torch is what serves it; NULL: not so */
	bool free_torch;              /* ask as if torch could be chosen */
	bool ready;                   /* only an answer that is ready counts: nothing is mended */
	bool any_card;                /* this pass is content with some of the cards */
	bool quiet;                   /* do not write refusals down */
	bool forbidden;               /* a policy has refused something */
	struct fa_refusals *refusals; /* of what is in hand one after the other; NULL: none are remembered */
	uint64_t live[FA_ON_COUNT];   /* rules (of the first 64) that can be broken at all here */
	signed char *files;           /* quiet: 1 does not fit the machine whatever the torch, -1 does; 0 not asked yet */
	struct fa_repairs *repairs;   /* this pass mends what can be mended; NULL: it does not */
	struct fa_repairs first;      /* what must change whatever is chosen */
	struct fa_fold *folds;
	size_t n_folds;
	size_t chains[FA_CHAINS]; /* of folds, by subject and rule */
	struct fa_asked asked;    /* last */
	const char *peak_line;    /* the line that peak is of */
	int peak;                 /* MiB of the largest unit of a build; 0 not asked yet */
	struct fa_found found;
	const struct fa_kb_file *fallbacks[FALLBACKS_MAX]; /* files that pass as well */
	size_t n_fallbacks;
	struct fa_extra extra[FA_EXTRAS_MAX]; /* names of texts that no rule speaks of */
	size_t n_extra;
};

/* ---- resolve_values.c: what rules see */
void fa_solve_host(struct fa_solve *s);
void fa_solve_choose_rules(struct fa_solve *s); /* whenever what stays was set */
void fa_solve_set_torch(struct fa_solve *s, const struct fa_torch_option *t);
void fa_solve_set_release(struct fa_solve *s, const char *line, const char *version, const struct fa_kb_release *r);
void fa_solve_set_file(struct fa_solve *s, const struct fa_kb_file *f);
void fa_solve_set_toolkit(struct fa_solve *s, const struct fa_toolkit_option *t);
void fa_solve_set_card(struct fa_solve *s, const struct fa_card *c);
const struct fa_refused *fa_solve_refused_before(struct fa_refusals *r, const void *item); /* NULL: none */
void fa_solve_note_traits(struct fa_kb *kb, enum fa_rule_on on);
void fa_solve_remember(struct fa_solve *s, struct fa_refusals *r, const void *item, const struct fa_kb_rule *rule,
                       const struct fa_verdict *why);
const char *fa_solve_keep(struct fa_solve *s, const char *text); /* a value for rules: its one address */
const char *fa_solve_keep_text(struct fa_solve *s, char *text);  /* the same; takes text */
const char *fa_solve_wished(const struct fa_solve *s, enum fa_wish_id id);
const char *fa_solve_env(const struct fa_solve *s, const char *name); /* a variable of the facts, NULL unset */

/* ---- resolve_build.c, resolve_forecast.c */
/* How many of the release's head dims in this profile the recorded unit stands for; 0: the profile does not hold it, or it is of another
 * line than the one in hand. */
int fa_solve_build_dims(const struct fa_solve *s, const struct fa_plan_build *b, const struct fa_kb_unit *u);
int fa_solve_unit_files(const struct fa_solve *s,
                        const struct fa_kb_unit *u); /* of one head dim: the causal half may be one of its own */
/* estimate_s and wheel_mb of a build whose contents, architectures and jobs are set. */
void fa_solve_forecast(const struct fa_solve *s, struct fa_plan_build *b);

void fa_solve_extra(struct fa_solve *s, const char *name, char *value); /* takes value */

/* ---- resolve_rules.c: trying rules and writing refusals down */
const struct fa_kb_rule *fa_solve_broken(struct fa_solve *s, enum fa_rule_on on, struct fa_verdict *why);
/* All cards (or some, when the pass is content with some) must pass; NULL: they do. */
const struct fa_kb_rule *fa_solve_broken_cards(struct fa_solve *s, const enum fa_rule_on *on, size_t n, struct fa_verdict *why);
/* kind, subject and rule are known by their addresses: literals, names of below, or texts that are kept. */
extern const char FA_SUBJECT_TORCH[], FA_SUBJECT_SOURCE[], FA_SUBJECT_SOURCE_FA3[], FA_SUBJECT_CK[], FA_SUBJECT_TRITON[];
void fa_solve_refuse(struct fa_solve *s, const char *kind, const char *subject, const char *name, const char *rule,
                     const struct fa_verdict *why);
struct fa_verdict fa_solve_why(const char *needed, const char *found);
bool fa_solve_named_enough(struct fa_solve *s, const char *kind, const char *subject, const char *rule, const char *found,
                           size_t enough);
char *fa_fold_list(const struct fa_strv *list); /* sorted and joined; the caller's */
void fa_solve_account(struct fa_solve *s);      /* refusals into the plan */

/* ---- resolve_torch.c */
void fa_solve_torch_options(struct fa_solve *s);
enum fa_fit { FA_FIT_YES, FA_FIT_NO, FA_FIT_NEVER /* nothing that could be mended would help */ };
enum fa_fit fa_solve_torch_fits(struct fa_solve *s, const struct fa_torch_option *t);
bool fa_solve_can_mend(const struct fa_solve *s, const struct fa_kb_rule *r);
bool fa_solve_unknown_torch(struct fa_solve *s); /* asked for, in no table and not here: refused */
char *fa_solve_torch_name(const struct fa_torch_option *t);

/* ---- resolve_search.c, resolve_source.c: candidates */
void fa_solve_search(struct fa_solve *s);
bool fa_solve_source(struct fa_solve *s, const struct fa_torch_option *t, const char *line);
bool fa_solve_needs_cards(const struct fa_solve *s);
bool fa_solve_no_python(const struct fa_solve *s);
bool fa_solve_archive_holds(const struct fa_solve *s, const char *submodule, const char *version);
bool fa_solve_clones(const struct fa_solve *s); /* does --source name a repository, or a folder that holds a source? */
bool fa_solve_source_is_folder(const struct fa_solve *s);
bool fa_solve_amd(struct fa_solve *s, const struct fa_torch_option *t, enum fa_class class);
bool fa_solve_asked_version(struct fa_solve *s, const char *version);
int fa_solve_exactness(const struct fa_solve *s, const char *version); /* 1: the very version asked for */
size_t fa_solve_count_served(struct fa_solve *s, const enum fa_rule_on *on, size_t n, bool mark);
const struct fa_kb_rule *fa_solve_release_fits(struct fa_solve *s, const char *line, const char *version,
                                               const struct fa_kb_release *r, struct fa_verdict *why);

/* ---- resolve_ck.c: what a CK build takes */
struct fa_ck_units {
	int units, peak_mib; /* of each */
	double seconds;      /* of each, one core, one architecture */
};

size_t fa_solve_ck_units(const struct fa_solve *s, const struct fa_plan_build *b, struct fa_ck_units *out, size_t room);
int fa_solve_ck_peak(const struct fa_solve *s); /* MiB of the largest unit */
int fa_solve_ck_all(const struct fa_solve *s);  /* units of the profile full of the release found; 0: unknown */
void fa_solve_ck_forecast(const struct fa_solve *s, struct fa_plan_build *b);

/* ---- resolve_build.c: what a source build holds, how many jobs fit, how long it takes */
int fa_solve_peak(struct fa_solve *s); /* MiB of its largest unit */
void fa_solve_build(struct fa_solve *s, struct fa_plan_build *b);

/* The first thing ("arch", "dtype", "head_dim", "backward", "features") that is wished for and that an installed build of ours
 * lacks by its version's label ("2.8.3+fa.bf16.d64.fwd.sm90…"); NULL: nothing, or it is no build of ours. Without a wish for a
 * profile only the cards count: whoever made a narrow build keeps it. */
const char *fa_solve_build_lacks(struct fa_solve *s, const char *version);

/* ---- resolve_choice.c: the choice, its build, actions and warnings */
void fa_solve_choose(struct fa_solve *s);
char *fa_solve_command(struct fa_solve *s, const char *command, const struct fa_verdict *why); /* the caller's */
void fa_solve_explain(struct fa_solve *s);                                                     /* the decision tree */

/* ---- resolve_nearest.c */
enum fa_solve_how {
	FA_SOLVE_FREE_TORCH = 1, /* as if torch could be chosen */
	FA_SOLVE_QUIET = 2,      /* no account, no tree */
	FA_SOLVE_READY = 4,      /* only an answer that is ready counts; else the plan may say impossible */
};

int fa_solve_once(struct fa_plan *out, const struct fa_facts *facts, const struct fa_wish *wish, struct fa_kb *kb,
                  unsigned how);
void fa_solve_nearest(struct fa_plan *plan, const struct fa_facts *facts, struct fa_kb *kb);

/* A text of ids.json with {name} filled from the values. The caller's. */
char *fa_solve_text(const struct fa_solve *s, const char *pattern, const struct fa_verdict *why);

#endif
