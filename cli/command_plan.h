/* What `plan` and `install` have in common. */
#ifndef CLI_COMMAND_PLAN_H
#define CLI_COMMAND_PLAN_H

#include "cli.h"

/* Stages 2 and 3 for these facts and this wish. wheels: a folder of wheels that may be taken too, beside a lock; NULL: none. */
int cli_make_plan(struct fa_plan *plan, const struct fa_facts *facts, const struct fa_wish *wish, const char *wheels,
                  struct fa_err *err);

/* On standard output: as text, with --json as JSON, with --quiet nothing. */
void cli_print_plan(const struct cli *c, const struct fa_plan *plan);

/* 0 for a plan that is ready; else -1 with the one line that says why not. */
int cli_say_plan(const struct fa_plan *plan, struct fa_err *err);

#endif
