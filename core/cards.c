#include "cards.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "matrix_data.h"
#include "strv.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Read when first asked for; lives as long as the program. Without the file every card is one that is not in the table. */
static const struct fa_json *rows(void)
{
	static struct fa_json *table;
	static bool tried;
	char *path;

	if (!tried) {
		tried = true;
		path = fa_matrix_file("cards.json", NULL);
		if (path)
			fa_json_read_file(&table, path, NULL);
		free(path);
	}
	return fa_json_get(table, "rows");
}

static bool in_range(const char *range, unsigned device)
{
	char *end;
	unsigned long first = strtoul(range, &end, 16), last = *end == '-' ? strtoul(end + 1, NULL, 16) : first;

	return device >= first && device <= last;
}

const char *fa_cards_arch_by_pci(unsigned vendor, unsigned device)
{
	const char *word = vendor == 0x10de ? "nvidia" : vendor == 0x1002 ? "amd" : NULL;

	if (!word)
		return NULL;
	fa_json_each (row, rows()) {
		const char *v = fa_json_get_string(row, "vendor");

		if (!v || strcmp(v, word) != 0)
			continue;
		fa_json_each (range, fa_json_get(row, "pci"))
			if (fa_json_string(range) && in_range(fa_json_string(range), device))
				return fa_json_get_string(row, "arch");
	}
	return NULL;
}

struct name {
	struct fa_strv words;
	bool cut;      /* it ended in "..." */
	char *partial; /* its last word when that was cut; NULL: whole words only */
};

static void split_words(struct fa_strv *out, const char *text)
{
	for (const char *p = text; *p;) {
		size_t len = 0;
		char *word;

		while (isalnum((unsigned char)p[len]))
			len++;
		if (len) {
			word = fa_strndup(p, len);
			for (char *c = word; *c; c++)
				*c = (char)tolower((unsigned char)*c);
			fa_strv_take(out, word);
		}
		p += len ? len : 1;
	}
}

static void name_init(struct name *n, const char *text)
{
	size_t len = strlen(text);

	*n = (struct name){ .words = FA_STRV_INIT };
	split_words(&n->words, text);
	n->cut = len > 3 && !strcmp(text + len - 3, "...");
	if (n->cut && isalnum((unsigned char)text[len - 4]) && n->words.n) {
		n->partial = n->words.v[--n->words.n];
		n->words.v[n->words.n] = NULL;
	}
}

static void name_release(struct name *n)
{
	fa_strv_release(&n->words);
	free(n->partial);
}

static bool occurs(const struct name *n, const char *word)
{
	return fa_strv_has(&n->words, word) || (n->partial && !strncmp(word, n->partial, strlen(n->partial)));
}

static bool all_occur(const struct name *n, const struct fa_strv *words)
{
	for (size_t i = 0; i < words->n; i++)
		if (!occurs(n, words->v[i]))
			return false;
	return words->n > 0;
}

/* Could the cut end of the name still hold what these words have more than those that occur? */
static bool may_be_longer(const struct name *n, const struct fa_strv *words, size_t found)
{
	size_t here = 0;

	for (size_t i = 0; i < words->n; i++)
		here += occurs(n, words->v[i]);
	return n->cut && here == found && words->n > found;
}

struct best {
	const char *arch;
	size_t words;
	bool several; /* rows of another architecture fit as well */
};

static void consider(struct best *b, const struct name *n, const char *arch, const struct fa_strv *words)
{
	if (!all_occur(n, words) || words->n < b->words)
		return;
	b->several = words->n == b->words && b->arch && strcmp(b->arch, arch) != 0;
	b->words = words->n;
	b->arch = arch;
}

static void doubt(struct best *b, const struct name *n, const char *arch, const struct fa_strv *words)
{
	if (b->arch && strcmp(b->arch, arch) != 0 && may_be_longer(n, words, b->words))
		b->several = true;
}

static void each_name(struct best *b, const struct name *n, const char *vendor,
                      void (*visit)(struct best *, const struct name *, const char *, const struct fa_strv *))
{
	fa_json_each (row, rows()) {
		const char *v = fa_json_get_string(row, "vendor"), *arch = fa_json_get_string(row, "arch");

		if (!v || !arch || strcmp(v, vendor) != 0)
			continue;
		fa_json_each (e, fa_json_get(row, "names")) {
			struct fa_strv words = FA_STRV_INIT;

			split_words(&words, fa_json_string(e) ? fa_json_string(e) : "");
			visit(b, n, arch, &words);
			fa_strv_release(&words);
		}
	}
}

const char *fa_cards_arch_by_name(const char *vendor, const char *name)
{
	struct best b = { 0 };
	struct name n;

	name_init(&n, name);
	each_name(&b, &n, vendor, consider);
	if (n.cut)
		each_name(&b, &n, vendor, doubt);
	name_release(&n);
	return b.several ? NULL : b.arch;
}
