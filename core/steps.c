/* Stage 3: the steps of a plan, expanded from recipes/steps.json. Nothing here knows a route; the rows say which concern it. */
#include "buf.h"
#include "json.h"
#include "matrix.h"
#include "resolve.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

#define V(name) s->v[FA_NAME_##name]

enum { LISTS_MAX = 8 };

struct lists {
	struct {
		const char *name;
		struct fa_strv list;
	} v[LISTS_MAX];
	size_t n;
};

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static struct fa_strv *list(struct lists *l, const char *name)
{
	l->v[l->n].name = name;
	l->v[l->n].list = (struct fa_strv)FA_STRV_INIT;
	return &l->v[l->n++].list;
}

static void extra(struct fa_solve *s, const char *name, const char *value)
{
	if (value)
		fa_solve_extra(s, name, fa_strdup(value));
}

/* ---- expanding a row */

static const char *known(const struct fa_solve *s, const char *name, size_t len)
{
	int i = fa_name_find_word(NULL, name, len);

	for (size_t k = 0; k < s->n_extra; k++)
		if (strlen(s->extra[k].name) == len && !memcmp(s->extra[k].name, name, len))
			return s->extra[k].value;
	return i >= 0 ? s->v[i] : NULL;
}

/* "{name}" and nothing else: the name's length, 0 otherwise; `mark` is a character after the brace or 0. */
static size_t whole_name(const char *text, char mark, const char **name)
{
	size_t skip = mark ? 2 : 1, n = strlen(text);

	if (n < skip + 2 || text[0] != '{' || (mark && text[1] != mark) || strchr(text, '}') != text + n - 1)
		return 0;
	*name = text + skip;
	return n - skip - 1;
}

static struct fa_json *expand_text(const struct fa_solve *s, const char *text)
{
	const char *name;
	size_t n = whole_name(text, '#', &name);
	struct fa_json *j;
	char *filled;

	if (n)
		return known(s, name, n) ? fa_json_new_number(strtod(known(s, name, n), NULL)) : fa_json_new_string(NULL);
	n = whole_name(text, 0, &name);
	if (n && !known(s, name, n))
		return fa_json_new_string(NULL);
	filled = fa_solve_text(s, text, NULL);
	j = fa_json_new_string(filled);
	free(filled);
	return j;
}

static bool splice(struct fa_json *out, const struct lists *l, const char *text)
{
	const char *name;
	size_t n = text ? whole_name(text, '@', &name) : 0;

	if (!n)
		return false;
	for (size_t i = 0; i < l->n; i++)
		if (strlen(l->v[i].name) == n && !memcmp(l->v[i].name, name, n))
			for (size_t k = 0; k < l->v[i].list.n; k++)
				fa_json_push(out, fa_json_new_string(l->v[i].list.v[k]));
	return true;
}

/* Nulls of an object are left out: an absent argument is an absent key. Rows are shallow: recursion ends after a few levels. */
static struct fa_json *expand(const struct fa_solve *s, const struct lists *l, const struct fa_json *j)
{
	struct fa_json *out;

	switch (fa_json_type(j)) {
	case FA_JSON_STRING: return expand_text(s, fa_json_string(j));
	case FA_JSON_ARRAY:
		out = fa_json_new_array();
		fa_json_each (e, j)
			if (!splice(out, l, fa_json_string(e)))
				fa_json_push(out, expand(s, l, e));
		return out;
	case FA_JSON_OBJECT:
		out = fa_json_new_object();
		fa_json_each (e, j) {
			struct fa_json *value = expand(s, l, e);

			if (fa_json_type(value) == FA_JSON_NULL)
				fa_json_free(value);
			else
				fa_json_set(out, fa_json_key(e), value);
		}
		return out;
	default: return fa_json_copy(j);
	}
}

