/* `matrix show families|compat|lines`: which line serves which card, and which torch gets what, by the rules themselves. */
#include "matrix_serves.h"
#include "grid.h"
#include "kb.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

/* ---- which line serves what: the rules asked for each architecture */

struct one_card {
	const char *values[FA_NAME_COUNT];
};

static bool line_serves(const struct fa_kb *kb, const char **values, const char *line, bool training)
{
	values[FA_NAME_LINE] = line;
	values[FA_NAME_VERSION] = "9999";
	values[FA_NAME_WANT_BACKWARD] = training ? "yes" : "no";
	for (size_t i = 0; i < kb->n_rules[FA_ON_RELEASE_CARD]; i++) {
		const struct fa_kb_rule *r = &kb->rules[FA_ON_RELEASE_CARD][i];

		if (fa_rule_test(&r->when, values, NULL) == FA_TRUE && fa_rule_test(&r->need, values, NULL) == FA_FALSE)
			return false;
	}
	return true;
}

/* Is there a file with code for the card, or does a build compile it? A line that would accept the card serves it only then. */
static bool has_code(const struct fa_kb *kb, const struct fa_kb_arch *a, const char *line)
{
	if (!strcmp(line, "fa2") && a->compile)
		return true;
	for (size_t i = 0; i < kb->n_files; i++)
		if (!strcmp(kb->files[i].line, line) && kb->files[i].codes && fa_words_meet(a->codes, kb->files[i].codes))
			return true;
	return false;
}

static char *lines_for(const struct fa_kb *kb, const struct fa_kb_arch *a, bool training)
{
	struct one_card c = { { NULL } };
	struct fa_buf b = FA_BUF_INIT;

	c.values[FA_NAME_ARCH] = a->arch;
	c.values[FA_NAME_VENDOR] = a->vendor;
	c.values[FA_NAME_CARD_CODES] = a->codes;
	if (!strcmp(a->vendor, "amd")) {
		bool ck = kb->n_releases && kb->releases[0].ck && fa_words_has(kb->releases[0].ck, a->arch);

		fa_buf_addf(&b, "%s%s%s", ck ? "fa2 (CK)" : "", ck && a->triton ? ", " : "", a->triton ? "fa2 (Triton)" : "");
	} else {
		for (size_t i = 0; i < kb->n_lines; i++)
			if (line_serves(kb, c.values, kb->lines[i].line, training) && has_code(kb, a, kb->lines[i].line))
				fa_buf_addf(&b, "%s%s", b.len ? ", " : "", kb->lines[i].line);
	}
	fa_buf_adds(&b, b.len ? "" : "sdpa only");
	return fa_buf_detach(&b);
}

/* The same by family: what neighbours have in common stands in one row. */
int fa_show_families(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "cards", "architectures", "training", "inference" }, 4, FA_STRV_INIT };
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; i < kb->n_archs; i++) {
		const struct fa_kb_arch *a = &kb->archs[i];
		char *training = lines_for(kb, a, true), *inference = lines_for(kb, a, false), **last;
		bool same = g.cells.n >= 4 && !strcmp(g.cells.v[g.cells.n - 4], a->family ? a->family : "-") &&
		            !strcmp(g.cells.v[g.cells.n - 2], training) && !strcmp(g.cells.v[g.cells.n - 1], inference);

		if (same) {
			last = &g.cells.v[g.cells.n - 3];
			free(training);
			free(inference);
			training = fa_strf("%s %s", *last, a->arch);
			free(*last);
			*last = training;
			continue;
		}
		fa_grid_cell(&g, a->family);
		fa_grid_cell(&g, a->arch);
		fa_grid_cell(&g, training);
		fa_grid_cell(&g, inference);
		free(training);
		free(inference);
	}
	fa_grid_print(out, &g, form);
	return 0;
}

/* ---- which torch gets what */

/* The newest release of a source with a file for that torch; its CUDA majors. The caller's; NULL: none. */
static char *newest_file(const struct fa_kb *kb, const char *source, const char *minor)
{
	const char *version = NULL;
	struct fa_strv majors = FA_STRV_INIT;
	char *text, *joined;

	for (size_t i = 0; i < kb->n_files; i++) {
		const struct fa_kb_file *f = &kb->files[i];

		if (strcmp(f->source->name, source) != 0 || strcmp(f->line, "fa2") != 0 || !f->torch ||
		    strcmp(f->torch, minor) != 0 || f->nightly || (version && fa_version_compare(f->version, version) < 0))
			continue;
		if (!version || fa_version_compare(f->version, version) > 0)
			fa_strv_release(&majors);
		version = f->version;
		if (f->major && !fa_strv_has(&majors, f->major))
			fa_strv_push(&majors, f->major);
	}
	fa_strv_sort(&majors);
	joined = fa_strv_join(&majors, ", ");
	text = version ? fa_strf("%s (CUDA %s)", version, joined) : NULL;
	free(joined);
	fa_strv_release(&majors);
	return text;
}

