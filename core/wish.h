/* What the user asked for. Nothing asked is the empty wish; every field is text as typed (checked), so that a wish can be
 * printed back as the command that means the same. */
#ifndef FA_WISH_H
#define FA_WISH_H

#include "err.h"
#include "strv.h"

#include <stdbool.h>

enum fa_wish_id {
#define WISH(id, option, kind, argument, help) FA_WISH_##id,
#include "wish.def"
#undef WISH
	FA_WISH_COUNT,
};

enum fa_wish_kind { FA_WISH_TEXT, FA_WISH_LIST, FA_WISH_FLAG };

struct fa_wish {
	char *v[FA_WISH_COUNT]; /* NULL: not asked; a FLAG is "yes" */
};

#define FA_WISH_INIT \
	{ \
		{ \
			NULL \
		} \
	}

struct fa_wish_row {        /* a row of wish.def */
	const char *option; /* without the dashes */
	enum fa_wish_kind kind;
	const char *argument;
	const char *help;
};

const struct fa_wish_row *fa_wish_row(enum fa_wish_id id);
int fa_wish_find(enum fa_wish_id *out, const char *option); /* option without dashes; -1: none */

/* Sets one wish after checking its form (a version, a known word, a number). FA_USAGE names option, value and what fits. */
int fa_wish_set(struct fa_wish *w, enum fa_wish_id id, const char *value, struct fa_err *err);
const char *fa_wish_get(const struct fa_wish *w, enum fa_wish_id id);                /* NULL: not asked; borrowed */
void fa_wish_list(const struct fa_wish *w, enum fa_wish_id id, struct fa_strv *out); /* pieces of a LIST, appended */

/* The words of the command line that mean this wish: "--line", "fa2", …; appended. */
void fa_wish_argv(const struct fa_wish *w, struct fa_strv *out);

void fa_wish_copy(struct fa_wish *out, const struct fa_wish *w);
void fa_wish_release(struct fa_wish *w);

#endif
