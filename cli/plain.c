/* Events as calm lines: a line when a step begins, its result when it ends, and the progress of long steps once a second in one
 * rewritten line on a terminal, every ten seconds without one. The lines of children are in the log. */
#include "front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { INDENT = 8 };

static double monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void cli_add_seconds(struct fa_buf *out, double seconds)
{
	long s = (long)(seconds + 0.5);

	if (seconds < 10)
		fa_buf_addf(out, "%.1f s", seconds);
	else if (s < 60)
		fa_buf_addf(out, "%ld s", s);
	else if (s < 3600)
		fa_buf_addf(out, "%ld min %ld s", s / 60, s % 60);
	else
		fa_buf_addf(out, "%ld h %ld min", s / 3600, s % 3600 / 60);
}

void cli_add_bytes(struct fa_buf *out, int64_t bytes)
{
	if (bytes < 1000)
		fa_buf_addf(out, "%lld bytes", (long long)bytes);
	else if (bytes < 1000000)
		fa_buf_addf(out, "%.0f kB", (double)bytes / 1e3);
	else if (bytes < 1000000000)
		fa_buf_addf(out, "%.1f MB", (double)bytes / 1e6);
	else
		fa_buf_addf(out, "%.2f GB", (double)bytes / 1e9);
}

/* Ends a progress line that is still open, or wipes it. */
static void close_line(struct cli_front *f)
{
	if (f->open_line)
		fputs("\r\033[K", stdout);
	f->open_line = false;
}

static void word(struct fa_buf *out, const struct cli_front *f, enum fa_outcome o)
{
	static const char *const colors[] = { "", "\033[32m", "\033[31m", "", "\033[33m" };
	bool color = f->color && colors[o][0];

	fa_buf_addf(out, "%s%-7s%s", color ? colors[o] : "", o == FA_OUTCOME_NOT_RUN ? "not run" : fa_outcome_word(o),
	            color ? "\033[0m" : "");
}

static void print(struct cli_front *f, const struct fa_buf *line)
{
	close_line(f);
	fputs(fa_buf_str(line), stdout);
	putchar('\n');
	fflush(stdout);
}

static void show_step_begin(struct cli_front *f, const struct fa_event *e, struct fa_buf *line)
{
	size_t n = f->plan ? f->plan->n_steps : 0;

	f->last_progress = f->now();
	if (e->step >= 0 && (size_t)e->step < n)
		fa_buf_addf(line, "[%d/%zu] ", e->step + 1, n);
	fa_buf_adds(line, e->text[0] ? e->text : e->id);
}

static void show_step_end(const struct cli_front *f, const struct fa_event *e, struct fa_buf *line)
{
	fa_buf_addf(line, "%*s", INDENT, "");
	word(line, f, e->status);
	if (e->seconds >= 0.05) {
		fa_buf_addc(line, ' ');
		cli_add_seconds(line, e->seconds);
	}
	if (e->peak_mib >= 100)
		fa_buf_addf(line, ", peak %.1f GiB", (double)e->peak_mib / 1024);
	if (e->text[0])
		fa_buf_addf(line, "%s %s", e->seconds >= 0.05 || e->peak_mib >= 100 ? ":" : "", e->text);
}

static void add_amount(struct fa_buf *line, const struct fa_event *e)
{
	if (!strcmp(e->unit, "bytes")) {
		cli_add_bytes(line, e->done);
		if (e->total > 0) {
			fa_buf_adds(line, " of ");
			cli_add_bytes(line, e->total);
		}
	} else if (!strcmp(e->unit, "s")) {
		cli_add_seconds(line, (double)e->done);
	} else if (e->total > 0) {
		fa_buf_addf(line, "%lld of %lld %s", (long long)e->done, (long long)e->total, e->unit);
	} else {
		fa_buf_addf(line, "%lld %s", (long long)e->done, e->unit);
	}
}

