/* The machine as detection sees it. Everything that is read of it comes through here, so that a folder of recorded answers can
 * stand in (tests, `--host DIR`) and every answer can be recorded (`detect --record DIR`). */
#ifndef FA_SYS_H
#define FA_SYS_H

#include "buf.h"
#include "err.h"
#include "strv.h"

#include <stdbool.h>
#include <stdint.h>

enum fa_sys_result { FA_SYS_DONE, FA_SYS_NOT_THERE, FA_SYS_DENIED, FA_SYS_TIMED_OUT, FA_SYS_CRASHED, FA_SYS_NOT_RECORDED };

struct fa_command_result {
	enum fa_sys_result result; /* DONE: it ran and ended by itself */
	int exit_status;           /* when DONE */
	int signal;                /* when CRASHED */
	struct fa_buf out;         /* at most 4 MiB of each */
	struct fa_buf err;
};

struct fa_sys {
	void *ctx;
	/* Appends a (small) file: procfs, sysfs, /etc, an environment's files. */
	enum fa_sys_result (*read)(void *ctx, const char *path, struct fa_buf *out);
	/* Names in a folder, sorted, without . and .. */
	enum fa_sys_result (*list)(void *ctx, const char *path, struct fa_strv *out);
	/* Runs a command without shell, stdin /dev/null, in a group of its own that is killed at the time limit. */
	void (*run)(void *ctx, const char *const *argv, unsigned timeout_ms, struct fa_command_result *out);
	/* The path an executable of that name is found under, in PATH order, or the path itself when it has a slash and can be
	 * executed; NULL: none. The caller's. */
	char *(*find)(void *ctx, const char *program);
	const char *(*env)(void *ctx, const char *name);  /* NULL: unset; borrowed */
	int64_t (*free_mib)(void *ctx, const char *path); /* of the file system that would hold path; -1 unknown */
	/* A question answered inside a child with a time limit because it may hang: see sys_ask.h. Text, one KEY=VALUE a line. */
	enum fa_sys_result (*ask)(void *ctx, const char *question, struct fa_buf *out);
	/* Hints, may be NULL: the same run or ask will come, start it now. They make detection parallel; nothing depends on them. */
	void (*begin_run)(void *ctx, const char *const *argv, unsigned timeout_ms);
	void (*begin_ask)(void *ctx, const char *question);
	/* The environment to look at when `env` was asked for (NULL: none was); may be NULL. The caller's. */
	char *(*target)(void *ctx, const char *env);
	/* Was this asked ("find" of "gcc", "read" of a path) when the machine was recorded? NULL: every answer is known. What was
	 * not asked is unknown, which is not the same as "not there". */
	bool (*recorded)(void *ctx, const char *ask, const char *of);
	void (*close)(void *ctx);
};

void fa_sys_real(struct fa_sys *out);

/* A folder made by record. FA_USAGE: none of those. */
int fa_sys_replay(struct fa_sys *out, const char *dir, struct fa_err *err);

/* Passes everything on to `inner` (borrowed) and writes each answer under dir (made): answers.json and one file for each text,
 * named after what was asked: proc-meminfo.txt, gcc-version.txt. The folder holds paths and chosen environment variables of the
 * machine; no serial numbers. */
int fa_sys_record(struct fa_sys *out, const struct fa_sys *inner, const char *dir, struct fa_err *err);

/* Before close, of a recording one: writes answers.json. -1: an answer could not be written. */
int fa_sys_recorded(struct fa_sys *s, struct fa_err *err);

void fa_sys_close(struct fa_sys *s);
void fa_command_result_release(struct fa_command_result *r);

#endif
