/* A set of texts: every text is held once, so equal texts have one address. Internal to kb and resolve. */
#ifndef FA_TEXTS_H
#define FA_TEXTS_H

#include <stddef.h>

struct fa_texts {
	char **v; /* in the order they came */
	size_t n, cap;
	size_t *table; /* places in v + 1, 0 free; hashed */
	size_t size;   /* of the table, a power of two or 0 */
};

#define FA_TEXTS_INIT \
	{ \
		NULL, 0, 0, NULL, 0 \
	}

/* The one copy of the text; NULL gives NULL. Borrowed, good until a rewind below its place or the release. */
const char *fa_texts_keep(struct fa_texts *t, const char *text);
const char *fa_texts_take(struct fa_texts *t, char *text); /* the same; frees the text */

/* Forgets what came after the first n. */
void fa_texts_rewind(struct fa_texts *t, size_t n);
void fa_texts_release(struct fa_texts *t);

#endif
