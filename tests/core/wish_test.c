#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "closest.h"
#include "wish.h"

#include <stdlib.h>
#include <string.h>

/* option, value typed, value kept (NULL: refused), word that the next step must hold when refused */
static const struct {
	const char *option, *typed, *kept, *next;
} cases[] = {
	{ "flash-attn", "2.8.3", "2.8.3", NULL },
	{ "flash-attn", "2.7.4.post1", "2.7.4.post1", NULL },
	{ "flash-attn", "v2.8.3", NULL, "--flash-attn 2.8.3" },
	{ "flash-attn", "latest", NULL, "2.8.3" },
	{ "torch", "2.8.0+cu128", "2.8.0+cu128", NULL },
	{ "torch", "2.8.0a0+5228986c39.nv25.05", "2.8.0a0+5228986c39.nv25.05", NULL },
	{ "torch", "2.x", NULL, "--torch" },
	{ "torch", "", NULL, "--torch" },
	{ "torch", "2.8\n0", NULL, "--torch" },
	{ "cuda", "12.8", "12.8", NULL },
	{ "cuda", "13", "13", NULL },
	{ "cuda", "cu128", NULL, "--cuda 12.8" },
	{ "cuda", "12.", NULL, "12.8" },
	{ "python", "3.12", "3.12", NULL },
	{ "python", "3.13t", "3.13t", NULL },
	{ "python", "3.12.4", NULL, "--python 3.12" },
	{ "python", "python3", NULL, "3.12" },
	{ "line", "fa2", "fa2", NULL },
	{ "line", "fa22", NULL, "--line fa2" },
	{ "route", "wheel", "wheel", NULL },
	{ "route", "weel", NULL, "--route wheel" },
	{ "profile", "trainning", NULL, "--profile training" },
	{ "relax", "cuda-chek", NULL, "--relax cuda-check" },
	{ "arch", "90", "90", NULL },
	{ "arch", "8.6,sm_90,sm90,compute_100a,gfx942", "86,90,100,gfx942", NULL },
	{ "arch", "9.0a;12.0 8.0+PTX 100f,gfx90a:sramecc+:xnack-", "90,120,80,100,gfx90a", NULL },
	{ "arch", "hopper", NULL, "matrix show gpus" },
	{ "arch", "9", NULL, "--arch 90" },
	{ "dtype", "bf16, fp16", "bf16,fp16", NULL },
	{ "dtype", "bfloat16", NULL, "--dtype bf16" },
	{ "head-dim", "64,128", "64,128", NULL },
	{ "head-dim", "0", NULL, "128" },
	{ "head-dim", "12x", NULL, "128" },
	{ "jobs", "4", "4", NULL },
	{ "jobs", "0", NULL, "--jobs 4" },
	{ "jobs", "-3", NULL, "--jobs 4" },
	{ "jobs", "99999999999999999999", NULL, "--jobs 4" },
	{ "needs", "window,paged-kv", "window,paged-kv", NULL },
	{ "needs", "Window", NULL, "window" },
	{ "needs", ",", NULL, "--needs" },
	{ "source", "official", "official", NULL },
	{ "source", "http://example.org/x.whl", NULL, "https" },
	{ "source", "http://127.0.0.1:8000/x.whl", "http://127.0.0.1:8000/x.whl", NULL },
	{ "env", "llm", "llm", NULL },
	{ "env", "./venv", "./venv", NULL },
	{ "env", "..", NULL, "./" },
	{ "env", "my env", NULL, "./my env" },
};

static void each_value_is_kept_or_refused_with_the_right_spelling(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fa_wish w = FA_WISH_INIT;
		struct fa_err err = FA_ERR_INIT;
		enum fa_wish_id id;
		int rc;

		assert_int_equal(fa_wish_find(&id, cases[i].option), 0);
		rc = fa_wish_set(&w, id, cases[i].typed, &err);
		if (cases[i].kept) {
			if (rc < 0)
				print_error("--%s %s: %s\n", cases[i].option, cases[i].typed, err.text);
			assert_int_equal(rc, 0);
			assert_string_equal(fa_wish_get(&w, id), cases[i].kept);
		} else {
			if (rc == 0 || !strstr(err.next, cases[i].next))
				print_error("--%s %s: rc %d, next: %s\n", cases[i].option, cases[i].typed, rc, err.next);
			assert_int_equal(rc, -1);
			assert_int_equal(err.status, FA_USAGE);
			assert_non_null(strstr(err.text, cases[i].option));
			assert_non_null(strstr(err.next, cases[i].next));
			assert_null(fa_wish_get(&w, id));
		}
		fa_wish_release(&w);
	}
}

static void a_wish_prints_as_the_words_that_mean_it(void **state)
{
	struct fa_wish w = FA_WISH_INIT, copy;
	struct fa_strv words = FA_STRV_INIT;
	char *line;

	(void)state;
	assert_int_equal(fa_wish_set(&w, FA_WISH_LINE, "fa2", NULL), 0);
	assert_int_equal(fa_wish_set(&w, FA_WISH_ARCH, "80", NULL), 0);
	assert_int_equal(fa_wish_set(&w, FA_WISH_ARCH, "9.0,80", NULL), 0);
	assert_int_equal(fa_wish_set(&w, FA_WISH_OFFLINE, NULL, NULL), 0);
	fa_wish_copy(&copy, &w);
	fa_wish_argv(&copy, &words);
	line = fa_strv_join(&words, " ");
	assert_string_equal(line, "--line fa2 --arch 80,90 --offline");
	free(line);
	fa_strv_release(&words);
	fa_wish_release(&copy);
	fa_wish_release(&w);
}

static void a_refused_value_leaves_the_wish_as_it_was(void **state)
{
	struct fa_wish w = FA_WISH_INIT;

	(void)state;
	assert_int_equal(fa_wish_set(&w, FA_WISH_ARCH, "80", NULL), 0);
	assert_int_equal(fa_wish_set(&w, FA_WISH_ARCH, "90,hopper", NULL), -1);
	assert_string_equal(fa_wish_get(&w, FA_WISH_ARCH), "80");
	fa_wish_release(&w);
}

static void the_closest_word_is_near_or_none(void **state)
{
	static const char *const known[] = { "install", "inspect", "detect", "plan", "env" };

	(void)state;
	assert_string_equal(fa_closest("instal", known, 5), "install");
	assert_string_equal(fa_closest("plna", known, 5), "plan");
	assert_string_equal(fa_closest("dtect", known, 5), "detect");
	assert_null(fa_closest("frobnicate", known, 5));
	assert_null(fa_closest("x", known, 5));
	assert_null(fa_closest("", known, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_value_is_kept_or_refused_with_the_right_spelling),
		cmocka_unit_test(a_wish_prints_as_the_words_that_mean_it),
		cmocka_unit_test(a_refused_value_leaves_the_wish_as_it_was),
		cmocka_unit_test(the_closest_word_is_near_or_none),
	};

	return cmocka_run_group_tests_name("wish", tests, NULL, NULL) != 0;
}
