/* A growable byte string, always NUL-terminated. Memory that runs out ends the program (exit 8): nothing here can fail. */
#ifndef FA_BUF_H
#define FA_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct fa_buf {
	char *data; /* never NULL after the first add; use fa_buf_str() to read */
	size_t len; /* bytes without the final NUL */
	size_t cap;
};

#define FA_BUF_INIT \
	{ \
		NULL, 0, 0 \
	}

void fa_buf_add(struct fa_buf *b, const void *data, size_t len);
void fa_buf_adds(struct fa_buf *b, const char *s);
void fa_buf_addc(struct fa_buf *b, char c);
void fa_buf_addf(struct fa_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fa_buf_vaddf(struct fa_buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Room for `len` more bytes: for read(2) into data + len. */
void fa_buf_reserve(struct fa_buf *b, size_t len);

/* The text, "" when nothing was added. Borrowed, valid until the next add. */
const char *fa_buf_str(const struct fa_buf *b);

/* The text, now the caller's; b is empty again. */
char *fa_buf_detach(struct fa_buf *b);

/* Empty, keeps its memory. */
void fa_buf_reset(struct fa_buf *b);
void fa_buf_release(struct fa_buf *b);

/* malloc, strdup, … that end the program (exit 8) instead of returning NULL. Sizes are n * size, checked for overflow. */
void *fa_calloc(size_t n, size_t size);
void *fa_realloc(void *p, size_t n, size_t size);
char *fa_strdup(const char *s); /* NULL gives NULL */
char *fa_strndup(const char *s, size_t len);
char *fa_strf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
