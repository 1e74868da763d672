#include "policy.h"

#include "buf.h"
#include "closest.h"
#include "file.h"
#include "json.h"
#include "kb.h"
#include "strv.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMA "fainstall.policy/1"

void fa_policy_paths(struct fa_strv *out)
{
	char *config = fa_dir_config();

	fa_strv_push(out, "/etc/fainstall/policy.json");
	fa_strv_take(out, fa_path_join(config, "policy.json"));
	free(config);
}

char *fa_policy_word(const char *source)
{
	size_t len = strcspn(source, "#");
	struct fa_buf b = FA_BUF_INIT;

	while (len > 1 && source[len - 1] == '/')
		len--;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)source[i];

		if (c <= ' ' || c == ',' || c == '"' || c == '%')
			fa_buf_addf(&b, "%%%02X", c);
		else
			fa_buf_addc(&b, (char)c);
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

/* ---- reading */

struct reading {
	struct fa_kb *kb;
	const char *path;
	struct fa_err *err;
};

static int bad(const struct reading *r, const char *member, const char *what)
{
	fa_err_set(r->err, FA_USAGE, "%s: \"%s\": %s", r->path, member, what);
	return fa_err_next(r->err, "mend that file, or ask whoever made it; docs/policy.md says what it may hold");
}

/* The words of a list, joined by commas, as rules have them. Borrowed from the pool; NULL: an error, or *there is false. */
static const char *take_list(const struct reading *r, const struct fa_json *j, const char *member, bool *there)
{
	const struct fa_json *list = fa_json_get(j, member);
	struct fa_strv words = FA_STRV_INIT;
	const char *joined = NULL;

	*there = list != NULL;
	if (!list)
		return NULL;
	fa_json_each (word, list)
		if (fa_json_string(word) && *fa_json_string(word))
			fa_strv_take(&words, fa_policy_word(fa_json_string(word)));
	if (fa_json_type(list) != FA_JSON_ARRAY || words.n != fa_json_len(list))
		bad(r, member, "a list of texts is expected");
	else if (!words.n)
		bad(r, member, "an empty list would forbid everything: leave it out, or name what is allowed");
	else
		joined = fa_kb_own(r->kb, fa_strv_join(&words, ","));
	fa_strv_release(&words);
	return joined;
}

/* A word that nobody knows is a slip. */
static int check_words(const struct reading *r, const char *member, const char *words, const char *const *known, size_t n)
{
	struct fa_strv all = FA_STRV_INIT;
	int rc = 0;

	fa_strv_split(&all, words, ",");
	for (size_t i = 0; i < all.n && rc == 0; i++) {
		const char *guess = fa_closest(all.v[i], known, n);
		bool found = false;
		char *what;

		for (size_t k = 0; k < n; k++)
			found = found || !strcmp(known[k], all.v[i]);
		if (found)
			continue;
		what = fa_strf("\"%s\" is none%s%s%s", all.v[i], guess ? "; is \"" : "", guess ? guess : "",
		               guess ? "\" meant?" : "");
		rc = bad(r, member, what);
		free(what);
	}
	fa_strv_release(&all);
	return rc;
}

static int add(const struct reading *r, enum fa_rule_on on, const char *id, const char *text, const char *when, char *need_text)
{
	const char *need = fa_kb_own(r->kb, need_text);
	struct fa_kb_rule *rule = fa_kb_add_rule(r->kb, on);
	struct fa_err why = FA_ERR_INIT;
	int rc = 0;

	*rule = (struct fa_kb_rule){
		.id = id, .text = text, .policy_when = when ? fa_kb_own(r->kb, fa_strdup(when)) : NULL, .policy_need = need
	};
	if (fa_rule_compile(&rule->when, when, fa_name_find_word, NULL, &why) < 0 ||
	    fa_rule_compile(&rule->need, rule->policy_need, fa_name_find_word, NULL, &why) < 0)
		rc = bad(r, id, why.text);
	return rc;
}

