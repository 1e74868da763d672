#include "matrix.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "kb.h"
#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char *folder(void)
{
	char *dir = fa_strf("/tmp/fainstall-matrix.%d", (int)getpid());

	assert_int_equal(fa_file_mkdirs(dir, NULL), 0);
	return dir;
}

static void put(const char *dir, const char *name, const char *text)
{
	char *path = fa_path_join(dir, name);

	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	free(path);
}

static struct fa_matrix *open_with(const char *user)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_matrix *m;

	if (fa_matrix_open_at(&m, "matrix", "recipes", user, &err) < 0)
		fail_msg("%s", err.text);
	return m;
}

static void what_is_shipped_has_no_findings(void **state)
{
	struct fa_matrix *m = open_with(NULL);
	struct fa_buf out = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	int n = fa_matrix_check(m, &out, &err);

	(void)state;
	if (n != 0)
		fail_msg("%d findings: %s%s", n, fa_buf_str(&out), err.text);
	fa_buf_release(&out);
	fa_matrix_close(m);
}

static void everything_can_be_shown_both_ways(void **state)
{
	struct fa_matrix *m = open_with(NULL);
	struct fa_strv words = FA_STRV_INIT;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	fa_strv_split(&words, fa_matrix_shows(), " ");
	for (size_t i = 0; i < words.n; i++)
		for (int markdown = 0; markdown < 2; markdown++) {
			struct fa_buf out = FA_BUF_INIT;

			assert_int_equal(fa_matrix_show(m, words.v[i], markdown, &out, &err), 0);
			assert_true(out.len > 100);
			fa_buf_release(&out);
		}
	assert_int_equal(fa_matrix_show(m, "everything", 0, NULL, &err), -1);
	assert_non_null(strstr(err.text, "everything"));
	fa_strv_release(&words);
	fa_matrix_close(m);
}

/* The error of a matrix that has that text as a user's table. */
static void assert_damage(const char *name, const char *text, const char *expected)
{
	char *dir = folder();
	struct fa_err err = FA_ERR_INIT;
	struct fa_matrix *m;
	struct fa_kb *kb;

	put(dir, name, text);
	m = open_with(dir);
	assert_int_equal(fa_matrix_kb(&kb, m, &err), -1);
	if (!strstr(err.text, expected))
		fail_msg("expected \"%s\" in \"%s\"", expected, err.text);
	fa_matrix_close(m);
	fa_file_remove_tree(dir, NULL);
	m = open_with(dir); /* without that file what is shipped works */
	assert_int_equal(fa_matrix_kb(&kb, m, &err), 0);
	fa_matrix_close(m);
	free(dir);
}

static void damage_is_named_with_file_and_row(void **state)
{
	(void)state;
	assert_damage("torch.json", "{\"schema\":", "torch.json:1:");
	assert_damage("torch.json", "{\"schema\":\"fainstall.matrix/2\",\"rows\":[]}", "fainstall.matrix/2 is not known here");
	assert_damage("torch.json", "{\"schema\":\"fainstall.matrix/1\"}", "no list \"rows\"");
	assert_damage("rules.json",
	              "{\"schema\":\"fainstall.matrix/1\",\"rows\":[{\"id\":\"x\",\"on\":\"torch\",\"need\":\"tourch == 1\"}]}",
	              "row \"x\": unknown fact \"tourch\"");
	assert_damage("rules.json",
	              "{\"schema\":\"fainstall.matrix/1\",\"rows\":[{\"id\":\"x\",\"on\":\"moon\",\"need\":\"\"}]}",
	              "\"moon\"");
}

