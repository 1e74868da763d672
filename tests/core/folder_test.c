/* A folder as a source: its hash says what is in it and not where it lies, its copy has the same, and nothing leads out. */
#include "folder.h"

#include "buf.h"
#include "file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *home;

static void put(const char *name, const char *text)
{
	char *path = fa_path_join(home, name), *dir = fa_path_dir(path);

	assert_int_equal(fa_file_mkdirs(dir, NULL), 0);
	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	free(path);
	free(dir);
}

static int set_up(void **state)
{
	char template[] = "/tmp/fa-folder-test-XXXXXX";

	(void)state;
	home = fa_strdup(mkdtemp(template));
	put("a/hopper/setup.py", "one");
	put("a/hopper/flash.h", "two");
	put("a/csrc/cutlass/include/x.h", "three");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fa_file_remove_tree(home, NULL);
	free(home);
	return 0;
}

static char *at(const char *name)
{
	return fa_path_join(home, name);
}

static void digest(char out[FA_SHA256_HEX], const char *name)
{
	char *path = at(name);
	struct fa_err err = FA_ERR_INIT;

	assert_int_equal(fa_folder_digest(out, path, &err), 0);
	free(path);
}

static void copy(const char *to, const char *from)
{
	char *a = at(to), *b = at(from);
	struct fa_err err = FA_ERR_INIT;

	assert_int_equal(fa_folder_copy(a, b, NULL, &err), 0);
	free(a);
	free(b);
}

static void a_copy_has_the_same_hash_and_files(void **state)
{
	char first[FA_SHA256_HEX], second[FA_SHA256_HEX], *tool = at("a/tool"), *link = at("a/link");
	struct fa_buf text = FA_BUF_INIT;
	char *copied = at("b/csrc/cutlass/include/x.h"), *copied_tool = at("b/tool");

	(void)state;
	put("a/tool", "#!/bin/sh\n");
	assert_int_equal(chmod(tool, 0755), 0);
	assert_int_equal(symlink("hopper/flash.h", link), 0);
	digest(first, "a");
	copy("b", "a");
	digest(second, "b");
	assert_string_equal(first, second);
	assert_int_equal(fa_file_read(&text, copied, 100, NULL), 0);
	assert_string_equal(fa_buf_str(&text), "three");
	assert_true(fa_file_is_executable(copied_tool));
	fa_buf_release(&text);
	free(tool);
	free(link);
	free(copied);
	free(copied_tool);
}

static void each_change_is_another_hash(void **state)
{
	char was[FA_SHA256_HEX], is[FA_SHA256_HEX], *setup = at("a/hopper/setup.py");

	(void)state;
	digest(was, "a");
	put("a/hopper/setup.py", "One");
	digest(is, "a");
	assert_string_not_equal(was, is);
	put("a/hopper/setup.py", "one");
	digest(is, "a");
	assert_string_equal(was, is);
	assert_int_equal(chmod(setup, 0755), 0);
	digest(is, "a");
	assert_string_not_equal(was, is);
	assert_int_equal(chmod(setup, 0644), 0);
	put("a/hopper/more.h", "");
	digest(is, "a");
	assert_string_not_equal(was, is);
	free(setup);
}

static void what_git_and_builds_leave_is_no_source(void **state)
{
	char was[FA_SHA256_HEX], is[FA_SHA256_HEX], *object = at("b/hopper/build/x.o");

	(void)state;
	digest(was, "a");
	put("a/.git/HEAD", "x");
	put("a/hopper/build/x.o", "x");
	put("a/hopper/flash_attn_3.egg-info/PKG-INFO", "x");
	put("a/hopper/__pycache__/x.pyc", "x");
	digest(is, "a");
	assert_string_equal(was, is);
	copy("b", "a");
	assert_false(fa_file_exists(object));
	free(object);
}

static void a_link_that_leads_out_is_refused(void **state)
{
	char hex[FA_SHA256_HEX], *folder = at("a"), *link = at("a/hopper/out"), *to = at("b");
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(symlink("../../etc/passwd", link), 0);
	assert_int_equal(fa_folder_digest(hex, folder, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_non_null(strstr(err.text, "leads out"));
	assert_int_equal(fa_folder_copy(to, folder, NULL, &err), -1);
	assert_false(fa_file_exists(to));
	free(folder);
	free(link);
	free(to);
}

static void a_pipe_is_no_file(void **state)
{
	char hex[FA_SHA256_HEX], *folder = at("a"), *pipe = at("a/pipe");
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(fa_folder_digest(hex, folder, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	free(folder);
	free(pipe);
}

static void stopped_it_leaves_nothing(void **state)
{
	static const volatile int stop = 1;
	char *from = at("a"), *to = at("b");
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_folder_copy(to, from, &stop, &err), -1);
	assert_int_equal(err.status, FA_INTERRUPTED);
	assert_false(fa_file_exists(to));
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_copy_has_the_same_hash_and_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_change_is_another_hash, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_git_and_builds_leave_is_no_source, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_link_that_leads_out_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pipe_is_no_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stopped_it_leaves_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
