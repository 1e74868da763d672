/* What is known about a machine and its target environment: values that each remember where they come from. Unknown is a
 * value of its own: a fact that no probe set is absent from the JSON, while "" and an empty list mean "looked for, not there". */
#ifndef FA_FACTS_H
#define FA_FACTS_H

#include "err.h"
#include "strv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fa_json;

enum fa_fact {
#define FACT(id, key, type, label) FA_FACT_##id,
#include "fact.def"
#undef FACT
	FA_FACT_COUNT,
};

enum fa_fact_type { FA_FACT_TEXT, FA_FACT_NUMBER, FA_FACT_BOOL, FA_FACT_LIST };

struct fa_fact_value {
	bool known;
	char *text;          /* TEXT */
	int64_t number;      /* NUMBER; MiB where the key says so, else a count. BOOL: 0 or 1 */
	struct fa_strv list; /* LIST */
	char *origin;        /* the file, command or library that said it; NULL: not recorded */
	char *doubt;         /* why it may be wrong; NULL mostly */
};

struct fa_gpu {
	char *vendor; /* "nvidia", "amd" */
	int index;
	char *name;         /* as the driver calls it; NULL unknown, like all texts here */
	char *arch;         /* "86", "gfx942" */
	int64_t memory_mib; /* -1 unknown */
	char *pci;          /* "0000:06:00.0" */
};

struct fa_toolkit {
	char *kind; /* "cuda", "rocm" */
	char *version;
	char *home;
};

struct fa_problem { /* a fault of the machine that a probe met */
	char *id;   /* stable: "driver_library_mismatch" */
	char *tool;
	char *text;
	char *repair;
};

struct fa_setting { /* an environment variable that matters to a build or a run */
	char *name;
	char *value;
};

struct fa_facts {
	struct fa_fact_value v[FA_FACT_COUNT];
	bool gpus_known; /* false: could not be found out; true with n_gpus 0: there is none */
	struct fa_gpu *gpus;
	size_t n_gpus;
	char *gpus_origin;
	bool toolkits_known;
	struct fa_toolkit *toolkits;
	size_t n_toolkits;
	char *toolkits_origin;
	struct fa_problem *problems;
	size_t n_problems;
	struct fa_setting *env;
	size_t n_env;
};

/* All zero is a valid, empty set of facts. */
#define FA_FACTS_INIT \
	{ \
		0 \
	}

const char *fa_fact_key(enum fa_fact id);
const char *fa_fact_label(enum fa_fact id);
enum fa_fact_type fa_fact_type(enum fa_fact id);
int fa_fact_find(enum fa_fact *out, const char *key); /* -1: no such fact */

/* Setting. Texts are copied, with bytes that are no UTF-8 and control characters replaced by "?" (they come from tools); origin
 * may be NULL. A later set replaces value, origin and doubt. A NULL text makes the fact unknown. */
void fa_facts_set_text(struct fa_facts *f, enum fa_fact id, const char *text, const char *origin);
void fa_facts_set_number(struct fa_facts *f, enum fa_fact id, int64_t number, const char *origin);
void fa_facts_set_bool(struct fa_facts *f, enum fa_fact id, bool value, const char *origin);
void fa_facts_set_list(struct fa_facts *f, enum fa_fact id, const struct fa_strv *list, const char *origin);
void fa_facts_forget(struct fa_facts *f, enum fa_fact id);
void fa_facts_doubt(struct fa_facts *f, enum fa_fact id, const char *why); /* of a fact that is known; else ignored */
struct fa_gpu *fa_facts_add_gpu(struct fa_facts *f); /* zeroed, memory_mib -1, index = its place; sets gpus_known */
void fa_gpu_set(char **field, const char *text);     /* a text field of a card or toolkit: copied and cleaned; NULL: unknown */
void fa_facts_clear_gpus(struct fa_facts *f);        /* known, and there is none */
void fa_facts_clear_toolkits(struct fa_facts *f);    /* the same */
void fa_facts_add_toolkit(struct fa_facts *f, const char *kind, const char *version, const char *home);
void fa_facts_add_problem(struct fa_facts *f, const char *id, const char *tool, const char *text, const char *repair);
void fa_facts_add_env(struct fa_facts *f, const char *name, const char *value); /* replaces one of that name */

/* `--set FACT=VALUE`: also gpus.0.arch, toolkits.0.version (the next free place adds one) and env.NAME. "FACT=" makes it
 * "looked for, not there", "FACT=unknown" unknown. FA_USAGE names the fact. */
int fa_facts_assign(struct fa_facts *f, const char *assignment, struct fa_err *err);

/* An architecture as facts write it: "8.6" and "sm_86" -> "86", "gfx942:sramecc+:xnack-" -> "gfx942". The caller's. */
char *fa_arch_plain(const char *text);
const char *fa_arch_vendor(const char *arch); /* "amd" for gfx names, else "nvidia" */

/* Reading: NULL, or `otherwise`, when unknown. Borrowed. */
const char *fa_facts_text(const struct fa_facts *f, enum fa_fact id);
int64_t fa_facts_number(const struct fa_facts *f, enum fa_fact id, int64_t otherwise);
bool fa_facts_is(const struct fa_facts *f, enum fa_fact id);  /* known, BOOL and true */
bool fa_facts_has(const struct fa_facts *f, enum fa_fact id); /* known and neither "" nor empty */

/* fainstall.facts/1, contract. from_json: unknown keys are an error that names them, wrong types too (FA_USAGE); null is
 * unknown. */
struct fa_json *fa_facts_to_json(const struct fa_facts *f);
int fa_facts_from_json(struct fa_facts *out, const struct fa_json *j, const char *name, struct fa_err *err);

/* Facts of `top` that are known win over those of `base`; lists as a whole, but cards that do not contradict each other
 * complete each other, and problems and env are added up. Used by --read and --set. */
void fa_facts_merge(struct fa_facts *base, const struct fa_facts *top);
void fa_facts_release(struct fa_facts *f);

#endif
