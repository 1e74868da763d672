/* The knowledge as the resolver walks it: tables of matrix/ turned into arrays once. Texts are borrowed from the tables or owned
 * by the pool. Internal to resolve, steps and matrix. */
#ifndef FA_KB_H
#define FA_KB_H

#include "err.h"
#include "rule.h"
#include "strv.h"
#include "texts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fa_json;
struct fa_matrix;

/* Names that rules speak of: facts first, then name.def. */
enum fa_name {
#define FACT(id, key, type, label) FA_NAME_FACT_##id,
#include "fact.def"
#undef FACT
#define NAME(id, word, meaning) FA_NAME_##id,
#include "name.def"
#undef NAME
	FA_NAME_COUNT,
};

int fa_name_find_word(void *unused, const char *name, size_t len); /* a fa_name_find */
const char *fa_name_word(int name);
const char *fa_name_meaning(int name); /* label of a fact */

enum fa_rule_on { /* what a rule is tried on */
	          FA_ON_TORCH,
	          FA_ON_TORCH_CARD,
	          FA_ON_RELEASE,
	          FA_ON_RELEASE_CARD,
	          FA_ON_FILE,
	          FA_ON_FILE_CARD,
	          FA_ON_SOURCE,
	          FA_ON_TOOLKIT,
	          FA_ON_TOOLKIT_CARD,
	          FA_ON_AMD,
	          FA_ON_CK,
	          FA_ON_CK_CARD,
	          FA_ON_TRITON,
	          FA_ON_TRITON_CARD,
	          FA_ON_SDPA,
	          FA_ON_PLAN,
	          FA_ON_COUNT,
};

const char *fa_rule_on_word(enum fa_rule_on on);
bool fa_rule_on_known(const char *word);

struct fa_kb_rule {
	const char *id, *text, *action;
	const char *policy_when, *policy_need; /* as text; NULL: no rule of a policy */
	bool replace;                          /* torch that fails it is replaced, where that was allowed */
	struct fa_rule when, need;
	uint32_t traits; /* of what is in hand that it and the rules before it look at; worked out by the resolver */
	bool traits_known;
	uint32_t staying_when, staying_need; /* terms about names that stay the same throughout a question; likewise */
	bool staying_known;
	bool of_machine; /* on a file: it looks at the machine and the file alone; likewise */
};

struct fa_kb_cuda {
	const char *cuda, *major, *driver, *driver_windows, *codes;
	const struct fa_json *device_prop; /* of its major: where members of cudaDeviceProp lie */
	const char *gcc_min, *gcc_max, *clang_min, *clang_max, *msvc_min, *msvc_below;
	const struct fa_json *pip; /* requirements that bring nvcc; NULL: no wheels hold it */
};

struct fa_kb_build {       /* one build of one torch */
	const char *build; /* cu128, rocm6.4 */
	const char *vendor;
	const char *cuda, *major, *rocm; /* NULL: does not apply */
	const char *abi;                 /* new, old, NULL unknown */
	const char *glibc, *codes, *codes_aarch64;
	const char *platforms; /* linux-x86_64 … */
	const char *file;      /* platform word in the wheel's name */
	bool pypi;             /* what the package index has under that version, Linux x86_64 */
	bool pypi_aarch64;
	const struct fa_kb_cuda *cuda_row;
};

struct fa_kb_torch {
	const char *version, *minor;
	const char *pythons; /* tags: 310 311 313t */
	const char *cxx, *triton, *torchvision, *torchaudio;
	int64_t bytes;
	struct fa_kb_build *builds;
	size_t n_builds;
};

struct fa_kb_offer { /* a build of torch as one kind of machine may have it */
	const struct fa_kb_torch *row;
	const struct fa_kb_build *build;
	bool pypi; /* what the package index has under that version */
};

enum fa_kb_buyer { FA_BUYER_LINUX, FA_BUYER_LINUX_AARCH64, FA_BUYER_OTHER, FA_BUYER_COUNT };

