/* Events into state. */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tui_work_init(struct tui_work *w)
{
	*w = (struct tui_work){
		.step = -1, .done = -1, .total = -1, .left_s = -1, .rest_s = -1, .units_total = -1, .peak_mib = -1
	};
}

void tui_work_release(struct tui_work *w)
{
	for (size_t i = 0; i < w->n_steps; i++)
		free(w->steps[i].text);
	for (size_t i = 0; i < w->n_units; i++)
		free(w->units[i].id);
	for (size_t i = 0; i < w->n_finished; i++)
		free(w->finished[i].id);
	free(w->finished);
	for (size_t i = 0; i < w->n_checks; i++) {
		free(w->checks[i].id);
		free(w->checks[i].text);
	}
	for (size_t i = 0; w->log && i < TUI_LOG_LINES; i++)
		free(w->log[i]);
	free(w->steps);
	free(w->units);
	free(w->checks);
	free(w->log);
	free(w->cause);
	free(w->evidence);
	free(w->repair);
	free(w->last);
	free(w->stage);
	free(w->verdict);
	free(w->not_undone);
	free(w->peak_unit);
	fa_strv_release(&w->warnings);
	fa_strv_release(&w->notes);
	tui_work_init(w);
}

static void add_steps(struct tui_work *w, size_t n)
{
	w->steps = fa_realloc(w->steps, n, sizeof *w->steps);
	for (; w->n_steps < n; w->n_steps++)
		w->steps[w->n_steps] = (struct tui_step){ .seconds = -1, .peak_mib = -1 };
}

void tui_work_start(struct tui_work *w, const struct fa_plan *plan, int64_t now_ms)
{
	tui_work_release(w);
	w->started = w->running = true;
	w->began_ms = now_ms;
	if (plan && plan->n_steps)
		add_steps(w, plan->n_steps);
}

static void add_line(struct tui_work *w, const char *text)
{
	if (!w->log)
		w->log = fa_calloc(TUI_LOG_LINES, sizeof *w->log);
	char **place = &w->log[w->log_n++ % TUI_LOG_LINES];
	free(*place);
	*place = fa_strdup(text);
}

const char *tui_work_line(const struct tui_work *w, size_t i)
{
	return i < w->log_n && i >= tui_work_first_line(w) ? w->log[i % TUI_LOG_LINES] : NULL;
}

bool tui_work_speaks_of_error(const char *line)
{
	return strcasestr(line, "error") && !strcasestr(line, "0 error");
}

/* diagnose read the file, where a line may be longer than what was told here: the beginning is compared. */
static bool is_evidence(const struct tui_work *w, const char *line)
{
	enum { ENOUGH = 60 };
	char start[ENOUGH + 1];
	snprintf(start, sizeof start, "%s", w->evidence);
	return start[0] && strstr(line, start);
}

long tui_work_evidence(const struct tui_work *w)
{
	for (size_t i = tui_work_first_line(w); w->evidence && i < w->log_n; i++)
		if (is_evidence(w, tui_work_line(w, i)))
			return (long)i;
	for (size_t i = tui_work_first_line(w); i < w->log_n; i++)
		if (tui_work_speaks_of_error(tui_work_line(w, i)))
			return (long)i;
	return w->log_n ? (long)w->log_n - 1 : -1;
}

size_t tui_work_first_line(const struct tui_work *w)
{
	return w->log_n > TUI_LOG_LINES ? w->log_n - TUI_LOG_LINES : 0;
}

/* A step of the plan; the worker's plan is ours, but its numbers came through a pipe. */
static struct tui_step *step_of(struct tui_work *w, const struct fa_event *e)
{
	return e->step < 0 || (size_t)e->step >= w->n_steps ? NULL : &w->steps[e->step];
}

static void forget_units(struct tui_work *w)
{
	for (size_t i = 0; i < w->n_units; i++)
		free(w->units[i].id);
	w->n_units = 0;
	w->units_done = 0;
	w->units_total = -1;
}