static double number_of(const struct fa_solve *s, const struct fa_json *j)
{
	struct fa_json *value = fa_json_string(j) ? expand_text(s, fa_json_string(j)) : NULL;
	double number = value ? (fa_json_type(value) == FA_JSON_NUMBER ? fa_json_number(value) : -1) : fa_json_number(j);

	fa_json_free(value);
	return j ? number : -1;
}

static int add_row(struct fa_plan *plan, const struct fa_solve *s, const struct lists *l, const struct fa_json *row,
                   struct fa_err *err)
{
	const char *word = fa_json_get_string(row, "kind"), *title = fa_json_get_string(row, "title");
	struct fa_err why = FA_ERR_INIT;
	enum fa_step_kind kind;
	struct fa_rule when;
	enum fa_truth truth;
	struct fa_step *step;
	char *text;

	if (!word || fa_step_find(&kind, word) < 0)
		return fa_err_set(err, FA_USAGE, "recipes/steps.json: unknown kind of step \"%s\"", word ? word : "");
	if (fa_rule_compile(&when, fa_json_get_string(row, "when"), fa_name_find_word, NULL, &why) < 0)
		return fa_err_set(err, FA_USAGE, "recipes/steps.json: row \"%s\": %s", word, why.text);
	truth = fa_rule_test(&when, s->v, NULL);
	fa_rule_release(&when);
	if (truth != FA_TRUE)
		return 0;
	text = fa_solve_text(s, title ? title : word, NULL);
	step = fa_plan_add_step(plan, kind, text, expand(s, l, fa_json_get(row, "args")));
	step->bytes = (int64_t)number_of(s, fa_json_get(row, "bytes"));
	step->estimate_s = (int)number_of(s, fa_json_get(row, "estimate_s"));
	free(text);
	return 0;
}

/* ---- values that rows speak of */

static void set_from_plan(struct fa_solve *s, const struct fa_plan *p)
{
	const struct fa_choice *c = &p->choice;
	const struct fa_kb_torch *torch = c->torch ? fa_kb_torch(s->kb, c->torch) : NULL;

	V(ROUTE) = c->route;
	V(LINE) = c->line;
	V(VERSION) = c->flash_attn;
	V(PACKAGE) = c->package;
	V(SOURCE) = c->wheel.source;
	V(TORCH_VERSION) = c->torch;
	V(TORCH_BUILD) = c->torch_build;
	V(TORCH_X_CUDA) = c->cuda;
	V(TOOLKIT) = c->build.toolkit;
	V(TOOLKIT_MAJOR) = c->build.toolkit ? fa_solve_keep_text(s, fa_version_head(c->build.toolkit, 1)) : NULL;
	V(TOOLKIT_FROM_PIP) = c->build.toolkit && !c->build.toolkit_home ? "yes" : "no";
	V(TORCH_CXX) = torch ? torch->cxx
	               : s->kb->n_torch && c->torch && fa_version_compare(c->torch, s->kb->torch[0].version) > 0
	                       ? s->kb->torch[0].cxx
	                       : NULL;
	extra(s, "python_word", c->python);
}

static void set_wheel(struct fa_solve *s, const struct fa_choice *c)
{
	extra(s, "wheel_name", c->wheel.name);
	extra(s, "wheel_url", c->wheel.url);
	extra(s, "wheel_mirror", c->wheel.mirror);
	extra(s, "wheel_sha256", c->wheel.sha256);
	for (size_t i = 0; c->wheel.name && i < s->kb->n_files; i++)
		if (says(s->kb->files[i].name, c->wheel.name) && s->kb->files[i].bytes >= 0)
			fa_solve_extra(s, "wheel_bytes", fa_strf("%lld", (long long)s->kb->files[i].bytes));
}