static void a_row_of_the_user_replaces_the_shipped_one(void **state)
{
	char *dir = folder();
	struct fa_matrix *m;
	struct fa_kb *kb;

	(void)state;
	put(dir, "archs.json",
	    "{\"schema\":\"fainstall.matrix/"
	    "1\",\"rows\":[{\"arch\":\"80\",\"vendor\":\"nvidia\",\"family\":\"Mine\",\"codes\":\"80\"}]}");
	m = open_with(dir);
	assert_int_equal(fa_matrix_kb(&kb, m, NULL), 0);
	assert_string_equal(fa_kb_arch(kb, "80")->family, "Mine");
	assert_string_equal(fa_kb_arch(kb, "90")->family, "Hopper");
	fa_matrix_close(m);
	fa_file_remove_tree(dir, NULL);
	free(dir);
}

static void a_card_is_found_by_its_name(void **state)
{
	static const struct {
		const char *name, *arch;
	} CARDS[] = { { "NVIDIA H200", "90" },
		      { "NVIDIA A100-SXM4-80GB", "80" },
		      { "NVIDIA A10", "86" },
		      { "NVIDIA GeForce RTX 4090", "89" },
		      { "NVIDIA GeForce RTX 5090 Laptop GPU", "120" },
		      { "Quadro RTX 5000", "75" } };
	struct fa_matrix *m = open_with(NULL);
	struct fa_kb *kb;

	(void)state;
	assert_int_equal(fa_matrix_kb(&kb, m, NULL), 0);
	for (size_t i = 0; i < sizeof(CARDS) / sizeof(CARDS[0]); i++)
		assert_string_equal(fa_kb_arch_of_name(kb, CARDS[i].name), CARDS[i].arch);
	assert_null(fa_kb_arch_of_name(kb, "Voodoo 2"));
	fa_matrix_close(m);
}

static void a_named_source_adds_its_wheels(void **state)
{
	static const char LISTING[] =
	        "flash_attn-2.8.3+cu130torch2.15cxx11abiTRUE-cp312-cp312-linux_x86_64.whl "
	        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
	        "index.html\nflash_attn-nonsense.whl\nhttp://127.0.0.1:8000/flash_attn_3-3.0.0-cp39-abi3-linux_x86_64.whl\n";
	struct fa_matrix *m = open_with(NULL);
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_wish wish = FA_WISH_INIT;
	struct fa_plan p;
	struct fa_gpu *g;

	(void)state;
	assert_int_equal(fa_matrix_add_source(m, "http://127.0.0.1:8000/", "http://127.0.0.1:8000/", LISTING, NULL), 2);
	fa_facts_assign(&facts, "os=linux", NULL);
	fa_facts_assign(&facts, "machine=x86_64", NULL);
	fa_facts_assign(&facts, "python=3.12.3", NULL);
	fa_facts_assign(&facts, "python_abi=cp312", NULL);
	fa_facts_assign(&facts, "driver=580.95.05", NULL);
	fa_facts_assign(&facts, "torch=2.15.0+cu132", NULL);
	fa_facts_assign(&facts, "torch_cuda=13.2", NULL);
	g = fa_facts_add_gpu(&facts);
	g->vendor = fa_strdup("nvidia");
	g->arch = fa_strdup("90");
	wish.v[FA_WISH_SOURCE] = fa_strdup("http://127.0.0.1:8000/");
	assert_int_equal(fa_resolve(&p, &facts, &wish, m, NULL), 0);
	assert_string_equal(p.choice.route, "wheel");
	assert_string_equal(p.choice.wheel.url,
	                    "http://127.0.0.1:8000/flash_attn-2.8.3+cu130torch2.15cxx11abiTRUE-cp312-cp312-linux_x86_64.whl");
	assert_int_equal(strlen(p.choice.wheel.sha256), 64);
	fa_plan_release(&p);
	fa_wish_release(&wish);
	fa_facts_release(&facts);
	fa_matrix_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_shipped_has_no_findings),
		cmocka_unit_test(everything_can_be_shown_both_ways),
		cmocka_unit_test(damage_is_named_with_file_and_row),
		cmocka_unit_test(a_row_of_the_user_replaces_the_shipped_one),
		cmocka_unit_test(a_card_is_found_by_its_name),
		cmocka_unit_test(a_named_source_adds_its_wheels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