static int columns(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

static void show_progress(struct cli_front *f, const struct fa_event *e)
{
	struct fa_buf line = FA_BUF_INIT;
	double t = f->now();

	if (t - f->last_progress < (f->terminal ? 1.0 : 10.0))
		return;
	f->last_progress = t;
	fa_buf_addf(&line, "%*s", INDENT, "");
	if (e->done >= 0)
		add_amount(&line, e);
	if (e->text[0])
		fa_buf_addf(&line, "%s%s", e->done >= 0 ? "  " : "", e->text);
	if (e->seconds > 0) {
		fa_buf_adds(&line, ", about ");
		cli_add_seconds(&line, e->seconds < 10 ? 10 : e->seconds);
		fa_buf_adds(&line, " to go");
	}
	if (f->terminal) {
		printf("\r\033[K%.*s", columns() - 1, fa_buf_str(&line));
		f->open_line = true;
		fflush(stdout);
	} else {
		print(f, &line);
	}
	fa_buf_release(&line);
}

static void show_unit_end(struct cli_front *f, const struct fa_event *e, struct fa_buf *line)
{
	if (f->terminal && e->status == FA_OUTCOME_OK) { /* progress tells the rest */
		f->last_progress = 0;
		return;
	}
	fa_buf_addf(line, "%*s[%lld/%lld] %s", INDENT, "", (long long)e->done, (long long)e->total, e->id);
	if (e->status != FA_OUTCOME_OK)
		fa_buf_addf(line, " %s", fa_outcome_word(e->status));
	if (e->seconds >= 0) {
		fa_buf_adds(line, ", ");
		cli_add_seconds(line, e->seconds);
	}
	if (e->peak_mib > 0)
		fa_buf_addf(line, ", %.1f GiB", (double)e->peak_mib / 1024);
}

/* Cases that are right ("numbers/…", hundreds of them) stand in the report; their stage has a line. */
static void show_check(const struct cli_front *f, const struct fa_event *e, struct fa_buf *line)
{
	if (e->status == FA_OUTCOME_OK && strchr(e->id, '/') && strncmp(e->id, "speed/", 6) != 0)
		return;
	fa_buf_addf(line, "%*s", INDENT, "");
	word(line, f, e->status);
	fa_buf_addf(line, " %s", e->id);
	if (e->text[0])
		fa_buf_addf(line, ": %s", e->text);
}

static void show_cause(const struct fa_event *e, struct fa_buf *line)
{
	fa_buf_addf(line, "%*scause: %s (%s)\n", INDENT, "", e->text, e->id);
	fa_buf_addf(line, "%*sline %lld of the log: %s", INDENT, "", (long long)e->number, e->evidence);
	if (e->next[0])
		fa_buf_addf(line, "\n%*srepair: %s", INDENT, "", e->next);
}

static void show(struct cli_front *f, const struct fa_event *e)
{
	struct fa_buf line = FA_BUF_INIT;

	if (e->kind == FA_EVENT_ERROR) {
		close_line(f);
		cli_say(f->color && isatty(STDERR_FILENO), e->code, e->text, e->next);
	}
	if (f->quiet)
		return;
	switch (e->kind) {
	case FA_EVENT_PROGRESS: show_progress(f, e); break;
	case FA_EVENT_STEP_BEGIN: show_step_begin(f, e, &line); break;
	case FA_EVENT_STEP_END: show_step_end(f, e, &line); break;
	case FA_EVENT_UNIT_END: show_unit_end(f, e, &line); break;
	case FA_EVENT_CHECK: show_check(f, e, &line); break;
	case FA_EVENT_NOTE: fa_buf_addf(&line, "%*snote: %s", INDENT, "", e->text); break;
	case FA_EVENT_WARNING: fa_buf_addf(&line, "%*s! %s", INDENT, "", e->text); break;
	case FA_EVENT_CAUSE: show_cause(e, &line); break;
	case FA_EVENT_DONE:
		if (e->code == FA_OK && e->text[0])
			fa_buf_addf(&line, "\n%s", e->text);
		break;
	case FA_EVENT_PLAN: fa_buf_adds(&line, e->text); break;
	case FA_EVENT_UNIT_BEGIN:
	case FA_EVENT_LOG:
	case FA_EVENT_ERROR:
	case FA_EVENT_COUNT: break;
	}
	if (line.len)
		print(f, &line);
	fa_buf_release(&line);
}

void cli_front_plain(struct cli_front *out, const struct cli *c, const struct fa_plan *plan)
{
	*out = (struct cli_front){ .show = show, .now = monotonic, .plan = plan };
	out->terminal = isatty(STDOUT_FILENO);
	out->color = cli_color(c, STDOUT_FILENO);
	out->quiet = c->v[CLI_OPT_QUIET] != NULL;
}
