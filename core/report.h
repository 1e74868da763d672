/* report.json: what was found, chosen, done and measured; the only place for figures that differ from run to run. */
#ifndef FA_REPORT_H
#define FA_REPORT_H

#include "err.h"
#include "facts.h"
#include "plan.h"

struct fa_json;
struct fa_report; /* wraps one JSON object: facts, choice, steps[], checks[], figures{}, verdict */

struct fa_report *fa_report_new(void);
void fa_report_free(struct fa_report *r);
struct fa_json *fa_report_json(struct fa_report *r); /* borrowed, mutable */
void fa_report_describe(struct fa_report *r, const struct fa_facts *facts, const struct fa_plan *plan);
int fa_report_write(const struct fa_report *r, const char *path, struct fa_err *err);

#endif
