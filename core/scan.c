#include "scan.h"

#include "buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines */

void fa_lines_init(struct fa_lines *l, void (*line)(void *ctx, size_t number, const char *text, size_t len), void *ctx)
{
	*l = (struct fa_lines){ .line = line, .ctx = ctx, .number = 1, .buf = fa_calloc(FA_LINES_MAX + 8, 1) };
}

/* Drops CSI, OSC and two-byte escapes in place (ECMA-48). */
static size_t strip_escapes(char *s, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] != '\033') {
			s[out++] = s[i] ? s[i] : ' ';
			continue;
		}
		if (i + 1 < len && s[i + 1] == '[') {
			i += 2;
			while (i < len && (s[i] < 0x40 || s[i] > 0x7e))
				i++;
		} else if (i + 1 < len && s[i + 1] == ']') {
			while (i < len && s[i] != '\007' && !(s[i] == '\\' && s[i - 1] == '\033'))
				i++;
		} else {
			i++;
		}
	}
	return out;
}

static void give_line(struct fa_lines *l, size_t keep)
{
	size_t len = l->len;
	char saved[FA_LINES_OVERLAP];

	if (keep)
		memcpy(saved, l->buf + len - keep, keep);
	if (memchr(l->buf, '\033', len) || memchr(l->buf, '\0', len))
		len = strip_escapes(l->buf, len);
	if (len)
		l->line(l->ctx, l->number, l->buf, len);
	if (keep)
		memcpy(l->buf, saved, keep);
	l->len = keep;
}

static void add_piece(struct fa_lines *l, const char *p, size_t len)
{
	while (len) {
		size_t n = FA_LINES_MAX - l->len < len ? FA_LINES_MAX - l->len : len;

		memcpy(l->buf + l->len, p, n);
		l->len += n;
		p += n;
		len -= n;
		if (l->len == FA_LINES_MAX)
			give_line(l, FA_LINES_OVERLAP);
	}
}

static void end_line(struct fa_lines *l)
{
	give_line(l, 0);
	l->number++;
	l->has_cr = 0;
}

/* The text up to a line feed. What stands before a carriage return is given as a piece of its own, unless the line ends there. */
static void add_row(struct fa_lines *l, const char *p, const char *stop)
{
	for (const char *cr; p < stop; p = cr + 1) {
		if (l->has_cr)
			give_line(l, 0);
		cr = memchr(p, '\r', (size_t)(stop - p));
		l->has_cr = cr != NULL;
		add_piece(l, p, (size_t)((cr ? cr : stop) - p));
		if (!cr)
			return;
	}
}

static void add_bytes(struct fa_lines *l, const char *p, size_t len)
{
	const char *end = p + len;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		add_row(l, p, nl ? nl : end);
		if (nl)
			end_line(l);
		p = nl ? nl + 1 : end;
	}
}

static void add_code_point(struct fa_lines *l, unsigned c)
{
	char u[4];
	size_t n;

	if (c < 0x80) {
		u[0] = (char)c;
		n = 1;
	} else if (c < 0x800) {
		u[0] = (char)(0xc0 | c >> 6);
		u[1] = (char)(0x80 | (c & 0x3f));
		n = 2;
	} else if (c < 0x10000) {
		u[0] = (char)(0xe0 | c >> 12);
		u[1] = (char)(0x80 | (c >> 6 & 0x3f));
		u[2] = (char)(0x80 | (c & 0x3f));
		n = 3;
	} else {
		u[0] = (char)(0xf0 | c >> 18);
		u[1] = (char)(0x80 | (c >> 12 & 0x3f));
		u[2] = (char)(0x80 | (c >> 6 & 0x3f));
		u[3] = (char)(0x80 | (c & 0x3f));
		n = 4;
	}
	add_bytes(l, u, n);
}

static void add_unit(struct fa_lines *l, unsigned u)
{
	if (u >= 0xd800 && u < 0xdc00) {
		l->high = u;
		return;
	}
	if (u >= 0xdc00 && u < 0xe000)
		u = l->high ? 0x10000 + ((l->high - 0xd800) << 10) + (u - 0xdc00) : 0xfffd;
	l->high = 0;
	if (u != 0xfeff)
		add_code_point(l, u);
}

static void add_utf16(struct fa_lines *l, const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!l->has_odd) {
			l->odd = p[i];
			l->has_odd = 1;
			continue;
		}
		add_unit(l, l->encoding > 0 ? (unsigned)(p[i] << 8 | l->odd) : (unsigned)(l->odd << 8 | p[i]));
		l->has_odd = 0;
	}
}

/* A byte order mark, or NULs in every second of the first bytes: what PowerShell's `>` writes. */
static int guess_encoding(const unsigned char *p, size_t len)
{
	size_t even = 0, odd = 0, n = len < 64 ? len : 64;

	if (len >= 2 && p[0] == 0xff && p[1] == 0xfe)
		return 16;
	if (len >= 2 && p[0] == 0xfe && p[1] == 0xff)
		return -16;
	for (size_t i = 0; i < n; i++) {
		even += i % 2 == 0 && !p[i];
		odd += i % 2 == 1 && !p[i];
	}
	if (n >= 8 && odd > n / 3 && !even)
		return 16;
	return n >= 8 && even > n / 3 && !odd ? -16 : 8;
}

