/* facts <-> fainstall.facts/1 */
#include "buf.h"
#include "facts.h"
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "fainstall.facts/1"

static struct fa_json *value_to_json(const struct fa_facts *f, enum fa_fact id)
{
	const struct fa_fact_value *v = &f->v[id];

	switch (fa_fact_type(id)) {
	case FA_FACT_TEXT: return fa_json_new_string(v->text);
	case FA_FACT_NUMBER: return fa_json_new_number((double)v->number);
	case FA_FACT_BOOL: return fa_json_new_bool(v->number != 0);
	case FA_FACT_LIST: break;
	}
	return fa_json_new_strv(&v->list);
}

static struct fa_json *gpus_to_json(const struct fa_facts *f)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < f->n_gpus; i++) {
		const struct fa_gpu *g = &f->gpus[i];
		struct fa_json *o = fa_json_new_object();

		fa_json_set_string(o, "vendor", g->vendor);
		fa_json_set_number(o, "index", g->index);
		fa_json_set_string(o, "name", g->name);
		fa_json_set_string(o, "arch", g->arch);
		if (g->memory_mib >= 0)
			fa_json_set_number(o, "memory_mib", (double)g->memory_mib);
		fa_json_set_string(o, "pci", g->pci);
		fa_json_push(array, o);
	}
	return array;
}

static struct fa_json *toolkits_to_json(const struct fa_facts *f)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < f->n_toolkits; i++) {
		struct fa_json *o = fa_json_new_object();

		fa_json_set_string(o, "kind", f->toolkits[i].kind);
		fa_json_set_string(o, "version", f->toolkits[i].version);
		fa_json_set_string(o, "home", f->toolkits[i].home);
		fa_json_push(array, o);
	}
	return array;
}

static struct fa_json *problems_to_json(const struct fa_facts *f)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < f->n_problems; i++) {
		struct fa_json *o = fa_json_new_object();

		fa_json_set_string(o, "id", f->problems[i].id);
		fa_json_set_string(o, "tool", f->problems[i].tool);
		fa_json_set_string(o, "text", f->problems[i].text);
		fa_json_set_string(o, "repair", f->problems[i].repair);
		fa_json_push(array, o);
	}
	return array;
}

static struct fa_json *env_to_json(const struct fa_facts *f)
{
	struct fa_json *o = fa_json_new_object();

	for (size_t i = 0; i < f->n_env; i++)
		fa_json_set_string(o, f->env[i].name, f->env[i].value);
	return o;
}

static void set_unless_empty(struct fa_json *object, const char *key, struct fa_json *list)
{
	if (fa_json_first(list))
		fa_json_set(object, key, list);
	else
		fa_json_free(list);
}

struct fa_json *fa_facts_to_json(const struct fa_facts *f)
{
	struct fa_json *o = fa_json_new_object(), *origins = fa_json_new_object(), *doubts = fa_json_new_object();

	fa_json_set_string(o, "schema", SCHEMA);
	for (int i = 0; i < FA_FACT_COUNT; i++) {
		enum fa_fact id = (enum fa_fact)i;

		if (id == FA_FACT_DRIVER && f->gpus_known) {
			fa_json_set(o, "gpus", gpus_to_json(f));
			fa_json_set_string(origins, "gpus", f->gpus_origin);
		}
		if (id == FA_FACT_CUDA_HOME && f->toolkits_known) {
			fa_json_set(o, "toolkits", toolkits_to_json(f));
			fa_json_set_string(origins, "toolkits", f->toolkits_origin);
		}
		if (!f->v[i].known)
			continue;
		fa_json_set(o, fa_fact_key(id), value_to_json(f, id));
		fa_json_set_string(origins, fa_fact_key(id), f->v[i].origin);
		fa_json_set_string(doubts, fa_fact_key(id), f->v[i].doubt);
	}
	set_unless_empty(o, "env", env_to_json(f));
	set_unless_empty(o, "problems", problems_to_json(f));
	set_unless_empty(o, "origins", origins);
	set_unless_empty(o, "doubts", doubts);
	return o;
}

/* ---- reading */

struct place { /* for error texts */
	const char *name;
	const char *key;
};

static const char *type_name(enum fa_json_type t)
{
	static const char *const names[] = { "null", "true or false", "a number", "a text", "a list", "an object" };

	return names[t];
}

static int need_type(const struct fa_json *j, enum fa_json_type type, struct place at, struct fa_err *err)
{
	if (fa_json_type(j) == type)
		return 0;
	return fa_err_set(err, FA_USAGE, "%s: \"%s\" needs %s, found %s", at.name, at.key, type_name(type),
	                  type_name(fa_json_type(j)));
}

static int read_number(int64_t *out, const struct fa_json *j, struct place at, struct fa_err *err)
{
	double v = fa_json_number(j);

	if (need_type(j, FA_JSON_NUMBER, at, err) < 0)
		return -1;
	if (!(v >= 0 && v < 9e15) || v != floor(v))
		return fa_err_set(err, FA_USAGE, "%s: \"%s\" needs a whole number from 0, found %g", at.name, at.key, v);
	*out = (int64_t)v;
	return 0;
}

