#include "check_script.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "kb.h"
#include "matrix.h"

#include <stdlib.h>
#include <string.h>

/* Stands for the interpreter's tag in names: no Python has that number. recipes/check.py puts its own in. */
static const char TAG[] = "777t";
static const char MARK[] = "DATA = None\n";

static struct fa_json *text(const char *s)
{
	return fa_json_new_string(s); /* NULL becomes null: unknown */
}

static struct fa_json *yes(bool b)
{
	return fa_json_new_string(b ? "yes" : "no");
}

static struct fa_json *rules(const struct fa_kb *kb)
{
	static const struct {
		enum fa_rule_on on;
		const char *word;
	} kinds[] = { { FA_ON_RELEASE, "release" },
		      { FA_ON_RELEASE_CARD, "release_card" },
		      { FA_ON_FILE, "file" },
		      { FA_ON_FILE_CARD, "file_card" } };
	struct fa_json *all = fa_json_new_object();

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		struct fa_json *list = fa_json_new_array();

		for (size_t i = 0; i < kb->n_rules[kinds[k].on]; i++) {
			const struct fa_kb_rule *r = &kb->rules[kinds[k].on][i];
			struct fa_json *row = fa_json_new_array();

			fa_json_push(row, text(r->id));
			fa_json_push(row, text(r->when.text ? r->when.text : ""));
			fa_json_push(row, text(r->need.text));
			fa_json_push(row, text(r->text));
			fa_json_push(list, row);
		}
		fa_json_set(all, kinds[k].word, list);
	}
	return all;
}

static struct fa_json *lines(const struct fa_kb *kb)
{
	struct fa_json *all = fa_json_new_object();

	for (size_t i = 0; i < kb->n_lines; i++) {
		const struct fa_kb_line *l = &kb->lines[i];
		struct fa_json *j = fa_json_new_object();

		fa_json_set_string(j, "line_dtypes", l->dtypes);
		fa_json_set_string(j, "line_head_dim", l->head_dim);
		fa_json_set_string(j, "line_features", l->features);
		fa_json_set(all, l->line, j);
	}
	return all;
}

/* What rules ask of the release that a file is of. Its least Python is left out: a file says itself what it is for. */
static struct fa_json *releases(const struct fa_kb *kb)
{
	struct fa_json *all = fa_json_new_object();

	for (size_t i = 0; i < kb->n_releases; i++) {
		const struct fa_kb_release *r = &kb->releases[i];
		char *key = fa_strf("%s %s", r->line, r->version);
		struct fa_json *j = fa_json_new_object();

		fa_json_set_string(j, "release_torch", r->torch);
		fa_json_set_string(j, "backward_limit", r->backward);
		fa_json_set(all, key, j);
		free(key);
	}
	return all;
}

static struct fa_json *archs(const struct fa_kb *kb)
{
	struct fa_json *all = fa_json_new_object();

	for (size_t i = 0; i < kb->n_archs; i++)
		fa_json_set_string(all, kb->archs[i].arch, kb->archs[i].codes);
	return all;
}

static const char *const columns[] = {
	"line",       "version",     "source",       "trust",           "file_os",         "file_machine",  "file_torch",
	"file_cuda",  "package",     "file_pythons", "file_cuda_major", "file_python_min", "file_abi",      "file_glibc",
	"file_codes", "file_driver", "file_dtypes",  "file_torch_min",  "file_nightly",    "file_backward", "order",
	"name",       "url"
};

static struct fa_json *file_row(const struct fa_kb *kb, const struct fa_kb_file *f)
{
	const char *const values[] = { f->line,
		                       f->version,
		                       f->source ? f->source->name : NULL,
		                       f->source ? f->source->trust : NULL,
		                       f->os,
		                       f->machine,
		                       f->torch,
		                       f->cuda,
		                       f->package,
		                       f->pythons,
		                       f->major,
		                       f->python_min,
		                       f->abi,
		                       f->glibc,
		                       f->codes,
		                       f->driver,
		                       f->dtypes,
		                       f->torch_min };
	char *name = fa_kb_file_name(kb, f, TAG), *url = name ? fa_kb_file_url(kb, f, name) : NULL;
	struct fa_json *row = fa_json_new_array();

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		fa_json_push(row, text(values[i]));
	fa_json_push(row, yes(f->nightly));
	fa_json_push(row, yes(f->backward));
	fa_json_push(row, fa_json_new_number(f->source ? f->source->order : 99));
	fa_json_push(row, text(name));
	fa_json_push(row, text(url));
	free(name);
	free(url);
	return row;
}

static struct fa_json *data_of(const struct fa_kb *kb, const char *checked)
{
	struct fa_json *j = fa_json_new_object(), *names = fa_json_new_array(), *files = fa_json_new_array();

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		fa_json_push(names, text(columns[i]));
	for (size_t i = 0; i < kb->n_files; i++)
		fa_json_push(files, file_row(kb, &kb->files[i]));
	fa_json_set_string(j, "checked", checked);
	fa_json_set(j, "rules", rules(kb));
	fa_json_set(j, "lines", lines(kb));
	fa_json_set(j, "releases", releases(kb));
	fa_json_set(j, "archs", archs(kb));
	fa_json_set(j, "columns", names);
	fa_json_set(j, "files", files);
	return j;
}

/* As a string of Python: JSON escapes what must be escaped, but for the quotes and backslashes of Python itself. */
static void add_python_string(struct fa_buf *out, const char *json)
{
	fa_buf_adds(out, "DATA = json.loads('''");
	for (const char *p = json; *p; p++) {
		if (*p == '\\' || *p == '\'')
			fa_buf_addc(out, '\\');
		fa_buf_addc(out, *p);
	}
	fa_buf_adds(out, "''')\n");
}

int fa_check_script(struct fa_buf *out, struct fa_matrix *m, struct fa_err *err)
{
	char *path = fa_dir_own("recipes/check.py", err), *json = NULL;
	struct fa_buf script = FA_BUF_INIT;
	const struct fa_json *table = fa_matrix_table(m, "rules", err);
	struct fa_json *data = NULL;
	const char *mark;
	struct fa_kb *kb;
	int rc = -1;

	if (!path || !table || fa_matrix_kb(&kb, m, err) < 0 || fa_file_read(&script, path, FA_FILE_MAX, err) < 0)
		goto done;
	mark = strstr(fa_buf_str(&script), MARK);
	if (!mark) {
		fa_err_set(err, FA_INTERNAL, "%s has no line \"DATA = None\"", path);
		goto done;
	}
	data = data_of(kb, fa_json_get_string(table, "checked"));
	json = fa_json_print(data, false);
	fa_buf_add(out, fa_buf_str(&script), (size_t)(mark - fa_buf_str(&script)));
	add_python_string(out, json);
	fa_buf_adds(out, mark + strlen(MARK));
	rc = 0;
done:
	fa_buf_release(&script);
	fa_json_free(data);
	free(json);
	free(path);
	return rc;
}
