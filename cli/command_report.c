/* `fainstall report [--html FILE] PATH…`: one page or table from one or many report.json. */
#include "cli.h"

#include "report_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fa_json *figures_of(const struct fa_report_view *first, const struct fa_report_view *v)
{
	struct fa_json *out = fa_json_new_array();

	fa_json_each (r, fa_json_get(fa_json_get(v->json, "figures"), "rows")) {
		struct fa_json *row = fa_json_copy(r);
		int counts;
		double ratio = fa_report_ratio(first, r, &counts);

		if (v != first && ratio > 0) {
			fa_json_set_number(row, "times_the_first", ratio);
			fa_json_set_string(row, "change", !counts ? "none" : ratio < 1 ? "slower" : "faster");
		}
		fa_json_push(out, row);
	}
	return out;
}

static void print_json(const struct fa_report_view *v, size_t n)
{
	struct fa_json *all = fa_json_new_object(), *list = fa_json_new_array();
	char *text;

	for (size_t i = 0; i < n; i++) {
		struct fa_json *j = fa_json_new_object();

		fa_json_set_string(j, "path", v[i].name);
		fa_json_set_string(j, "status", v[i].status);
		fa_json_set_string(j, "verdict", v[i].sentence);
		fa_json_set_string(j, "card", v[i].card);
		fa_json_set_string(j, "torch", v[i].torch);
		fa_json_set_string(j, "flash_attn", v[i].version);
		fa_json_set(j, "figures", figures_of(&v[0], &v[i]));
		fa_json_push(list, j);
	}
	fa_json_set_string(all, "schema", "fainstall.reports/1");
	fa_json_set(all, "reports", list);
	text = fa_json_print(all, true);
	fputs(text, stdout);
	free(text);
	fa_json_free(all);
}

static int write_page(const char *path, const struct fa_report_view *v, size_t n, struct fa_err *err)
{
	struct fa_buf page = FA_BUF_INIT;
	int rc;

	fa_report_html(&page, v, n);
	rc = fa_file_write(path, page.data, page.len, err);
	fa_buf_release(&page);
	return rc;
}

static int show(const struct cli *c, const struct fa_report_view *v, size_t n, struct fa_err *err)
{
	struct fa_buf out = FA_BUF_INIT;

	if (c->v[CLI_OPT_HTML] && write_page(c->v[CLI_OPT_HTML], v, n, err) < 0)
		return -1;
	if (c->v[CLI_OPT_JSON])
		print_json(v, n);
	else if (!c->v[CLI_OPT_HTML] && !c->v[CLI_OPT_QUIET])
		fa_report_markdown(&out, v, n);
	fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
	return 0;
}

int cli_report(const struct cli *c, int *status, struct fa_err *err)
{
	size_t n = c->words.n, read = 0;
	struct fa_report_view *v;
	int rc = -1;

	if (!n) {
		fa_err_set(err, FA_USAGE, "report needs a report.json to show");
		return fa_err_next(err, "write `fainstall report PATH`; `fainstall verify --report PATH` makes one");
	}
	v = fa_calloc(n, sizeof(*v));
	while (read < n && fa_report_view(&v[read], c->words.v[read], err) == 0)
		read++;
	if (read == n)
		rc = show(c, v, n, err);
	for (size_t i = 0; i < read; i++)
		fa_report_view_release(&v[i]);
	free(v);
	*status = FA_OK;
	return rc;
}
