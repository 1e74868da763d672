/* Children of the execute stage: environment cleaned and explicit, every line redacted, logged and told as an event. */
#ifndef FA_CHILD_H
#define FA_CHILD_H

#include "err.h"
#include "event.h"
#include "strv.h"

#include <stdbool.h>
#include <stdint.h>

/* What the children of one run share. */
struct fa_child_context {
	const struct fa_sink *sink;
	const char *log_path;       /* NULL: nowhere */
	const volatile int *cancel; /* NULL: never */
	int step;                   /* place in the plan of the step in hand; -1 none */
	int64_t peak_mib;           /* largest of the children since it was set to -1 */
};

struct fa_child {
	const char *const *argv;
	const char *cwd;           /* NULL: ours */
	const struct fa_strv *env; /* "NAME=value" added to the clean environment; NULL: none */
	bool quiet;                /* its lines go to the log only, not to the sink */
	struct fa_buf *out;        /* stdout is collected here; NULL: no */
	struct fa_buf *all;        /* both, redacted, for error messages; NULL: no */
	/* Each line before it is told; NULL: none. */
	void (*line)(void *ctx, const char *line);
	void *ctx;
};

/* Runs it to its end. Errors as fa_proc_run(). */
int fa_child_run(struct fa_child_context *c, const struct fa_child *child, enum fa_status on_failure, struct fa_err *err);

/* The user's environment without what would change what Python, pip or a compiler do behind our back. Proxies, certificates
 * and pip's own configuration (mirrors) stay. Appended. */
void fa_child_environment(struct fa_strv *out);

/* One line into the log, redacted. */
void fa_log_line(const char *log_path, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