static int read_text(char **out, const struct fa_json *j, struct place at, struct fa_err *err)
{
	if (fa_json_type(j) == FA_JSON_NULL)
		return 0;
	if (need_type(j, FA_JSON_STRING, at, err) < 0)
		return -1;
	fa_gpu_set(out, fa_json_string(j));
	return 0;
}

static int read_list(struct fa_strv *out, const struct fa_json *j, struct place at, struct fa_err *err)
{
	if (need_type(j, FA_JSON_ARRAY, at, err) < 0)
		return -1;
	fa_json_each (e, j) {
		if (need_type(e, FA_JSON_STRING, at, err) < 0)
			return -1;
		fa_strv_push(out, fa_json_string(e));
	}
	return 0;
}

static int read_value(struct fa_facts *f, enum fa_fact id, const struct fa_json *j, const char *name, struct fa_err *err)
{
	struct place at = { name, fa_fact_key(id) };
	struct fa_strv list = FA_STRV_INIT;
	int64_t number = 0;
	int rc = -1;

	if (fa_json_type(j) == FA_JSON_NULL)
		return 0;
	switch (fa_fact_type(id)) {
	case FA_FACT_TEXT:
		rc = need_type(j, FA_JSON_STRING, at, err);
		if (rc == 0)
			fa_facts_set_text(f, id, fa_json_string(j), NULL);
		break;
	case FA_FACT_NUMBER:
		rc = read_number(&number, j, at, err);
		if (rc == 0)
			fa_facts_set_number(f, id, number, NULL);
		break;
	case FA_FACT_BOOL:
		rc = need_type(j, FA_JSON_BOOL, at, err);
		if (rc == 0)
			fa_facts_set_bool(f, id, fa_json_bool(j), NULL);
		break;
	case FA_FACT_LIST:
		rc = read_list(&list, j, at, err);
		if (rc == 0)
			fa_facts_set_list(f, id, &list, NULL);
		break;
	}
	fa_strv_release(&list);
	return rc;
}

static int unknown_key(const char *name, const char *where, const char *key, struct fa_err *err)
{
	return fa_err_set(err, FA_USAGE, "%s: unknown key \"%s%s\"", name, where, key);
}

static int read_gpu_field(struct fa_gpu *g, const struct fa_json *m, const char *name, struct fa_err *err)
{
	const char *key = fa_json_key(m);
	struct place at = { name, key };
	int64_t number = -1;

	if (fa_json_type(m) == FA_JSON_NULL)
		return 0;
	if (!strcmp(key, "vendor"))
		return read_text(&g->vendor, m, at, err);
	if (!strcmp(key, "name"))
		return read_text(&g->name, m, at, err);
	if (!strcmp(key, "arch"))
		return read_text(&g->arch, m, at, err);
	if (!strcmp(key, "pci"))
		return read_text(&g->pci, m, at, err);
	if (!strcmp(key, "memory_mib"))
		return read_number(&g->memory_mib, m, at, err);
	if (strcmp(key, "index") != 0)
		return unknown_key(name, "gpus[].", key, err);
	if (read_number(&number, m, at, err) < 0)
		return -1;
	if (number > 4095)
		return fa_err_set(err, FA_USAGE, "%s: \"index\" of a card is %lld, more than any machine has", name,
		                  (long long)number);
	g->index = (int)number;
	return 0;
}

static int read_gpus(struct fa_facts *f, const struct fa_json *j, const char *name, struct fa_err *err)
{
	struct place at = { name, "gpus" };

	if (need_type(j, FA_JSON_ARRAY, at, err) < 0)
		return -1;
	f->gpus_known = true;
	fa_json_each (e, j) {
		struct fa_gpu *g = fa_facts_add_gpu(f);
		char *plain;

		if (need_type(e, FA_JSON_OBJECT, at, err) < 0)
			return -1;
		fa_json_each (m, e)
			if (read_gpu_field(g, m, name, err) < 0)
				return -1;
		if (!g->arch)
			continue;
		plain = fa_arch_plain(g->arch);
		fa_gpu_set(&g->arch, plain);
		free(plain);
		if (!g->vendor)
			g->vendor = fa_strdup(fa_arch_vendor(g->arch));
	}
	return 0;
}

static int read_toolkits(struct fa_facts *f, const struct fa_json *j, const char *name, struct fa_err *err)
{
	struct place at = { name, "toolkits" };

	if (need_type(j, FA_JSON_ARRAY, at, err) < 0)
		return -1;
	f->toolkits_known = true;
	fa_json_each (e, j) {
		struct fa_toolkit *t;

		if (need_type(e, FA_JSON_OBJECT, at, err) < 0)
			return -1;
		fa_facts_add_toolkit(f, NULL, NULL, NULL);
		t = &f->toolkits[f->n_toolkits - 1];
		fa_json_each (m, e) {
			const char *key = fa_json_key(m);
			char **field = !strcmp(key, "kind")      ? &t->kind
			               : !strcmp(key, "version") ? &t->version
			               : !strcmp(key, "home")    ? &t->home
			                                         : NULL;

			if (!field)
				return unknown_key(name, "toolkits[].", key, err);
			if (read_text(field, m, (struct place){ name, key }, err) < 0)
				return -1;
		}
	}
	return 0;
}

