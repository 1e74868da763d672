/* fainstall.plan/1 both ways. Each struct is a table of its fields, so writing and reading cannot differ. */
#include "buf.h"
#include "json.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum field_type { TEXT, LIST, INT, LONG, BOOL };

struct field {
	const char *key;
	enum field_type type;
	size_t offset;
	long unknown; /* INT and LONG: the value that is left out */
};

#define F(s, key, type, member, unknown) \
	{ \
		key, type, offsetof(struct s, member), unknown \
	}
#define N(fields) (sizeof(fields) / sizeof((fields)[0]))

static const struct field CHOICE[] = {
	F(fa_choice, "route", TEXT, route, 0),     F(fa_choice, "line", TEXT, line, 0),
	F(fa_choice, "package", TEXT, package, 0), F(fa_choice, "flash_attn", TEXT, flash_attn, 0),
	F(fa_choice, "torch", TEXT, torch, 0),     F(fa_choice, "torch_build", TEXT, torch_build, 0),
	F(fa_choice, "cuda", TEXT, cuda, 0),       F(fa_choice, "python", TEXT, python, 0),
	F(fa_choice, "archs", LIST, archs, 0),
};

static const struct field WHEEL[] = {
	F(fa_plan_wheel, "name", TEXT, name, 0),     F(fa_plan_wheel, "url", TEXT, url, 0),
	F(fa_plan_wheel, "source", TEXT, source, 0), F(fa_plan_wheel, "mirror", TEXT, mirror, 0),
	F(fa_plan_wheel, "sha256", TEXT, sha256, 0),
};

static const struct field BUILD[] = {
	F(fa_plan_build, "archs", LIST, archs, 0),          F(fa_plan_build, "jobs", INT, jobs, 0),
	F(fa_plan_build, "toolkit", TEXT, toolkit, 0),      F(fa_plan_build, "toolkit_home", TEXT, toolkit_home, 0),
	F(fa_plan_build, "profile", TEXT, profile, 0),      F(fa_plan_build, "dtypes", LIST, dtypes, 0),
	F(fa_plan_build, "head_dims", LIST, head_dims, 0),  F(fa_plan_build, "features", LIST, features, 0),
	F(fa_plan_build, "backward", BOOL, backward, 0),    F(fa_plan_build, "units", INT, units, 0),
	F(fa_plan_build, "estimate_s", INT, estimate_s, 0), F(fa_plan_build, "peak_mib", INT, peak_mib, 0),
	F(fa_plan_build, "wheel_mb", INT, wheel_mb, 0),
};

static const struct field OFFER[] = {
	F(fa_plan_offer, "profile", TEXT, profile, 0),      F(fa_plan_offer, "units", INT, units, 0),
	F(fa_plan_offer, "estimate_s", INT, estimate_s, 0), F(fa_plan_offer, "peak_mib", INT, peak_mib, 0),
	F(fa_plan_offer, "wheel_mb", INT, wheel_mb, 0),
};

static const struct field OTHER[] = {
	F(fa_other, "value", TEXT, value, 0),
	F(fa_other, "rule", TEXT, rule, 0),
	F(fa_other, "needed", TEXT, needed, 0),
	F(fa_other, "found", TEXT, found, 0),
};

static const struct field NODE[] = {
	F(fa_node, "question", TEXT, question, 0),
	F(fa_node, "taken", TEXT, taken, 0),
	F(fa_node, "because", TEXT, because, 0),
	F(fa_node, "wish", TEXT, wish, 0),
};

static const struct field REFUSAL[] = {
	F(fa_refusal, "candidate", TEXT, candidate, 0),
	F(fa_refusal, "rule", TEXT, rule, 0),
	F(fa_refusal, "needed", TEXT, needed, 0),
	F(fa_refusal, "found", TEXT, found, 0),
};

static const struct field ACTION[] = {
	F(fa_action, "id", TEXT, id, 0),
	F(fa_action, "text", TEXT, text, 0),
	F(fa_action, "command", TEXT, command, 0),
};

static const struct field WARNING[] = {
	F(fa_warning, "id", TEXT, id, 0),
	F(fa_warning, "text", TEXT, text, 0),
	F(fa_warning, "source", TEXT, source, 0),
};

