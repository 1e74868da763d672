/* `matrix show`: the knowledge as tables, plain or Markdown. */
#include "buf.h"
#include "grid.h"
#include "json.h"
#include "kb.h"
#include "matrix.h"
#include "matrix_data.h"
#include "matrix_serves.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

/* ---- what there is to show */

typedef int show_fn(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err);

static int show_ids(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *rules = fa_matrix_table(m, "rules", err), *ids = fa_matrix_table(m, "ids", err);
	struct fa_grid g = { { "id", "kind", "meaning", "source" }, 4, FA_STRV_INIT };
	struct fa_strv seen = FA_STRV_INIT;

	if (!rules || !ids)
		return -1;
	fa_json_each (row, fa_json_get(rules, "rows")) {
		const char *id = fa_json_get_string(row, "id");

		if (!id || fa_strv_has(&seen, id))
			continue;
		fa_strv_push(&seen, id);
		fa_grid_cell(&g, id);
		fa_grid_cell(&g, "rule");
		fa_grid_cell(&g, fa_json_get_string(row, "text"));
		fa_grid_cell(&g, fa_json_get_string(row, "source"));
	}
	fa_json_each (row, fa_json_get(ids, "rows")) {
		fa_grid_cell(&g, fa_json_get_string(row, "id"));
		fa_grid_cell(&g, fa_json_get_string(row, "kind"));
		fa_grid_cell(&g, fa_json_get_string(row, "meaning"));
		fa_grid_cell(&g, fa_json_get_string(row, "source"));
	}
	fa_strv_release(&seen);
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_causes(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *causes = fa_matrix_table(m, "causes", err);
	struct fa_grid g = { { "id", "cause", "why", "source" }, 4, FA_STRV_INIT };

	if (!causes)
		return -1;
	fa_json_each (row, fa_json_get(causes, "causes")) {
		fa_grid_cell(&g, fa_json_get_string(row, "id"));
		fa_grid_cell(&g, fa_json_get_string(row, "title"));
		fa_grid_cell(&g, fa_json_get_string(row, "because"));
		fa_grid_cell(&g, fa_json_get_string(row, "source"));
	}
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_names(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "name", "meaning" }, 2, FA_STRV_INIT };

	(void)m;
	(void)err;
	for (int i = 0; i < FA_NAME_COUNT; i++) {
		fa_grid_cell(&g, fa_name_word(i));
		fa_grid_cell(&g, fa_name_meaning(i));
	}
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_rules(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *rules = fa_matrix_table(m, "rules", err);
	struct fa_grid g = { { "on", "id", "when", "need", "action", "text" }, 6, FA_STRV_INIT };

	if (!rules)
		return -1;
	fa_json_each (row, fa_json_get(rules, "rows"))
		for (size_t i = 0; i < g.columns; i++)
			fa_grid_cell(&g, fa_json_get_string(row, g.heads[i]));
	fa_grid_print(out, &g, form);
	return 0;
}

static char *builds_of(const struct fa_kb_torch *t)
{
	struct fa_buf b = FA_BUF_INIT;

	for (size_t i = 0; i < t->n_builds; i++)
		if (strcmp(t->builds[i].vendor, "none") != 0)
			fa_buf_addf(&b, "%s%s%s", b.len ? " " : "", t->builds[i].build, t->builds[i].pypi ? "*" : "");
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

static int show_torch(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "torch", "builds (* package index)", "pythons", "C++", "triton", "torchvision", "torchaudio" },
		             7,
		             FA_STRV_INIT };
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; i < kb->n_torch; i++) {
		const struct fa_kb_torch *t = &kb->torch[i];
		char *builds = builds_of(t);

		fa_grid_cell(&g, t->version);
		fa_grid_cell(&g, builds);
		fa_grid_cell(&g, t->pythons);
		fa_grid_cell(&g, t->cxx);
		fa_grid_cell(&g, t->triton);
		fa_grid_cell(&g, t->torchvision);
		fa_grid_cell(&g, t->torchaudio);
		free(builds);
	}
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_cuda(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "CUDA", "driver", "driver (Windows)", "gcc", "clang", "nvcc from wheels", "architectures" },
		             7,
		             FA_STRV_INIT };
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; i < kb->n_cuda; i++) {
		const struct fa_kb_cuda *c = &kb->cuda[i];
		char *gcc = fa_strf("%s-%s", c->gcc_min, c->gcc_max), *clang = fa_strf("%s-%s", c->clang_min, c->clang_max);

		fa_grid_cell(&g, c->cuda);
		fa_grid_cell(&g, c->driver);
		fa_grid_cell(&g, c->driver_windows);
		fa_grid_cell(&g, gcc);
		fa_grid_cell(&g, clang);
		fa_grid_cell(&g, c->pip ? "yes" : "no");
		fa_grid_cell(&g, c->codes);
		free(gcc);
		free(clang);
	}
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_gpus(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *gpus = fa_matrix_table(m, "gpus", err);
	struct fa_grid g = { { "card", "vendor", "architecture", "family" }, 4, FA_STRV_INIT };
	struct fa_kb *kb;

	if (!gpus || fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	fa_json_each (row, fa_json_get(gpus, "rows")) {
		const struct fa_kb_arch *a = fa_kb_arch(kb, fa_json_get_string(row, "arch"));

		fa_grid_cell(&g, fa_json_get_string(row, "name"));
		fa_grid_cell(&g, fa_json_get_string(row, "vendor"));
		fa_grid_cell(&g, fa_json_get_string(row, "arch"));
		fa_grid_cell(&g, a ? a->family : NULL);
	}
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_releases(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "line", "version", "Python", "torch", "nvcc", "on the index", "AMD (CK)", "never without" },
		             8,
		             FA_STRV_INIT };
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; i < kb->n_releases; i++) {
		const struct fa_kb_release *r = &kb->releases[i];

		fa_grid_cell(&g, r->line);
		fa_grid_cell(&g, r->version);
		fa_grid_cell(&g, r->python);
		fa_grid_cell(&g, r->torch);
		fa_grid_cell(&g, r->nvcc);
		fa_grid_cell(&g, r->published ? "yes" : "no");
		fa_grid_cell(&g, r->ck);
		fa_grid_cell(&g, r->stays);
	}
	fa_grid_print(out, &g, form);
	return 0;
}

