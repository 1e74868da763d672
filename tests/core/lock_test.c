#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "buf.h"
#include "file.h"
#include "lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char hash_a[] = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char hash_b[] = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static char *printed(const struct fa_lock *l)
{
	struct fa_buf b = FA_BUF_INIT;

	fa_lock_print(&b, l);
	return fa_buf_detach(&b);
}

static void sample(struct fa_lock *l)
{
	struct fa_lock_package *p;

	fa_lock_set(l, "route", "%s", "source");
	fa_lock_set(l, "build.archs", "%s", "90");
	p = fa_lock_add_package(l, "Torch", "2.8.0+cu128");
	p->url = fa_strdup("https://download.pytorch.org/whl/cu128/torch-2.8.0%2Bcu128-cp311-cp311-linux_x86_64.whl");
	fa_strv_push(&p->hashes, hash_a);
	p = fa_lock_add_package(l, "flash_attn", "2.8.3+fa.x");
	fa_strv_push(&p->hashes, hash_b);
	fa_strv_push(&p->hashes, hash_a);
	p->built = true;
	p = fa_lock_add_package(l, "einops", "0.8.2");
	fa_strv_push(&p->hashes, hash_a);
}

static void a_lock_comes_back_as_it_was_written(void **state)
{
	struct fa_lock l = FA_LOCK_INIT, back;
	struct fa_err err = FA_ERR_INIT;
	char *text, *again;

	(void)state;
	sample(&l);
	text = printed(&l);
	assert_int_equal(fa_lock_parse(&back, text, strlen(text), "lock", &err), 0);
	again = printed(&back);
	assert_string_equal(text, again);
	assert_true(fa_lock_package(&back, "flash-attn")->built);
	assert_string_equal(fa_lock_package(&back, "torch")->version, "2.8.0+cu128");
	free(text);
	free(again);
	fa_lock_release(&l);
	fa_lock_release(&back);
}

static void the_order_of_making_does_not_show(void **state)
{
	struct fa_lock a = FA_LOCK_INIT, b = FA_LOCK_INIT;
	char *x, *y;

	(void)state;
	fa_strv_push(&fa_lock_add_package(&a, "b", "1")->hashes, hash_a);
	fa_strv_push(&fa_lock_add_package(&a, "a", "1")->hashes, hash_a);
	fa_lock_set(&a, "y", "1");
	fa_lock_set(&a, "x", "2");
	fa_lock_set(&b, "x", "0");
	fa_lock_set(&b, "x", "2");
	fa_lock_set(&b, "y", "1");
	fa_strv_push(&fa_lock_add_package(&b, "A", "1")->hashes, hash_a);
	fa_strv_push(&fa_lock_add_package(&b, "b", "1")->hashes, hash_a);
	x = printed(&a);
	y = printed(&b);
	assert_string_equal(x, y);
	free(x);
	free(y);
	fa_lock_release(&a);
	fa_lock_release(&b);
}

static void only_a_built_wheel_needs_the_folder_beside(void **state)
{
	struct fa_lock l = FA_LOCK_INIT;
	char *text;

	(void)state;
	fa_strv_push(&fa_lock_add_package(&l, "a", "1")->hashes, hash_a);
	text = printed(&l);
	assert_null(strstr(text, "--find-links"));
	free(text);
	fa_lock_package(&l, "a")->built = true;
	text = printed(&l);
	assert_non_null(strstr(text, "\n--find-links ./wheels\n"));
	free(text);
	fa_lock_release(&l);
}

static void a_value_stays_on_its_line(void **state)
{
	struct fa_lock l = FA_LOCK_INIT;

	(void)state;
	fa_lock_set(&l, "k", "%s", "a\nb==1 \n");
	assert_string_equal(fa_lock_get(&l, "k"), "a b==1");
	fa_lock_release(&l);
}