struct fa_kb_arch {
	const char *arch, *vendor, *family, *codes, *compile;
	bool triton;
};

struct fa_kb_profile { /* one setup.py */
	const char *name, *cxx, *env;
	int units;
	bool archs_read;
	const struct fa_json *gencode; /* [[least nvcc, "80 90"], …] by rising nvcc */
};

struct fa_kb_release {
	const char *line, *version, *tag, *commit, *python, *torch, *nvcc, *rocm, *ck, *head_dims, *backward;
	const char *features; /* of --needs */
	const char *without;  /* features that it has and can be built without; NULL: nobody looked */
	const char *stays;    /* features that it cannot be built without; NULL: none, or nobody looked */
	const char *reads;    /* members that it reads of the cudaDeviceProp that torch filled; NULL: nobody looked */
	const char *apart;    /* kinds of kernels whose causal half is a file of its own; NULL: nobody looked */
	const char *cutlass, *composable_kernel;
	const char *sdist_file, *sdist_sha256;
	int64_t sdist_bytes;
	const struct fa_kb_profile *profile;
	bool triton, published;
};

struct fa_kb_source {
	const char *name;
	const char *word; /* the name as rules see it: one word */
	const char *text;
	const char *trust; /* who vouches: upstream, index, third_party, named */
	int order;
};

struct fa_kb_file { /* a wheel that exists */
	const char *line, *package, *version, *git;
	const struct fa_kb_source *source;
	const char *torch;      /* minor, NULL: any */
	const char *cuda;       /* as in the name: 12.8, 12, NULL */
	const char *major;      /* of CUDA, NULL: any */
	const char *pythons;    /* tags, NULL: see python_min */
	const char *python_min; /* abi3 and pure files */
	const char *abi;        /* what it really has */
	const char *abi_word;   /* TRUE or FALSE as in the name, NULL */
	const char *glibc, *codes, *os, *machine, *driver, *dtypes, *features, *torch_min;
	const char *subject;               /* in refusals: "official fa2 2.8.3" */
	const char *platform, *tag, *name; /* name NULL: made from the source's pattern */
	const char *url, *sha256;
	bool nightly, backward, abi3;
	int64_t bytes;
	const struct fa_json *extra;         /* [[CUDA major, extra], …] */
	const struct fa_kb_release *release; /* NULL: in no table */
	const struct fa_kb_source
	        *copy_of;      /* the file of that name of a known source: this one is a mirror; NULL: it is none */
	const char *canonical; /* address of that file there */
};

struct fa_kb_shelf { /* files of one source, line and torch minor */
	const struct fa_kb_source *source;
	const char *line, *torch; /* torch NULL: any */
	size_t *files;            /* places in files */
	size_t n;
};

struct fa_kb_rack { /* shelves of one source and line */
	const struct fa_kb_source *source;
	const char *line;
	size_t *shelves; /* places in shelves */
	size_t n;
};

struct fa_kb_unit {
	const char *line, *kind, *dtype;
	const char *variant; /* features that it is for, one word each with "_" before it, as in its name; "" */
	int head_dim, units, peak_mib;
	double seconds; /* of all of them */
	double longest;
};

struct fa_kb_line {
	const char *line, *name, *package, *dtypes, *head_dim, *features, *serves;
	const char *switches; /* features that a source build can leave out */
	const char *folder;   /* of its setup.py in the repository; NULL: it is not built from source */
	int order;
};