static int add_sources(const struct reading *r, const char *sources, const char *trust)
{
	static const enum fa_rule_on ON[] = { FA_ON_FILE, FA_ON_SOURCE, FA_ON_AMD };
	static const char *const text = "the policy of this machine allows the source";
	int rc = 0;

	for (size_t i = 0; i < sizeof(ON) / sizeof(ON[0]) && rc == 0; i++) {
		char *when = sources && trust ? fa_strf("source lacks \"%s\"", sources) : NULL;

		if (trust)
			rc = add(r, ON[i], "policy_source", text, when, fa_strf("trust in \"%s\"", trust));
		else
			rc = add(r, ON[i], "policy_source", text, NULL, fa_strf("source in \"%s\"", sources));
		free(when);
	}
	return rc;
}

static int take_sources(const struct reading *r, const struct fa_json *j)
{
	static const char *const TRUST[] = { "upstream", "index", "third_party", "named" };
	bool has_sources, has_trust;
	const char *sources = take_list(r, j, "sources", &has_sources), *trust = NULL;

	if (has_sources && !sources)
		return -1;
	trust = take_list(r, j, "trust", &has_trust);
	if (has_trust && (!trust || check_words(r, "trust", trust, TRUST, sizeof(TRUST) / sizeof(TRUST[0])) < 0))
		return -1;
	if (!sources && !trust)
		return 0;
	return add_sources(r, sources, trust);
}

static int take_routes(const struct reading *r, const struct fa_json *j)
{
	static const char *const ROUTES[] = { "wheel", "source", "triton", "ck", "sdpa", "keep" };
	static const enum fa_rule_on ON[] = { FA_ON_RELEASE, FA_ON_SDPA };
	bool there;
	const char *routes = take_list(r, j, "routes", &there);

	if (!there)
		return 0;
	if (!routes || check_words(r, "routes", routes, ROUTES, sizeof(ROUTES) / sizeof(ROUTES[0])) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(ON) / sizeof(ON[0]); i++)
		if (add(r, ON[i], "policy_route", "the policy of this machine allows the route", NULL,
		        fa_strf("route in \"%s,keep\"", routes)) < 0)
			return -1;
	return 0;
}

static int take_lines(const struct reading *r, const struct fa_json *j)
{
	static const char *const LINES[] = { "fa2", "fa3", "fa4" };
	bool there;
	const char *lines = take_list(r, j, "lines", &there);

	if (!there)
		return 0;
	if (!lines || check_words(r, "lines", lines, LINES, sizeof(LINES) / sizeof(LINES[0])) < 0)
		return -1;
	return add(r, FA_ON_RELEASE, "policy_line", "the policy of this machine allows the line", NULL,
	           fa_strf("line in \"%s\"", lines));
}

static int check_members(const struct reading *r, const struct fa_json *j)
{
	static const char *const KNOWN[] = { "schema", "sources", "trust", "routes", "lines", "text", "note" };
	const char *schema = fa_json_get_string(j, "schema");
	bool found;

	if (!schema || strcmp(schema, SCHEMA) != 0)
		return bad(r, "schema", schema ? "this schema is not known here (known: " SCHEMA ")" : SCHEMA " is expected");
	fa_json_each (member, j) {
		found = false;
		for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); i++)
			found = found || !strcmp(KNOWN[i], fa_json_key(member));
		if (!found)
			return bad(r, fa_json_key(member), "nothing is called so in a policy");
	}
	return 0;
}

static int read_policy(struct fa_kb *kb, const char *path, struct fa_err *err)
{
	struct reading r = { kb, path, err };
	struct fa_json *j = NULL;
	int rc = fa_json_read_file(&j, path, err);

	if (rc == 0 && fa_json_type(j) != FA_JSON_OBJECT)
		rc = fa_err_set(err, FA_USAGE, "%s: an object is expected", path);
	if (rc == 0)
		rc = check_members(&r, j);
	if (rc == 0)
		rc = take_sources(&r, j);
	if (rc == 0)
		rc = take_routes(&r, j);
	if (rc == 0)
		rc = take_lines(&r, j);
	if (rc == 0) {
		fa_strv_push(&kb->policies, path);
		if (fa_json_get_string(j, "text"))
			kb->policy_text = fa_kb_own(kb, fa_strdup(fa_json_get_string(j, "text")));
	}
	fa_json_free(j);
	return rc;
}

int fa_policy_load(struct fa_kb *kb, const struct fa_strv *paths, struct fa_err *err)
{
	for (size_t i = 0; i < paths->n; i++)
		if (fa_file_exists(paths->v[i]) && read_policy(kb, paths->v[i], err) < 0)
			return -1;
	return 0;
}
