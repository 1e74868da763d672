/* What happens, told as plain values: no pointer in it, so an event can cross a pipe, sit in a queue or be printed as one line
 * of JSON. Front ends show events; they decide nothing. */
#ifndef FA_EVENT_H
#define FA_EVENT_H

#include "err.h"

#include <stdint.h>

struct fa_json;

enum fa_event_kind {
#define EVENT(id, word) FA_EVENT_##id,
#include "event.def"
#undef EVENT
	FA_EVENT_COUNT,
};

enum fa_outcome { FA_OUTCOME_NONE, FA_OUTCOME_OK, FA_OUTCOME_FAILED, FA_OUTCOME_SKIPPED, FA_OUTCOME_NOT_RUN };

struct fa_event {
	enum fa_event_kind kind;
	enum fa_outcome status;
	enum fa_status code; /* ERROR, DONE */
	int step;            /* place in the plan, from 0; -1 none */
	int64_t done, total; /* -1: unknown */
	int64_t number;
	int64_t peak_mib; /* -1 unknown */
	double seconds;   /* -1 unknown */
	double rest_s;    /* PROGRESS of units: until those that run are done, nothing new starting; -1 unknown */
	double value;
	char unit[16]; /* of done, total, value */
	char id[128];
	char text[1024];
	char next[1024];
	char evidence[512]; /* CAUSE */
};

/* Receives events as they happen; must not keep the pointer. */
struct fa_sink {
	void (*emit)(void *ctx, const struct fa_event *event);
	void *ctx;
};

/* An event with every number "unknown" and every text "". */
struct fa_event fa_event_new(enum fa_event_kind kind);
void fa_emit(const struct fa_sink *sink, const struct fa_event *event);
void fa_emit_text(const struct fa_sink *sink, enum fa_event_kind kind, const char *id, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

const char *fa_event_word(enum fa_event_kind kind);
const char *fa_outcome_word(enum fa_outcome o); /* ok failed skipped not_run; "" for NONE */

/* {"event":"step_end", …}: unknown values are left out. The caller's. */
struct fa_json *fa_event_to_json(const struct fa_event *e);
int fa_event_from_json(struct fa_event *out, const struct fa_json *j, struct fa_err *err);

#endif
