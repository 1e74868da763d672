/* Showing report.json files to people: one page (HTML, self-contained, light and dark, printable) or Markdown, of one report or of
 * many: before and after, machine by machine. The first is what the others are compared with. */
#ifndef FA_REPORT_SHOW_H
#define FA_REPORT_SHOW_H

#include "err.h"

#include <stddef.h>

struct fa_buf;
struct fa_json;

struct fa_report_view { /* one report, read for showing; texts are borrowed from json, "" where it does not say */
	struct fa_json *json;
	char *name; /* the path it was read from */
	const char *status, *sentence, *text, *mode, *card, *torch, *line, *version, *driver;
	double matmul_tflops; /* 0: not measured */
};

/* FA_USAGE: unreadable, not a report, a schema of another program. A folder means its report.json. */
int fa_report_view(struct fa_report_view *out, const char *path, struct fa_err *err);
void fa_report_view_release(struct fa_report_view *v);

void fa_report_markdown(struct fa_buf *out, const struct fa_report_view *v, size_t n);
void fa_report_html(struct fa_buf *out, const struct fa_report_view *v, size_t n);

/* How the forward or backward time of `what` in figure row `row` of a later report stands to the first's: t_first / t, 0 when the
 * first has no such figure. A change counts when the 95 % intervals do not touch and it is larger than 3 %: *counts says so. */
double fa_report_ratio(const struct fa_report_view *first, const struct fa_json *row, int *counts);

/* "FA2, bf16, head dim 128, 2 x 8,192 tokens, causal, forward" of a figure row. The caller's. */
char *fa_report_row_title(const struct fa_json *row);
char *fa_report_thousands(double v); /* "8,128"; the caller's */

#endif
