/* A child that answers: a command, or a function of ours that may hang or crash. */
#ifndef FA_SYS_CHILD_H
#define FA_SYS_CHILD_H

#include "sys.h"
#include "sys_ask.h"

#include <sys/types.h>

struct fa_child {
	pid_t pid; /* -1: not started, see result.result */
	int out, err;
	int64_t deadline_ms; /* of CLOCK_MONOTONIC */
	struct fa_command_result result;
};

/* Starts program (a path) with argv. */
void fa_child_exec(struct fa_child *c, const char *program, const char *const *argv, unsigned timeout_ms);

/* Starts answer(), whose text comes back as if it had been printed. */
void fa_child_call(struct fa_child *c, fa_answer *answer, const char *question, unsigned timeout_ms);

/* Reads until the child has ended or the time is up; then the whole group is killed. Moves the result out. */
void fa_child_finish(struct fa_child *c, struct fa_command_result *out);

#endif
