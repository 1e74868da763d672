#include "event.h"

#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const event_words[] = {
#define EVENT(id, word) [FA_EVENT_##id] = word,
#include "event.def"
#undef EVENT
};

static const char *const outcome_words[] = { "", "ok", "failed", "skipped", "not_run" };
enum { N_OUTCOMES = sizeof(outcome_words) / sizeof(*outcome_words) };

struct fa_event fa_event_new(enum fa_event_kind kind)
{
	struct fa_event e = {
		.kind = kind, .step = -1, .done = -1, .total = -1, .number = -1, .peak_mib = -1, .seconds = -1, .rest_s = -1
	};

	return e;
}

void fa_emit(const struct fa_sink *sink, const struct fa_event *event)
{
	if (sink && sink->emit)
		sink->emit(sink->ctx, event);
}

void fa_emit_text(const struct fa_sink *sink, enum fa_event_kind kind, const char *id, const char *fmt, ...)
{
	struct fa_event e = fa_event_new(kind);
	va_list ap;

	snprintf(e.id, sizeof(e.id), "%s", id ? id : "");
	va_start(ap, fmt);
	vsnprintf(e.text, sizeof(e.text), fmt, ap);
	va_end(ap);
	fa_emit(sink, &e);
}

const char *fa_event_word(enum fa_event_kind kind)
{
	return event_words[kind];
}

const char *fa_outcome_word(enum fa_outcome o)
{
	return outcome_words[o];
}

/* A text cut in the middle of a UTF-8 sequence would not be JSON: give back the cut bytes. */
static void set_text(struct fa_json *j, const char *key, const char *text)
{
	char copy[1024];
	size_t len;

	if (!text[0])
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	len = strlen(copy);
	if (len == sizeof(copy) - 1) {
		while (len && ((unsigned char)copy[len - 1] & 0xc0) == 0x80)
			len--;
		copy[len ? len - 1 : 0] = '\0';
	}
	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < 0x20 && *p != '\t')
			*p = ' ';
	fa_json_set_string(j, key, copy);
}

static void set_number(struct fa_json *j, const char *key, double v)
{
	if (v >= 0)
		fa_json_set_number(j, key, v);
}

struct fa_json *fa_event_to_json(const struct fa_event *e)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_string(j, "event", event_words[e->kind]);
	set_number(j, "step", e->step);
	set_text(j, "id", e->id);
	if (e->status != FA_OUTCOME_NONE)
		fa_json_set_string(j, "status", outcome_words[e->status]);
	if (e->kind == FA_EVENT_ERROR || e->kind == FA_EVENT_DONE)
		fa_json_set_number(j, "code", e->code);
	set_number(j, "done", (double)e->done);
	set_number(j, "total", (double)e->total);
	set_number(j, "number", (double)e->number);
	if (e->kind == FA_EVENT_CHECK && e->unit[0])
		fa_json_set_number(j, "value", e->value);
	set_text(j, "unit", e->unit);
	set_number(j, "seconds", e->seconds);
	set_number(j, "rest_s", e->rest_s);
	set_number(j, "peak_mib", (double)e->peak_mib);
	set_text(j, "text", e->text);
	set_text(j, "next", e->next);
	set_text(j, "evidence", e->evidence);
	return j;
}

static void get_text(char *out, size_t size, const struct fa_json *j, const char *key)
{
	const char *text = fa_json_get_string(j, key);

	snprintf(out, size, "%s", text ? text : "");
}

int fa_event_from_json(struct fa_event *out, const struct fa_json *j, struct fa_err *err)
{
	const char *word, *status = fa_json_get_string(j, "status");
	int kind = 0;

	if (fa_json_need_string(&word, j, "event", "event", err) < 0)
		return -1;
	while (kind < FA_EVENT_COUNT && strcmp(event_words[kind], word) != 0)
		kind++;
	if (kind == FA_EVENT_COUNT)
		return fa_err_set(err, FA_INTERNAL, "unknown event \"%s\"", word);
	*out = fa_event_new((enum fa_event_kind)kind);
	for (int i = 0; status && i < N_OUTCOMES; i++)
		if (!strcmp(outcome_words[i], status))
			out->status = (enum fa_outcome)i;
	out->code = (enum fa_status)fa_json_get_number(j, "code", 0);
	out->step = (int)fa_json_get_number(j, "step", -1);
	out->done = (int64_t)fa_json_get_number(j, "done", -1);
	out->total = (int64_t)fa_json_get_number(j, "total", -1);
	out->number = (int64_t)fa_json_get_number(j, "number", -1);
	out->peak_mib = (int64_t)fa_json_get_number(j, "peak_mib", -1);
	out->seconds = fa_json_get_number(j, "seconds", -1);
	out->rest_s = fa_json_get_number(j, "rest_s", -1);
	out->value = fa_json_get_number(j, "value", 0);
	get_text(out->unit, sizeof(out->unit), j, "unit");
	get_text(out->id, sizeof(out->id), j, "id");
	get_text(out->text, sizeof(out->text), j, "text");
	get_text(out->next, sizeof(out->next), j, "next");
	get_text(out->evidence, sizeof(out->evidence), j, "evidence");
	return 0;
}
