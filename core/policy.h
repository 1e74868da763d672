/* A lab's policy: which sources, routes and lines may be taken on its machines. It becomes rules behind those of the knowledge, so a
 * plan shows it as the reason like any other, and no option goes round it. docs/policy.md */
#ifndef FA_POLICY_H
#define FA_POLICY_H

#include "err.h"

struct fa_kb;
struct fa_strv;

/* Reads each file that is there and adds its rules; all of them hold. A file that is damaged or says what is not understood is
 * FA_USAGE, with file and member: a slip must not open the door. */
int fa_policy_load(struct fa_kb *kb, const struct fa_strv *paths, struct fa_err *err);

/* /etc/fainstall/policy.json and the one in the user's configuration folder; appended. */
void fa_policy_paths(struct fa_strv *out);

/* A source's name as one word of a rule: blanks and commas escaped, a slash at the end and a commit left out. The caller's. */
char *fa_policy_word(const char *source);

#endif