static const struct field SERVED[] = {
	F(fa_served, "index", INT, index, -1),
	F(fa_served, "arch", TEXT, arch, 0),
	F(fa_served, "served_by", TEXT, served_by, 0),
	F(fa_served, "because", TEXT, because, 0),
};

static const struct field STEP[] = {
	F(fa_step, "title", TEXT, title, 0),
	F(fa_step, "bytes", LONG, bytes, -1),
	F(fa_step, "estimate_s", INT, estimate_s, -1),
};

static void write_fields(struct fa_json *j, const void *s, const struct field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *at = (const char *)s + fields[i].offset;
		long number = 0;

		switch (fields[i].type) {
		case TEXT: fa_json_set_string(j, fields[i].key, *(char *const *)(const void *)at); break;
		case LIST: {
			const struct fa_strv *list = (const void *)at;

			if (list->n)
				fa_json_set(j, fields[i].key, fa_json_new_strv(list));
			break;
		}
		case BOOL: fa_json_set_bool(j, fields[i].key, *(const bool *)(const void *)at); break;
		case INT: number = *(const int *)(const void *)at; break;
		case LONG: number = (long)*(const int64_t *)(const void *)at; break;
		}
		if ((fields[i].type == INT || fields[i].type == LONG) && number != fields[i].unknown)
			fa_json_set_number(j, fields[i].key, (double)number);
	}
}

static struct fa_json *object_of(const void *s, const struct field *fields, size_t n)
{
	struct fa_json *j = fa_json_new_object();

	write_fields(j, s, fields, n);
	return j;
}

static void read_fields(void *s, const struct fa_json *j, const struct field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *at = (char *)s + fields[i].offset;
		double number = fa_json_get_number(j, fields[i].key, (double)fields[i].unknown);

		switch (fields[i].type) {
		case TEXT: *(char **)(void *)at = fa_strdup(fa_json_get_string(j, fields[i].key)); break;
		case LIST: fa_json_get_strv(j, fields[i].key, (struct fa_strv *)(void *)at); break;
		case BOOL: *(bool *)(void *)at = fa_json_get_bool(j, fields[i].key); break;
		case INT: *(int *)(void *)at = number > -1e9 && number < 1e9 ? (int)number : (int)fields[i].unknown; break;
		case LONG:
			*(int64_t *)(void *)at = number > -1e15 && number < 1e15 ? (int64_t)number : fields[i].unknown;
			break;
		}
	}
}

/* ---- choice */

static struct fa_json *env_to_json(const struct fa_strv *env)
{
	struct fa_json *j = fa_json_new_object();

	for (size_t i = 0; i < env->n; i++) {
		char *name = fa_strndup(env->v[i], strcspn(env->v[i], "="));

		fa_json_set_string(j, name, strchr(env->v[i], '=') ? strchr(env->v[i], '=') + 1 : "");
		free(name);
	}
	return j;
}

static struct fa_json *list_to_json(const void *items, size_t n, size_t size, const struct field *fields, size_t n_fields)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < n; i++)
		fa_json_push(array, object_of((const char *)items + i * size, fields, n_fields));
	return array;
}

/* Room as the adding functions of plan.c expect it: the next power of two. */
static size_t room_for(size_t n)
{
	size_t room = 1;

	while (room < n)
		room *= 2;
	return room;
}

static void *list_from_json(size_t *n, const struct fa_json *array, size_t size, const struct field *fields, size_t n_fields)
{
	char *items;
	size_t i = 0;

	*n = fa_json_len(array);
	if (!*n)
		return NULL;
	items = fa_calloc(room_for(*n), size);
	fa_json_each (e, array)
		read_fields(items + i++ * size, e, fields, n_fields);
	return items;
}

#define TO_JSON(items, n, type, fields) list_to_json(items, n, sizeof(struct type), fields, N(fields))
#define FROM_JSON(n, array, type, fields) list_from_json(n, array, sizeof(struct type), fields, N(fields))

static struct fa_json *build_to_json(const struct fa_plan_build *b)
{
	struct fa_json *j = object_of(b, BUILD, N(BUILD));

	fa_json_set(j, "env", env_to_json(&b->env));
	if (b->n_offers)
		fa_json_set(j, "profiles", TO_JSON(b->offers, b->n_offers, fa_plan_offer, OFFER));
	return j;
}

