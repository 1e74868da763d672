/* The object store: found again by content whatever the folders are called, never when anything that was read has changed. */
#include "objects.h"

#include "buf.h"
#include "file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char *home;

static int set_up(void **state)
{
	char template[] = "/tmp/fa-objects-test-XXXXXX";

	(void)state;
	home = fa_strdup(mkdtemp(template));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fa_file_remove_tree(home, NULL);
	free(home);
	return 0;
}

static void put(const char *name, const char *text)
{
	char *path = fa_path_join(home, name), *dir = fa_path_dir(path);

	assert_int_equal(fa_file_mkdirs(dir, NULL), 0);
	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	free(path);
	free(dir);
}

static bool holds(const char *name, const char *text)
{
	struct fa_buf b = FA_BUF_INIT;
	char *path = fa_path_join(home, name);
	bool yes = fa_file_read(&b, path, 1 << 20, NULL) == 0 && !strcmp(fa_buf_str(&b), text);

	free(path);
	fa_buf_release(&b);
	return yes;
}

/* A command line that compiles k.cu in `source`, with torch's headers in `torch`. */
static void command(struct fa_strv *argv, const char *source, const char *torch, const char *flag)
{
	fa_strv_push(argv, "nvcc");
	fa_strv_push(argv, "-MD");
	fa_strv_push(argv, "-MF");
	fa_strv_pushf(argv, "%s/%s/k.o.d", home, source);
	fa_strv_pushf(argv, "-I%s/%s/include", home, source);
	fa_strv_pushf(argv, "-I%s/%s/include", home, torch);
	fa_strv_push(argv, "-c");
	fa_strv_push(argv, "-c");
	fa_strv_pushf(argv, "%s/%s/k.cu", home, source);
	fa_strv_push(argv, "-o");
	fa_strv_pushf(argv, "%s/%s/k.o", home, source);
	fa_strv_push(argv, flag);
}

struct unit {
	struct fa_objects store;
	struct fa_strv argv;
	struct fa_object object;
};

static void look(struct unit *u, const char *source, const char *torch, const char *flag, const char *identity)
{
	char *dir = fa_path_join(home, "store"), *roots = fa_strf("S=%s/%s\nT=%s/%s", home, source, home, torch);

	*u = (struct unit){ .argv = FA_STRV_INIT };
	command(&u->argv, source, torch, flag);
	fa_objects_init(&u->store, dir, identity, roots);
	assert_int_equal(fa_objects_look(&u->object, &u->store, u->argv.v, "TP"), 0);
	free(dir);
	free(roots);
}

static void done(struct unit *u)
{
	fa_objects_release(&u->store);
	fa_strv_release(&u->argv);
}

static void write_source(const char *folder)
{
	char *k = fa_strf("%s/k.cu", folder), *h = fa_strf("%s/include/a.h", folder);

	put(k, "#include \"a.h\"\n");
	put(h, "int a;\n");
	free(k);
	free(h);
}

/* Compiles k.cu of folder "one" with torch "t1" and keeps the object. */
static void keep_one(void)
{
	char *deps = fa_strf("%s/one/k.o: %s/one/k.cu \\\n %s/one/include/a.h\n", home, home, home);
	struct unit u;

	write_source("one");
	put("one/k.o.d", deps);
	put("one/k.o", "object");
	look(&u, "one", "t1", "-O3", "nvcc 13.0");
	assert_int_equal(fa_objects_store(&u.store, &u.object, NULL), 0);
	done(&u);
	free(deps);
}

static bool found(const char *source, const char *torch, const char *flag, const char *identity)
{
	struct unit u;
	bool yes;

	look(&u, source, torch, flag, identity);
	yes = fa_objects_fetch(&u.store, &u.object);
	done(&u);
	return yes;
}

