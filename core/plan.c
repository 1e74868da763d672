#include "plan.h"

#include "buf.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

static const char *const step_words[] = {
#define STEP(id, word) word,
#include "step.def"
#undef STEP
};

const char *fa_step_word(enum fa_step_kind k)
{
	return step_words[k];
}

int fa_step_find(enum fa_step_kind *out, const char *word)
{
	for (int i = 0; i < FA_STEP_COUNT; i++)
		if (!strcmp(step_words[i], word)) {
			*out = (enum fa_step_kind)i;
			return 0;
		}
	return -1;
}

const char *fa_plan_status_name(enum fa_plan_status s)
{
	static const char *const names[] = { "ready", "action", "impossible" };

	return names[s];
}

enum fa_status fa_plan_exit(const struct fa_plan *p)
{
	return p->status == FA_PLAN_READY ? FA_OK : p->status == FA_PLAN_ACTION ? FA_MACHINE : FA_IMPOSSIBLE;
}

/* ---- adding */

/* Room for one more of `size` bytes, zeroed; grows by doubling at powers of two, so no capacity needs to be kept. */
static void *grow(void **items, size_t *n, size_t size)
{
	if ((*n & (*n - 1)) == 0)
		*items = fa_realloc(*items, *n ? 2 * *n : 1, size);
	memset((char *)*items + *n * size, 0, size);
	return (char *)*items + (*n)++ * size;
}

#define GROW(items, n) grow((void **)&(items), &(n), sizeof(*(items)))

struct fa_node *fa_plan_add_node(struct fa_plan *p, const char *question, const char *taken, const char *because)
{
	struct fa_node *n = GROW(p->tree, p->n_tree);

	n->question = fa_strdup(question);
	n->taken = fa_strdup(taken);
	n->because = fa_strdup(because);
	return n;
}

void fa_node_add_other(struct fa_node *n, const char *value, const char *rule, const char *needed, const char *found)
{
	struct fa_other *o = GROW(n->others, n->n_others);

	o->value = fa_strdup(value);
	o->rule = fa_strdup(rule);
	o->needed = fa_strdup(needed);
	o->found = fa_strdup(found);
}

void fa_plan_reject(struct fa_plan *p, const char *candidate, const char *rule, const char *needed, const char *found)
{
	struct fa_refusal *r = GROW(p->rejected, p->n_rejected);

	r->candidate = fa_strdup(candidate);
	r->rule = fa_strdup(rule);
	r->needed = fa_strdup(needed);
	r->found = fa_strdup(found);
}

void fa_plan_act(struct fa_plan *p, const char *id, const char *text, const char *command)
{
	struct fa_action *a = GROW(p->actions, p->n_actions);

	a->id = fa_strdup(id);
	a->text = fa_strdup(text);
	a->command = fa_strdup(command);
}

void fa_plan_warn(struct fa_plan *p, const char *id, const char *text, const char *source)
{
	struct fa_warning *w = GROW(p->warnings, p->n_warnings);

	w->id = fa_strdup(id);
	w->text = fa_strdup(text);
	w->source = fa_strdup(source);
}

void fa_plan_serve(struct fa_plan *p, int index, const char *arch, const char *served_by, const char *because)
{
	struct fa_served *s = GROW(p->per_gpu, p->n_per_gpu);

	s->index = index;
	s->arch = fa_strdup(arch);
	s->served_by = fa_strdup(served_by);
	s->because = fa_strdup(because);
}

struct fa_nearest *fa_plan_add_nearest(struct fa_plan *p)
{
	return GROW(p->nearest, p->n_nearest);
}

struct fa_step *fa_plan_add_step(struct fa_plan *p, enum fa_step_kind kind, const char *title, struct fa_json *args)
{
	struct fa_step *s = GROW(p->steps, p->n_steps);

	s->kind = kind;
	s->title = fa_strdup(title);
	s->args = args;
	s->bytes = -1;
	s->estimate_s = -1;
	return s;
}

/* ---- copying and releasing */

static void copy_build(struct fa_plan_build *out, const struct fa_plan_build *b)
{
	*out = *b;
	out->archs = out->env = out->dtypes = out->head_dims = out->features = (struct fa_strv)FA_STRV_INIT;
	fa_strv_append(&out->archs, &b->archs);
	fa_strv_append(&out->env, &b->env);
	fa_strv_append(&out->dtypes, &b->dtypes);
	fa_strv_append(&out->head_dims, &b->head_dims);
	fa_strv_append(&out->features, &b->features);
	out->profile = fa_strdup(b->profile);
	out->toolkit = fa_strdup(b->toolkit);
	out->toolkit_home = fa_strdup(b->toolkit_home);
	out->offers = fa_calloc(b->n_offers + 1, sizeof(*out->offers));
	for (size_t i = 0; i < b->n_offers; i++) {
		out->offers[i] = b->offers[i];
		out->offers[i].profile = fa_strdup(b->offers[i].profile);
	}
}

