/* Characters: UTF-8, widths, stand-ins, and breaking lines. */
#include "text.h"
#include "grid.h"

#include <stddef.h>
#include <wchar.h>

int tui_utf8_next(uint32_t *ch, const char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	int len = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
	uint32_t c = len < 2 ? s[0] : s[0] & (0x7F >> len);
	*ch = 0xFFFD;
	if (!s[0])
		return 0;
	if (!len)
		return 1;
	for (int i = 1; i < len; i++) {
		if ((s[i] & 0xC0) != 0x80)
			return 1;
		c = c << 6 | (s[i] & 0x3F);
	}
	if (c < least[len] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
		return 1;
	*ch = c;
	return len;
}

int tui_utf8_put(char out[5], uint32_t ch)
{
	int n = 0;
	if (ch < 0x80) {
		out[n++] = (char)ch;
	} else if (ch < 0x800) {
		out[n++] = (char)(0xC0 | ch >> 6);
		out[n++] = (char)(0x80 | (ch & 0x3F));
	} else if (ch < 0x10000) {
		out[n++] = (char)(0xE0 | ch >> 12);
		out[n++] = (char)(0x80 | (ch >> 6 & 0x3F));
		out[n++] = (char)(0x80 | (ch & 0x3F));
	} else {
		out[n++] = (char)(0xF0 | ch >> 18);
		out[n++] = (char)(0x80 | (ch >> 12 & 0x3F));
		out[n++] = (char)(0x80 | (ch >> 6 & 0x3F));
		out[n++] = (char)(0x80 | (ch & 0x3F));
	}
	out[n] = '\0';
	return n;
}

/* Typographic characters of ambiguous width that tools print (gcc quotes so), and what is shown instead. */
static const struct stand_in {
	uint32_t ch;
	char ascii;
} stand_ins[] = { { 0x00A0, ' ' }, { 0x00B7, '.' }, { 0x00D7, 'x' }, { 0x2010, '-' },  { 0x2011, '-' },  { 0x2012, '-' },
	          { 0x2013, '-' }, { 0x2014, '-' }, { 0x2015, '-' }, { 0x2018, '\'' }, { 0x2019, '\'' }, { 0x201C, '"' },
	          { 0x201D, '"' }, { 0x2022, '*' }, { 0x2026, '.' }, { 0x2190, '<' },  { 0x2192, '>' },  { 0x2500, '-' },
	          { 0x2502, '|' }, { 0x2514, '`' }, { 0x251C, '|' }, { 0x2588, '#' },  { 0x25CF, '*' } };

/* Our own glyphs (README of the screens) and the ASCII that takes their place. All one cell wide. */
static const struct stand_in glyphs[] = { { 0x2713, '*' }, { 0x2717, 'x' }, { 0x00BB, '~' }, { 0x25B8, '+' }, { 0x25BE, '-' },
	                                  { 0x2590, '#' }, { 0x254E, ':' }, { 0x2591, '.' }, { 0x254C, '-' } };

static uint32_t replaced(const struct stand_in *table, size_t n, uint32_t ch)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].ch == ch)
			return (uint32_t)table[i].ascii;
	return ch;
}

/* What is shown for a character, and its width: 0 for marks that are dropped. */
uint32_t tui_shown(uint32_t ch, bool ascii, int *width)
{
	*width = 1;
	if (ch < 0x20 || ch == 0x7F)
		return ch == '\t' ? ' ' : '?';
	if (ch < 0x7F)
		return ch;
	ch = replaced(stand_ins, sizeof stand_ins / sizeof *stand_ins, ch);
	if (ascii)
		ch = replaced(glyphs, sizeof glyphs / sizeof *glyphs, ch);
	if (ch < 0x7F)
		return ch;
	*width = wcwidth((wchar_t)ch);
	if (*width < 0) {
		*width = 1;
		return '?';
	}
	return ascii && *width ? '?' : ch;
}

int tui_text_width(const char *text)
{
	int total = 0, width, len;
	uint32_t ch;
	for (; (len = tui_utf8_next(&ch, text)) > 0; text += len) {
		tui_shown(ch, false, &width);
		total += width;
	}
	return total;
}

size_t tui_fitting(const char *text, int width)
{
	size_t at = 0;
	uint32_t ch;
	for (int len, w; (len = tui_utf8_next(&ch, text + at)) > 0; at += (size_t)len) {
		tui_shown(ch, false, &w);
		if ((width -= w) < 0)
			break;
	}
	return at;
}

size_t tui_line_break(const char *text, int width)
{
	size_t fit = tui_fitting(text, width), at = fit;
	if (!text[fit])
		return fit;
	while (at > 0 && text[at] != ' ')
		at--;
	if (at > 0)
		return at;
	if (!fit) { /* not even one character: take it all the same, so that the caller comes to an end */
		uint32_t ch;
		return (size_t)tui_utf8_next(&ch, text);
	}
	return fit;
}

int tui_wrapped_rows(const char *text, int width)
{
	int rows = 0;
	for (; *text; rows++) {
		text += tui_line_break(text, width);
		while (*text == ' ')
			text++;
	}
	return rows;
}