static void set_build(struct fa_solve *s, const struct fa_choice *c)
{
	const struct fa_plan_build *b = &c->build;
	bool amd = b->archs.n && !strncmp(b->archs.v[0], "gfx", 3);
	char *archs = fa_strv_join(&b->archs, amd ? ", " : ", sm_");

	fa_solve_extra(s, "archs_text", fa_strf("%s%s", amd || !b->archs.n ? "" : "sm_", archs));
	fa_solve_extra(s, "units", fa_strf("%d", b->units));
	fa_solve_extra(s, "jobs", fa_strf("%d", b->jobs));
	if (b->estimate_s > 0)
		fa_solve_extra(s, "estimate_s", fa_strf("%d", b->estimate_s));
	free(archs);
}

/* A repository that the user names says itself where its submodules are. */
static void set_submodule(struct fa_solve *s, const char *name, bool of_the_user)
{
	const struct fa_json *pair = fa_json_get(s->kb->submodules, name);

	extra(s, "submodule_path", fa_json_string(fa_json_at(pair, 0)));
	if (!of_the_user)
		extra(s, "submodule_url", fa_json_string(fa_json_at(pair, 1)));
}

static void set_source(struct fa_solve *s, const struct fa_choice *c)
{
	const struct fa_kb_release *r = fa_kb_release(s->kb, c->line, c->flash_attn);
	const struct fa_kb_line *l = fa_kb_line(s->kb, c->line);
	const char *submodule = says(c->route, "ck") ? "composable_kernel" : "cutlass";
	bool clones = fa_solve_clones(s);

	V(FETCH_ROUTE) = fa_solve_source_is_folder(s)                                                          ? "folder"
	                 : r && (clones || !r->published || !fa_solve_archive_holds(s, submodule, r->version)) ? "clone"
	                                                                                                       : "sdist";
	if (l && l->folder && *l->folder)
		extra(s, "source_folder", l->folder);
	if (!r)
		return;
	extra(s, "tag", r->tag);
	extra(s, "commit", r->commit);
	fa_solve_extra(s, "ref", fa_strf("refs/tags/%s", r->tag));
	extra(s, "repository", clones ? fa_solve_wished(s, FA_WISH_SOURCE) : s->kb->repository);
	extra(s, "sdist_file", r->sdist_file);
	extra(s, "sdist_sha256", r->sdist_sha256);
	if (r->sdist_bytes >= 0)
		fa_solve_extra(s, "sdist_bytes", fa_strf("%lld", (long long)r->sdist_bytes));
	set_submodule(s, submodule, clones);
}

/* ---- the environment */

/* "/opt/v/bin/python3" -> "/opt/v"; the caller's. */
static char *prefix_of(const char *python)
{
	char *path = fa_strdup(python);

	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			break;
		*slash = '\0';
	}
	return path;
}

static void environment_is(struct fa_solve *s, const char *kind, const char *name, const char *path, char *title)
{
	extra(s, "environment_kind", kind);
	extra(s, "environment_name", name);
	extra(s, "environment_path", path);
	fa_solve_extra(s, "environment_title", title);
}

char *fa_plan_environment(const struct fa_facts *facts)
{
	static const char *const ACTIVE[] = { "VIRTUAL_ENV", "CONDA_PREFIX" };
	const char *python = fa_facts_text(facts, FA_FACT_PYTHON_PATH);

	for (size_t a = 0; a < sizeof(ACTIVE) / sizeof(ACTIVE[0]); a++)
		for (size_t i = 0; i < facts->n_env; i++)
			if (says(facts->env[i].name, ACTIVE[a]) && facts->env[i].value && *facts->env[i].value)
				return fa_strdup(facts->env[i].value);
	if (!fa_facts_has(facts, FA_FACT_TORCH))
		return NULL;
	return python && *python == '/' ? prefix_of(python) : fa_strdup("");
}

