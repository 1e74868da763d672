#include "scan.h"

#include "buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static const struct {
	const char *begins;
	size_t len;
	const char *what, *next; /* next: NULL as for any binary */
} no_logs[] = {
	{ "\177ELF", 4, "a program or library", NULL },
	{ "MZ\x90", 3, "a program or library", NULL },
	{ "!<arch>", 7, "a library", NULL },
	{ "PK\3\4", 4, "a zip archive or wheel", "unzip it first" },
	{ "\037\213", 2, "a gzip archive", "unpack it on the way: zcat FILE | fainstall diagnose -" },
	{ "\3757zXZ", 5, "an xz archive", "unpack it on the way: xzcat FILE | fainstall diagnose -" },
	{ "BZh", 3, "a bzip2 archive", "unpack it on the way: bzcat FILE | fainstall diagnose -" },
	{ "\050\265\057\375", 4, "a zstd archive", "unpack it on the way: zstdcat FILE | fainstall diagnose -" },
	{ "\211PNG", 4, "a picture", "give the text itself: copy it from the terminal" },
	{ "\377\330\377", 3, "a picture", "give the text itself: copy it from the terminal" },
	{ "%PDF-", 5, "a PDF file", "give the text itself: copy it from the terminal" },
};

/* More than one byte in twenty is a control character that no terminal is sent: random or packed bytes have one in ten. */
static bool is_noise(const char *p, size_t len)
{
	size_t odd = 0;

	for (size_t i = 0; i < len; i++)
		odd += (unsigned char)p[i] < 0x20 && p[i] && !strchr("\a\b\t\n\v\f\r\033", p[i]);
	return len >= 256 && odd > len / 20;
}

static int check_beginning(const char *p, size_t len, const char *name, struct fa_err *err)
{
	static const char otherwise[] = "give what the command printed, as text";

	for (size_t i = 0; i < sizeof(no_logs) / sizeof(*no_logs); i++)
		if (len >= no_logs[i].len && !memcmp(p, no_logs[i].begins, no_logs[i].len)) {
			fa_err_set(err, FA_USAGE, "%s is %s, not a log", name, no_logs[i].what);
			return fa_err_next(err, "%s", no_logs[i].next ? no_logs[i].next : otherwise);
		}
	if (guess_encoding((const unsigned char *)p, len) != 8 || !is_noise(p, len))
		return 0;
	fa_err_set(err, FA_USAGE, "%s is a binary file, not a log", name);
	return fa_err_next(err, "%s", otherwise);
}

int fa_lines_read(struct fa_lines *l, int fd, const char *name, struct fa_err *err)
{
	static char block[256 * 1024];

	for (bool first = true;; first = false) {
		ssize_t n = read(fd, block, sizeof(block));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fa_err_set(err, FA_USAGE, "%s: %s", name, strerror(errno));
		if (n == 0)
			return 0;
		if (first && check_beginning(block, (size_t)n, name, err) < 0)
			return -1;
		fa_lines_add(l, block, (size_t)n);
	}
}

void fa_lines_end(struct fa_lines *l)
{
	give_line(l, 0);
	free(l->buf);
	l->buf = NULL;
}

/* ---- words: of each the rarest four bytes ("gram") are looked up at every place of the text in a set of bits; only where the set
 * has them is the word compared. Most bytes of a log cost one multiplication. (Karp and Rabin 1987, with a gram of fixed size.) */

enum { GRAM = 4, HASH_BITS = 17 };

struct entry {
	uint32_t word;
	uint32_t next; /* of the same hash: place in entries, 0 none */
};

struct fa_words {
	char **folded;         /* [word]: in small letters */
	size_t *len;           /* [word] */
	size_t *gram;          /* [word]: where its gram begins */
	uint32_t *first;       /* [hash]: place in entries, 0 none */
	struct entry *entries; /* from 1 */
	size_t n, n_entries;
};

static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Letters of either case have the same hash. So have a few other bytes, which costs a comparison, no more. */
static uint32_t hash(uint32_t gram)
{
	return ((gram | 0x20202020u) * 2654435761u) >> (32 - HASH_BITS);
}

static uint32_t gram_at(const char *p)
{
	uint32_t gram;

	memcpy(&gram, p, sizeof(gram));
	return gram;
}

/* Rare: in few of the words ("flas" and "erro" are in many, and then in many logs), and of few frequent letters. */
static size_t rarest_gram(const char *word, size_t len, const uint16_t *in_words)
{
	size_t best = 0, least = SIZE_MAX;

	for (size_t i = 0; i + GRAM <= len; i++) {
		size_t score = 16 * (size_t)in_words[hash(gram_at(word + i))];

		for (size_t k = 0; k < GRAM; k++)
			score += strchr("etaoinsrlcdu", word[i + k]) != NULL;
		if (score < least) {
			least = score;
			best = i;
		}
	}
	return best;
}

