#include "strv.h"

#include "buf.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void fa_strv_take(struct fa_strv *s, char *text)
{
	if (s->n + 2 > s->cap) {
		s->cap = s->cap ? 2 * s->cap : 8;
		s->v = fa_realloc(s->v, s->cap, sizeof(*s->v));
	}
	s->v[s->n++] = text;
	s->v[s->n] = NULL;
}

void fa_strv_push(struct fa_strv *s, const char *text)
{
	fa_strv_take(s, fa_strdup(text));
}

void fa_strv_pushf(struct fa_strv *s, const char *fmt, ...)
{
	struct fa_buf b = FA_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	fa_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	fa_strv_take(s, fa_buf_detach(&b));
}

void fa_strv_append(struct fa_strv *s, const struct fa_strv *more)
{
	for (size_t i = 0; i < more->n; i++)
		fa_strv_push(s, more->v[i]);
}

bool fa_strv_has(const struct fa_strv *s, const char *text)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i], text))
			return true;
	return false;
}

void fa_strv_split(struct fa_strv *s, const char *text, const char *sep)
{
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, sep), a = 0, b = len;

		while (a < b && strchr(" \t\r\n", p[a]))
			a++;
		while (b > a && strchr(" \t\r\n", p[b - 1]))
			b--;
		if (b > a)
			fa_strv_take(s, fa_strndup(p + a, b - a));
		p += len;
		p += *p != '\0';
	}
}

char *fa_strv_join(const struct fa_strv *s, const char *sep)
{
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < s->n; i++) {
		if (i)
			fa_buf_adds(&b, sep);
		fa_buf_adds(&b, s->v[i]);
	}
	return fa_buf_detach(&b);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void fa_strv_sort(struct fa_strv *s)
{
	if (s->n > 1)
		qsort(s->v, s->n, sizeof(*s->v), compare);
}

void fa_strv_release(struct fa_strv *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct fa_strv)FA_STRV_INIT;
}
