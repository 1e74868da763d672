#include "json.h"

#include "buf.h"
#include "file.h"
#include "strv.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 256 };

static const cJSON *lib(const struct fa_json *j)
{
	return (const cJSON *)j;
}

static cJSON *lib_mut(struct fa_json *j)
{
	return (cJSON *)j;
}

static struct fa_json *own(cJSON *c)
{
	if (!c) /* the library returns NULL only when memory is out */
		abort();
	return (struct fa_json *)c;
}

static void line_and_column(const char *text, const char *at, size_t *line, size_t *column)
{
	*line = 1;
	*column = 1;
	for (; text < at; text++) {
		++*column;
		if (*text == '\n') {
			++*line;
			*column = 1;
		}
	}
}

/* Length of the valid UTF-8 sequence at p (RFC 3629), 0 when it is none. */
static size_t utf8_length(const unsigned char *p, const unsigned char *end)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	if (!n || (size_t)(end - p) < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
		return 0;
	if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* What the library is too lenient about: bad UTF-8, control characters and escaped NULs in strings, depth. */
static const char *first_fault(const char *text, size_t len, const char **why)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	bool in_string = false;
	int depth = 0;

	while (p < end) {
		size_t n = utf8_length(p, end);

		*why = !n                       ? "is not UTF-8"
		       : *p == 0                ? "NUL byte"
		       : in_string && *p < 0x20 ? "control character in a text"
		                                : NULL;
		if (!in_string && (*p == '{' || *p == '[') && ++depth > MAX_DEPTH)
			*why = "nested too deeply";
		if (!in_string && (*p == '}' || *p == ']'))
			depth--;
		if (in_string && *p == '\\' && end - p >= 6 && !memcmp(p, "\\u0000", 6))
			*why = "NUL in a text";
		if (*why)
			return (const char *)p;
		if (in_string && *p == '\\' && p + 1 < end)
			n = 2;
		else if (*p == '"')
			in_string = !in_string;
		p += n;
	}
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *duplicate_key(const cJSON *j)
{
	const char *found = NULL, **names = NULL;
	size_t n = 0;

	for (const cJSON *m = j->child; m && !found; m = m->next) {
		n++;
		found = m->child ? duplicate_key(m) : NULL;
	}
	if (found || !cJSON_IsObject(j) || n < 2)
		return found;
	names = fa_calloc(n, sizeof(*names));
	n = 0;
	for (const cJSON *m = j->child; m; m = m->next)
		names[n++] = m->string;
	qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 1; i < n && !found; i++)
		if (!strcmp(names[i - 1], names[i]))
			found = names[i];
	free(names);
	return found;
}

int fa_json_parse(struct fa_json **out, const char *text, size_t len, const char *name, struct fa_err *err)
{
	const char *at, *why = NULL, *key;
	char *owned = NULL;
	size_t line, column;
	cJSON *j = NULL;
	int rc = -1;

	*out = NULL;
	at = first_fault(text, len, &why);
	if (!at) {
		owned = fa_strndup(text, len); /* the library wants a NUL to see text after the value */
		j = cJSON_ParseWithLengthOpts(owned, len + 1, &at, 1);
		why = "is not JSON";
		if (!j) {
			line_and_column(owned, at, &line, &column);
			fa_err_set(err, FA_USAGE, "%s:%zu:%zu: %s", name, line, column, why);
			goto done;
		}
	} else {
		line_and_column(text, at, &line, &column);
		fa_err_set(err, FA_USAGE, "%s:%zu:%zu: %s", name, line, column, why);
		goto done;
	}
	key = duplicate_key(j);
	if (key) {
		fa_err_set(err, FA_USAGE, "%s: the key \"%s\" stands twice in one object", name, key);
		cJSON_Delete(j);
		goto done;
	}
	*out = own(j);
	rc = 0;
done:
	free(owned);
	return rc;
}

int fa_json_read_file(struct fa_json **out, const char *path, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	int rc = -1;

	*out = NULL;
	if (fa_file_read(&text, path, FA_FILE_MAX, err) == 0)
		rc = fa_json_parse(out, fa_buf_str(&text), text.len, path, err);
	fa_buf_release(&text);
	return rc;
}

void fa_json_free(struct fa_json *j)
{
	cJSON_Delete(lib_mut(j));
}

enum fa_json_type fa_json_type(const struct fa_json *j)
{
	const cJSON *c = lib(j);

	if (cJSON_IsBool(c))
		return FA_JSON_BOOL;
	if (cJSON_IsNumber(c))
		return FA_JSON_NUMBER;
	if (cJSON_IsString(c))
		return FA_JSON_STRING;
	if (cJSON_IsArray(c))
		return FA_JSON_ARRAY;
	return cJSON_IsObject(c) ? FA_JSON_OBJECT : FA_JSON_NULL;
}