static void step_begin(struct tui_work *w, const struct fa_event *e, int64_t now_ms)
{
	struct tui_step *s = step_of(w, e);
	forget_units(w);
	w->step = s ? e->step : w->step;
	w->done = w->total = -1;
	w->left_s = w->rest_s = -1;
	w->rate = 0;
	w->unit[0] = '\0';
	if (s) {
		s->state = TUI_STEP_RUNS;
		s->began_ms = now_ms;
	}
	if (!strcmp(e->id, "verify") || (w->n_steps && e->step == (int)w->n_steps))
		w->verifying = true;
}

static void step_end(struct tui_work *w, const struct fa_event *e)
{
	struct tui_step *s = step_of(w, e);
	if (!s)
		return;
	s->state = e->status == FA_OUTCOME_FAILED                                       ? TUI_STEP_FAILED
	           : e->status == FA_OUTCOME_SKIPPED || e->status == FA_OUTCOME_NOT_RUN ? TUI_STEP_SKIPPED
	                                                                                : TUI_STEP_DONE;
	s->seconds = e->seconds;
	s->peak_mib = e->peak_mib;
	free(s->text);
	s->text = e->text[0] ? fa_strdup(e->text) : NULL;
	forget_units(w);
}

static void replace(char **at, const char *text)
{
	free(*at);
	*at = fa_strdup(text);
}

static void progress(struct tui_work *w, const struct fa_event *e, int64_t now_ms)
{
	int64_t ms = now_ms - w->progress_ms;
	if (!strcmp(e->unit, "bytes") && !strcmp(w->unit, "bytes") && e->done > w->done && w->done >= 0 && ms > 0) {
		double rate = (double)(e->done - w->done) * 1000 / (double)ms;
		w->rate = w->rate > 0 ? 0.8 * w->rate + 0.2 * rate : rate;
	}
	memcpy(w->unit, e->unit, sizeof w->unit);
	w->done = e->done;
	w->total = e->total;
	w->left_s = e->seconds;
	w->rest_s = e->rest_s;
	w->progress_ms = now_ms;
	if (!strcmp(e->unit, "cases"))
		w->verifying = true;
	if (w->verifying && e->id[0])
		replace(&w->stage, e->id);
	if (!strcmp(e->unit, "units")) {
		w->units_done = e->done;
		w->units_total = e->total;
	}
}

static void unit_begin(struct tui_work *w, const struct fa_event *e, int64_t now_ms)
{
	w->units = fa_realloc(w->units, w->n_units + 1, sizeof *w->units);
	w->units[w->n_units++] = (struct tui_unit){ fa_strdup(e->id), now_ms };
}

static void unit_end(struct tui_work *w, const struct fa_event *e)
{
	for (size_t i = 0; i < w->n_units; i++) {
		if (strcmp(w->units[i].id, e->id) != 0)
			continue;
		free(w->units[i].id);
		memmove(&w->units[i], &w->units[i + 1], (w->n_units - i - 1) * sizeof *w->units);
		w->n_units--;
		break;
	}
	if (e->done >= 0)
		w->units_done = e->done;
	if (e->total >= 0)
		w->units_total = e->total;
	w->finished = fa_realloc(w->finished, w->n_finished + 1, sizeof *w->finished);
	w->finished[w->n_finished++] = (struct tui_finished){ fa_strdup(e->id), e->seconds, e->peak_mib };
	if (e->peak_mib > w->peak_mib) {
		w->peak_mib = e->peak_mib;
		free(w->peak_unit);
		w->peak_unit = fa_strdup(e->id);
	}
}

static const char *name_of(const struct fa_event *e)
{
	return e->id[0] ? e->id : e->text;
}

