/* A log of any size, as clean lines, and many words searched for at once. Memory does not grow with the log. */
#ifndef FA_SCAN_H
#define FA_SCAN_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- lines: bytes in, lines out. UTF-16 becomes UTF-8, terminal escapes are dropped, a carriage return starts the line again
 * (progress bars), NUL bytes become blanks. A line longer than FA_LINES_MAX arrives in overlapping pieces of that size. */
enum { FA_LINES_MAX = 64 * 1024, FA_LINES_OVERLAP = 4096 };

struct fa_lines {
	void (*line)(void *ctx, size_t number /* from 1, as an editor counts */, const char *text, size_t len);
	void *ctx;
	char *buf; /* the line so far */
	size_t len;
	size_t number;
	int encoding;      /* 0 not yet known, 8, 16 little-endian, -16 big-endian */
	unsigned char odd; /* first byte of a UTF-16 unit cut between two calls */
	int has_odd;
	int has_cr;    /* a carriage return stood last: a new line follows, or the line starts again */
	unsigned high; /* high surrogate waiting for its low one */
};

void fa_lines_init(struct fa_lines *l, void (*line)(void *ctx, size_t number, const char *text, size_t len), void *ctx);
void fa_lines_add(struct fa_lines *l, const void *data, size_t len);
/* All of a file. -1 (FA_USAGE, with `name`): it cannot be read, or its beginning is that of a program, archive or picture. */
int fa_lines_read(struct fa_lines *l, int fd, const char *name, struct fa_err *err);
void fa_lines_end(struct fa_lines *l); /* the last line, if it has no end; frees */

/* ---- words: many at once, of three bytes or more, ASCII letters in either case. Made once, then searched for any number of times. */
struct fa_words;

struct fa_words *fa_words_new(const char *const *words, size_t n);
void fa_words_free(struct fa_words *w);

struct fa_search {
	const struct fa_words *words; /* borrowed */
	uint64_t *bits;
	bool *given_up; /* [word] */
	bool stale;     /* bits still hold words that were given up */
};

void fa_search_init(struct fa_search *s, const struct fa_words *w);
/* Every place where a word stands: `end` is the place after it. Words that begin at different places come in any order. */
void fa_search_text(struct fa_search *s, const char *text, size_t len, void (*hit)(void *ctx, size_t word, size_t end),
                    void *ctx);
void fa_search_give_up(struct fa_search *s, size_t word); /* it is looked for no more; a hit may call it */
void fa_search_release(struct fa_search *s);

#endif
