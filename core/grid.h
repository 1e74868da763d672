/* A table of text: plain, Markdown or JSON. Cells are gathered first, since plain text needs the widths. */
#ifndef FA_GRID_H
#define FA_GRID_H

#include "buf.h"
#include "matrix.h"
#include "strv.h"

enum { FA_GRID_COLUMNS = 8 };

struct fa_grid {
	const char *heads[FA_GRID_COLUMNS];
	size_t columns;
	struct fa_strv cells; /* row by row */
};

/* Adds a cell, copied. NULL and "" become "-": not known. */
void fa_grid_cell(struct fa_grid *g, const char *text);

/* Appends the table to out and releases its cells. JSON: { "schema": "fainstall.table/1", "rows": [ { head: cell, … } ] } without what is not
 * known. */
void fa_grid_print(struct fa_buf *out, struct fa_grid *g, enum fa_show_form form);

#endif
