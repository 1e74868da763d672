/* The plan: what was chosen, why, why nothing else, and the steps that make it so. resolve() fills choice, tree and refusals,
 * plan() the steps; after that it is const. Contract of the JSON: DESIGN, plan/1. All texts are owned by the plan; NULL = absent. */
#ifndef FA_PLAN_H
#define FA_PLAN_H

#include "err.h"
#include "facts.h"
#include "strv.h"
#include "wish.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fa_json;
struct fa_matrix;

enum fa_plan_status { FA_PLAN_READY, FA_PLAN_ACTION, FA_PLAN_IMPOSSIBLE };

struct fa_plan_wheel {
	char *name;   /* file name; NULL: the choice is not a wheel */
	char *url;    /* where it is published */
	char *mirror; /* where it is fetched from instead: configuration, never in a lock; NULL: there */
	char *source; /* "official", "pypi", the name of another source */
	char *sha256; /* NULL: not published; recorded when first seen */
};

struct fa_plan_offer { /* a profile that could be built instead */
	char *profile;
	int units, estimate_s, peak_mib, wheel_mb; /* as in struct fa_plan_build */
};

struct fa_plan_build {
	bool wanted;
	struct fa_strv archs; /* what is compiled: "80" serves a card of 86 */
	int jobs;
	struct fa_strv env;                         /* "NAME=value" given to the build */
	char *toolkit;                              /* version of nvcc; NULL: none is here yet */
	char *toolkit_home;                         /* its folder; NULL: the plan brings it */
	char *profile;                              /* full, training, inference, custom */
	struct fa_strv dtypes, head_dims, features; /* what the profile keeps; empty: all */
	bool backward;
	int units;                    /* translation units to compile */
	int estimate_s;               /* wall seconds with `jobs` jobs; 0 unknown */
	int peak_mib;                 /* largest sum of memory that the jobs may need */
	int wheel_mb;                 /* size of the wheel, about; 0 unknown */
	struct fa_plan_offer *offers; /* what each profile would take here; the chosen one among them */
	size_t n_offers;
};

struct fa_choice {
	char *route;          /* wheel source triton ck sdpa keep */
	char *line;           /* fa2 fa3 fa4 none */
	char *package;        /* distribution to install: "flash-attn", "flash-attn-4", "tokenspeed-fa3" */
	char *flash_attn;     /* version without local label */
	char *torch;          /* version without local label */
	char *torch_build;    /* cu128, cpu, rocm6.4 */
	char *cuda;           /* X.Y of torch */
	char *python;         /* X.Y or X.Yt */
	struct fa_strv archs; /* of the cards served */
	struct fa_plan_wheel wheel;
	struct fa_plan_build build;
};

struct fa_other { /* an answer not taken */
	char *value;
	char *rule; /* id of the rule that refuses it; "not_asked" and the like where it would fit */
	char *needed;
	char *found;
};

struct fa_node { /* one question of the decision tree */
	char *question;
	char *taken;
	char *because;
	char *wish; /* option that sets this node ("torch"); NULL: it follows from facts */
	struct fa_other *others;
	size_t n_others;
};

struct fa_refusal {
	char *candidate;
	char *rule;
	char *needed;
	char *found;
};

struct fa_action { /* what must change on the machine first */
	char *id;
	char *text;
	char *command; /* NULL: no single command does it */
};

struct fa_warning {
	char *id;
	char *text;
	char *source;
};

struct fa_served { /* one card of several unlike ones */
	int index;
	char *arch;
	char *served_by;
	char *because;
};

struct fa_nearest { /* a wish near the impossible one that works here */
	struct fa_strv wish;
	struct fa_choice choice;
};

/* STEP(id, word): kinds of steps that execute knows; recipes use the words. What each takes in `args` stands in execute.h. */
enum fa_step_kind {
#define STEP(id, word) FA_STEP_##id,
#include "step.def"
#undef STEP
	FA_STEP_COUNT,
};

struct fa_step {
	enum fa_step_kind kind;
	char *title;          /* for people: "Compile 6 units for sm_90, 2 jobs" */
	struct fa_json *args; /* expanded recipe row; owned */
	int64_t bytes;        /* fetched or written; -1 unknown */
	int estimate_s;       /* -1 unknown */
};

struct fa_plan {
	enum fa_plan_status status;
	struct fa_wish wish;
	struct fa_choice choice;
	struct fa_node *tree;
	size_t n_tree;
	struct fa_refusal *rejected;
	size_t n_rejected;
	struct fa_action *actions;
	size_t n_actions;
	struct fa_warning *warnings;
	size_t n_warnings;
	struct fa_served *per_gpu;
	size_t n_per_gpu;
	struct fa_nearest *nearest;
	size_t n_nearest;
	struct fa_step *steps;
	size_t n_steps;
	struct fa_strv fallbacks; /* addresses of files to try, in order, when a binary fails its X-ray */
	struct fa_strv checks;    /* ids of the verification stages */
};

#define FA_PLAN_INIT \
	{ \
		0 \
	}

/* Adding; texts are copied, NULL allowed. The pointers returned are valid until the next add of the same kind. */
struct fa_node *fa_plan_add_node(struct fa_plan *p, const char *question, const char *taken, const char *because);
void fa_node_add_other(struct fa_node *n, const char *value, const char *rule, const char *needed, const char *found);
void fa_plan_reject(struct fa_plan *p, const char *candidate, const char *rule, const char *needed, const char *found);
void fa_plan_act(struct fa_plan *p, const char *id, const char *text, const char *command);
void fa_plan_warn(struct fa_plan *p, const char *id, const char *text, const char *source);
void fa_plan_serve(struct fa_plan *p, int index, const char *arch, const char *served_by, const char *because);
struct fa_nearest *fa_plan_add_nearest(struct fa_plan *p);
struct fa_step *fa_plan_add_step(struct fa_plan *p, enum fa_step_kind kind, const char *title, struct fa_json *args);

const char *fa_plan_status_name(enum fa_plan_status s);
enum fa_status fa_plan_exit(const struct fa_plan *p); /* READY 0, IMPOSSIBLE 3, ACTION 4 */
const char *fa_step_word(enum fa_step_kind k);
int fa_step_find(enum fa_step_kind *out, const char *word);

/* fainstall.plan/1. from_json reads what to_json wrote (the worker gets its plan so). */
struct fa_json *fa_plan_to_json(const struct fa_plan *p);
int fa_plan_from_json(struct fa_plan *out, const struct fa_json *j, const char *name, struct fa_err *err);
struct fa_json *fa_choice_to_json(const struct fa_choice *c);
void fa_choice_copy(struct fa_choice *out, const struct fa_choice *c);
void fa_choice_release(struct fa_choice *c);
void fa_plan_release(struct fa_plan *p);

/* Stage 2 and 3, pure: facts + wish + knowledge -> choice, then steps from recipes. No file, no clock, no network. `out` is
 * filled also when the status is ACTION or IMPOSSIBLE; -1 is only for damaged knowledge. */
int fa_resolve(struct fa_plan *out, const struct fa_facts *facts, const struct fa_wish *wish, struct fa_matrix *matrix,
               struct fa_err *err);

/* Folder (or a description) of the environment that a plan without --env adopts: the active one, else the one that holds torch.
 * NULL: a new one is made. The caller's. */
char *fa_plan_environment(const struct fa_facts *facts);
int fa_plan_steps(struct fa_plan *plan, const struct fa_facts *facts, struct fa_matrix *matrix, struct fa_err *err);

#endif