static int read_problems(struct fa_facts *f, const struct fa_json *j, const char *name, struct fa_err *err)
{
	struct place at = { name, "problems" };

	if (need_type(j, FA_JSON_ARRAY, at, err) < 0)
		return -1;
	fa_json_each (e, j) {
		const char *id = fa_json_get_string(e, "id");

		if (need_type(e, FA_JSON_OBJECT, at, err) < 0)
			return -1;
		if (!id)
			return fa_err_set(err, FA_USAGE, "%s: an entry of \"problems\" has no text \"id\"", name);
		fa_facts_add_problem(f, id, fa_json_get_string(e, "tool"), fa_json_get_string(e, "text"),
		                     fa_json_get_string(e, "repair"));
	}
	return 0;
}

static int read_env(struct fa_facts *f, const struct fa_json *j, const char *name, struct fa_err *err)
{
	if (need_type(j, FA_JSON_OBJECT, (struct place){ name, "env" }, err) < 0)
		return -1;
	fa_json_each (m, j) {
		if (need_type(m, FA_JSON_STRING, (struct place){ name, fa_json_key(m) }, err) < 0)
			return -1;
		fa_facts_add_env(f, fa_json_key(m), fa_json_string(m));
	}
	return 0;
}

/* Origins and doubts of facts that are not there are let be: somebody deleted a line by hand. */
static int read_notes(struct fa_facts *f, const struct fa_json *j, const char *key, const char *name, struct fa_err *err)
{
	bool origins = !strcmp(key, "origins");

	if (need_type(j, FA_JSON_OBJECT, (struct place){ name, key }, err) < 0)
		return -1;
	fa_json_each (m, j) {
		enum fa_fact id;
		char **field;

		if (need_type(m, FA_JSON_STRING, (struct place){ name, fa_json_key(m) }, err) < 0)
			return -1;
		if (origins && !strcmp(fa_json_key(m), "gpus"))
			field = &f->gpus_origin;
		else if (origins && !strcmp(fa_json_key(m), "toolkits"))
			field = &f->toolkits_origin;
		else if (fa_fact_find(&id, fa_json_key(m)) < 0)
			return unknown_key(name, origins ? "origins." : "doubts.", fa_json_key(m), err);
		else if (!f->v[id].known)
			continue;
		else
			field = origins ? &f->v[id].origin : &f->v[id].doubt;
		fa_gpu_set(field, fa_json_string(m));
	}
	return 0;
}

static int read_schema(const struct fa_json *j, const char *name, struct fa_err *err)
{
	const char *schema = fa_json_string(j);

	if (schema && !strcmp(schema, SCHEMA))
		return 0;
	return fa_err_set(err, FA_USAGE, "%s: schema \"%s\" is not known here, needed " SCHEMA, name, schema ? schema : "");
}

static int read_member(struct fa_facts *f, const struct fa_json *m, const char *name, struct fa_err *err)
{
	const char *key = fa_json_key(m);
	enum fa_fact id;

	if (fa_fact_find(&id, key) == 0)
		return read_value(f, id, m, name, err);
	if (!strcmp(key, "origins") || !strcmp(key, "doubts"))
		return 0; /* after all values, see below */
	if (!strcmp(key, "schema"))
		return read_schema(m, name, err);
	if (fa_json_type(m) == FA_JSON_NULL)
		return 0;
	if (!strcmp(key, "gpus"))
		return read_gpus(f, m, name, err);
	if (!strcmp(key, "toolkits"))
		return read_toolkits(f, m, name, err);
	if (!strcmp(key, "problems"))
		return read_problems(f, m, name, err);
	if (!strcmp(key, "env"))
		return read_env(f, m, name, err);
	return unknown_key(name, "", key, err);
}

int fa_facts_from_json(struct fa_facts *out, const struct fa_json *j, const char *name, struct fa_err *err)
{
	static const char *const notes[] = { "origins", "doubts" };

	*out = (struct fa_facts)FA_FACTS_INIT;
	if (fa_json_type(j) != FA_JSON_OBJECT) {
		fa_err_set(err, FA_USAGE, "%s: facts are an object, found %s", name, type_name(fa_json_type(j)));
		goto fail;
	}
	fa_json_each (m, j)
		if (read_member(out, m, name, err) < 0)
			goto fail;
	for (size_t i = 0; i < 2; i++) {
		const struct fa_json *n = fa_json_get(j, notes[i]);

		if (n && read_notes(out, n, notes[i], name, err) < 0)
			goto fail;
	}
	return 0;
fail:
	fa_facts_release(out);
	return -1;
}
