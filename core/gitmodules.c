#include "clone.h"

#include "buf.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value behind "key =" in a line [p, end), quotes and blanks around it taken off. The caller's; NULL: another line. */
static char *value_of(const char *p, const char *end, const char *key)
{
	size_t len = strlen(key);

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if ((size_t)(end - p) <= len || strncasecmp(p, key, len) != 0)
		return NULL;
	for (p += len; p < end && (*p == ' ' || *p == '\t');)
		p++;
	if (p == end || *p != '=')
		return NULL;
	for (p++; p < end && (*p == ' ' || *p == '\t');)
		p++;
	while (end > p && strchr(" \t\r", end[-1]))
		end--;
	if (end - p >= 2 && *p == '"' && end[-1] == '"') {
		p++;
		end--;
	}
	return fa_strndup(p, (size_t)(end - p));
}

static void keep(char **to, char *value)
{
	if (value) {
		free(*to);
		*to = value;
	}
}

/* Of git's configuration format only what .gitmodules files use: no include, no escapes, no continued lines. */
char *fa_clone_submodule_url(const char *text, const char *path)
{
	char *url = NULL, *at = NULL, *found = NULL;
	const char *end;

	for (const char *p = text; !found; p = end + 1) {
		bool section = false;

		end = p + strcspn(p, "\n");
		section = p[strspn(p, " \t")] == '[';
		if (!section) {
			keep(&at, value_of(p, end, "path"));
			keep(&url, value_of(p, end, "url"));
		}
		if ((section || !*end) && at && url && !strcmp(at, path))
			found = fa_strdup(url);
		if (section) {
			free(at);
			free(url);
			at = url = NULL;
		}
		if (!*end)
			break;
	}
	free(at);
	free(url);
	return found;
}