struct fa_kb {
	struct fa_kb_rule *rules[FA_ON_COUNT];
	size_t n_rules[FA_ON_COUNT];
	struct fa_kb_torch *torch; /* newest first */
	size_t n_torch;
	struct fa_kb_offer *offers[FA_BUYER_COUNT]; /* made when first asked for */
	size_t n_offers;
	struct fa_kb_cuda *cuda; /* newest first */
	size_t n_cuda;
	struct fa_kb_arch *archs;
	size_t n_archs;
	struct fa_kb_profile *profiles;
	size_t n_profiles;
	struct fa_kb_release *releases; /* newest first within a line */
	size_t n_releases;
	struct fa_kb_source *sources;
	size_t n_sources;
	struct fa_kb_file *files; /* by torch minor as the tables have them */
	size_t n_files;
	struct fa_kb_shelf *shelves;
	size_t n_shelves;
	struct fa_kb_rack *racks;
	size_t n_racks;
	struct fa_kb_unit *units;
	size_t n_units;
	struct fa_kb_line *lines;
	size_t n_lines;
	const struct fa_json *features; /* of fa2: feature -> first release */
	const char *features_always;    /* those of every release */
	const char *torch_index, *official_url, *official_name, *community_url, *community_name;
	const char *repository;
	struct fa_strv policies;          /* files of rules that a lab made; none: everything is allowed */
	const char *policy_text;          /* whom to ask, as they say */
	const struct fa_json *submodules; /* name: [path, address, the first release whose archive holds it; none: all do] */
	const struct fa_json *ids, *gpus, *settings, *bad_settings;
	struct fa_kb_rule *warnings; /* rows of ids.json that a rule brings about */
	size_t n_warnings;
	const struct fa_json *disk_mib, *narrow; /* of units.json */
	const struct fa_json *units_table;       /* units.json */
	const struct fa_json *units_table_fa3;   /* units-fa3.json */
	struct fa_texts texts;                   /* every value that rules see, each once */
	size_t own_texts;                        /* how many of them are the knowledge's; the others are of questions */
	struct fa_rule_memo *memo;               /* what was compared before */
};

int fa_kb_make(struct fa_kb **out, struct fa_matrix *m, struct fa_err *err);
void fa_kb_free(struct fa_kb *kb);
void fa_kb_tidy(struct fa_kb *kb); /* between two questions: forgets what earlier ones left, when it is much */
void fa_kb_hold_files(struct fa_kb *kb);
void fa_kb_clear_shelves(struct fa_kb *kb);
struct fa_kb_rule *fa_kb_add_rule(struct fa_kb *kb, enum fa_rule_on on); /* zeroed, behind those that are there */
const char *fa_kb_own(struct fa_kb *kb, char *text); /* takes it: use what is returned; as long as kb lives */
void fa_kb_shelve(struct fa_kb *kb);                 /* after files were added */
int fa_kb_add_listing(struct fa_kb *kb, const char *name, const char *base, const char *listing);

const struct fa_kb_arch *fa_kb_arch(const struct fa_kb *kb, const char *arch);
/* Every build of every torch (kb->n_offers of them): newest torch first; of one torch what the package index has, then the newest
 * CUDA. Borrowed. */
const struct fa_kb_offer *fa_kb_offers(struct fa_kb *kb, enum fa_kb_buyer buyer);
const struct fa_kb_torch *fa_kb_torch(const struct fa_kb *kb, const char *version);
const struct fa_kb_cuda *fa_kb_cuda(const struct fa_kb *kb,
                                    const char *cuda); /* "13.0" or "13.0.88"; nearest below in its major */
const struct fa_kb_release *fa_kb_release(const struct fa_kb *kb, const char *line, const char *version);
const struct fa_kb_rack *fa_kb_rack(const struct fa_kb *kb, const struct fa_kb_source *source,
                                    const char *line); /* NULL: none */
const struct fa_kb_line *fa_kb_line(const struct fa_kb *kb, const char *line);
const struct fa_json *fa_kb_id(const struct fa_kb *kb, const char *id);       /* row of ids.json, NULL */
const char *fa_kb_arch_of_name(const struct fa_kb *kb, const char *gpu_name); /* NULL: not in the table */

/* File name of a wheel for the interpreter tag ("312", "314t"); the caller's. */
char *fa_kb_file_name(const struct fa_kb *kb, const struct fa_kb_file *f, const char *tag);
char *fa_kb_file_url(const struct fa_kb *kb, const struct fa_kb_file *f, const char *name);

#endif
