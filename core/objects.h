/* Compiled objects kept by content: the source, every header it read, the flags, the compiler. Paths do not count: the same
 * release in another folder, for another Python or another torch whose headers it does not read, finds them again. */
#ifndef FA_OBJECTS_H
#define FA_OBJECTS_H

#include "err.h"
#include "sha256.h"
#include "strv.h"

#include <stdbool.h>
#include <stdint.h>

struct fa_objects {
	char *dir;            /* of the store */
	char *identity;       /* of the compilers: whatever text tells them apart */
	struct fa_strv roots; /* "S=/folder": a path below it is written S/… ; longest folder first */
};

struct fa_object {
	const char *source, *output;
	const char *depfile;     /* written by the compiler (-MF); NULL: not kept */
	char key[FA_SHA256_HEX]; /* of flags, compiler and source */
};

/* roots: lines NAME=FOLDER. */
void fa_objects_init(struct fa_objects *s, const char *dir, const char *identity, const char *roots);
void fa_objects_release(struct fa_objects *s);

/* What this command line compiles, and its key. -1: nothing that could be kept. `ignore_below` (roots' names, one letter each): -I
 * of folders that the source does not need, if none of its headers comes from there. */
int fa_objects_look(struct fa_object *out, const struct fa_objects *s, char *const *argv, const char *ignore_below);

/* Puts output and depfile where the command would. false: not there, or damaged (then it is removed). */
bool fa_objects_fetch(const struct fa_objects *s, const struct fa_object *o);

/* Keeps the output just made. */
int fa_objects_store(const struct fa_objects *s, const struct fa_object *o, struct fa_err *err);

/* Removes the objects longest unused until at most max_mib are left. */
void fa_objects_trim(const char *dir, int64_t max_mib);

/* Words of a Makefile's rule after its colon: "x.o: a.h \\\n b.h", blanks escaped. */
void fa_objects_parse_depfile(struct fa_strv *out, const char *text);

#endif