static const struct {
	const char *question, *decides;
	enum fa_rule_on on[3];
	size_t n;
} QUESTIONS[] = {
	{ "torch: kept, or which version and build", "a torch fits when", { FA_ON_TORCH, FA_ON_TORCH_CARD }, 2 },
	{ "line and version", "a release fits when", { FA_ON_RELEASE, FA_ON_RELEASE_CARD }, 2 },
	{ "route: a ready file", "a file fits when", { FA_ON_FILE, FA_ON_FILE_CARD }, 2 },
	{ "route: from source", "it can be built when", { FA_ON_SOURCE, FA_ON_TOOLKIT, FA_ON_TOOLKIT_CARD }, 3 },
	{ "route: AMD, CK", "it can be built when", { FA_ON_AMD, FA_ON_CK, FA_ON_CK_CARD }, 3 },
	{ "route: AMD, Triton", "it fits when", { FA_ON_AMD, FA_ON_TRITON, FA_ON_TRITON_CARD }, 3 },
	{ "route: torch's own attention", "it fits when", { FA_ON_SDPA }, 1 },
};

static void show_question(const struct fa_kb *kb, size_t q, bool markdown, struct fa_buf *out)
{
	fa_buf_addf(out, "%s%zu. %s; %s\n", markdown ? "### " : "", q + 1, QUESTIONS[q].question, QUESTIONS[q].decides);
	if (markdown)
		fa_buf_addc(out, '\n');
	for (size_t i = 0; i < QUESTIONS[q].n; i++)
		for (size_t k = 0; k < kb->n_rules[QUESTIONS[q].on[i]]; k++) {
			const struct fa_kb_rule *r = &kb->rules[QUESTIONS[q].on[i]][k];

			fa_buf_addf(out, "%s%s (%s)%s%s\n", markdown ? "- " : "   ", r->text, r->id,
			            r->action ? "; else change first: " : "", r->action ? r->action : "");
		}
	if (markdown)
		fa_buf_addc(out, '\n');
}

static void show_tree_rows(const struct fa_kb *kb, struct fa_buf *out)
{
	struct fa_grid g = { { "question", "id", "rule", "action" }, 4, FA_STRV_INIT };

	for (size_t q = 0; q < sizeof(QUESTIONS) / sizeof(QUESTIONS[0]); q++)
		for (size_t i = 0; i < QUESTIONS[q].n; i++)
			for (size_t k = 0; k < kb->n_rules[QUESTIONS[q].on[i]]; k++) {
				const struct fa_kb_rule *r = &kb->rules[QUESTIONS[q].on[i]][k];

				fa_grid_cell(&g, QUESTIONS[q].question);
				fa_grid_cell(&g, r->id);
				fa_grid_cell(&g, r->text);
				fa_grid_cell(&g, r->action);
			}
	fa_grid_print(out, &g, FA_SHOW_JSON);
}

