#include "read.h"

#include "buf.h"
#include "cards.h"
#include "detect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct reader {
	const char *word;
	void (*parse)(struct fa_reading *r);
} readers[] = {
#define READER(word, parser, what) { word, parser },
#include "read.def"
#undef READER
};

static const struct fault {
	const char *words;
	const char *id;
	const char *meaning;
	const char *repair;
} faults[] = {
#define FAULT(words, id, meaning, repair) { words, id, meaning, repair },
#include "fault.def"
#undef FAULT
};

enum { MAX_TEXT = 4 << 20 }; /* bytes; no tool prints more */
enum { N_READERS = sizeof(readers) / sizeof(*readers), N_FAULTS = sizeof(faults) / sizeof(*faults) };

/* ---- making plain */

static void add_code_point(struct fa_buf *b, unsigned c)
{
	if (c < 0x80) {
		fa_buf_addc(b, (char)c);
	} else if (c < 0x800) {
		fa_buf_addc(b, (char)(0xc0 | c >> 6));
		fa_buf_addc(b, (char)(0x80 | (c & 0x3f)));
	} else {
		fa_buf_addc(b, (char)(0xe0 | c >> 12));
		fa_buf_addc(b, (char)(0x80 | (c >> 6 & 0x3f)));
		fa_buf_addc(b, (char)(0x80 | (c & 0x3f)));
	}
}

/* What PowerShell writes for `tool > file`. Characters beyond the first plane do not matter here. */
static bool from_utf16(struct fa_buf *b, const unsigned char *p, size_t len)
{
	bool little = len >= 2 && p[0] == 0xff && p[1] == 0xfe, big = len >= 2 && p[0] == 0xfe && p[1] == 0xff;

	for (size_t i = 2; (little || big) && i + 1 < len; i += 2) {
		unsigned c = little ? p[i] | (unsigned)p[i + 1] << 8 : p[i + 1] | (unsigned)p[i] << 8;

		add_code_point(b, c >= 0xd800 && c < 0xe000 ? '?' : c);
	}
	return little || big;
}

/* Length of the terminal control sequence at p, which is at ESC; at least 1. */
static size_t escape_length(const char *p, size_t len)
{
	size_t i = 2;

	if (len < 2)
		return 1;
	if (p[1] == ']') { /* title and the like: up to BEL or ESC \ */
		while (i < len && p[i] != '\a' && p[i] != '\x1b' && p[i] != '\n')
			i++;
		return i < len && p[i] == '\a' ? i + 1 : i;
	}
	if (p[1] != '[')
		return p[1] == '\n' ? 1 : 2;
	while (i < len && p[i] >= 0x20 && p[i] < 0x40)
		i++;
	return i < len && p[i] >= 0x40 ? i + 1 : i;
}

static void add_plain(struct fa_buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		if (text[i] == '\x1b') {
			i += escape_length(text + i, len - i);
		} else if (text[i] == '\r') {
			/* an old line end, or a line written over: both end what came before */
			fa_buf_adds(out, i + 1 < len && text[i + 1] == '\n' ? "" : "\n");
			i++;
		} else {
			if (text[i])
				fa_buf_addc(out, text[i]);
			i++;
		}
	}
}

char *fa_read_plain(const char *text, size_t len)
{
	struct fa_buf utf8 = FA_BUF_INIT, out = FA_BUF_INIT;
	bool bom = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);

	if (from_utf16(&utf8, (const unsigned char *)text, len))
		add_plain(&out, fa_buf_str(&utf8), utf8.len);
	else
		add_plain(&out, text + (bom ? 3 : 0), len - (bom ? 3 : 0));
	fa_buf_release(&utf8);
	return out.data ? fa_buf_detach(&out) : fa_strdup("");
}

/* Pasted text is indented or quoted ("> "): what stands in front of a line says nothing. */
static void split_lines(struct fa_strv *out, const char *text)
{
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, "\n"), begin = 0, end = len;

		while (begin < end && (isspace((unsigned char)p[begin]) || p[begin] == '>'))
			begin++;
		while (end > begin && isspace((unsigned char)p[end - 1]))
			end--;
		fa_strv_take(out, fa_strndup(p + begin, end - begin));
		p += len + (p[len] == '\n');
	}
}

/* ---- faults */

const char *fa_read_find(const char *text, const char *words)
{
	return strcasestr(text, words);
}

/* The first line in which one of the alternatives "a|b|c" occurs; NULL: none. */
static const char *telling_line(const struct fa_strv *lines, const char *alternatives)
{
	struct fa_strv words = FA_STRV_INIT;
	const char *found = NULL;

	fa_strv_split(&words, alternatives, "|");
	for (size_t w = 0; w < words.n && !found; w++)
		for (size_t i = 0; i < lines->n && !found; i++)
			found = strcasestr(lines->v[i], words.v[w]) ? lines->v[i] : NULL;
	fa_strv_release(&words);
	return found;
}