static void lines_of_windows_are_read(void **state)
{
	static const char text[] =
	        "# fainstall: schema = fainstall.lock/1\r\n# fainstall: packages = 1\r\neinops==0.8.2 \\\r\n    --hash=sha256:"
	        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
	struct fa_lock l;

	(void)state;
	assert_int_equal(fa_lock_parse(&l, text, sizeof(text) - 1, "lock", NULL), 0);
	assert_int_equal(l.n_packages, 1);
	fa_lock_release(&l);
}

static void every_cut_of_a_lock_is_refused(void **state)
{
	struct fa_lock l = FA_LOCK_INIT, back;
	char *text;

	(void)state;
	sample(&l);
	text = printed(&l);
	for (size_t len = 0; len < strlen(text); len++)
		assert_int_equal(fa_lock_parse(&back, text, len, "lock", NULL), -1);
	free(text);
	fa_lock_release(&l);
}

/* ---- tests/data/lock/bad.case */

static char *fill(const char *text)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; *text; text++) {
		if (!strncmp(text, "{H}", 3)) {
			fa_buf_adds(&b, hash_a + 7);
			text += 2;
		} else {
			fa_buf_addc(&b, *text);
		}
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

static void check_bad(const char *title, const struct fa_buf *text, const char *want)
{
	char *filled = fill(fa_buf_str(text)), *nul = strstr(filled, "\\0");
	struct fa_err err = FA_ERR_INIT;
	struct fa_lock l;
	size_t len = strlen(filled);

	if (nul)
		nul[0] = '\0';
	if (fa_lock_parse(&l, filled, len, "x.lock", &err) == 0)
		fail_msg("%s: read without an error", title);
	if (!strstr(err.text, want) || strncmp(err.text, "x.lock: line ", 13) != 0 || err.status != FA_USAGE || !err.next[0])
		fail_msg("%s:\n  wanted \"%s\"\n  got    \"%s\"", title, want, err.text);
	free(filled);
}

static void each_damage_is_named_with_its_line(void **state)
{
	struct fa_buf all = FA_BUF_INIT, text = FA_BUF_INIT;
	char title[128] = "", *line, *rest;
	int n = 0;

	(void)state;
	assert_int_equal(fa_file_read(&all, "tests/data/lock/bad.case", 1 << 20, NULL), 0);
	rest = all.data;
	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "== ", 3)) {
			snprintf(title, sizeof(title), "%s", line + 3);
			fa_buf_reset(&text);
		} else if (!strncmp(line, "-- ", 3)) {
			check_bad(title, &text, line + 3);
			n++;
		} else if (*title) {
			fa_buf_addf(&text, "%s\n", line);
		}
	}
	assert_true(n >= 20);
	fa_buf_release(&all);
	fa_buf_release(&text);
}

/* ---- tests/data/lock/fits.case */

struct fit_case {
	char title[128];
	struct fa_lock lock;
	struct fa_facts facts;
	struct fa_strv says;
};

static void begin_case(struct fit_case *c, const char *title)
{
	fa_lock_release(&c->lock);
	fa_facts_release(&c->facts);
	fa_strv_release(&c->says);
	memset(c, 0, sizeof(*c));
	snprintf(c->title, sizeof(c->title), "%s", title);
}

static void check_fit(struct fit_case *c, bool frozen, int want)
{
	struct fa_buf said = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	int rc = fa_lock_fits(&c->lock, &c->facts, frozen, &said, &err);
	int got = rc < 0 ? (int)err.status : 0;

	if (got != want)
		fail_msg("%s: exit %d wanted, %d got (%s)", c->title, want, got, err.text);
	for (size_t i = 0; i < c->says.n; i++)
		if (!strstr(fa_buf_str(&said), c->says.v[i]))
			fail_msg("%s: wanted \"%s\" in\n%s", c->title, c->says.v[i], fa_buf_str(&said));
	fa_buf_release(&said);
}