void fa_choice_copy(struct fa_choice *out, const struct fa_choice *c)
{
	*out = (struct fa_choice){
		.route = fa_strdup(c->route),
		.line = fa_strdup(c->line),
		.package = fa_strdup(c->package),
		.flash_attn = fa_strdup(c->flash_attn),
		.torch = fa_strdup(c->torch),
		.torch_build = fa_strdup(c->torch_build),
		.cuda = fa_strdup(c->cuda),
		.python = fa_strdup(c->python),
		.wheel = { .name = fa_strdup(c->wheel.name),
		           .url = fa_strdup(c->wheel.url),
		           .mirror = fa_strdup(c->wheel.mirror),
		           .source = fa_strdup(c->wheel.source),
		           .sha256 = fa_strdup(c->wheel.sha256) },
	};
	fa_strv_append(&out->archs, &c->archs);
	copy_build(&out->build, &c->build);
}

static void release_build(struct fa_plan_build *b)
{
	fa_strv_release(&b->archs);
	fa_strv_release(&b->env);
	fa_strv_release(&b->dtypes);
	fa_strv_release(&b->head_dims);
	fa_strv_release(&b->features);
	free(b->profile);
	free(b->toolkit);
	free(b->toolkit_home);
	for (size_t i = 0; i < b->n_offers; i++)
		free(b->offers[i].profile);
	free(b->offers);
}

void fa_choice_release(struct fa_choice *c)
{
	free(c->route);
	free(c->line);
	free(c->package);
	free(c->flash_attn);
	free(c->torch);
	free(c->torch_build);
	free(c->cuda);
	free(c->python);
	free(c->wheel.name);
	free(c->wheel.url);
	free(c->wheel.mirror);
	free(c->wheel.source);
	free(c->wheel.sha256);
	fa_strv_release(&c->archs);
	release_build(&c->build);
	*c = (struct fa_choice){ 0 };
}

static void release_node(struct fa_node *n)
{
	for (size_t i = 0; i < n->n_others; i++) {
		free(n->others[i].value);
		free(n->others[i].rule);
		free(n->others[i].needed);
		free(n->others[i].found);
	}
	free(n->others);
	free(n->question);
	free(n->taken);
	free(n->because);
	free(n->wish);
}

static void release_findings(struct fa_plan *p)
{
	for (size_t i = 0; i < p->n_rejected; i++) {
		free(p->rejected[i].candidate);
		free(p->rejected[i].rule);
		free(p->rejected[i].needed);
		free(p->rejected[i].found);
	}
	for (size_t i = 0; i < p->n_actions; i++) {
		free(p->actions[i].id);
		free(p->actions[i].text);
		free(p->actions[i].command);
	}
	for (size_t i = 0; i < p->n_warnings; i++) {
		free(p->warnings[i].id);
		free(p->warnings[i].text);
		free(p->warnings[i].source);
	}
	for (size_t i = 0; i < p->n_per_gpu; i++) {
		free(p->per_gpu[i].arch);
		free(p->per_gpu[i].served_by);
		free(p->per_gpu[i].because);
	}
	free(p->rejected);
	free(p->actions);
	free(p->warnings);
	free(p->per_gpu);
}

void fa_plan_release(struct fa_plan *p)
{
	fa_wish_release(&p->wish);
	fa_choice_release(&p->choice);
	for (size_t i = 0; i < p->n_tree; i++)
		release_node(&p->tree[i]);
	free(p->tree);
	release_findings(p);
	for (size_t i = 0; i < p->n_nearest; i++) {
		fa_strv_release(&p->nearest[i].wish);
		fa_choice_release(&p->nearest[i].choice);
	}
	free(p->nearest);
	for (size_t i = 0; i < p->n_steps; i++) {
		free(p->steps[i].title);
		fa_json_free(p->steps[i].args);
	}
	free(p->steps);
	fa_strv_release(&p->fallbacks);
	fa_strv_release(&p->checks);
	*p = (struct fa_plan)FA_PLAN_INIT;
}
