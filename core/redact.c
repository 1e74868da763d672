#include "redact.h"

#include "buf.h"
#include "json.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Characters that may stand in the authority part of a URL. */
static bool in_authority(char c)
{
	return c && !isspace((unsigned char)c) && !strchr("/?#\"'<>|^`{}()", c);
}

/* `at` is just after "://". Drops "user:password" before an @. */
static void drop_userinfo(char *at)
{
	char *end = at, *sign = NULL;

	for (; in_authority(*end); end++)
		if (*end == '@')
			sign = end;
	if (!sign || sign == at)
		return;
	*at = '-';
	memmove(at + 1, sign, strlen(sign) + 1);
}

static const char *const secret_names[] = {
	"token", "access_token", "private_token", "auth",   "password",        "api_key",          "apikey",
	"key",   "signature",    "sig",           "secret", "x-amz-signature", "x-amz-credential", "x-amz-security-token"
};

static bool is_secret(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(secret_names) / sizeof(*secret_names); i++)
		if (strlen(secret_names[i]) == len && !strncasecmp(secret_names[i], name, len))
			return true;
	return false;
}

/* `at` is a ? or & of a query. */
static void drop_value(char *at)
{
	char *name = at + 1, *value = name + strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"), *end;

	if (*value != '=' || !is_secret(name, (size_t)(value - name)))
		return;
	end = ++value;
	while (*end && !isspace((unsigned char)*end) && !strchr("&#\"'<>)", *end))
		end++;
	if (end - value < 2)
		return;
	*value = '-';
	memmove(value + 1, end, strlen(end) + 1);
}

void fa_redact(char *text)
{
	for (char *p = text; *p; p++) {
		if (!strncmp(p, "://", 3))
			drop_userinfo(p + 3);
		else if (*p == '?' || *p == '&')
			drop_value(p);
	}
}

struct fa_json *fa_redact_json(const struct fa_json *j)
{
	struct fa_json *out;
	char *text;

	switch (fa_json_type(j)) {
	case FA_JSON_STRING:
		text = fa_strdup(fa_json_string(j));
		fa_redact(text);
		out = fa_json_new_string(text);
		free(text);
		return out;
	case FA_JSON_ARRAY:
		out = fa_json_new_array();
		fa_json_each (e, j)
			fa_json_push(out, fa_redact_json(e));
		return out;
	case FA_JSON_OBJECT:
		out = fa_json_new_object();
		fa_json_each (e, j)
			fa_json_set(out, fa_json_key(e), fa_redact_json(e));
		return out;
	default: return fa_json_copy(j);
	}
}
