/* The state of the wizard and how keys, plans and events change it. Pure: no terminal, no file, no clock; what must happen
 * outside is left in `want` for run.c. Facts and plan are borrowed; whoever replaces them calls tui_model_set_facts/_plan. */
#ifndef TUI_MODEL_H
#define TUI_MODEL_H

#include "fainstall.h"
#include "work.h"

#include <stdbool.h>
#include <stdint.h>

/* SCREEN(id, title): the stages in their order. */
#define TUI_STAGES(STAGE) \
	STAGE(MACHINE, "Machine") \
	STAGE(GOAL, "Goal") \
	STAGE(TREE, "Tree") \
	STAGE(REVIEW, "Review") \
	STAGE(INSTALL, "Install") \
	STAGE(VERIFY, "Verify") \
	STAGE(DONE, "Done")

enum tui_screen {
#define STAGE(id, title) TUI_##id##_SCREEN,
	TUI_STAGES(STAGE)
#undef STAGE
	        TUI_FAILED_SCREEN, /* shown in the place of INSTALL or VERIFY */
	TUI_SCREEN_COUNT,
};

enum tui_overlay {
	TUI_NO_OVERLAY,
	TUI_HELP_OVERLAY,
	TUI_LOG_OVERLAY,
	TUI_QUESTION_OVERLAY, /* in the hint row: y or n; f where tui_may_drain */
	TUI_ENTRY_OVERLAY,    /* in the hint row: a line of text */
};

/* Keys that are no character. Others are their code point: 27 Esc, 13 Enter, 3 Ctrl-C. */
enum tui_key {
	TUI_KEY_UP = 0x110000,
	TUI_KEY_DOWN,
	TUI_KEY_LEFT,
	TUI_KEY_RIGHT,
	TUI_KEY_HOME,
	TUI_KEY_END,
	TUI_KEY_PAGE_UP,
	TUI_KEY_PAGE_DOWN,
	TUI_KEY_BACKSPACE,
	TUI_KEY_F1,
	TUI_KEY_F10,
};

enum tui_action {
	TUI_ACT_NONE,
	TUI_ACT_NEXT,
	TUI_ACT_CHOOSE,
	TUI_ACT_OPEN,
	TUI_ACT_CLOSE,
	TUI_ACT_UP,
	TUI_ACT_DOWN,
	TUI_ACT_PAGE_UP,
	TUI_ACT_PAGE_DOWN,
	TUI_ACT_FIRST,
	TUI_ACT_LAST,
	TUI_ACT_NEXT_PART,
	TUI_ACT_BACK,
	TUI_ACT_HELP,
	TUI_ACT_QUIT,
	TUI_ACT_CANCEL,
	TUI_ACT_REDRAW,
	TUI_ACT_SUSPEND,
	TUI_ACT_READ_AGAIN,
	TUI_ACT_PLAN_ON,
	TUI_ACT_COPY,
	TUI_ACT_UNDO,
	TUI_ACT_LOG,
	TUI_ACT_NEXT_ERROR,
	TUI_ACT_LAST_ERROR,
	TUI_ACT_PLAIN,
	TUI_ACT_CLOSE_OVERLAY,
};

/* What run.c must do; it clears the bit. */
enum tui_want {
	TUI_WANT_PLAN = 1,      /* resolve again with model.wish; then tui_model_set_plan */
	TUI_WANT_FACTS = 2,     /* detect again for model.wish's environment; then tui_model_set_facts */
	TUI_WANT_START = 4,     /* start the job */
	TUI_WANT_STOP = 8,      /* fa_job_cancel */
	TUI_WANT_DRAIN = 512,   /* fa_job_drain */
	TUI_WANT_QUIT = 16,     /* leave with model.exit */
	TUI_WANT_PLAIN = 32,    /* leave the full screen, go on in plain lines */
	TUI_WANT_REDRAW = 64,   /* every cell anew */
	TUI_WANT_SUSPEND = 128, /* to the shell */
	TUI_WANT_COPY = 256,    /* model.copied to the terminal's clipboard */
};

