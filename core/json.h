/* JSON values. The only file that includes the library is json.c; a struct fa_json is one of its nodes, opaque here. */
#ifndef FA_JSON_H
#define FA_JSON_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fa_strv;
struct fa_json;

enum fa_json_type { FA_JSON_NULL, FA_JSON_BOOL, FA_JSON_NUMBER, FA_JSON_STRING, FA_JSON_ARRAY, FA_JSON_OBJECT };

/* Parses one value and nothing after it. Stricter than the library: valid UTF-8, no duplicate keys, no NUL in strings, at
 * most 256 levels. `name` is how the error calls the text ("matrix/torch.json"): it then says line and column. The caller's. */
int fa_json_parse(struct fa_json **out, const char *text, size_t len, const char *name, struct fa_err *err);
int fa_json_read_file(struct fa_json **out, const char *path, struct fa_err *err);
void fa_json_free(struct fa_json *j);

/* Reading. Everything returned is borrowed; a missing key, a wrong type or a NULL j gives NULL, 0, false. */
enum fa_json_type fa_json_type(const struct fa_json *j);
const struct fa_json *fa_json_get(const struct fa_json *object, const char *key);
const char *fa_json_key(const struct fa_json *member);
size_t fa_json_len(const struct fa_json *j);
const struct fa_json *fa_json_first(const struct fa_json *j); /* first element or member */
const struct fa_json *fa_json_next(const struct fa_json *j);  /* its next sibling: at() in a loop is quadratic */
const struct fa_json *fa_json_at(const struct fa_json *array, size_t i);
const char *fa_json_string(const struct fa_json *j);
double fa_json_number(const struct fa_json *j);
bool fa_json_bool(const struct fa_json *j);
const char *fa_json_get_string(const struct fa_json *object, const char *key);
double fa_json_get_number(const struct fa_json *object, const char *key, double otherwise);
bool fa_json_get_bool(const struct fa_json *object, const char *key);
void fa_json_get_strv(const struct fa_json *object, const char *key, struct fa_strv *out); /* strings of an array, appended */

#define fa_json_each(var, j) for (const struct fa_json *var = fa_json_first(j); var; var = fa_json_next(var))

/* The value that must be there: error `NAME: no text "key"` with FA_USAGE. */
int fa_json_need_string(const char **out, const struct fa_json *object, const char *key, const char *name, struct fa_err *err);

/* Building. Every value passed in is taken over; strings are copied. */
struct fa_json *fa_json_new_object(void);
struct fa_json *fa_json_new_array(void);
struct fa_json *fa_json_new_string(const char *s); /* NULL gives null */
struct fa_json *fa_json_new_number(double v);
struct fa_json *fa_json_new_bool(bool v);
struct fa_json *fa_json_new_strv(const struct fa_strv *s);
struct fa_json *fa_json_copy(const struct fa_json *j);
void fa_json_set(struct fa_json *object, const char *key, struct fa_json *value);    /* replaces */
void fa_json_set_string(struct fa_json *object, const char *key, const char *value); /* NULL: the key is left out */
void fa_json_set_number(struct fa_json *object, const char *key, double value);
void fa_json_set_bool(struct fa_json *object, const char *key, bool value);
void fa_json_push(struct fa_json *array, struct fa_json *value);

/* Text; `pretty` with tabs and a final newline. Keys stay in the order they were set: same input, same bytes. The caller's. */
char *fa_json_print(const struct fa_json *j, bool pretty);

#endif