const struct fa_json *fa_json_get(const struct fa_json *object, const char *key)
{
	if (!cJSON_IsObject(lib(object)))
		return NULL;
	return (const struct fa_json *)cJSON_GetObjectItemCaseSensitive(lib(object), key);
}

const char *fa_json_key(const struct fa_json *member)
{
	return member ? lib(member)->string : NULL;
}

size_t fa_json_len(const struct fa_json *j)
{
	size_t n = 0;

	fa_json_each (e, j)
		n++;
	return n;
}

const struct fa_json *fa_json_first(const struct fa_json *j)
{
	return j ? (const struct fa_json *)lib(j)->child : NULL;
}

const struct fa_json *fa_json_next(const struct fa_json *j)
{
	return j ? (const struct fa_json *)lib(j)->next : NULL;
}

const struct fa_json *fa_json_at(const struct fa_json *array, size_t i)
{
	const struct fa_json *e = fa_json_first(array);

	while (e && i--)
		e = fa_json_next(e);
	return e;
}

const char *fa_json_string(const struct fa_json *j)
{
	return cJSON_GetStringValue(lib(j));
}

double fa_json_number(const struct fa_json *j)
{
	return cJSON_IsNumber(lib(j)) ? lib(j)->valuedouble : 0;
}

bool fa_json_bool(const struct fa_json *j)
{
	return cJSON_IsTrue(lib(j));
}

const char *fa_json_get_string(const struct fa_json *object, const char *key)
{
	return fa_json_string(fa_json_get(object, key));
}

double fa_json_get_number(const struct fa_json *object, const char *key, double otherwise)
{
	const struct fa_json *j = fa_json_get(object, key);

	return fa_json_type(j) == FA_JSON_NUMBER ? fa_json_number(j) : otherwise;
}

bool fa_json_get_bool(const struct fa_json *object, const char *key)
{
	return fa_json_bool(fa_json_get(object, key));
}

void fa_json_get_strv(const struct fa_json *object, const char *key, struct fa_strv *out)
{
	fa_json_each (e, fa_json_get(object, key))
		if (fa_json_string(e))
			fa_strv_push(out, fa_json_string(e));
}

int fa_json_need_string(const char **out, const struct fa_json *object, const char *key, const char *name, struct fa_err *err)
{
	*out = fa_json_get_string(object, key);
	return *out ? 0 : fa_err_set(err, FA_USAGE, "%s: no text \"%s\"", name, key);
}

struct fa_json *fa_json_new_object(void)
{
	return own(cJSON_CreateObject());
}

struct fa_json *fa_json_new_array(void)
{
	return own(cJSON_CreateArray());
}

struct fa_json *fa_json_new_string(const char *s)
{
	return own(s ? cJSON_CreateString(s) : cJSON_CreateNull());
}

struct fa_json *fa_json_new_number(double v)
{
	return own(isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

struct fa_json *fa_json_new_bool(bool v)
{
	return own(cJSON_CreateBool(v));
}

struct fa_json *fa_json_new_strv(const struct fa_strv *s)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < s->n; i++)
		fa_json_push(array, fa_json_new_string(s->v[i]));
	return array;
}

struct fa_json *fa_json_copy(const struct fa_json *j)
{
	return own(cJSON_Duplicate(lib(j), 1));
}

void fa_json_set(struct fa_json *object, const char *key, struct fa_json *value)
{
	if (fa_json_get(object, key))
		cJSON_ReplaceItemInObjectCaseSensitive(lib_mut(object), key, lib_mut(value));
	else
		cJSON_AddItemToObject(lib_mut(object), key, lib_mut(value));
}

void fa_json_set_string(struct fa_json *object, const char *key, const char *value)
{
	if (value)
		fa_json_set(object, key, fa_json_new_string(value));
}

void fa_json_set_number(struct fa_json *object, const char *key, double value)
{
	fa_json_set(object, key, fa_json_new_number(value));
}

void fa_json_set_bool(struct fa_json *object, const char *key, bool value)
{
	fa_json_set(object, key, fa_json_new_bool(value));
}

void fa_json_push(struct fa_json *array, struct fa_json *value)
{
	cJSON_AddItemToArray(lib_mut(array), lib_mut(value));
}

char *fa_json_print(const struct fa_json *j, bool pretty)
{
	char *text = pretty ? cJSON_Print(lib(j)) : cJSON_PrintUnformatted(lib(j));
	char *copy;

	if (!text)
		abort();
	copy = fa_strf("%s%s", text, pretty ? "\n" : "");
	cJSON_free(text);
	return copy;
}