/* Without --env: the one that is active or holds torch is adopted, else a managed one called default is made. */
static void set_environment(struct fa_solve *s)
{
	const char *wish = fa_solve_wished(s, FA_WISH_ENV);
	char *adopted;

	if (wish && strchr(wish, '/')) {
		environment_is(s, "venv", NULL, wish, fa_strf("Use the environment %s", wish));
		return;
	}
	adopted = wish || fa_solve_wished(s, FA_WISH_PYTHON) ? NULL : fa_plan_environment(s->facts);
	if (adopted && !*adopted)
		environment_is(s, "adopt", NULL, NULL, fa_strdup("Adopt the environment that holds torch"));
	else if (adopted)
		environment_is(s, "adopt", NULL, adopted, fa_strf("Adopt the environment %s", adopted));
	else
		environment_is(s, "managed", wish ? wish : "default", NULL,
		               fa_strf("Make the environment %s", wish ? wish : "default"));
	free(adopted);
}

/* ---- requirements */

static const struct fa_kb_build *chosen_build(const struct fa_solve *s, const struct fa_kb_torch *t, const struct fa_choice *c)
{
	for (size_t i = 0; t && c->torch_build && i < t->n_builds; i++)
		if (says(t->builds[i].build, c->torch_build))
			return &t->builds[i];
	(void)s;
	return NULL;
}

static bool on_primary_index(const struct fa_solve *s, const struct fa_kb_build *b)
{
	const char *machine = s->v[FA_NAME_FACT_MACHINE], *os = s->v[FA_NAME_FACT_OS];

	if (says(os, "linux"))
		return says(machine, "aarch64") ? b->pypi_aarch64 : b->pypi;
	return says(b->build, "cpu");
}

/* "https://download…/whl/{index}/{file}" -> "https://download…/whl/cu128" */
static char *index_of(const struct fa_solve *s, const char *build)
{
	const char *pattern = s->kb->torch_index, *brace = pattern ? strstr(pattern, "{index}") : NULL;

	return brace ? fa_strf("%.*s%s", (int)(brace - pattern), pattern, build) : NULL;
}

/* Is the torch of the choice there, or brought by what must be done first? */
static bool keeps_torch(const struct fa_solve *s, const struct fa_choice *c)
{
	char *has = V(FACT_TORCH) ? fa_version_public(V(FACT_TORCH)) : NULL;
	bool keeps = says(has, c->torch) && !fa_solve_wished(s, FA_WISH_PYTHON);

	free(has);
	for (size_t i = 0; i < s->plan->n_actions; i++)
		keeps = keeps || says(s->plan->actions[i].id, "torch_of_board");
	return keeps;
}

static void require_torch(struct fa_solve *s, const struct fa_choice *c, struct fa_strv *requirements, struct fa_strv *indexes)
{
	const struct fa_kb_torch *t = c->torch ? fa_kb_torch(s->kb, c->torch) : NULL;
	const struct fa_kb_build *b = chosen_build(s, t, c);
	bool kept = keeps_torch(s, c);

	if (!c->torch)
		return;
	if (!b || kept || on_primary_index(s, b)) {
		fa_strv_pushf(requirements, "torch==%s", c->torch);
		return;
	}
	fa_strv_pushf(requirements, "torch==%s+%s", c->torch, c->torch_build);
	fa_strv_take(indexes, index_of(s, c->torch_build));
}

static void require_companions(struct fa_solve *s, const struct fa_choice *c, struct fa_strv *requirements, bool labelled)
{
	const struct fa_kb_torch *t = c->torch ? fa_kb_torch(s->kb, c->torch) : NULL;
	struct fa_strv with = FA_STRV_INIT;

	fa_wish_list(s->wish, FA_WISH_WITH, &with);
	for (size_t i = 0; i < with.n; i++) {
		const char *version = !t                               ? NULL
		                      : says(with.v[i], "torchvision") ? t->torchvision
		                      : says(with.v[i], "torchaudio")  ? t->torchaudio
		                                                       : NULL;

		if (version)
			fa_strv_pushf(requirements, "%s==%s%s%s", with.v[i], version, labelled ? "+" : "",
			              labelled ? c->torch_build : "");
		else
			fa_strv_push(requirements, with.v[i]);
	}
	fa_strv_release(&with);
}