static int show_tree(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	if (form == FA_SHOW_JSON)
		show_tree_rows(kb, out);
	else
		for (size_t q = 0; q < sizeof(QUESTIONS) / sizeof(QUESTIONS[0]); q++)
			show_question(kb, q, form == FA_SHOW_MARKDOWN, out);
	return 0;
}

/* ---- which knowledge this is, and how much of it there is */

/* Files by name: a row stands for one of each interpreter. */
static size_t files_of(const struct fa_kb *kb, const char *source)
{
	size_t n = 0;

	for (size_t i = 0; i < kb->n_files; i++) {
		struct fa_strv pythons = FA_STRV_INIT;

		if (kb->files[i].source && !strcmp(kb->files[i].source->name, source)) {
			fa_strv_split(&pythons, kb->files[i].pythons ? kb->files[i].pythons : "", " ");
			n += pythons.n ? pythons.n : 1;
		}
		fa_strv_release(&pythons);
	}
	return n;
}

static size_t rows_of(struct fa_matrix *m, int table)
{
	const struct fa_json *t = fa_matrix_table(m, fa_matrix_table_name(table), NULL), *rows = fa_json_get(t, "rows");

	return fa_json_len(rows ? rows : fa_json_get(t, "causes"));
}

static void show_data_json(struct fa_matrix *m, const struct fa_kb *kb, struct fa_buf *out)
{
	const struct fa_matrix_data *data = fa_matrix_data(m);
	struct fa_json *j = fa_json_new_object(), *rows = fa_json_new_object(), *files = fa_json_new_object();
	char *text;

	fa_json_set_string(j, "schema", "fainstall.knowledge/1");
	fa_json_set_string(j, "date", data->date);
	fa_json_set_string(j, "in_use", data->from ? "update" : "shipped");
	fa_json_set_string(j, "from", data->from);
	fa_json_set_string(j, "proof", data->proof);
	fa_json_set_string(j, "folder", data->dir);
	fa_json_set_string(j, "notice", data->notice);
	for (int i = 0; fa_matrix_table_name(i); i++)
		if (rows_of(m, i))
			fa_json_set_number(rows, fa_matrix_table_name(i), (double)rows_of(m, i));
	for (size_t i = 0; i < kb->n_sources; i++)
		fa_json_set_number(files, kb->sources[i].name, (double)files_of(kb, kb->sources[i].name));
	fa_json_set(j, "rows", rows);
	fa_json_set(j, "files", files);
	fa_json_set(j, "replaced", fa_json_new_strv(fa_matrix_replaced(m)));
	text = fa_json_print(j, true);
	fa_buf_adds(out, text);
	free(text);
	fa_json_free(j);
}

static void count(struct fa_grid *g, const char *name, size_t n, const char *what)
{
	char *text = fa_strf("%zu", n);

	fa_grid_cell(g, name);
	fa_grid_cell(g, text);
	fa_grid_cell(g, what);
	free(text);
}

static void show_counts(struct fa_matrix *m, const struct fa_kb *kb, enum fa_show_form form, struct fa_buf *out)
{
	struct fa_grid g = { { "table", "rows", "of" }, 3, FA_STRV_INIT };

	for (int i = 0; fa_matrix_table_name(i); i++)
		if (rows_of(m, i))
			count(&g, fa_matrix_table_name(i), rows_of(m, i), fa_matrix_table_what(i));
	for (size_t i = 0; i < kb->n_sources; i++)
		count(&g, kb->sources[i].name, files_of(kb, kb->sources[i].name), kb->sources[i].text);
	fa_grid_print(out, &g, form);
}

static void say_data(struct fa_buf *out, const char *name, const char *value)
{
	if (value && *value)
		fa_buf_addf(out, "%-8s %s\n", name, value);
}

/* Where it comes from, and how much of it there is. The files are counted by name behind the tables. */
static int show_data(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_matrix_data *data = fa_matrix_data(m);
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	if (form == FA_SHOW_JSON) {
		show_data_json(m, kb, out);
		return 0;
	}
	if (form == FA_SHOW_TEXT) {
		say_data(out, "date", data->date);
		say_data(out, "in use", data->from ? "an update" : "what came with fainstall");
		say_data(out, "from", data->from);
		say_data(out, "proof", data->proof);
		say_data(out, "folder", data->dir);
		say_data(out, "notice", data->notice);
		for (size_t i = 0; i < fa_matrix_replaced(m)->n; i++)
			say_data(out, i ? "" : "yours", fa_matrix_replaced(m)->v[i]);
		fa_buf_addc(out, '\n');
	}
	show_counts(m, kb, form, out);
	return 0;
}

