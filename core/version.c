#include "version.h"

#include "buf.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* One piece of a version: a number, or a word with its rank. A missing piece is the number 0. */
struct piece {
	int rank;         /* words: below 0 before the release, above 0 after it; numbers: 0 */
	const char *text; /* digits without leading zeros */
	size_t len;
};

static const struct {
	const char *word;
	int rank;
} RANKS[] = {
	{ "dev", -4 }, { "a", -3 },   { "alpha", -3 },   { "b", -2 },   { "beta", -2 }, { "rc", -1 },
	{ "c", -1 },   { "pre", -1 }, { "preview", -1 }, { "post", 1 }, { "rev", 1 },   { "r", 1 },
};

static int rank_of(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(RANKS) / sizeof(RANKS[0]); i++)
		if (strlen(RANKS[i].word) == len && !strncasecmp(RANKS[i].word, word, len))
			return RANKS[i].rank;
	return 0;
}

static bool is_digit(char c)
{
	return isdigit((unsigned char)c) != 0;
}

static bool is_letter(char c)
{
	return isalpha((unsigned char)c) != 0;
}

static struct piece next_piece(const char **at)
{
	struct piece p = { 0, "", 0 };
	const char *s = *at;

	while (*s && *s != '+' && !is_digit(*s) && !is_letter(*s))
		s++;
	if (is_digit(*s)) {
		while (*s == '0')
			s++;
		p.text = s;
		while (is_digit(*s))
			s++;
		p.len = (size_t)(s - p.text);
	} else if (is_letter(*s)) {
		const char *word = s;

		while (is_letter(*s))
			s++;
		p.rank = rank_of(word, (size_t)(s - word));
	}
	*at = s;
	return p;
}

static int compare_pieces(const struct piece *a, const struct piece *b)
{
	int c;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	c = strncmp(a->text, b->text, a->len);
	return (c > 0) - (c < 0);
}

static bool at_end(const char *s)
{
	return !*s || *s == '+';
}

int fa_version_compare(const char *a, const char *b)
{
	while (!at_end(a) || !at_end(b)) {
		struct piece pa = next_piece(&a), pb = next_piece(&b);
		int c = compare_pieces(&pa, &pb);

		if (c)
			return c;
	}
	return 0;
}

static const char *label(const char *version)
{
	const char *plus = strchr(version, '+');

	return plus ? plus + 1 : NULL;
}

/* Only numbers and .postN after a shorter wish: "2.9" does not ask for 2.9.1rc1. */
static bool is_later_part(const char *rest)
{
	if (*rest != '.')
		return false;
	while (!at_end(rest)) {
		struct piece p = next_piece(&rest);

		if (p.rank < 0)
			return false;
	}
	return true;
}

bool fa_version_matches(const char *version, const char *wish)
{
	const char *have = label(version), *want = label(wish);
	size_t n = strcspn(wish, "+");

	if (want && (!have || strcmp(have, want)))
		return false;
	if (!fa_version_compare(version, wish))
		return true;
	return n && !strncmp(version, wish, n) && is_later_part(version + n);
}

bool fa_version_valid(const char *text)
{
	if (!is_digit(text[0]))
		return false;
	for (; *text; text++)
		if (!is_digit(*text) && !is_letter(*text) && !strchr(".+-", *text))
			return false;
	return true;
}

char *fa_version_head(const char *version, int parts)
{
	const char *s = version;

	while (parts > 0 && is_digit(*s)) {
		while (is_digit(*s))
			s++;
		if (--parts > 0 && *s == '.' && is_digit(s[1]))
			s++;
		else
			break;
	}
	return fa_strndup(version, (size_t)(s - version));
}

char *fa_version_public(const char *version)
{
	return fa_strndup(version, strcspn(version, "+"));
}
