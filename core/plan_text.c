/* The plan as calm plain text. */
#include "plan_text.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

enum { REFUSED_SHOWN = 12 };

static bool says(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static const char *or_none(const char *text)
{
	return text && *text ? text : "-";
}

static void headline(struct fa_buf *out, const struct fa_plan *p)
{
	const struct fa_choice *c = &p->choice;

	if (p->status == FA_PLAN_IMPOSSIBLE) {
		fa_buf_adds(out, "No combination fits this machine and this wish.\n");
		return;
	}
	if (p->status == FA_PLAN_ACTION)
		fa_buf_adds(out, "Something on the machine must change first; then: ");
	if (says(c->line, "none"))
		fa_buf_addf(out, "torch %s (%s) with its own attention; no Flash-Attention line serves this machine.\n",
		            or_none(c->torch), or_none(c->torch_build));
	else if (says(c->route, "keep"))
		fa_buf_addf(out, "Flash-Attention %s stays as it is beside torch %s (%s).\n", c->flash_attn, or_none(c->torch),
		            or_none(c->torch_build));
	else
		fa_buf_addf(out, "Flash-Attention %s (%s) by %s, torch %s (%s), Python %s.\n", c->flash_attn, c->line, c->route,
		            or_none(c->torch), or_none(c->torch_build), or_none(c->python));
}

static void line(struct fa_buf *out, const char *label, const char *value)
{
	if (value && *value)
		fa_buf_addf(out, "  %-13s %s\n", label, value);
}

/* What each profile takes on this machine. */
static void add_offers(struct fa_buf *out, const struct fa_plan_build *b)
{
	for (size_t i = 0; i < b->n_offers; i++) {
		const struct fa_plan_offer *o = &b->offers[i];
		char *text = fa_strf("%-9s %3d units, about %d min, %.0f GiB of memory, wheel of %d MB", o->profile, o->units,
		                     (o->estimate_s + 59) / 60, (double)o->peak_mib / 1024, o->wheel_mb);

		line(out, i ? "" : "profiles", text);
		free(text);
	}
}

static void choice(struct fa_buf *out, const struct fa_choice *c)
{
	char *cards = fa_strv_join(&c->archs, ", "), *archs = fa_strv_join(&c->build.archs, ", ");

	line(out, "cards", cards);
	line(out, "wheel", c->wheel.name);
	line(out, "from", c->wheel.url);
	line(out, "mirror", c->wheel.mirror);
	line(out, "sha256",
	     c->wheel.name ? c->wheel.sha256 ? c->wheel.sha256 : "not published; kept in the lock when first seen" : NULL);
	if (c->build.wanted) {
		char *units = c->build.units ? fa_strf("%d units, ", c->build.units) : fa_strdup("");
		char *build = fa_strf("for %s, %s%d jobs, profile %s", archs, units, c->build.jobs, c->build.profile);

		line(out, "build", build);
		add_offers(out, &c->build);
		free(build);
		free(units);
		for (size_t i = 0; i < c->build.env.n; i++)
			line(out, i ? "" : "settings", c->build.env.v[i]);
	}
	free(cards);
	free(archs);
}

static void other(struct fa_buf *out, const struct fa_other *o)
{
	fa_buf_addf(out, "      not %s: %s", o->value, or_none(o->rule));
	if (o->needed && *o->needed)
		fa_buf_addf(out, ", needed %s", o->needed);
	if (o->found && *o->found)
		fa_buf_addf(out, ", found %s", o->found);
	fa_buf_addc(out, '\n');
}

static void tree(struct fa_buf *out, const struct fa_plan *p)
{
	if (p->n_tree)
		fa_buf_adds(out, "\nWhy\n");
	for (size_t i = 0; i < p->n_tree; i++) {
		const struct fa_node *n = &p->tree[i];

		fa_buf_addf(out, "  %-13s %s", n->question, or_none(n->taken));
		if (n->because && *n->because)
			fa_buf_addf(out, " (%s)", n->because);
		fa_buf_addc(out, '\n');
		for (size_t k = 0; k < n->n_others; k++)
			other(out, &n->others[k]);
	}
}

static void refused(struct fa_buf *out, const struct fa_plan *p)
{
	if (p->n_rejected)
		fa_buf_adds(out, "\nRefused\n");
	for (size_t i = 0; i < p->n_rejected && i < REFUSED_SHOWN; i++) {
		const struct fa_refusal *r = &p->rejected[i];

		fa_buf_addf(out, "  %s: %s, needed %s, found %s\n", r->candidate, r->rule, or_none(r->needed),
		            or_none(r->found));
	}
	if (p->n_rejected > REFUSED_SHOWN)
		fa_buf_addf(out, "  and %zu more (all of them with --json)\n", p->n_rejected - REFUSED_SHOWN);
}

static void actions(struct fa_buf *out, const struct fa_plan *p)
{
	if (p->n_actions)
		fa_buf_adds(out, "\nTo do first\n");
	for (size_t i = 0; i < p->n_actions; i++) {
		fa_buf_addf(out, "  %zu. %s (%s)\n", i + 1, p->actions[i].text, p->actions[i].id);
		if (p->actions[i].command)
			fa_buf_addf(out, "       %s\n", p->actions[i].command);
	}
}

static void warnings(struct fa_buf *out, const struct fa_plan *p)
{
	if (p->n_warnings)
		fa_buf_adds(out, "\nTo know\n");
	for (size_t i = 0; i < p->n_warnings; i++)
		fa_buf_addf(out, "  - %s (%s)\n", p->warnings[i].text, p->warnings[i].id);
}

static void cards(struct fa_buf *out, const struct fa_plan *p)
{
	if (p->n_per_gpu)
		fa_buf_adds(out, "\nCards\n");
	for (size_t i = 0; i < p->n_per_gpu; i++)
		fa_buf_addf(out, "  %d: %s, %s\n", p->per_gpu[i].index, or_none(p->per_gpu[i].served_by),
		            or_none(p->per_gpu[i].because));
}

static void nearest(struct fa_buf *out, const struct fa_plan *p)
{
	if (p->n_nearest)
		fa_buf_adds(out, "\nWhat works here\n");
	for (size_t i = 0; i < p->n_nearest; i++) {
		char *wish = fa_strv_join(&p->nearest[i].wish, " ");
		const struct fa_choice *c = &p->nearest[i].choice;

		fa_buf_addf(out, "  fainstall install %s\n      %s %s by %s, torch %s (%s)\n", wish, c->line,
		            or_none(c->flash_attn), c->route, or_none(c->torch), or_none(c->torch_build));
		free(wish);
	}
}

static void steps(struct fa_buf *out, const struct fa_plan *p)
{
	if (p->n_steps)
		fa_buf_adds(out, "\nSteps\n");
	for (size_t i = 0; i < p->n_steps; i++) {
		fa_buf_addf(out, "  %zu. %s", i + 1, p->steps[i].title);
		if (p->steps[i].bytes > 0)
			fa_buf_addf(out, ", %.1f MB", (double)p->steps[i].bytes / 1e6);
		if (p->steps[i].estimate_s >= 60)
			fa_buf_addf(out, ", about %d min", (p->steps[i].estimate_s + 59) / 60);
		else if (p->steps[i].estimate_s > 0)
			fa_buf_addf(out, ", about %d s", p->steps[i].estimate_s);
		fa_buf_addc(out, '\n');
	}
}

void fa_plan_print(struct fa_buf *out, const struct fa_plan *p)
{
	headline(out, p);
	if (p->status != FA_PLAN_IMPOSSIBLE)
		choice(out, &p->choice);
	actions(out, p);
	nearest(out, p);
	warnings(out, p);
	cards(out, p);
	tree(out, p);
	refused(out, p);
	steps(out, p);
}
