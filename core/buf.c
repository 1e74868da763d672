#include "buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
	fputs("fainstall: out of memory\n", stderr);
	_Exit(8);
}

void *fa_calloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *fa_realloc(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		out_of_memory();
	p = realloc(p, n * size > 0 ? n * size : 1);
	if (!p)
		out_of_memory();
	return p;
}

char *fa_strndup(const char *s, size_t len)
{
	char *p = fa_realloc(NULL, len + 1, 1);

	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *fa_strdup(const char *s)
{
	return s ? fa_strndup(s, strlen(s)) : NULL;
}

char *fa_strf(const char *fmt, ...)
{
	struct fa_buf b = FA_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	fa_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	return fa_buf_detach(&b);
}

void fa_buf_reserve(struct fa_buf *b, size_t len)
{
	size_t need = b->len + len + 1;

	if (need <= b->cap)
		return;
	b->cap = need < 64 ? 64 : need + need / 2;
	b->data = fa_realloc(b->data, b->cap, 1);
}

void fa_buf_add(struct fa_buf *b, const void *data, size_t len)
{
	fa_buf_reserve(b, len);
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void fa_buf_adds(struct fa_buf *b, const char *s)
{
	fa_buf_add(b, s, strlen(s));
}

void fa_buf_addc(struct fa_buf *b, char c)
{
	fa_buf_add(b, &c, 1);
}

void fa_buf_vaddf(struct fa_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	size_t room;
	int len;

	va_copy(again, ap);
	fa_buf_reserve(b, 60); /* most texts fit at once */
	room = b->cap - b->len;
	len = vsnprintf(b->data + b->len, room, fmt, ap);
	if (len >= 0 && (size_t)len >= room) {
		fa_buf_reserve(b, (size_t)len);
		vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
	}
	b->len += len > 0 ? (size_t)len : 0;
	va_end(again);
}

void fa_buf_addf(struct fa_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fa_buf_vaddf(b, fmt, ap);
	va_end(ap);
}

const char *fa_buf_str(const struct fa_buf *b)
{
	return b->data ? b->data : "";
}

char *fa_buf_detach(struct fa_buf *b)
{
	char *s = b->data ? b->data : fa_strdup("");

	*b = (struct fa_buf)FA_BUF_INIT;
	return s;
}

void fa_buf_reset(struct fa_buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void fa_buf_release(struct fa_buf *b)
{
	free(b->data);
	*b = (struct fa_buf)FA_BUF_INIT;
}
