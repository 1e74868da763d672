/* The plan for people: what will be done, why, what was refused, what to change first, the steps. Plain text, no colour. */
#ifndef FA_PLAN_TEXT_H
#define FA_PLAN_TEXT_H

#include "plan.h"

struct fa_buf;

void fa_plan_print(struct fa_buf *out, const struct fa_plan *p);

#endif
