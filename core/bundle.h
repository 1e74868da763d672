/* What a maintainer needs of a failure, in one JSON file, without what is nobody's business: facts, plan, diagnosis and the part
 * of the log around the cause; user and host names, home folders, tokens and passwords are taken out. */
#ifndef FA_BUNDLE_H
#define FA_BUNDLE_H

#include "diagnose.h"
#include "err.h"
#include "facts.h"
#include "plan.h"

struct fa_names {         /* what must not be in it */
	const char *user; /* NULL: unknown */
	const char *host;
	const char *home;
};

/* Appends text with names replaced (user, host, ~; also in addresses and prompts like "ada@lab7"), values of what is called
 * …TOKEN, …KEY, …SECRET, …PASSWORD and the like, words after --password, Bearer and the like, well-known token forms and private
 * keys blanked ("-"), and URLs treated as fa_redact does. Works on any text; a name counts only as a whole word. */
void fa_anonymise(struct fa_buf *out, const char *text, const struct fa_names *names);

/* Writes fainstall.bundle/1 to path; of the log at most 256 KiB: what is around the causes, and its end. log_path may be "-" or NULL: then only the lines shown as evidence are in it. */
int fa_bundle_write(const char *path, const struct fa_facts *facts, const struct fa_plan *plan, const struct fa_diagnosis *d,
                    const char *log_path, const struct fa_names *names, struct fa_err *err);

#endif