static const char *first_line(const struct fa_strv *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		if (lines->v[i][0])
			return lines->v[i];
	return "";
}

static char *shortened(const char *line)
{
	while (isspace((unsigned char)*line))
		line++;
	return fa_strf("%.200s%s", line, strlen(line) > 200 ? "…" : "");
}

bool fa_read_fault(struct fa_facts *out, const char *tool, const struct fa_strv *lines)
{
	for (size_t f = 0; f < N_FAULTS; f++) {
		const char *line = telling_line(lines, faults[f].words);
		char *said, *text;

		if (!line)
			continue;
		said = shortened(line);
		text = fa_strf("%s (%s: %s)", faults[f].meaning, tool, said);
		fa_facts_add_problem(out, faults[f].id, tool, text, faults[f].repair);
		free(text);
		free(said);
		return true;
	}
	return false;
}

void fa_read_unusable(const struct fa_reading *r, const char *missing)
{
	char *line, *text;

	if (fa_read_fault(r->out, r->tool, r->lines))
		return;
	line = shortened(first_line(r->lines));
	text = *line ? fa_strf("%s printed no %s; it begins with: %s", r->tool, missing, line)
	             : fa_strf("%s printed nothing", r->tool);
	fa_facts_add_problem(r->out, *line ? "tool_output_unknown" : "tool_output_empty", r->tool, text,
	                     "run it again by hand and look at what it prints");
	free(text);
	free(line);
}

/* ---- pieces */

char *fa_read_version(const char *p, bool tail)
{
	for (; *p; p++) {
		size_t n, parts = 0;

		if (!isdigit((unsigned char)*p))
			continue;
		for (n = 0; isdigit((unsigned char)p[n]) || (p[n] == '.' && isdigit((unsigned char)p[n + 1])); n++)
			parts += p[n] == '.';
		if (parts) {
			while (tail && (isalnum((unsigned char)p[n]) || (p[n] && strchr("+._-!", p[n]))))
				n++;
			return fa_strndup(p, n);
		}
		p += n - 1;
	}
	return NULL;
}

const char *fa_read_value(const char *line, const char *label)
{
	size_t len = strlen(label);

	while (isspace((unsigned char)*line))
		line++;
	if (strncasecmp(line, label, len) != 0)
		return NULL;
	line += len;
	while (isspace((unsigned char)*line))
		line++;
	if (*line != ':')
		return NULL;
	line++;
	while (isspace((unsigned char)*line))
		line++;
	return line;
}

char *fa_read_outside_parentheses(const char *line)
{
	struct fa_buf b = FA_BUF_INIT;
	int depth = 0;

	for (; *line; line++) {
		depth += *line == '(';
		if (!depth)
			fa_buf_addc(&b, *line);
		depth -= *line == ')' && depth > 0;
	}
	return b.data ? fa_buf_detach(&b) : fa_strdup("");
}

char *fa_read_pci(const char *text)
{
	unsigned domain, bus, device, function;
	int n = 0;

	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &n) != 4 || !n)
		return NULL;
	return fa_strf("%04x:%02x:%02x.%x", domain, bus, device, function);
}

void fa_read_card_name(struct fa_gpu *g, const char *name, size_t len)
{
	char *copy;

	while (len && isspace((unsigned char)name[len - 1]))
		len--;
	while (len && isspace((unsigned char)*name)) {
		name++;
		len--;
	}
	if (!len)
		return;
	copy = fa_strndup(name, len);
	fa_gpu_set(&g->name, copy);
	if (!g->arch)
		g->arch = fa_strdup(fa_cards_arch_by_name(g->vendor, copy));
	free(copy);
}

/* ---- by the words of --read */

int fa_read(struct fa_facts *out, const char *tool, const char *origin, const char *text, size_t len)
{
	struct fa_strv lines = FA_STRV_INIT;
	char *plain;

	for (size_t i = 0; i < N_READERS; i++) {
		struct fa_reading r = { .out = out, .lines = &lines, .tool = tool, .origin = origin };

		if (strcmp(readers[i].word, tool) != 0)
			continue;
		plain = fa_read_plain(text, len < MAX_TEXT ? len : MAX_TEXT);
		split_lines(&lines, plain);
		r.text = plain;
		readers[i].parse(&r);
		fa_strv_release(&lines);
		free(plain);
		return 0;
	}
	return -1;
}

const char *fa_read_tools(void)
{
#define READER(word, parser, what) word " "
	return
#include "read.def"
	        "";
#undef READER
}

int fa_read_tool(struct fa_facts *out, const char *tool, const char *text, size_t len, struct fa_err *err)
{
	*out = (struct fa_facts)FA_FACTS_INIT;
	if (fa_read(out, tool, tool, text, len) == 0)
		return 0;
	fa_err_set(err, FA_USAGE, "--read %s: there is no such tool", tool);
	return fa_err_next(err, "the tools are: %s", fa_read_tools());
}