struct fa_json *fa_choice_to_json(const struct fa_choice *c)
{
	struct fa_json *j = object_of(c, CHOICE, N(CHOICE));

	if (c->wheel.name)
		fa_json_set(j, "wheel", object_of(&c->wheel, WHEEL, N(WHEEL)));
	if (c->build.wanted)
		fa_json_set(j, "build", build_to_json(&c->build));
	return j;
}

static void choice_from_json(struct fa_choice *c, const struct fa_json *j)
{
	const struct fa_json *build = fa_json_get(j, "build");

	read_fields(c, j, CHOICE, N(CHOICE));
	read_fields(&c->wheel, fa_json_get(j, "wheel"), WHEEL, N(WHEEL));
	if (!build)
		return;
	c->build.wanted = true;
	read_fields(&c->build, build, BUILD, N(BUILD));
	c->build.offers = FROM_JSON(&c->build.n_offers, fa_json_get(build, "profiles"), fa_plan_offer, OFFER);
	fa_json_each (e, fa_json_get(build, "env"))
		if (fa_json_string(e))
			fa_strv_pushf(&c->build.env, "%s=%s", fa_json_key(e), fa_json_string(e));
}

/* ---- lists of the plan */

static struct fa_json *wish_to_json(const struct fa_wish *w)
{
	struct fa_json *j = fa_json_new_object();

	for (int i = 0; i < FA_WISH_COUNT; i++)
		fa_json_set_string(j, fa_wish_row((enum fa_wish_id)i)->option, w->v[i]);
	return j;
}

static struct fa_json *tree_to_json(const struct fa_plan *p)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < p->n_tree; i++) {
		struct fa_json *node = object_of(&p->tree[i], NODE, N(NODE));

		fa_json_set(node, "others", TO_JSON(p->tree[i].others, p->tree[i].n_others, fa_other, OTHER));
		fa_json_push(array, node);
	}
	return array;
}

static struct fa_json *nearest_to_json(const struct fa_plan *p)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < p->n_nearest; i++) {
		struct fa_json *j = fa_json_new_object();

		fa_json_set(j, "wish", fa_json_new_strv(&p->nearest[i].wish));
		fa_json_set(j, "choice", fa_choice_to_json(&p->nearest[i].choice));
		fa_json_push(array, j);
	}
	return array;
}

static struct fa_json *steps_to_json(const struct fa_plan *p)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < p->n_steps; i++) {
		struct fa_json *j = fa_json_new_object();

		fa_json_set_string(j, "kind", fa_step_word(p->steps[i].kind));
		write_fields(j, &p->steps[i], STEP, N(STEP));
		fa_json_set(j, "args", p->steps[i].args ? fa_json_copy(p->steps[i].args) : fa_json_new_object());
		fa_json_push(array, j);
	}
	return array;
}

struct fa_json *fa_plan_to_json(const struct fa_plan *p)
{
	struct fa_json *j = fa_json_new_object();

	fa_json_set_string(j, "schema", "fainstall.plan/1");
	fa_json_set_string(j, "status", fa_plan_status_name(p->status));
	fa_json_set(j, "wish", wish_to_json(&p->wish));
	fa_json_set(j, "choice", fa_choice_to_json(&p->choice));
	fa_json_set(j, "tree", tree_to_json(p));
	fa_json_set(j, "rejected", TO_JSON(p->rejected, p->n_rejected, fa_refusal, REFUSAL));
	fa_json_set(j, "actions", TO_JSON(p->actions, p->n_actions, fa_action, ACTION));
	fa_json_set(j, "warnings", TO_JSON(p->warnings, p->n_warnings, fa_warning, WARNING));
	if (p->n_per_gpu)
		fa_json_set(j, "per_gpu", TO_JSON(p->per_gpu, p->n_per_gpu, fa_served, SERVED));
	if (p->n_nearest)
		fa_json_set(j, "nearest", nearest_to_json(p));
	fa_json_set(j, "steps", steps_to_json(p));
	if (p->fallbacks.n)
		fa_json_set(j, "fallbacks", fa_json_new_strv(&p->fallbacks));
	fa_json_set(j, "checks", fa_json_new_strv(&p->checks));
	return j;
}

