/* A list of strings that it owns. */
#ifndef FA_STRV_H
#define FA_STRV_H

#include <stdbool.h>
#include <stddef.h>

struct fa_strv {
	char **v; /* NULL-terminated once something was pushed: usable as argv */
	size_t n;
	size_t cap;
};

#define FA_STRV_INIT \
	{ \
		NULL, 0, 0 \
	}

void fa_strv_push(struct fa_strv *s, const char *text); /* copies */
void fa_strv_pushf(struct fa_strv *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fa_strv_take(struct fa_strv *s, char *text);                   /* takes over */
void fa_strv_append(struct fa_strv *s, const struct fa_strv *more); /* copies */
bool fa_strv_has(const struct fa_strv *s, const char *text);

/* Pieces of text between any of the characters of `sep`, blanks around each trimmed, empty ones left out. */
void fa_strv_split(struct fa_strv *s, const char *text, const char *sep);

/* All in one, `sep` between. The caller's. */
char *fa_strv_join(const struct fa_strv *s, const char *sep);

void fa_strv_sort(struct fa_strv *s); /* by strcmp */
void fa_strv_release(struct fa_strv *s);

#endif