static void read_case_line(struct fit_case *c, char *line)
{
	struct fa_strv words = FA_STRV_INIT;
	char *equals = strstr(line, " = ");

	if (!strncmp(line, "here ", 5)) {
		/* one value may hold blanks only as - */
		fa_strv_split(&words, line + 5, " ");
		for (size_t i = 0; i < words.n; i++)
			assert_int_equal(fa_facts_assign(&c->facts, words.v[i], NULL), 0);
	} else if (!strncmp(line, "says ", 5)) {
		fa_strv_push(&c->says, line + 5);
	} else if (!strncmp(line, "exit ", 5)) {
		check_fit(c, false, atoi(line + 5));
	} else if (!strncmp(line, "frozen ", 7)) {
		check_fit(c, true, atoi(line + 7));
	} else if (equals) {
		*equals = '\0';
		fa_lock_set(&c->lock, line, "%s", equals + 3);
	}
	fa_strv_release(&words);
}

static void each_differing_fact_is_judged(void **state)
{
	struct fit_case c = { 0 };
	struct fa_buf all = FA_BUF_INIT;
	char *line, *rest;

	(void)state;
	assert_int_equal(fa_file_read(&all, "tests/data/lock/fits.case", 1 << 20, NULL), 0);
	rest = all.data;
	while ((line = strsep(&rest, "\n"))) {
		if (*line == '#')
			continue;
		if (!strncmp(line, "== ", 3))
			begin_case(&c, line + 3);
		else
			read_case_line(&c, line);
	}
	begin_case(&c, "");
	fa_buf_release(&all);
}

/* ---- wish */

static void a_lock_gives_the_wish_that_makes_its_choice(void **state)
{
	struct fa_lock l = FA_LOCK_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct fa_strv words = FA_STRV_INIT;
	struct fa_wish w;
	char *all;

	(void)state;
	fa_lock_set(&l, "wish", "--line fa2 --with torchvision");
	fa_lock_set(&l, "route", "source");
	fa_lock_set(&l, "flash_attn", "2.8.3");
	fa_lock_set(&l, "torch", "2.11.0");
	fa_lock_set(&l, "torch_build", "cu130");
	fa_lock_set(&l, "python", "3.11");
	fa_lock_set(&l, "archs", "90");
	assert_int_equal(fa_lock_wish(&w, &l, &err), 0);
	fa_wish_argv(&w, &words);
	all = fa_strv_join(&words, " ");
	assert_non_null(strstr(all, "--torch 2.11.0+cu130"));
	assert_non_null(strstr(all, "--route source"));
	assert_non_null(strstr(all, "--with torchvision"));
	assert_non_null(strstr(all, "--arch 90"));
	free(all);
	fa_strv_release(&words);
	fa_wish_release(&w);
	fa_lock_release(&l);
}

static void an_unknown_word_in_the_wish_is_an_error(void **state)
{
	struct fa_lock l = FA_LOCK_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct fa_wish w;

	(void)state;
	fa_lock_set(&l, "wish", "--quantum yes");
	assert_int_equal(fa_lock_wish(&w, &l, &err), -1);
	assert_non_null(strstr(err.text, "--quantum"));
	fa_lock_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_comes_back_as_it_was_written),
		cmocka_unit_test(the_order_of_making_does_not_show),
		cmocka_unit_test(only_a_built_wheel_needs_the_folder_beside),
		cmocka_unit_test(a_value_stays_on_its_line),
		cmocka_unit_test(lines_of_windows_are_read),
		cmocka_unit_test(every_cut_of_a_lock_is_refused),
		cmocka_unit_test(each_damage_is_named_with_its_line),
		cmocka_unit_test(each_differing_fact_is_judged),
		cmocka_unit_test(a_lock_gives_the_wish_that_makes_its_choice),
		cmocka_unit_test(an_unknown_word_in_the_wish_is_an_error),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL) != 0;
}
