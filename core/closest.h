/* The known word that somebody most likely meant. */
#ifndef FA_CLOSEST_H
#define FA_CLOSEST_H

#include <stddef.h>

/* Of `known` (n words), the one nearest to `word` by insertions, deletions, exchanges and swaps of neighbours; NULL when none
 * is near enough to be a guess worth printing. The first of equals wins. */
const char *fa_closest(const char *word, const char *const *known, size_t n);

#endif
