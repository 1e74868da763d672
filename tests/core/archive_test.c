#include "archive.h"
#include "buf.h"
#include "file.h"
#include "strv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DATA "tests/data/archive/"

static char work[64]; /* a folder of this run's own */

static int make_work(void **state)
{
	(void)state;
	snprintf(work, sizeof(work), "/tmp/fa-archive-XXXXXX");
	return mkdtemp(work) ? 0 : -1;
}

static int remove_work(void **state)
{
	(void)state;
	return fa_file_remove_tree(work, NULL);
}

static void assert_modes(const char *dir, const char *list)
{
	struct fa_strv items = FA_STRV_INIT;

	fa_strv_split(&items, list, ",");
	for (size_t i = 0; i < items.n; i++) {
		char *blank = strrchr(items.v[i], ' '), *path;
		struct stat st;

		*blank = '\0';
		path = fa_path_join(dir, items.v[i]);
		if (stat(path, &st) < 0)
			fail_msg("%s is not there", path);
		assert_int_equal(st.st_mode & 07777, strtol(blank + 1, NULL, 8));
		free(path);
	}
	fa_strv_release(&items);
}

/* Nothing beside `dir` may stay in the folder, whatever became of it. */
static void assert_alone(const char *dir, int there)
{
	char *command = fa_strf("test $(ls -A %s | wc -l) = %d && test ! -e /tmp/fa-evil && test ! -e %s/../fa-evil", work,
	                        there, work);

	assert_int_equal(system(command), 0);
	assert_int_equal(fa_file_exists(dir), there);
	free(command);
}

static void run_case(const char *line)
{
	struct fa_strv f = FA_STRV_INIT;
	struct fa_err err = FA_ERR_INIT;
	char *archive, *dir = fa_path_join(work, "out");
	int rc;

	fa_strv_split(&f, line, "|");
	assert_int_equal(f.n, 5);
	archive = fa_path_join(DATA, f.v[0]);
	rc = fa_archive_unpack(archive, dir, atoi(f.v[1]), atoll(f.v[2]), NULL, &err);
	if (!strcmp(f.v[3], "ok")) {
		if (rc < 0)
			fail_msg("%s: %s", line, err.text);
		assert_modes(dir, f.v[4]);
		assert_alone(dir, 1);
		assert_int_equal(fa_file_remove_tree(dir, &err), 0);
	} else {
		if (rc == 0 || err.status != (enum fa_status)atoi(f.v[3]) || !strstr(err.text, f.v[4]))
			fail_msg("%s\ngot %d, status %d: %s", line, rc, (int)err.status, err.text);
		assert_alone(dir, 0);
	}
	free(archive);
	free(dir);
	fa_strv_release(&f);
}

static void every_case_comes_out_as_written(void **state)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_strv lines = FA_STRV_INIT;

	(void)state;
	assert_int_equal(fa_file_read(&text, DATA "cases.txt", FA_FILE_MAX, NULL), 0);
	fa_strv_split(&lines, fa_buf_str(&text), "\n");
	for (size_t i = 0; i < lines.n; i++)
		if (lines.v[i][0] != '#')
			run_case(lines.v[i]);
	fa_strv_release(&lines);
	fa_buf_release(&text);
}

static void content_times_and_links_are_kept(void **state)
{
	char *dir = fa_path_join(work, "kept"), *path;
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;
	struct stat st;
	char target[32];

	(void)state;
	assert_int_equal(fa_archive_unpack(DATA "links.tar.gz", dir, 1, 1000, NULL, &err), 0);
	path = fa_path_join(dir, "sub/up");
	assert_int_equal(fa_file_read(&text, path, 100, &err), 0);
	assert_string_equal(fa_buf_str(&text), "hello\n");
	assert_int_equal(readlink(path, target, sizeof(target)), 8);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mtime, 1700000000);
	assert_int_equal(st.st_nlink, 2);
	free(path);
	fa_buf_release(&text);
	assert_int_equal(fa_archive_unpack(DATA "links.tar.gz", dir, 1, 1000, NULL, &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	assert_non_null(strstr(err.text, "is there already"));
	fa_file_remove_tree(dir, NULL);
	free(dir);
}

static void entries_are_listed_and_one_is_read(void **state)
{
	struct fa_strv names = FA_STRV_INIT;
	struct fa_buf text = FA_BUF_INIT;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_archive_list(&names, DATA "good.whl", &err), 0);
	assert_int_equal(names.n, 3);
	assert_string_equal(names.v[1], "pkg-1.dist-info/METADATA");
	assert_int_equal(fa_archive_read(&text, DATA "good.whl", names.v[1], 100, &err), 0);
	assert_string_equal(fa_buf_str(&text), "Name: pkg\n");
	assert_int_equal(fa_archive_read(&text, DATA "good.whl", "METADATA", 100, &err), -1);
	assert_string_equal(err.text, DATA "good.whl: holds no METADATA");
	assert_int_equal(fa_archive_read(&text, DATA "good.whl", names.v[1], 5, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_int_equal(fa_archive_list(&names, "/tmp", &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	fa_buf_release(&text);
	fa_strv_release(&names);
}

static void a_set_flag_stops_it_and_nothing_stays(void **state)
{
	volatile int cancel = 1;
	char *dir = fa_path_join(work, "cancelled");
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_archive_unpack(DATA "good.tar.gz", dir, 1, 1000, &cancel, &err), -1);
	assert_int_equal(err.status, FA_INTERRUPTED);
	assert_alone(dir, 0);
	free(dir);
}

/* Needs a small disk of its own: only root of a user namespace can mount one. */
static void a_full_disk_is_said(void **state)
{
	char *dir = fa_path_join(work, "full"), *out = fa_path_join(dir, "out");
	char *mount = fa_strf("mkdir -p %s && mount -t tmpfs -o size=64k tmpfs %s 2>/dev/null", dir, dir);
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	if (system(mount) == 0) {
		assert_int_equal(fa_archive_unpack(DATA "bomb.tar.gz", out, 1, 10000000, NULL, &err), -1);
		assert_int_equal(rmdir(dir) == 0, 0); /* still mounted */
		assert_false(fa_file_exists(out));
		free(mount);
		mount = fa_strf("umount %s", dir);
		assert_int_equal(system(mount), 0);
		assert_int_equal(err.status, FA_MACHINE);
		assert_non_null(strstr(err.text, "No space left"));
		assert_non_null(strstr(err.next, "free some space"));
	}
	free(mount);
	fa_file_remove_tree(dir, NULL);
	free(out);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_comes_out_as_written),
		cmocka_unit_test(content_times_and_links_are_kept),
		cmocka_unit_test(entries_are_listed_and_one_is_read),
		cmocka_unit_test(a_set_flag_stops_it_and_nothing_stays),
		cmocka_unit_test(a_full_disk_is_said),
	};

	return cmocka_run_group_tests_name("archive", tests, make_work, remove_work) ? 1 : 0;
}
