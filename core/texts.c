#include "texts.h"

#include "buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h ^ h >> 15;
}

/* The slot that holds the text, or the free one where it would go. */
static size_t *slot_of(const struct fa_texts *t, const char *text)
{
	size_t i = hash_of(text) & (t->size - 1);

	while (t->table[i] && strcmp(t->v[t->table[i] - 1], text) != 0)
		i = (i + 1) & (t->size - 1);
	return &t->table[i];
}

static void rebuild(struct fa_texts *t, size_t size)
{
	free(t->table);
	t->table = fa_calloc(size, sizeof(*t->table));
	t->size = size;
	for (size_t i = 0; i < t->n; i++)
		*slot_of(t, t->v[i]) = i + 1;
}

static const char *add(struct fa_texts *t, size_t *slot, char *text)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 256;
		t->v = fa_realloc(t->v, t->cap, sizeof(*t->v));
	}
	t->v[t->n++] = text;
	*slot = t->n;
	if (2 * t->n > t->size)
		rebuild(t, 2 * t->size);
	return text;
}

static size_t *find(struct fa_texts *t, const char *text)
{
	if (!t->size)
		rebuild(t, 1024);
	return slot_of(t, text);
}

const char *fa_texts_keep(struct fa_texts *t, const char *text)
{
	size_t *slot = text ? find(t, text) : NULL;

	if (!slot)
		return NULL;
	return *slot ? t->v[*slot - 1] : add(t, slot, fa_strdup(text));
}

const char *fa_texts_take(struct fa_texts *t, char *text)
{
	size_t *slot = text ? find(t, text) : NULL;
	const char *there;

	if (!slot)
		return NULL;
	if (!*slot)
		return add(t, slot, text);
	there = t->v[*slot - 1];
	free(text);
	return there;
}

void fa_texts_rewind(struct fa_texts *t, size_t n)
{
	if (n >= t->n)
		return;
	while (t->n > n)
		free(t->v[--t->n]);
	rebuild(t, t->size);
}

void fa_texts_release(struct fa_texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i]);
	free(t->v);
	free(t->table);
	*t = (struct fa_texts)FA_TEXTS_INIT;
}
