#include "closest.h"

#include <string.h>

enum { LONGEST = 48 }; /* longer words are never guessed */

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance. */
static int distance(const char *a, const char *b)
{
	int d[LONGEST + 1][LONGEST + 1];
	int la = (int)strlen(a), lb = (int)strlen(b);

	for (int i = 0; i <= la; i++)
		d[i][0] = i;
	for (int j = 0; j <= lb; j++)
		d[0][j] = j;
	for (int i = 1; i <= la; i++) {
		for (int j = 1; j <= lb; j++) {
			d[i][j] = least(d[i - 1][j], d[i][j - 1]) + 1;
			d[i][j] = least(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[la][lb];
}

const char *fa_closest(const char *word, const char *const *known, size_t n)
{
	size_t len = strlen(word);
	int best = len < 4 ? 2 : len < 9 ? 3 : 4; /* one less is allowed */
	const char *found = NULL;

	if (len > LONGEST)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		int d = strlen(known[i]) > LONGEST ? LONGEST : distance(word, known[i]);

		if (d < best && d < (int)strlen(known[i])) {
			best = d;
			found = known[i];
		}
	}
	return found;
}