static bool rules_hold(const struct fa_kb *kb, enum fa_rule_on on, const char *const *values)
{
	for (size_t i = 0; i < kb->n_rules[on]; i++) {
		const struct fa_kb_rule *r = &kb->rules[on][i];

		if (r->when.n && fa_rule_test(&r->when, values, NULL) != FA_TRUE)
			continue;
		if (fa_rule_test(&r->need, values, NULL) == FA_FALSE)
			return false;
	}
	return true;
}

/* The newest release that compiles with that torch, by the rules. Borrowed; NULL: none. */
static const char *newest_build(const struct fa_kb *kb, const struct fa_kb_torch *t)
{
	struct one_card c = { { NULL } };

	c.values[FA_NAME_LINE] = "fa2";
	c.values[FA_NAME_ROUTE] = "source";
	c.values[FA_NAME_FACT_OS] = "linux";
	c.values[FA_NAME_TORCH_VERSION] = t->version;
	c.values[FA_NAME_TORCH_CXX] = t->cxx;
	for (size_t i = 0; i < kb->n_releases; i++) {
		const struct fa_kb_release *r = &kb->releases[i];

		if (strcmp(r->line, "fa2") != 0 || !r->published)
			continue;
		c.values[FA_NAME_VERSION] = r->version;
		c.values[FA_NAME_RELEASE_TORCH] = r->torch;
		if (rules_hold(kb, FA_ON_RELEASE, c.values) && rules_hold(kb, FA_ON_SOURCE, c.values))
			return r->version;
	}
	return NULL;
}

/* "39 310 311 313t" -> "3.9 to 3.13" */
static char *python_span(const char *tags)
{
	struct fa_strv all = FA_STRV_INIT;
	const char *first = NULL, *last = NULL;
	char *text;

	fa_strv_split(&all, tags ? tags : "", " ");
	for (size_t i = 0; i < all.n; i++)
		if (!strchr(all.v[i], 't')) {
			first = first ? first : all.v[i];
			last = all.v[i];
		}
	text = first ? fa_strf("%c.%s to %c.%s", first[0], first + 1, last[0], last + 1) : NULL;
	fa_strv_release(&all);
	return text;
}

static char *cudas_of(const struct fa_kb_torch *t)
{
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < t->n_builds; i++)
		if (t->builds[i].cuda)
			fa_buf_addf(&b, "%s%s", b.len ? ", " : "", t->builds[i].cuda);
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

int fa_show_compat(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "torch", "CUDA", "Python", "upstream's file", "third party's file", "from source" },
		             6,
		             FA_STRV_INIT };
	const char *seen = "";
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; i < kb->n_torch; i++) {
		const struct fa_kb_torch *t = &kb->torch[i];
		char *cudas, *pythons, *official, *community;

		if (!strcmp(t->minor, seen))
			continue;
		seen = t->minor;
		cudas = cudas_of(t);
		pythons = python_span(t->pythons);
		official = newest_file(kb, "official", t->minor);
		community = newest_file(kb, "community", t->minor);
		fa_grid_cell(&g, t->minor);
		fa_grid_cell(&g, cudas);
		fa_grid_cell(&g, pythons);
		fa_grid_cell(&g, official);
		fa_grid_cell(&g, community);
		fa_grid_cell(&g, newest_build(kb, t));
		free(cudas);
		free(pythons);
		free(official);
		free(community);
	}
	fa_grid_print(out, &g, form);
	return 0;
}

int fa_show_lines(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "architecture", "family", "served by (training)", "compiled as" }, 4, FA_STRV_INIT };
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; i < kb->n_archs; i++) {
		char *lines = lines_for(kb, &kb->archs[i], true);

		fa_grid_cell(&g, kb->archs[i].arch);
		fa_grid_cell(&g, kb->archs[i].family);
		fa_grid_cell(&g, lines);
		fa_grid_cell(&g, kb->archs[i].compile);
		free(lines);
	}
	fa_grid_print(out, &g, form);
	return 0;
}
