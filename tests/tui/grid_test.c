/* Cells, widths, cuts. */
#include "fainstall.h"
#include "tui/grid.h"
#include "tui/screen.h"
#include "tui/text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char row_space[512];

static const char *row_of(const struct tui_grid *g, int row)
{
	size_t len = 0;
	for (int col = 0; col < g->cols; col++) {
		const struct tui_cell *c = &g->cells[row * g->cols + col];
		if (c->width)
			len += (size_t)tui_utf8_put(row_space + len, c->ch);
	}
	row_space[len] = '\0';
	return row_space;
}

struct put_case {
	const char *text;
	int end; /* from column 1 to here, in a row of 12 */
	bool ascii;
	const char *row;
	int after; /* column returned */
};

static void check(const struct put_case *cases, size_t n,
                  int (*put)(struct tui_grid *, int, int, int, enum tui_role, const char *))
{
	for (size_t i = 0; i < n; i++) {
		struct tui_grid g = TUI_GRID_INIT;
		g.ascii = cases[i].ascii;
		tui_grid_resize(&g, 1, 12);
		int after = put(&g, 0, 1, cases[i].end, TUI_TEXT, cases[i].text);
		assert_string_equal(row_of(&g, 0), cases[i].row);
		assert_int_equal(after, cases[i].after);
		tui_grid_release(&g);
	}
}

static void text_is_cut_at_whole_characters(void **state)
{
	static const struct put_case cases[] = {
		{ "abc", 12, false, " abc        ", 4 },
		{ "abcdefghijklmnop", 5, false, " abcd       ", 5 },
		{ "abc", 99, false, " abc        ", 4 },
		{ "abc", 1, false, "            ", 1 },
		{ "abc", -4, false, "            ", 1 },
		{ "环境检查", 12, false, " 环境检查   ", 9 },
		{ "环境检查", 6, false, " 环境       ", 5 }, /* the third would end in column 6 */
		{ "环境", 12, true, " ????       ", 5 },
		{ "✓ ✗ ▸", 12, false, " ✓ ✗ ▸      ", 6 },
		{ "✓ ✗ ▸", 12, true, " * x +      ", 6 },
		{ "‘a’ — “b”", 12, false, " 'a' - \"b\"  ", 10 },
		{ "e\xCC\x81t", 12, false, " et         ", 3 }, /* a combining mark has no cell of its own */
		{ "a\tb\x01\x7F", 12, false, " a b??      ", 6 },
		{ "\xff\xc3z\xed\xa0\x80", 12, true, " ??z???     ", 7 },
		{ "", 12, false, "            ", 1 },
		{ NULL, 12, false, "            ", 1 },
	};
	(void)state;
	check(cases, sizeof cases / sizeof *cases, tui_put);
}

static void a_name_loses_its_end(void **state)
{
	static const struct put_case cases[] = {
		{ "flash_attn", 11, false, " flash_attn ", 11 },
		{ "flash_attn-2.8.3", 11, false, " flash_a... ", 11 },
		{ "环境检查环境检查", 11, false, " 环境检...  ", 10 },
		{ "flash", 4, false, " fla        ", 4 }, /* too narrow for dots */
	};
	(void)state;
	check(cases, sizeof cases / sizeof *cases, tui_put_name);
}

static void a_path_loses_its_middle(void **state)
{
	struct tui_grid g = TUI_GRID_INIT;
	(void)state;
	tui_grid_resize(&g, 1, 30);
	assert_int_equal(tui_put_path(&g, 0, 0, 28, TUI_TEXT, "/home/me/.cache/fainstall/src/flash_attn/flash.so"), 28);
	assert_string_equal(row_of(&g, 0), "/home/me...ash_attn/flash.so  ");
	tui_grid_release(&g);
}

static void what_is_written_over_half_a_character_blanks_the_other_half(void **state)
{
	struct tui_grid g = TUI_GRID_INIT;
	(void)state;
	tui_grid_resize(&g, 2, 6);
	tui_put(&g, 0, 0, 6, TUI_TEXT, "环境检");
	tui_put(&g, 0, 1, 6, TUI_TEXT, "x");
	assert_string_equal(row_of(&g, 0), " x境检");
	tui_put(&g, 0, 2, 6, TUI_TEXT, "y");
	assert_string_equal(row_of(&g, 0), " xy 检");
	tui_put(&g, 0, 3, 6, TUI_TEXT, "查");
	assert_string_equal(row_of(&g, 0), " xy查 ");
	tui_grid_release(&g);
}

