#include "grid.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

void fa_grid_cell(struct fa_grid *g, const char *text)
{
	fa_strv_push(&g->cells, text && *text ? text : "-");
}

static void print_markdown(struct fa_buf *out, const struct fa_grid *g)
{
	for (size_t i = 0; i < g->columns; i++)
		fa_buf_addf(out, "| %s ", g->heads[i]);
	fa_buf_adds(out, "|\n");
	for (size_t i = 0; i < g->columns; i++)
		fa_buf_adds(out, "| --- ");
	fa_buf_adds(out, "|\n");
	for (size_t i = 0; i < g->cells.n; i++)
		fa_buf_addf(out, "| %s %s", g->cells.v[i], (i + 1) % g->columns ? "" : "|\n");
}

static void print_plain(struct fa_buf *out, const struct fa_grid *g)
{
	size_t width[FA_GRID_COLUMNS] = { 0 };

	for (size_t i = 0; i < g->columns; i++)
		width[i] = strlen(g->heads[i]);
	for (size_t i = 0; i < g->cells.n; i++)
		if (strlen(g->cells.v[i]) > width[i % g->columns])
			width[i % g->columns] = strlen(g->cells.v[i]);
	for (size_t i = 0; i < g->columns; i++)
		fa_buf_addf(out, "%-*s%s", i + 1 < g->columns ? (int)width[i] : 0, g->heads[i],
		            i + 1 < g->columns ? "  " : "\n");
	for (size_t i = 0; i < g->cells.n; i++) {
		size_t c = i % g->columns;

		if (c + 1 < g->columns)
			fa_buf_addf(out, "%-*s  ", (int)width[c], g->cells.v[i]);
		else
			fa_buf_addf(out, "%s\n", g->cells.v[i]);
	}
}

/* Rows as objects; "-" is what nobody knows and is left out. */
static void print_json(struct fa_buf *out, const struct fa_grid *g)
{
	struct fa_json *j = fa_json_new_object(), *rows = fa_json_new_array(), *row = NULL;
	char *text;

	for (size_t i = 0; i < g->cells.n; i++) {
		if (i % g->columns == 0)
			row = fa_json_new_object();
		if (strcmp(g->cells.v[i], "-") != 0)
			fa_json_set_string(row, g->heads[i % g->columns], g->cells.v[i]);
		if (i % g->columns == g->columns - 1)
			fa_json_push(rows, row);
	}
	fa_json_set_string(j, "schema", "fainstall.table/1");
	fa_json_set(j, "rows", rows);
	text = fa_json_print(j, true);
	fa_buf_adds(out, text);
	free(text);
	fa_json_free(j);
}

void fa_grid_print(struct fa_buf *out, struct fa_grid *g, enum fa_show_form form)
{
	if (form == FA_SHOW_JSON)
		print_json(out, g);
	else if (form == FA_SHOW_MARKDOWN)
		print_markdown(out, g);
	else
		print_plain(out, g);
	fa_strv_release(&g->cells);
}