static void choose_grams(struct fa_words *w)
{
	uint16_t *in_words = fa_calloc((size_t)1 << HASH_BITS, sizeof(*in_words));

	for (size_t i = 0; i < w->n; i++)
		for (size_t k = 0; k + GRAM <= w->len[i]; k++)
			in_words[hash(gram_at(w->folded[i] + k))]++;
	for (size_t i = 0; i < w->n; i++)
		w->gram[i] = rarest_gram(w->folded[i], w->len[i], in_words);
	free(in_words);
}

/* A word of three bytes has a gram for each byte that may follow. */
static void each_hash(const struct fa_words *w, size_t word, void (*give)(void *ctx, size_t word, uint32_t hash), void *ctx)
{
	char gram[GRAM];

	if (w->len[word] >= GRAM) {
		give(ctx, word, hash(gram_at(w->folded[word] + w->gram[word])));
		return;
	}
	memcpy(gram, w->folded[word], GRAM - 1);
	for (unsigned last = 0; last < 256; last++) {
		gram[GRAM - 1] = (char)last;
		if (last & 0x20) /* the others have the same hashes */
			give(ctx, word, hash(gram_at(gram)));
	}
}

static void add_entry(void *ctx, size_t word, uint32_t at)
{
	struct fa_words *w = ctx;

	w->entries[++w->n_entries] = (struct entry){ (uint32_t)word, w->first[at] };
	w->first[at] = (uint32_t)w->n_entries;
}

struct fa_words *fa_words_new(const char *const *words, size_t n)
{
	struct fa_words *w = fa_calloc(1, sizeof(*w));
	size_t most = 1;

	w->n = n;
	w->folded = fa_calloc(n, sizeof(*w->folded));
	w->len = fa_calloc(n, sizeof(*w->len));
	w->gram = fa_calloc(n, sizeof(*w->gram));
	w->first = fa_calloc((size_t)1 << HASH_BITS, sizeof(*w->first));
	for (size_t i = 0; i < n; i++) {
		w->folded[i] = fa_strdup(words[i]);
		w->len[i] = strlen(words[i]);
		for (char *p = w->folded[i]; *p; p++)
			*p = fold(*p);
		most += w->len[i] >= GRAM ? 1 : 128;
	}
	w->entries = fa_calloc(most, sizeof(*w->entries));
	choose_grams(w);
	for (size_t i = 0; i < n; i++)
		each_hash(w, i, add_entry, w);
	return w;
}

void fa_words_free(struct fa_words *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		free(w->folded[i]);
	free(w->folded);
	free(w->len);
	free(w->gram);
	free(w->first);
	free(w->entries);
	free(w);
}

/* ---- a search */

enum { WORD_BITS = 64 };

static void set_bit(void *ctx, size_t word, uint32_t at)
{
	uint64_t *bits = ctx;

	(void)word;
	bits[at / WORD_BITS] |= (uint64_t)1 << at % WORD_BITS;
}

static void set_bits(struct fa_search *s)
{
	memset(s->bits, 0, ((size_t)1 << HASH_BITS) / 8);
	for (size_t i = 0; i < s->words->n; i++)
		if (!s->given_up[i])
			each_hash(s->words, i, set_bit, s->bits);
}

void fa_search_init(struct fa_search *s, const struct fa_words *w)
{
	s->words = w;
	s->bits = fa_calloc(((size_t)1 << HASH_BITS) / WORD_BITS, sizeof(*s->bits));
	s->given_up = fa_calloc(w->n, sizeof(*s->given_up));
	s->stale = false;
	set_bits(s);
}

void fa_search_release(struct fa_search *s)
{
	free(s->bits);
	free(s->given_up);
	*s = (struct fa_search){ 0 };
}

void fa_search_give_up(struct fa_search *s, size_t word)
{
	s->given_up[word] = true;
	s->stale = true;
}

static bool same_folded(const char *text, const char *folded, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (fold(text[i]) != folded[i])
			return false;
	return true;
}

static void compare(struct fa_search *s, const char *text, size_t len, size_t at, uint32_t h,
                    void (*hit)(void *ctx, size_t word, size_t end), void *ctx)
{
	const struct fa_words *w = s->words;

	for (uint32_t e = w->first[h]; e; e = w->entries[e].next) {
		size_t word = w->entries[e].word, from = at - w->gram[word];

		if (s->given_up[word] || at < w->gram[word] || len - from < w->len[word])
			continue;
		if (same_folded(text + from, w->folded[word], w->len[word]))
			hit(ctx, word, from + w->len[word]);
	}
}

void fa_search_text(struct fa_search *s, const char *text, size_t len, void (*hit)(void *ctx, size_t word, size_t end),
                    void *ctx)
{
	const uint64_t *bits = s->bits;
	char last[GRAM] = { 0 };

	if (s->stale)
		set_bits(s);
	s->stale = false;
	for (size_t i = 0; i + GRAM <= len; i++) {
		uint32_t h = hash(gram_at(text + i));

		if (bits[h / WORD_BITS] >> h % WORD_BITS & 1)
			compare(s, text, len, i, h, hit, ctx);
	}
	if (len < GRAM - 1) /* a word of three bytes may stand at the end */
		return;
	memcpy(last, text + len - (GRAM - 1), GRAM - 1);
	compare(s, text, len, len - (GRAM - 1), hash(gram_at(last)), hit, ctx);
}
