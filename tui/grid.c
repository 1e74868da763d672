/* Cells. */
#include "grid.h"

#include "fainstall.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tui_cell *cell_at(struct tui_grid *g, int row, int col)
{
	return row < 0 || row >= g->rows || col < 0 || col >= g->cols ? NULL : &g->cells[row * g->cols + col];
}

void tui_grid_clear(struct tui_grid *g)
{
	for (int i = 0; i < g->rows * g->cols; i++)
		g->cells[i] = (struct tui_cell){ ' ', 1, TUI_TEXT };
	g->caret_row = g->caret_col = -1;
}

void tui_grid_resize(struct tui_grid *g, int rows, int cols)
{
	g->rows = rows < 0 ? 0 : rows > 1000 ? 1000 : rows;
	g->cols = cols < 0 ? 0 : cols > 1000 ? 1000 : cols;
	g->cells = fa_realloc(g->cells, (size_t)(g->rows * g->cols) + 1, sizeof *g->cells);
	tui_grid_clear(g);
}

void tui_grid_release(struct tui_grid *g)
{
	free(g->cells);
	*g = (struct tui_grid)TUI_GRID_INIT;
}

/* A new character where half of a wide one stood: the other half becomes blank. */
static void put_cell(struct tui_grid *g, int row, int col, struct tui_cell cell)
{
	struct tui_cell *at = cell_at(g, row, col), *left = cell_at(g, row, col - 1), *right = cell_at(g, row, col + 1);
	if (!at)
		return;
	if (at->width == 0 && left)
		*left = (struct tui_cell){ ' ', 1, left->role };
	if (at->width == 2 && right)
		*right = (struct tui_cell){ ' ', 1, right->role };
	*at = cell;
}

static void put_one(struct tui_grid *g, int row, int col, enum tui_role role, uint32_t ch, int width)
{
	for (int i = 0; i < width; i++)
		put_cell(g, row, col + i, (struct tui_cell){ i && ch != '?' ? ' ' : ch, 1, (uint8_t)role });
	struct tui_cell *right = cell_at(g, row, col + 1);
	if (width == 2 && ch != '?' && right && col >= 0) {
		right[-1].width = 2;
		right[0].width = 0;
	}
}

static int put_bytes(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *text, size_t len)
{
	const char *stop = text + len;
	uint32_t ch;
	int width;
	if (end > g->cols)
		end = g->cols;
	for (int n; text < stop && (n = tui_utf8_next(&ch, text)) > 0; text += n) {
		ch = tui_shown(ch, g->ascii, &width);
		if (col + width > end)
			break;
		put_one(g, row, col, role, ch, width);
		col += width;
	}
	return col;
}

int tui_put(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *text)
{
	return text ? put_bytes(g, row, col, end, role, text, strlen(text)) : col;
}

int tui_putf(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return tui_put_name(g, row, col, end, role, text);
}

int tui_put_name(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *text)
{
	int room = (end > g->cols ? g->cols : end) - col;
	if (!text || room <= 0)
		return col;
	if (room < 8 || tui_text_width(text) <= room)
		return tui_put(g, row, col, end, role, text);
	col = put_bytes(g, row, col, end, role, text, tui_fitting(text, room - 3));
	return tui_put(g, row, col, end, role, "...");
}

/* The end of a path says more than its beginning: two thirds of the room are for it. */
int tui_put_path(struct tui_grid *g, int row, int col, int end, enum tui_role role, const char *text)
{
	int room = (end > g->cols ? g->cols : end) - col, head = (room - 3) / 3;
	if (!text || room <= 0)
		return col;
	if (room < 12 || tui_text_width(text) <= room)
		return tui_put_name(g, row, col, end, role, text);
	col = put_bytes(g, row, col, end, role, text, tui_fitting(text, head));
	col = tui_put(g, row, col, end, role, "...");
	const char *tail = text;
	uint32_t ch;
	while (tui_text_width(tail) > room - head - 3)
		tail += tui_utf8_next(&ch, tail);
	return tui_put(g, row, col, end, role, tail);
}

void tui_put_right(struct tui_grid *g, int row, int end, enum tui_role role, const char *text)
{
	int col = end - tui_text_width(text);
	tui_put(g, row, col < 0 ? 0 : col, end, role, text);
}

void tui_put_char(struct tui_grid *g, int row, int col, enum tui_role role, uint32_t ch)
{
	char text[5];
	tui_utf8_put(text, ch);
	tui_put(g, row, col, col + 1, role, text);
}

int tui_put_sign(struct tui_grid *g, int row, int col, enum tui_sign sign)
{
	static const struct {
		uint32_t ch;
		enum tui_role role;
	} signs[] = {
		[TUI_SIGN_NONE] = { ' ', TUI_TEXT },       [TUI_SIGN_OK] = { 0x2713, TUI_OK },
		[TUI_SIGN_FAIL] = { 0x2717, TUI_FAIL },    [TUI_SIGN_WARN] = { '!', TUI_WARN },
		[TUI_SIGN_UNKNOWN] = { '?', TUI_WARN },    [TUI_SIGN_ABSENT] = { '-', TUI_TEXT },
		[TUI_SIGN_RUNNING] = { 0xBB, TUI_ACCENT }, [TUI_SIGN_CLOSED] = { 0x25B8, TUI_TEXT },
		[TUI_SIGN_OPEN] = { 0x25BE, TUI_TEXT },
	};
	tui_put_char(g, row, col, signs[sign].role, signs[sign].ch);
	return col + 2;
}

void tui_paint(struct tui_grid *g, int row, int col, int end, enum tui_role role)
{
	for (; col < end; col++) {
		struct tui_cell *c = cell_at(g, row, col);
		if (c)
			c->role = (uint8_t)role;
	}
}

void tui_put_bar(struct tui_grid *g, int row, int col, int end, double share, double more)
{
	int cells = end - col;
	int full = (int)(share * cells + 0.5), next = (int)((share + more) * cells + 0.5);
	for (int i = 0; i < cells; i++) {
		uint32_t ch = i < full ? 0x2590 : i < next ? 0x254E : 0x2591;
		tui_put_char(g, row, col + i, i < full ? TUI_ACCENT : TUI_DIM, ch);
	}
}

int tui_put_wrapped(struct tui_grid *g, int row, int last, int col, int end, enum tui_role role, const char *text)
{
	while (text && *text && row <= last && end > col) {
		size_t len = tui_line_break(text, end - col);
		if (row == last && text[len])
			tui_put_name(g, row, col, end, role, text);
		else
			put_bytes(g, row, col, end, role, text, len);
		for (text += len; *text == ' '; text++)
			;
		row++;
	}
	return row;
}