static void check(struct tui_work *w, const struct fa_event *e)
{
	struct tui_check *c = NULL;
	for (size_t i = 0; i < w->n_checks && !c; i++)
		c = strcmp(w->checks[i].id, name_of(e)) ? NULL : &w->checks[i];
	if (!c) {
		w->checks = fa_realloc(w->checks, w->n_checks + 1, sizeof *w->checks);
		c = &w->checks[w->n_checks++];
		*c = (struct tui_check){ .id = fa_strdup(name_of(e)) };
	}
	free(c->text);
	c->text = fa_strdup(e->text);
	c->status = e->status;
	c->value = e->value;
	c->seconds = e->seconds;
	memcpy(c->unit, e->unit, sizeof c->unit);
	w->verifying = true;
}

static void once(struct fa_strv *list, const char *text)
{
	if (text[0] && !fa_strv_has(list, text))
		fa_strv_push(list, text);
}

static void over(struct tui_work *w, const struct fa_event *e, int64_t now_ms)
{
	w->running = false;
	w->code = e->code;
	w->seconds = e->seconds >= 0 ? e->seconds : (double)(now_ms - w->began_ms) / 1000;
	free(w->last);
	w->last = e->text[0] ? fa_strdup(e->text) : NULL;
	for (size_t i = 0; i < w->n_steps; i++)
		if (w->steps[i].state == TUI_STEP_RUNS)
			w->steps[i].state = e->code == FA_OK ? TUI_STEP_DONE : TUI_STEP_FAILED;
	forget_units(w);
}

static void first_cause(struct tui_work *w, const struct fa_event *e)
{
	if (w->cause)
		return;
	w->cause = fa_strdup(e->text);
	w->evidence = fa_strdup(e->evidence);
	w->repair = fa_strdup(e->next);
	w->evidence_line = e->number;
}

void tui_work_event(struct tui_work *w, const struct fa_event *e, int64_t now_ms)
{
	switch (e->kind) {
	case FA_EVENT_PLAN:
		if (e->number > (int64_t)w->n_steps && e->number < 1000)
			add_steps(w, (size_t)e->number);
		break;
	case FA_EVENT_STEP_BEGIN: step_begin(w, e, now_ms); break;
	case FA_EVENT_STEP_END: step_end(w, e); break;
	case FA_EVENT_PROGRESS: progress(w, e, now_ms); break;
	case FA_EVENT_UNIT_BEGIN: unit_begin(w, e, now_ms); break;
	case FA_EVENT_UNIT_END: unit_end(w, e); break;
	case FA_EVENT_LOG: add_line(w, e->text); break;
	case FA_EVENT_CHECK: check(w, e); break;
	case FA_EVENT_NOTE:
		if (!strcmp(e->id, "verdict"))
			replace(&w->verdict, e->text);
		else
			once(&w->notes, e->text);
		break;
	case FA_EVENT_WARNING:
		if (!strcmp(e->id, "undo"))
			replace(&w->not_undone, e->text);
		once(&w->warnings, e->text);
		break;
	case FA_EVENT_ERROR:
		if (w->err.status == FA_OK && e->code != FA_OK) {
			fa_err_set(&w->err, e->code, "%s", e->text);
			fa_err_next(&w->err, "%s", e->next);
		}
		break;
	case FA_EVENT_CAUSE: first_cause(w, e); break;
	case FA_EVENT_DONE: over(w, e, now_ms); break;
	case FA_EVENT_COUNT: break;
	}
}

int tui_work_count(const struct tui_work *w, enum tui_step_state state)
{
	int n = 0;
	for (size_t i = 0; i < w->n_steps; i++)
		n += w->steps[i].state == state;
	return n;
}

bool tui_check_is_case(const struct tui_check *c)
{
	return strchr(c->id, '/') != NULL;
}

int tui_work_checks(const struct tui_work *w, enum fa_outcome status)
{
	int n = 0;
	for (size_t i = 0; i < w->n_checks; i++)
		n += !tui_check_is_case(&w->checks[i]) && (status == FA_OUTCOME_NONE || w->checks[i].status == status);
	return n;
}
