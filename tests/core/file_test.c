#include "buf.h"
#include "file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char work[64];

static int make_work(void **state)
{
	(void)state;
	snprintf(work, sizeof(work), "/tmp/fa-file-XXXXXX");
	return mkdtemp(work) ? 0 : -1;
}

static int remove_work(void **state)
{
	(void)state;
	return fa_file_remove_tree(work, NULL);
}

static void what_is_written_is_read_and_nothing_else_stays(void **state)
{
	char *path = fa_path_join(work, "a");
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_file_write(path, "one\0two", 7, &err), 0);
	assert_int_equal(fa_file_write(path, "three", 5, &err), 0);
	assert_int_equal(fa_file_read(&text, path, 100, &err), 0);
	assert_string_equal(fa_buf_str(&text), "three");
	assert_int_equal(fa_file_read(&text, path, 6, &err), -1); /* together with what was there */
	assert_non_null(strstr(err.text, path));
	assert_int_equal(fa_file_remove_tree(path, &err), 0);
	assert_int_equal(rmdir(work), 0);
	assert_int_equal(mkdir(work, 0700), 0);
	fa_buf_release(&text);
	free(path);
}

static void errors_name_the_path_and_the_reason(void **state)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	char *file = fa_path_join(work, "file"), *below = fa_path_join(work, "file/below/it");

	(void)state;
	assert_int_equal(fa_file_read(&text, "/no/such", 10, &err), -1);
	assert_string_equal(err.text, "/no/such: No such file or directory");
	assert_int_equal(err.status, FA_USAGE);
	assert_int_equal(fa_file_read(&text, work, 10, &err), -1);
	assert_non_null(strstr(err.text, "is a folder"));
	assert_int_equal(fa_file_write("/no/such/file", "", 0, &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	assert_int_equal(fa_file_write(file, "", 0, &err), 0);
	assert_int_equal(fa_file_mkdirs(below, &err), -1);
	assert_non_null(strstr(err.text, "File exists"));
	assert_int_equal(fa_file_mkdirs("", &err), -1);
	fa_file_remove_tree(file, NULL);
	fa_buf_release(&text);
	free(file);
	free(below);
}

static void a_removed_tree_leaves_what_its_links_point_to(void **state)
{
	char *deep = fa_path_join(work, "t/a/b/c"), *tree = fa_path_join(work, "t"), *kept = fa_path_join(work, "kept");
	char *link = fa_path_join(work, "t/link"), *inside = fa_path_join(kept, "f");

	(void)state;
	assert_int_equal(fa_file_mkdirs(deep, NULL), 0);
	assert_int_equal(fa_file_mkdirs(deep, NULL), 0);
	assert_int_equal(fa_file_mkdirs(kept, NULL), 0);
	assert_int_equal(fa_file_write(inside, "x", 1, NULL), 0);
	assert_int_equal(symlink(kept, link), 0);
	assert_int_equal(fa_file_remove_tree(tree, NULL), 0);
	assert_false(fa_file_exists(tree));
	assert_true(fa_file_exists(inside));
	assert_int_equal(fa_file_remove_tree(tree, NULL), 0);
	fa_file_remove_tree(kept, NULL);
	free(deep);
	free(tree);
	free(kept);
	free(link);
	free(inside);
}

/* A number that no process has: of a child that was reaped. */
static long dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return (long)pid;
}

static void only_old_leftovers_of_the_dead_go(void **state)
{
	char *path = fa_path_join(work, "x"), *old = fa_strf("%s.tmp.%ld", path, dead_pid()),
	     *fresh = fa_strf("%s.tmp.%ld", path, dead_pid());
	char *mine = fa_strf("%s.tmp.%ld", path, (long)getpid()), *other = fa_strf("%s.tmp.x", path);
	struct timespec hours_ago[2] = { { .tv_sec = time(NULL) - 9000 }, { .tv_sec = time(NULL) - 9000 } };

	(void)state;
	assert_int_equal(fa_file_mkdirs(old, NULL) | fa_file_mkdirs(fresh, NULL) | fa_file_mkdirs(mine, NULL) |
	                         fa_file_mkdirs(other, NULL),
	                 0);
	assert_int_equal(utimensat(AT_FDCWD, old, hours_ago, 0) | utimensat(AT_FDCWD, mine, hours_ago, 0), 0);
	fa_file_remove_stale(path);
	assert_false(fa_file_exists(old));
	assert_true(fa_file_exists(fresh) && fa_file_exists(mine) && fa_file_exists(other));
	fa_file_remove_tree(fresh, NULL);
	fa_file_remove_tree(mine, NULL);
	fa_file_remove_tree(other, NULL);
	free(path);
	free(old);
	free(fresh);
	free(mine);
	free(other);
}

static void assert_text(char *got, const char *want)
{
	assert_string_equal(got, want);
	free(got);
}

static void paths_are_joined_and_cut(void **state)
{
	(void)state;
	assert_text(fa_path_join("a", "b"), "a/b");
	assert_text(fa_path_join("a//", "b"), "a/b");
	assert_text(fa_path_join("/", "b"), "/b");
	assert_text(fa_path_join("a", "/b"), "/b");
	assert_text(fa_path_join("", "b"), "b");
	assert_text(fa_path_dir("/a"), "/");
	assert_text(fa_path_dir("a/b"), "a");
	assert_text(fa_path_dir("a"), ".");
	assert_string_equal(fa_path_base("a/b"), "b");
	assert_text(fa_path_absolute("/a/b"), "/a/b");
}

static void relative_values_of_xdg_variables_are_ignored(void **state)
{
	(void)state;
	setenv("HOME", "/h", 1);
	setenv("XDG_DATA_HOME", "/d", 1);
	assert_text(fa_dir_data(), "/d/fainstall");
	setenv("XDG_DATA_HOME", "d", 1);
	assert_text(fa_dir_data(), "/h/.local/share/fainstall");
	unsetenv("XDG_CACHE_HOME");
	assert_text(fa_dir_cache(), "/h/.cache/fainstall");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_and_nothing_else_stays),
		cmocka_unit_test(errors_name_the_path_and_the_reason),
		cmocka_unit_test(a_removed_tree_leaves_what_its_links_point_to),
		cmocka_unit_test(only_old_leftovers_of_the_dead_go),
		cmocka_unit_test(paths_are_joined_and_cut),
		cmocka_unit_test(relative_values_of_xdg_variables_are_ignored),
	};

	return cmocka_run_group_tests_name("file", tests, make_work, remove_work) ? 1 : 0;
}
