/* An error is a status for the program and two sentences for the reader: what is wrong, and what to do next. */
#ifndef FA_ERR_H
#define FA_ERR_H

/* The exit statuses of the contract. A function that fails stores one of them; main() exits with it. */
enum fa_status {
	FA_OK = 0,
	FA_CHECK = 1,         /* a verification or a diagnosis did not succeed */
	FA_USAGE = 2,         /* the command line, or a file that the user wrote */
	FA_IMPOSSIBLE = 3,    /* no combination exists for these facts and this wish */
	FA_MACHINE = 4,       /* something on the machine must change first */
	FA_NETWORK = 5,       /* network or download */
	FA_BUILD = 6,         /* a build stopped */
	FA_INTEGRITY = 7,     /* a file is not what the lock or its signature says */
	FA_INTERNAL = 8,      /* our mistake */
	FA_INTERRUPTED = 130, /* the user said stop */
};

struct fa_err {
	enum fa_status status;
	char text[1024]; /* what was wrong, where, with what; one line, no full stop needed */
	char next[1024]; /* the next step to take; "" when there is none to name */
};

#define FA_ERR_INIT \
	{ \
		FA_OK, "", "" \
	}

/* Stores status and sentence, clears `next`. Returns -1, so that `return fa_err_set(…);` reads well. err may be NULL. */
int fa_err_set(struct fa_err *err, enum fa_status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Adds the next step to an error that is set already. Returns -1. */
int fa_err_next(struct fa_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "usage", "network", …: the word for a status in JSON. */
const char *fa_status_name(enum fa_status status);

#endif