static void outside_of_the_grid_nothing_happens(void **state)
{
	struct tui_grid g = TUI_GRID_INIT;
	(void)state;
	tui_grid_resize(&g, 0, 0);
	assert_int_equal(tui_put(&g, 3, 3, 9, TUI_TEXT, "abc"), 3);
	tui_grid_resize(&g, 1, 4);
	tui_put(&g, -1, 0, 4, TUI_TEXT, "abc");
	tui_put(&g, 0, -2, 4, TUI_TEXT, "abc环");
	tui_paint(&g, 0, -5, 99, TUI_BAR);
	tui_put_bar(&g, 0, 3, 9, 2.0, 5.0);
	assert_string_equal(row_of(&g, 0), "c环▐");
	tui_grid_release(&g);
}

static void a_bar_shows_its_share(void **state)
{
	static const struct {
		double share, more;
		const char *row;
	} cases[] = { { 0, 0, "░░░░" }, { 0.5, 0, "▐▐░░" }, { 0.5, 0.25, "▐▐╎░" },
		      { 1, 0, "▐▐▐▐" }, { 7, 0, "▐▐▐▐" },   { -1, 0, "░░░░" } };
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tui_grid g = TUI_GRID_INIT;
		tui_grid_resize(&g, 1, 4);
		tui_put_bar(&g, 0, 0, 4, cases[i].share, cases[i].more);
		assert_string_equal(row_of(&g, 0), cases[i].row);
		tui_grid_release(&g);
	}
}

static void lines_break_at_blanks(void **state)
{
	struct tui_grid g = TUI_GRID_INIT;
	(void)state;
	tui_grid_resize(&g, 4, 8);
	assert_int_equal(tui_put_wrapped(&g, 0, 3, 0, 8, TUI_TEXT, "one two  three fourteen-and-more"), 4);
	assert_string_equal(row_of(&g, 0), "one two ");
	assert_string_equal(row_of(&g, 1), "three   ");
	assert_string_equal(row_of(&g, 2), "fourteen");
	assert_string_equal(row_of(&g, 3), "-and-...");
	assert_int_equal(tui_wrapped_rows("one two  three fourteen-and-more", 8), 5);
	assert_int_equal(tui_wrapped_rows("", 8), 0);
	assert_int_equal(tui_wrapped_rows("环境检查", 1), 4); /* comes to an end */
	tui_grid_release(&g);
}

static void utf8_goes_both_ways(void **state)
{
	static const uint32_t all[] = { 1, 'a', 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF };
	char bytes[5];
	uint32_t ch;
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int len = tui_utf8_put(bytes, all[i]);
		assert_int_equal(tui_utf8_next(&ch, bytes), len);
		assert_int_equal(ch, all[i]);
		bytes[len - 1] = '\0'; /* cut: one byte at a time, never over the end */
		if (len > 1)
			assert_int_equal(tui_utf8_next(&ch, bytes), 1);
	}
	assert_int_equal(tui_utf8_next(&ch, "\xC0\x80"), 1);
	assert_int_equal(tui_utf8_next(&ch, "\xF5\x80\x80\x80"), 1);
	assert_int_equal(tui_utf8_next(&ch, ""), 0);
}

static void numbers_are_said_with_their_units(void **state)
{
	char out[32];
	(void)state;
	assert_string_equal(tui_thousands(out, 0), "0");
	assert_string_equal(tui_thousands(out, 999), "999");
	assert_string_equal(tui_thousands(out, 143771), "143,771");
	assert_string_equal(tui_thousands(out, INT64_MAX), "9,223,372,036,854,775,807");
	assert_string_equal(tui_gib(out, 128410), "125.4");
	assert_string_equal(tui_bytes(out, 8447812), "8.4 MB");
	assert_string_equal(tui_bytes(out, 2500000000), "2.5 GB");
	assert_string_equal(tui_bytes(out, 1200), "0.001 MB");
	assert_string_equal(tui_duration(out, 0.44), "0.4 s");
	assert_string_equal(tui_duration(out, 59.7), "1 min 0 s");
	assert_string_equal(tui_duration(out, 612), "10 min 12 s");
	assert_string_equal(tui_duration(out, 7260), "2 h 1 min");
	assert_string_equal(tui_duration(out, -1), "0.0 s");
	assert_string_equal(tui_number_word(out, 2, true), "Two");
	assert_string_equal(tui_number_word(out, 11, true), "11");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_cut_at_whole_characters),
		cmocka_unit_test(a_name_loses_its_end),
		cmocka_unit_test(a_path_loses_its_middle),
		cmocka_unit_test(what_is_written_over_half_a_character_blanks_the_other_half),
		cmocka_unit_test(outside_of_the_grid_nothing_happens),
		cmocka_unit_test(a_bar_shows_its_share),
		cmocka_unit_test(lines_break_at_blanks),
		cmocka_unit_test(utf8_goes_both_ways),
		cmocka_unit_test(numbers_are_said_with_their_units),
	};
	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
