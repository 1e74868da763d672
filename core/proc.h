/* Children: by argument vector, in a process group of their own, with a log, a time limit, and the time and peak memory of
 * their whole tree. Stopping one stops every descendant, also those that made a session of their own. */
#ifndef FA_PROC_H
#define FA_PROC_H

#include "err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fa_proc_opts {
	const char *const *argv;    /* argv[0] is looked up in the PATH of envp */
	const char *const *envp;    /* whole environment; NULL: ours */
	const char *cwd;            /* NULL: ours */
	const char *in_path;        /* absolute path of what it reads on stdin; NULL: /dev/null */
	const char *log_path;       /* everything it prints is appended here; NULL: nowhere */
	unsigned timeout_ms;        /* 0: none */
	unsigned silence_ms;        /* stopped when it prints nothing for so long; 0: never */
	const volatile int *cancel; /* becomes non-zero: stop it; NULL: never */
	bool merge;                 /* stderr counts as stdout */
	/* One line at a time, without its end (LF, CR LF, or CR alone as of progress that is redrawn); `is_err` for stderr. NULL:
	 * only logged. Lines over 64 KiB are cut. */
	void (*line)(void *ctx, const char *line, bool is_err);
	/* About every 250 ms, for progress while nothing is printed; NULL: none. */
	void (*tick)(void *ctx, double seconds, int64_t tree_mib);
	void *ctx;
};

enum fa_proc_end {
	FA_PROC_EXITED,
	FA_PROC_SIGNALLED,
	FA_PROC_NOT_STARTED,
	FA_PROC_TIMED_OUT,
	FA_PROC_SILENT,
	FA_PROC_CANCELLED
};

struct fa_proc_result {
	enum fa_proc_end end;
	int exit_status; /* EXITED */
	int signal;      /* SIGNALLED */
	int start_errno; /* NOT_STARTED */
	double seconds;
	double cpu_seconds; /* of all waited-for descendants */
	bool out_of_memory; /* meanwhile the kernel killed a process on this machine for want of memory */
	int64_t peak_mib;   /* largest sum of resident memory of the tree seen; at least the largest single process */
};

/* Runs it to its end: stdin as above, no other descriptor, a session without terminal, signals as at login. What still runs 0.2 s
 * after the command itself ended is stopped too. Stopping: SIGTERM, after 0.8 s SIGKILL, to every descendant, until none is left;
 * the same happens when this process dies. Safe in a program with threads, handlers and children of its own. -1 (err written: what ran, how it ended, FA_INTERRUPTED when cancelled) unless it exited 0; `out` is
 * filled in every case and may be NULL. The status of other failures is `on_failure`. */
int fa_proc_run(struct fa_proc_result *out, const struct fa_proc_opts *opts, enum fa_status on_failure, struct fa_err *err);

/* This process adopts orphaned descendants, so that stopping finds them (prctl PR_SET_CHILD_SUBREAPER). Once, at the start. */
void fa_proc_adopt_orphans(void);

/* SIGTERM, after grace_ms SIGKILL, to every descendant of pid (not pid itself) until none is left. */
void fa_proc_kill_tree(pid_t pid, unsigned grace_ms);

#endif