/* A table's members as they are: `members` beside the heads. */
static int show_members(struct fa_matrix *m, const char *table, const char *const *members, struct fa_grid *g,
                        enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *t = fa_matrix_table(m, table, err);

	if (!t)
		return -1;
	fa_json_each (row, fa_json_get(t, "rows"))
		for (size_t i = 0; i < g->columns; i++)
			fa_grid_cell(g, fa_json_get_string(row, members[i]));
	fa_grid_print(out, g, form);
	return 0;
}

static const struct fa_json *profile_named(const struct fa_json *table, const char *name)
{
	fa_json_each (profile, fa_json_get(table, "profiles"))
		if (name && fa_json_get_string(profile, "profile") && !strcmp(fa_json_get_string(profile, "profile"), name))
			return profile;
	return NULL;
}

static void number_cell(struct fa_grid *g, double n)
{
	char *text = n >= 0 ? fa_strf("%.0f", n) : NULL;

	fa_grid_cell(g, text);
	free(text);
}

static int show_fa3(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *t = fa_matrix_table(m, "fa3", err);
	struct fa_grid g = { { "tag", "version", "package", "Python", "nvcc", "units", "without 8.x", "runs on" },
		             8,
		             FA_STRV_INIT };

	if (!t)
		return -1;
	fa_json_each (row, fa_json_get(t, "rows")) {
		const struct fa_json *profile = profile_named(t, fa_json_get_string(row, "profile"));

		fa_grid_cell(&g, fa_json_get_string(row, "tag"));
		fa_grid_cell(&g, fa_json_get_string(row, "version"));
		fa_grid_cell(&g, fa_json_get_string(row, "package"));
		fa_grid_cell(&g, fa_json_get_string(row, "python"));
		fa_grid_cell(&g, fa_json_get_string(row, "nvcc"));
		number_cell(&g, fa_json_get_number(profile, "units", -1));
		number_cell(&g, fa_json_get_number(profile, "units_without_sm80", -1));
		fa_grid_cell(&g, fa_json_get_string(row, "runs_on"));
	}
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_fa4(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	static const char *const MEMBERS[] = { "version", "python", "runs_on", "requires" };
	struct fa_grid g = { { "version", "Python", "runs on", "requires" }, 4, FA_STRV_INIT };

	return show_members(m, "fa4", MEMBERS, &g, form, out, err);
}

static int show_settings(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	static const char *const MEMBERS[] = { "name", "unless", "why", "source" };
	struct fa_grid g = { { "variable", "unless", "why", "source" }, 4, FA_STRV_INIT };

	return show_members(m, "settings", MEMBERS, &g, form, out, err);
}

static int show_needs(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "--needs", "first release of FA2" }, 2, FA_STRV_INIT };
	struct fa_strv always = FA_STRV_INIT;
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	fa_strv_split(&always, kb->features_always ? kb->features_always : "", " ");
	for (size_t i = 0; i < always.n; i++) {
		fa_grid_cell(&g, always.v[i]);
		fa_grid_cell(&g, "every release of 2.x");
	}
	fa_json_each (f, kb->features) {
		fa_grid_cell(&g, fa_json_key(f));
		fa_grid_cell(&g, fa_json_string(f));
	}
	fa_strv_release(&always);
	fa_grid_print(out, &g, form);
	return 0;
}

/* ---- variables of the builds: from which release to which each is read */

struct variable {
	const char *line, *first, *last; /* releases, the table has the newest first */
	char *name;
};

struct variables {
	struct variable *v;
	size_t n;
};

static void see_variable(struct variables *all, const char *line, const char *name, const char *release)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->v[i].line, line) && !strcmp(all->v[i].name, name)) {
			all->v[i].first = release;
			return;
		}
	all->v = fa_realloc(all->v, all->n + 1, sizeof(*all->v));
	all->v[all->n++] = (struct variable){ line, release, release, fa_strdup(name) };
}

static void see_variables(struct variables *all, const char *line, const char *env, const char *release)
{
	struct fa_strv names = FA_STRV_INIT;

	fa_strv_split(&names, env ? env : "", " ");
	for (size_t i = 0; i < names.n && release; i++)
		see_variable(all, line, names.v[i], release);
	fa_strv_release(&names);
}