static int wish_from_json(struct fa_wish *w, const struct fa_json *j, const char *name, struct fa_err *err)
{
	enum fa_wish_id id;

	fa_json_each (e, j) {
		if (fa_wish_find(&id, fa_json_key(e)) < 0 || !fa_json_string(e))
			return fa_err_set(err, FA_USAGE, "%s: unknown wish \"%s\"", name, fa_json_key(e));
		w->v[id] = fa_strdup(fa_json_string(e));
	}
	return 0;
}

static void tree_from_json(struct fa_plan *p, const struct fa_json *array)
{
	size_t i = 0;

	p->tree = FROM_JSON(&p->n_tree, array, fa_node, NODE);
	fa_json_each (e, array) {
		p->tree[i].others = FROM_JSON(&p->tree[i].n_others, fa_json_get(e, "others"), fa_other, OTHER);
		i++;
	}
}

static void nearest_from_json(struct fa_plan *p, const struct fa_json *array)
{
	size_t i = 0;

	p->n_nearest = fa_json_len(array);
	p->nearest = p->n_nearest ? fa_calloc(room_for(p->n_nearest), sizeof(*p->nearest)) : NULL;
	fa_json_each (e, array) {
		fa_json_get_strv(e, "wish", &p->nearest[i].wish);
		choice_from_json(&p->nearest[i].choice, fa_json_get(e, "choice"));
		i++;
	}
}

static int steps_from_json(struct fa_plan *p, const struct fa_json *array, const char *name, struct fa_err *err)
{
	fa_json_each (e, array) {
		const char *word = fa_json_get_string(e, "kind");
		struct fa_json *args = fa_json_get(e, "args") ? fa_json_copy(fa_json_get(e, "args")) : NULL;
		enum fa_step_kind kind;
		struct fa_step *s;

		if (!word || fa_step_find(&kind, word) < 0) {
			fa_json_free(args);
			return fa_err_set(err, FA_USAGE, "%s: unknown kind of step \"%s\"", name, word ? word : "");
		}
		s = fa_plan_add_step(p, kind, NULL, args);
		read_fields(s, e, STEP, N(STEP));
	}
	return 0;
}

static int status_from_json(enum fa_plan_status *out, const struct fa_json *j, const char *name, struct fa_err *err)
{
	const char *schema = fa_json_get_string(j, "schema"), *word = fa_json_get_string(j, "status");

	if (!schema || strcmp(schema, "fainstall.plan/1") != 0)
		return fa_err_set(err, FA_USAGE, "%s: schema fainstall.plan/1 expected, found \"%s\"", name,
		                  schema ? schema : "");
	for (int i = FA_PLAN_READY; word && i <= FA_PLAN_IMPOSSIBLE; i++)
		if (!strcmp(word, fa_plan_status_name((enum fa_plan_status)i))) {
			*out = (enum fa_plan_status)i;
			return 0;
		}
	return fa_err_set(err, FA_USAGE, "%s: unknown status \"%s\"", name, word ? word : "");
}

int fa_plan_from_json(struct fa_plan *out, const struct fa_json *j, const char *name, struct fa_err *err)
{
	*out = (struct fa_plan)FA_PLAN_INIT;
	if (status_from_json(&out->status, j, name, err) < 0 ||
	    wish_from_json(&out->wish, fa_json_get(j, "wish"), name, err) < 0)
		goto fail;
	choice_from_json(&out->choice, fa_json_get(j, "choice"));
	tree_from_json(out, fa_json_get(j, "tree"));
	out->rejected = FROM_JSON(&out->n_rejected, fa_json_get(j, "rejected"), fa_refusal, REFUSAL);
	out->actions = FROM_JSON(&out->n_actions, fa_json_get(j, "actions"), fa_action, ACTION);
	out->warnings = FROM_JSON(&out->n_warnings, fa_json_get(j, "warnings"), fa_warning, WARNING);
	out->per_gpu = FROM_JSON(&out->n_per_gpu, fa_json_get(j, "per_gpu"), fa_served, SERVED);
	nearest_from_json(out, fa_json_get(j, "nearest"));
	fa_json_get_strv(j, "fallbacks", &out->fallbacks);
	fa_json_get_strv(j, "checks", &out->checks);
	if (steps_from_json(out, fa_json_get(j, "steps"), name, err) == 0)
		return 0;
fail:
	fa_plan_release(out);
	return -1;
}