void fa_lines_add(struct fa_lines *l, const void *data, size_t len)
{
	const char *p = data;

	if (!len)
		return;
	if (!l->encoding) {
		l->encoding = guess_encoding(data, len);
		if (l->encoding == 8 && len >= 3 && !memcmp(p, "\xef\xbb\xbf", 3)) {
			p += 3;
			len -= 3;
		}
	}
	if (l->encoding == 8)
		add_bytes(l, p, len);
	else
		add_utf16(l, (const unsigned char *)p, len);
}

void fa_lines_end(struct fa_lines *l)
{
	give_line(l, 0);
	free(l->buf);
	l->buf = NULL;
}

/* ---- words */

struct fa_words {
	uint8_t class_of[256]; /* bytes that occur in no word share class 0 */
	size_t n_classes;
	uint32_t *next;   /* [state * n_classes + class]; once made: its row's place, twice, plus one where a word ends */
	int32_t *first;   /* [state]: first word that ends here, -1 none */
	int32_t *chain;   /* [word]: another word that ends at the same state */
	uint32_t *suffix; /* [state]: nearest suffix state where a word ends, 0 none */
	size_t n_states;
};

static unsigned char fold(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

static void make_classes(struct fa_words *w, const char *const *words, size_t n)
{
	w->n_classes = 1;
	for (size_t i = 0; i < n; i++)
		for (const unsigned char *p = (const unsigned char *)words[i]; *p; p++)
			if (!w->class_of[fold(*p)])
				w->class_of[fold(*p)] = (uint8_t)w->n_classes++;
	for (int c = 'A'; c <= 'Z'; c++)
		w->class_of[c] = w->class_of[c + 32];
}

static void make_trie(struct fa_words *w, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t state = 0;

		for (const unsigned char *p = (const unsigned char *)words[i]; *p; p++) {
			uint32_t *to = &w->next[state * w->n_classes + w->class_of[*p]];

			if (!*to)
				*to = (uint32_t)w->n_states++;
			state = *to;
		}
		w->chain[i] = w->first[state];
		w->first[state] = (int32_t)i;
	}
}

/* Breadth first: where a state has no child, go where its longest proper suffix goes. */
static void make_automaton(struct fa_words *w)
{
	uint32_t *queue = fa_calloc(w->n_states, sizeof(*queue)), *fail = fa_calloc(w->n_states, sizeof(*fail));
	size_t head = 0, tail = 0;

	for (size_t c = 0; c < w->n_classes; c++)
		if (w->next[c])
			queue[tail++] = w->next[c];
	while (head < tail) {
		uint32_t s = queue[head++];

		w->suffix[s] = w->first[fail[s]] >= 0 ? fail[s] : w->suffix[fail[s]];
		for (size_t c = 0; c < w->n_classes; c++) {
			uint32_t *to = &w->next[s * w->n_classes + c], otherwise = w->next[fail[s] * w->n_classes + c];

			if (!*to) {
				*to = otherwise;
				continue;
			}
			fail[*to] = otherwise;
			queue[tail++] = *to;
		}
	}
	free(queue);
	free(fail);
}

/* The search then needs one look-up for a byte that ends no word. */
static void make_places(struct fa_words *w)
{
	for (size_t i = 0; i < w->n_states * w->n_classes; i++) {
		uint32_t to = w->next[i];

		w->next[i] = (uint32_t)(to * w->n_classes) << 1 | (w->first[to] >= 0 || w->suffix[to]);
	}
}

struct fa_words *fa_words_new(const char *const *words, size_t n)
{
	struct fa_words *w = fa_calloc(1, sizeof(*w));
	size_t most = 1;

	for (size_t i = 0; i < n; i++)
		most += strlen(words[i]);
	make_classes(w, words, n);
	w->next = fa_calloc(most * w->n_classes, sizeof(*w->next));
	w->first = fa_calloc(most, sizeof(*w->first));
	w->suffix = fa_calloc(most, sizeof(*w->suffix));
	w->chain = fa_calloc(n, sizeof(*w->chain));
	memset(w->first, 0xff, most * sizeof(*w->first));
	w->n_states = 1;
	make_trie(w, words, n);
	make_automaton(w);
	make_places(w);
	return w;
}

void fa_words_find(const struct fa_words *w, const char *text, size_t len, void (*hit)(void *ctx, size_t word, size_t end),
                   void *ctx)
{
	uint32_t place = 0;

	for (size_t i = 0; i < len; i++) {
		place = w->next[(place >> 1) + w->class_of[(unsigned char)text[i]]];
		if (!(place & 1))
			continue;
		for (uint32_t s = (uint32_t)((place >> 1) / w->n_classes); s; s = w->suffix[s])
			for (int32_t word = w->first[s]; word >= 0; word = w->chain[word])
				hit(ctx, (size_t)word, i + 1);
	}
}

void fa_words_free(struct fa_words *w)
{
	if (!w)
		return;
	free(w->next);
	free(w->first);
	free(w->suffix);
	free(w->chain);
	free(w);
}