enum tui_question { TUI_ASK_NOTHING, TUI_ASK_QUIT, TUI_ASK_STOP, TUI_ASK_TAKE };

/* What the wizard was started with; texts are borrowed. */
struct tui_start {
	const char *active_env;      /* folder of the active environment; NULL: none */
	const char *lock_path;       /* reproduced when it exists; NULL: none */
	const char *write_lock_path; /* where the lock is written; NULL: nowhere */
	bool foreign;                /* facts of another machine: nothing is started */
	bool rebuild, strict;
};

struct tui_model {
	struct tui_start start;
	const struct fa_facts *facts; /* borrowed */
	const struct fa_plan *plan;   /* borrowed; NULL: there is none, plan_err says why */
	struct fa_err plan_err;
	struct fa_wish wish;
	struct fa_wish before; /* for Undo */
	bool undoable;
	bool reading; /* the machine is being read again */

	int rows, cols;
	enum tui_screen screen, furthest; /* furthest: for the ticks of the header */
	int cursor[TUI_SCREEN_COUNT], top[TUI_SCREEN_COUNT];
	struct fa_strv open;    /* what is unfolded, by name */
	struct fa_strv changed; /* questions whose answer the last key changed */
	bool plan_on;           /* "Plan anyway" was pressed */
	bool special;           /* goal: the third question says yes */
	enum tui_overlay overlay;
	int overlay_top; /* first line shown; log: lines above the end */
	long log_mark;   /* line of the log that is marked; -1: none */
	enum tui_question question;
	char hint[512]; /* answer to the last key, until the next one */
	char entry[512];
	enum fa_wish_id entry_wish;
	char *copied;    /* text of the last Copy; owned */
	char *take_wish; /* what a yes to TUI_ASK_TAKE sets: "torch=2.10.0"; owned */

	struct tui_work work;
	int64_t now_ms;
	int64_t enter_ms; /* of the last Enter; while one is handled, of the one before */
	unsigned want;
	int exit;
};

void tui_model_init(struct tui_model *m, const struct tui_start *start, const struct fa_wish *wish);
void tui_model_release(struct tui_model *m);

/* The plan before may be released only after this call. err: why there is no plan. */
void tui_model_set_facts(struct tui_model *m, const struct fa_facts *facts);
void tui_model_set_plan(struct tui_model *m, const struct fa_plan *plan, const struct fa_err *err);
void tui_model_resize(struct tui_model *m, int rows, int cols);
void tui_model_key(struct tui_model *m, uint32_t key);
void tui_model_event(struct tui_model *m, const struct fa_event *e);
void tui_model_tick(struct tui_model *m, int64_t now_ms);

/* For screens. */
bool tui_may_drain(const struct tui_model *m); /* the question is about stopping, and units compile */
bool tui_model_small(const struct tui_model *m);
bool tui_open(const struct tui_model *m, const char *name);
void tui_set_open(struct tui_model *m, const char *name, bool open);
void tui_go(struct tui_model *m, enum tui_screen screen);
/* The log, at the line that proves the cause when the work has failed. */
void tui_open_log(struct tui_model *m);
void tui_say(struct tui_model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tui_ask(struct tui_model *m, enum tui_question question, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Sets one wish and wants a new plan; a value that does not fit is refused in the hint. value NULL: no longer asked. */
void tui_wish(struct tui_model *m, enum fa_wish_id id, const char *value);
/* The whole wish by the words of a command line ("--torch", "2.8.0"); wants a new plan. */
void tui_wish_words(struct tui_model *m, const struct fa_strv *words);
void tui_edit(struct tui_model *m, enum fa_wish_id id); /* asks for a text in the hint row */
void tui_undo(struct tui_model *m);                     /* the wish before the last change */
void tui_copy(struct tui_model *m, char *text);         /* to the clipboard; takes text over */
char *tui_command(const struct tui_model *m);           /* the command line that does the same; the caller's */

#endif
