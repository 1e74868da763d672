/* requirements.lock: a pip requirements file that pip and uv install unaided with --require-hashes, with what fainstall needs
 * besides in comment lines `# fainstall: key = value`. Contract: DESIGN 8. Nothing in it differs from run to run. */
#ifndef FA_LOCK_H
#define FA_LOCK_H

#include "err.h"
#include "facts.h"
#include "plan.h"
#include "strv.h"

struct fa_buf;

struct fa_lock_package {
	char *name;            /* normalised (PEP 503) */
	char *version;         /* with local label where it has one */
	char *url;             /* "name @ URL" instead of name==version; NULL: from the primary index */
	struct fa_strv hashes; /* "sha256:…", sorted */
	bool built;            /* built here: lies in ./wheels beside the lock */
};

struct fa_lock_entry {
	char *key;
	char *value;
};

struct fa_lock {
	struct fa_lock_package *packages; /* sorted by name */
	size_t n_packages;
	struct fa_lock_entry *entries; /* sorted by key: "schema", "wish", "route", "source", "fact.driver", "build.archs", … */
	size_t n_entries;
};

#define FA_LOCK_INIT \
	{ \
		0 \
	}

struct fa_lock_package *fa_lock_add_package(struct fa_lock *l, const char *name, const char *version);
struct fa_lock_package *fa_lock_package(const struct fa_lock *l, const char *name); /* NULL: none; borrowed */
void fa_lock_copy_package(struct fa_lock *l, const struct fa_lock_package *from);
void fa_lock_drop_package(struct fa_lock *l, const char *name);
char *fa_lock_normal_name(const char *name); /* PEP 503: "Flash_Attn" -> "flash-attn"; the caller's */
char *fa_lock_url_version(const char *url);  /* of the file that a URL ends in; NULL: it names none; the caller's */
void fa_lock_set(struct fa_lock *l, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *fa_lock_get(const struct fa_lock *l, const char *key); /* NULL: none; borrowed */

/* The facts, wish and choice that a lock remembers, as entries. */
void fa_lock_describe(struct fa_lock *l, const struct fa_plan *plan, const struct fa_facts *facts);

/* Is "NAME=value" of a build's environment a matter of the machine, not of what is built? */
bool fa_lock_of_the_machine(const char *assignment);

/* Same lock, same bytes: sorted, canonical URLs only. */
void fa_lock_print(struct fa_buf *out, const struct fa_lock *l);

/* One package as a requirement line with its hashes: for the file given to pip. */
void fa_lock_print_requirement(struct fa_buf *out, const struct fa_lock_package *p);

/* FA_USAGE with the line: not a lock, damaged line, unknown schema. */
int fa_lock_parse(struct fa_lock *out, const char *text, size_t len, const char *name, struct fa_err *err);
int fa_lock_read(struct fa_lock *out, const char *path, struct fa_err *err);

/* The wish that makes resolve choose what the lock says. */
int fa_lock_wish(struct fa_wish *out, const struct fa_lock *l, struct fa_err *err);

/* Which facts differ from those it was made on and whether each matters: one sentence a line into out. FA_MACHINE: this
 * machine cannot use it; FA_INTEGRITY: frozen and not exactly the same. */
int fa_lock_fits(const struct fa_lock *l, const struct fa_facts *facts, bool frozen, struct fa_buf *out, struct fa_err *err);

void fa_lock_release(struct fa_lock *l);

#endif
