/* Every scene of tests/screens, drawn and compared with its text: NAME.txt 80x24, NAME.wide.txt 120x40, NAME.ascii.txt without
 * UTF-8, NAME.roles.txt (where the scene says `roles`) the role of each cell as a letter. UPDATE=1 writes them. */
#include "scene.h"

#include <dirent.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <wchar.h>

#include <cmocka.h>

static const char folder[] = "tests/screens";
static int compared;

static char *grid_text(const struct tui_grid *g, bool roles)
{
	static const char letters[] = {
#define ROLE(id, letter) letter,
		TUI_ROLES(ROLE)
#undef ROLE
	};
	struct fa_buf out = FA_BUF_INIT;
	char bytes[5];
	for (int row = 0; row < g->rows; row++) {
		for (int col = 0; col < g->cols; col++) {
			const struct tui_cell *c = &g->cells[row * g->cols + col];
			if (roles)
				fa_buf_addc(&out, letters[c->role]);
			else if (c->width)
				fa_buf_add(&out, bytes, (size_t)tui_utf8_put(bytes, c->ch));
		}
		while (out.len && out.data[out.len - 1] == ' ')
			out.data[--out.len] = '\0';
		fa_buf_addc(&out, '\n');
	}
	return fa_buf_detach(&out);
}

/* Wide cells come in pairs, nothing ambiguous is drawn, ASCII is ASCII. */
static void check_cells(const struct tui_grid *g, const char *name)
{
	static const wchar_t glyphs[] = L"✓✗»▸▾▐╎░╌";
	for (int i = 0; i < g->rows * g->cols; i++) {
		const struct tui_cell *c = &g->cells[i];
		bool right_half = i % g->cols && g->cells[i - 1].width == 2;
		if ((c->width == 0) != right_half)
			fail_msg("%s: row %d, column %d: half a character", name, i / g->cols, i % g->cols);
		if (c->ch >= 0x7F && (g->ascii || (c->width != 2 && !wcschr(glyphs, (wchar_t)c->ch))))
			fail_msg("%s: row %d, column %d: U+%04X", name, i / g->cols, i % g->cols, (unsigned)c->ch);
	}
}

static void compare(const char *name, const char *kind, char *text)
{
	char *path = fa_strf("%s/%s%s.txt", folder, name, kind);
	struct fa_buf want = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	if (getenv("UPDATE")) {
		assert_int_equal(fa_file_write(path, text, strlen(text), &err), 0);
	} else if (fa_file_read(&want, path, FA_FILE_MAX, &err) < 0) {
		fail_msg("%s (UPDATE=1 writes it)", err.text);
	} else if (strcmp(fa_buf_str(&want), text) != 0) {
		fail_msg("%s differs.\nexpected:\n%s\nactual:\n%s", path, fa_buf_str(&want), text);
	}
	compared++;
	fa_buf_release(&want);
	free(path);
	free(text);
}

static void draw_and_compare(struct tui_model *m, const char *name, const char *kind, int rows, int cols, bool ascii)
{
	struct tui_grid g = TUI_GRID_INIT;
	g.ascii = ascii;
	tui_model_resize(m, rows, cols);
	tui_draw(&g, m);
	check_cells(&g, name);
	compare(name, kind, grid_text(&g, !strcmp(kind, ".roles")));
	tui_grid_release(&g);
}

static bool wants_roles(const char *path)
{
	struct fa_buf text = FA_BUF_INIT;
	bool found = fa_file_read(&text, path, FA_FILE_MAX, NULL) == 0 && strstr(fa_buf_str(&text), "\nroles\n");
	fa_buf_release(&text);
	return found;
}

static void show(const char *name)
{
	char *path = fa_strf("%s/%s.scene", folder, name);
	struct scene s;
	int line;
	scene_init(&s);
	line = scene_play(&s, path);
	if (line)
		fail_msg("%s:%d: %s", path, line, s.error);
	int rows = s.m.rows, cols = s.m.cols;
	draw_and_compare(&s.m, name, "", rows, cols, false);
	draw_and_compare(&s.m, name, ".ascii", rows, cols, true);
	if (wants_roles(path))
		draw_and_compare(&s.m, name, ".roles", rows, cols, false);
	if (rows == 24 && cols == 80)
		draw_and_compare(&s.m, name, ".wide", 40, 120, false);
	scene_release(&s);
	free(path);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void every_screen_looks_as_its_text_says(void **state)
{
	struct dirent **list;
	int n = scandir(folder, &list, NULL, by_name);
	(void)state;
	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		char *dot = strstr(list[i]->d_name, ".scene");
		if (dot) {
			*dot = '\0';
			show(list[i]->d_name);
		}
		free(list[i]);
	}
	free(list);
	assert_true(compared >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_screen_looks_as_its_text_says),
	};
	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