static void another_folder_and_another_torch_find_it(void **state)
{
	char *deps;

	(void)state;
	keep_one();
	write_source("two");
	assert_true(found("two", "t2", "-O3", "nvcc 13.0"));
	assert_true(holds("two/k.o", "object"));
	deps = fa_strf("%s/two/k.o: \\\n %s/two/k.cu \\\n %s/two/include/a.h\n", home, home, home);
	assert_true(holds("two/k.o.d", deps));
	free(deps);
}

static void other_flags_or_another_compiler_do_not(void **state)
{
	(void)state;
	keep_one();
	assert_false(found("one", "t1", "-O2", "nvcc 13.0"));
	assert_false(found("one", "t1", "-O3", "nvcc 13.2"));
	assert_true(found("one", "t1", "-O3", "nvcc 13.0"));
}

static void a_changed_header_or_source_does_not(void **state)
{
	(void)state;
	keep_one();
	put("one/include/a.h", "int b;\n");
	assert_false(found("one", "t1", "-O3", "nvcc 13.0"));
	put("one/include/a.h", "int a;\n");
	assert_true(found("one", "t1", "-O3", "nvcc 13.0"));
	put("one/k.cu", "other\n");
	assert_false(found("one", "t1", "-O3", "nvcc 13.0"));
}

static void a_damaged_object_is_not_used_and_goes(void **state)
{
	char *find, name[512];
	FILE *p;

	(void)state;
	keep_one();
	find = fa_strf("find %s/store/objects -name '*.o'", home);
	p = popen(find, "r");
	assert_non_null(fgets(name, sizeof(name), p));
	pclose(p);
	name[strcspn(name, "\n")] = '\0';
	assert_int_equal(fa_file_write(name, "damaged", 7, NULL), 0);
	assert_false(found("one", "t1", "-O3", "nvcc 13.0"));
	assert_int_not_equal(access(name, F_OK), 0);
	free(find);
}

static void a_damaged_manifest_finds_nothing(void **state)
{
	struct unit u;
	char *path;

	(void)state;
	keep_one();
	look(&u, "one", "t1", "-O3", "nvcc 13.0");
	path = fa_strf("store/manifests/%.2s/%s", u.object.key, u.object.key);
	done(&u);
	put(path, "object ../../../etc/passwd\ndep x\nobject zz\ndep ");
	assert_false(found("one", "t1", "-O3", "nvcc 13.0"));
	free(path);
}

static void the_limit_takes_the_longest_unused(void **state)
{
	char *store = fa_path_join(home, "store");

	(void)state;
	keep_one();
	fa_objects_trim(store, 1);
	assert_true(found("one", "t1", "-O3", "nvcc 13.0"));
	fa_objects_trim(store, 0);
	assert_false(found("one", "t1", "-O3", "nvcc 13.0"));
	free(store);
}

static void depfiles_are_read_as_make_does(void **state)
{
	static const char *const cases[][2] = {
		{ "x.o: a.h b.h\n", "a.h|b.h|" },
		{ "x.o : a.h \\\n  b.h \\\r\n c.h\nother: d.h\n", "a.h|b.h|c.h|" },
		{ "x.o: a\\ b.h $$c.h d\\#e.h", "a b.h|$c.h|d#e.h|" },
		{ "", "" },
		{ "no colon", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fa_strv words = FA_STRV_INIT;
		struct fa_buf text = FA_BUF_INIT;

		fa_objects_parse_depfile(&words, cases[i][0]);
		for (size_t k = 0; k < words.n; k++)
			fa_buf_addf(&text, "%s|", words.v[k]);
		assert_string_equal(fa_buf_str(&text), cases[i][1]);
		fa_buf_release(&text);
		fa_strv_release(&words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(another_folder_and_another_torch_find_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_flags_or_another_compiler_do_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_changed_header_or_source_does_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_object_is_not_used_and_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_manifest_finds_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_limit_takes_the_longest_unused, set_up, tear_down),
		cmocka_unit_test(depfiles_are_read_as_make_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
