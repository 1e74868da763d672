/* The supervisor: a forked copy of us between proc.c and the command. It adopts every orphan of the command's tree, so it
 * finds children that made a session of their own; it stops the tree when asked, and when whoever asked for the command dies. */
#ifndef FA_SUPERVISE_H
#define FA_SUPERVISE_H

#include <stdint.h>
#include <sys/types.h>

enum {
	FA_SUPERVISE_GRACE_MS = 800,    /* between SIGTERM and SIGKILL */
	FA_SUPERVISE_GIVE_UP_MS = 8000, /* processes that even SIGKILL does not end (a dead network disk, a driver) are left */
	FA_SUPERVISE_LINGER_MS = 200    /* children that outlive the command may end by themselves for so long */
};

struct fa_supervise_order {
	const char *program; /* found in PATH already */
	char *const *argv;
	char *const *envp;
	const char *cwd;     /* NULL: ours */
	const char *in_path; /* its stdin; NULL: /dev/null */
	int out_fd;          /* its stdout */
	int err_fd;          /* its stderr; -1: as stdout */
	int channel;         /* our end of a SOCK_SEQPACKET pair: any packet, or its end, means stop; reports go out */
};

enum fa_supervise_kind { FA_SUPERVISE_STARTED, FA_SUPERVISE_NOT_STARTED, FA_SUPERVISE_SAMPLE, FA_SUPERVISE_ENDED };

struct fa_supervise_report {
	enum fa_supervise_kind kind;
	int error;        /* NOT_STARTED: errno */
	int wait_status;  /* ENDED: as of waitpid */
	int left;         /* ENDED: processes that could not be stopped */
	pid_t pid;        /* the command's, also its process group */
	int64_t tree_kib; /* SAMPLE: resident memory of the tree now */
	int64_t peak_kib; /* largest so far */
	double cpu_seconds;
};

/* In the child of fork(), every signal blocked. */
_Noreturn void fa_supervise(const struct fa_supervise_order *order);

#endif