static int show_variables(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	const struct fa_json *fa2 = fa_matrix_table(m, "flash-attn", err), *fa3 = fa_matrix_table(m, "fa3", err);
	const struct fa_json *fa4 = fa_matrix_table(m, "fa4", err);
	struct fa_grid g = { { "line", "variable", "from", "to" }, 4, FA_STRV_INIT };
	struct variables all = { NULL, 0 };

	if (!fa2 || !fa3 || !fa4)
		return -1;
	fa_json_each (row, fa_json_get(fa2, "rows"))
		see_variables(&all, "fa2", fa_json_get_string(profile_named(fa2, fa_json_get_string(row, "profile")), "env"),
		              fa_json_get_string(row, "version"));
	fa_json_each (row, fa_json_get(fa3, "rows"))
		see_variables(&all, "fa3", fa_json_get_string(profile_named(fa3, fa_json_get_string(row, "profile")), "env"),
		              fa_json_get_string(row, "tag"));
	fa_json_each (row, fa_json_get(fa4, "rows"))
		see_variables(&all, "fa4", fa_json_get_string(row, "env"), fa_json_get_string(row, "version"));
	for (size_t i = 0; i < all.n; i++) {
		fa_grid_cell(&g, all.v[i].line);
		fa_grid_cell(&g, all.v[i].name);
		fa_grid_cell(&g, all.v[i].first);
		fa_grid_cell(&g, all.v[i].last);
		free(all.v[i].name);
	}
	free(all.v);
	fa_grid_print(out, &g, form);
	return 0;
}

static int show_sources(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "source", "order", "trust", "files", "what" }, 5, FA_STRV_INIT };
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; i < kb->n_sources; i++) {
		char *order = fa_strf("%d", kb->sources[i].order), *files = fa_strf("%zu", files_of(kb, kb->sources[i].name));

		fa_grid_cell(&g, kb->sources[i].name);
		fa_grid_cell(&g, order);
		fa_grid_cell(&g, kb->sources[i].trust);
		fa_grid_cell(&g, files);
		fa_grid_cell(&g, kb->sources[i].text);
		free(order);
		free(files);
	}
	fa_grid_print(out, &g, form);
	return 0;
}

/* The rules of a lab's policy that hold here, and the files that they stand in. */
static int show_policy(struct fa_matrix *m, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	struct fa_grid g = { { "id", "on", "when", "need" }, 4, FA_STRV_INIT };
	struct fa_kb *kb;

	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	for (size_t i = 0; form == FA_SHOW_TEXT && i < kb->policies.n; i++)
		fa_buf_addf(out, "%s\n", kb->policies.v[i]);
	if (form != FA_SHOW_JSON && !kb->policies.n)
		fa_buf_adds(out, "No policy: everything is allowed. One would stand in /etc/fainstall/policy.json or in the "
		                 "configuration "
		                 "folder.\n");
	for (int on = 0; on < FA_ON_COUNT; on++)
		for (size_t i = 0; i < kb->n_rules[on]; i++) {
			const struct fa_kb_rule *r = &kb->rules[on][i];

			if (!r->policy_need)
				continue;
			fa_grid_cell(&g, r->id);
			fa_grid_cell(&g, fa_rule_on_word((enum fa_rule_on)on));
			fa_grid_cell(&g, r->policy_when);
			fa_grid_cell(&g, r->policy_need);
		}
	if (g.cells.n || form == FA_SHOW_JSON)
		fa_grid_print(out, &g, form);
	return 0;
}

static const struct {
	const char *word;
	show_fn *show;
} SHOWS[] = {
	{ "ids", show_ids },
	{ "names", show_names },
	{ "rules", show_rules },
	{ "torch", show_torch },
	{ "cuda", show_cuda },
	{ "gpus", show_gpus },
	{ "lines", fa_show_lines },
	{ "tree", show_tree },
	{ "releases", show_releases },
	{ "causes", show_causes },
	{ "data", show_data },
	{ "sources", show_sources },
	{ "policy", show_policy },
	{ "fa3", show_fa3 },
	{ "fa4", show_fa4 },
	{ "needs", show_needs },
	{ "variables", show_variables },
	{ "settings", show_settings },
	{ "compat", fa_show_compat },
	{ "families", fa_show_families },
};

const char *fa_matrix_shows(void)
{
	return "data ids names rules torch cuda gpus lines tree releases causes sources policy fa3 fa4 needs variables "
	       "settings compat families";
}

int fa_matrix_show(struct fa_matrix *m, const char *what, enum fa_show_form form, struct fa_buf *out, struct fa_err *err)
{
	for (size_t i = 0; i < sizeof(SHOWS) / sizeof(SHOWS[0]); i++)
		if (!strcmp(SHOWS[i].word, what))
			return SHOWS[i].show(m, form, out, err);
	return fa_err_set(err, FA_USAGE, "matrix show: nothing is called \"%s\"; there is: %s", what, fa_matrix_shows());
}
