/* What --source names: a source of the knowledge, a repository to clone, a folder of wheels, or an index (simple repository API, or
 * any page that links to wheels). */
#ifndef FA_SOURCE_H
#define FA_SOURCE_H

#include "err.h"

#include <stdbool.h>

struct fa_matrix;
struct fa_wish;

enum fa_source_kind { FA_SOURCE_NAME, FA_SOURCE_REPOSITORY, FA_SOURCE_FOLDER, FA_SOURCE_INDEX };

/* By its form alone: a folder with wheels is one, `git+…`, `….git` and `…#COMMIT` are repositories, other addresses are indexes. */
enum fa_source_kind fa_source_kind(const char *source);

/* Does it name a place on this machine that is no repository (`./flash-attention`, `/src/fa`)? By its form alone. */
bool fa_source_is_folder(const char *source);

/* Makes the wheels of the wish's source known to the resolver: a folder is read here, an index by the worker (not with --offline). An
 * address whose page holds no wheel is left to be cloned. What is known already is not asked again. FA_NETWORK: the index does not
 * answer in that time; FA_USAGE: nothing is called so. */
int fa_source_add(struct fa_matrix *m, const struct fa_wish *wish, unsigned timeout_ms, struct fa_err *err);

/* The wheels of a folder under a name of their own; returns how many, -1 with err. */
int fa_source_add_folder(struct fa_matrix *m, const char *name, const char *folder, struct fa_err *err);

#endif