/* "flash-attn-4[cu13]==4.0.0b36" */
static void require_package(struct fa_solve *s, const struct fa_choice *c, struct fa_strv *requirements)
{
	const char *with = NULL;
	char *major = c->cuda ? fa_version_head(c->cuda, 1) : NULL;

	for (size_t i = 0; i < s->kb->n_files; i++)
		if (says(s->kb->files[i].name, c->wheel.name))
			fa_json_each (pair, s->kb->files[i].extra)
				if (says(fa_json_string(fa_json_at(pair, 0)), major))
					with = fa_json_string(fa_json_at(pair, 1));
	fa_strv_pushf(requirements, "%s%s%s%s==%s", c->package, with ? "[" : "", with ? with : "", with ? "]" : "",
	              c->flash_attn);
	free(major);
}

static void set_requirements(struct fa_solve *s, const struct fa_choice *c, struct lists *l, const struct fa_json *recipe)
{
	struct fa_strv *requirements = list(l, "requirements"), *indexes = list(l, "indexes"), *tools = list(l, "tools");
	struct fa_strv *toolkit = list(l, "toolkit_requirements");
	const struct fa_kb_cuda *cuda = c->build.toolkit ? fa_kb_cuda(s->kb, c->build.toolkit) : NULL;

	require_torch(s, c, requirements, indexes);
	if (c->line)
		fa_json_get_strv(fa_json_get(recipe, "needs"), c->line, requirements);
	if (says(c->wheel.source, "pypi"))
		require_package(s, c, requirements);
	require_companions(s, c, requirements, indexes->n > 0);
	if (c->build.wanted)
		fa_json_get_strv(recipe, "tools", tools);
	if (cuda && !c->build.toolkit_home)
		fa_json_each (r, cuda->pip)
			if (fa_json_string(r))
				fa_strv_push(toolkit, fa_json_string(r));
	extra(s, "toolkit_home", fa_json_get_string(recipe, "toolkit_home"));
}

static bool nothing_to_do(const struct fa_solve *s, const struct fa_choice *c)
{
	char *has = s->v[FA_NAME_FACT_TORCH] ? fa_version_public(s->v[FA_NAME_FACT_TORCH]) : NULL;
	bool nothing = says(c->route, "keep") || (says(c->route, "sdpa") && says(has, c->torch));

	free(has);
	return nothing;
}

int fa_plan_steps(struct fa_plan *plan, const struct fa_facts *facts, struct fa_matrix *matrix, struct fa_err *err)
{
	struct fa_solve s = { .facts = facts, .wish = &plan->wish, .plan = plan };
	const struct fa_json *recipe = fa_matrix_recipe(matrix, "steps", err);
	struct lists l = { .n = 0 };
	int rc = -1;

	if (!recipe || fa_matrix_kb(&s.kb, matrix, err) < 0)
		return -1;
	fa_solve_host(&s);
	set_from_plan(&s, plan);
	if (plan->status == FA_PLAN_IMPOSSIBLE || nothing_to_do(&s, &plan->choice)) {
		rc = 0;
		goto done;
	}
	set_wheel(&s, &plan->choice);
	set_build(&s, &plan->choice);
	set_source(&s, &plan->choice);
	set_environment(&s);
	s.v[FA_NAME_KEPT] = keeps_torch(&s, &plan->choice) ? "yes" : "no";
	set_requirements(&s, &plan->choice, &l, recipe);
	fa_json_each (row, fa_json_get(recipe, "rows"))
		if (add_row(plan, &s, &l, row, err) < 0)
			goto done;
	rc = 0;
done:
	for (size_t i = 0; i < l.n; i++)
		fa_strv_release(&l.v[i].list);
	fa_strv_release(&s.pool);
	return rc;
}
