#include "sys.h"

#include "file.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct fa_command_result run(unsigned timeout_ms, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct fa_command_result r;
	struct fa_sys sys;

	fa_sys_real(&sys);
	sys.run(sys.ctx, argv, timeout_ms, &r);
	fa_sys_close(&sys);
	return r;
}

static void both_streams_and_the_exit_status_come_back(void **state)
{
	struct fa_command_result r = run(5000, "echo out; echo err >&2; exit 3");

	(void)state;
	assert_int_equal(r.result, FA_SYS_DONE);
	assert_int_equal(r.exit_status, 3);
	assert_string_equal(fa_buf_str(&r.out), "out\n");
	assert_string_equal(fa_buf_str(&r.err), "err\n");
	fa_command_result_release(&r);
}

static void a_command_that_hangs_is_ended_at_its_limit_with_its_children(void **state)
{
	double began = seconds();
	struct fa_command_result r = run(150, "trap '' TERM; sleep 30 & echo $!; sleep 30");
	pid_t child = (pid_t)atoi(fa_buf_str(&r.out));

	(void)state;
	assert_int_equal(r.result, FA_SYS_TIMED_OUT);
	assert_true(seconds() - began < 5);
	assert_true(child > 1);
	for (int i = 0; i < 100 && kill(child, 0) == 0; i++)
		usleep(10000); /* until init has reaped it */
	fa_command_result_release(&r);
}

static void a_command_that_crashes_is_told_from_one_that_fails(void **state)
{
	struct fa_command_result r = run(5000, "kill -SEGV $$");

	(void)state;
	assert_int_equal(r.result, FA_SYS_CRASHED);
	assert_int_equal(r.signal, SIGSEGV);
	fa_command_result_release(&r);
}

static void a_command_that_is_not_there_is_not_a_failure_of_it(void **state)
{
	const char *const argv[] = { "no-such-program-of-fainstall", NULL };
	struct fa_command_result r;
	struct fa_sys sys;

	(void)state;
	fa_sys_real(&sys);
	sys.run(sys.ctx, argv, 1000, &r);
	assert_int_equal(r.result, FA_SYS_NOT_THERE);
	assert_null(sys.find(sys.ctx, argv[0]));
	assert_null(sys.find(sys.ctx, "/etc/passwd"));
	fa_command_result_release(&r);
	fa_sys_close(&sys);
}

static void endless_output_is_cut_and_the_command_ends(void **state)
{
	struct fa_command_result r = run(20000, "head -c 6000000 /dev/zero | tr '\\0' x");

	(void)state;
	assert_int_equal(r.result, FA_SYS_DONE);
	assert_true(r.out.len <= 4 << 20);
	assert_true(r.out.len > 3 << 20);
	fa_command_result_release(&r);
}

static void a_run_begun_early_gives_its_answer_once(void **state)
{
	const char *const argv[] = { "sh", "-c", "echo early", NULL };
	struct fa_command_result r;
	struct fa_sys sys;

	(void)state;
	fa_sys_real(&sys);
	sys.begin_run(sys.ctx, argv, 5000);
	sys.begin_ask(sys.ctx, "system"); /* never asked for: close() ends it */
	sys.run(sys.ctx, argv, 5000, &r);
	assert_string_equal(fa_buf_str(&r.out), "early\n");
	fa_command_result_release(&r);
	fa_sys_close(&sys);
}

static void an_answer_that_came_in_time_is_taken_though_it_is_asked_for_late(void **state)
{
	const char *const quick[] = { "sh", "-c", "echo quick", NULL }, *const slow[] = { "sh", "-c", "sleep 30", NULL };
	struct fa_command_result r;
	struct fa_sys sys;

	(void)state;
	fa_sys_real(&sys);
	sys.begin_run(sys.ctx, quick, 300);
	sys.begin_run(sys.ctx, slow, 400);
	sys.run(sys.ctx, slow, 400, &r); /* takes all the time that the other had */
	assert_int_equal(r.result, FA_SYS_TIMED_OUT);
	fa_command_result_release(&r);
	sys.run(sys.ctx, quick, 300, &r);
	assert_int_equal(r.result, FA_SYS_DONE);
	assert_string_equal(fa_buf_str(&r.out), "quick\n");
	fa_command_result_release(&r);
	fa_sys_close(&sys);
}

static void questions_are_answered_and_unknown_ones_are_not_there(void **state)
{
	struct fa_buf b = FA_BUF_INIT;
	struct fa_sys sys;

	(void)state;
	fa_sys_real(&sys);
	assert_int_equal(sys.ask(sys.ctx, "system", &b), FA_SYS_DONE);
	assert_non_null(strstr(fa_buf_str(&b), "sysname=Linux\n"));
	assert_non_null(strstr(fa_buf_str(&b), "\ncores="));
	assert_int_equal(sys.ask(sys.ctx, "tea", &b), FA_SYS_NOT_THERE);
	fa_buf_release(&b);
	fa_sys_close(&sys);
}

static void files_folders_and_space_are_seen_as_they_are(void **state)
{
	struct fa_strv names = FA_STRV_INIT;
	struct fa_buf b = FA_BUF_INIT;
	struct fa_sys sys;

	(void)state;
	fa_sys_real(&sys);
	assert_int_equal(sys.read(sys.ctx, "/proc/self/status", &b), FA_SYS_DONE);
	assert_true(b.len > 0);
	assert_int_equal(sys.read(sys.ctx, "/no/such/file", &b), FA_SYS_NOT_THERE);
	assert_int_equal(sys.read(sys.ctx, "/proc", &b), FA_SYS_NOT_THERE);
	assert_int_equal(sys.list(sys.ctx, "/proc/self", &names), FA_SYS_DONE);
	assert_true(fa_strv_has(&names, "status"));
	assert_int_equal(sys.list(sys.ctx, "/no/such/folder", &names), FA_SYS_NOT_THERE);
	assert_true(sys.free_mib(sys.ctx, "/tmp/not/made/yet") >= 0);
	fa_strv_release(&names);
	fa_buf_release(&b);
	fa_sys_close(&sys);
}

static void a_recording_cannot_lead_out_of_its_folder(void **state)
{
	char dir[] = "/tmp/fa-sys-XXXXXX", *index;
	static const char text[] = "{\"schema\":\"fainstall.answers/1\",\"answers\":["
	                           "{\"ask\":\"read\",\"of\":\"/a\",\"result\":\"done\",\"file\":\"../../etc/passwd\"},"
	                           "{\"ask\":\"read\",\"of\":\"/b\",\"result\":\"done\",\"file\":\"b.txt\"},"
	                           "{\"ask\":\"read\",\"of\":\"/c\",\"result\":\"what\"}]}";
	struct fa_err err = FA_ERR_INIT;
	struct fa_buf b = FA_BUF_INIT;
	struct fa_sys sys;

	(void)state;
	assert_non_null(mkdtemp(dir));
	index = fa_path_join(dir, "answers.json");
	assert_int_equal(fa_file_write(index, text, strlen(text), &err), 0);
	assert_int_equal(fa_sys_replay(&sys, dir, &err), 0);
	assert_int_equal(sys.read(sys.ctx, "/a", &b), FA_SYS_DONE);
	assert_int_equal(sys.read(sys.ctx, "/b", &b), FA_SYS_DONE); /* its file was deleted */
	assert_int_equal(b.len, 0);
	assert_int_equal(sys.read(sys.ctx, "/c", &b), FA_SYS_NOT_RECORDED);
	assert_int_equal(sys.read(sys.ctx, "/etc/passwd", &b), FA_SYS_NOT_RECORDED);
	assert_int_equal(b.len, 0);
	fa_sys_close(&sys);
	fa_buf_release(&b);
	free(index);
	fa_file_remove_tree(dir, NULL);
}

static void a_damaged_recording_is_told_by_name(void **state)
{
	char dir[] = "/tmp/fa-sys-XXXXXX", *index;
	struct fa_err err = FA_ERR_INIT;
	struct fa_sys sys;

	(void)state;
	assert_non_null(mkdtemp(dir));
	index = fa_path_join(dir, "answers.json");
	assert_int_equal(fa_file_write(index, "{\"schema\":\"x\"}", 14, &err), 0);
	assert_int_equal(fa_sys_replay(&sys, dir, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_non_null(strstr(err.text, "schema \"x\" is not known here"));
	free(index);
	fa_file_remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_streams_and_the_exit_status_come_back),
		cmocka_unit_test(a_command_that_hangs_is_ended_at_its_limit_with_its_children),
		cmocka_unit_test(a_command_that_crashes_is_told_from_one_that_fails),
		cmocka_unit_test(a_command_that_is_not_there_is_not_a_failure_of_it),
		cmocka_unit_test(endless_output_is_cut_and_the_command_ends),
		cmocka_unit_test(a_run_begun_early_gives_its_answer_once),
		cmocka_unit_test(an_answer_that_came_in_time_is_taken_though_it_is_asked_for_late),
		cmocka_unit_test(questions_are_answered_and_unknown_ones_are_not_there),
		cmocka_unit_test(files_folders_and_space_are_seen_as_they_are),
		cmocka_unit_test(a_recording_cannot_lead_out_of_its_folder),
		cmocka_unit_test(a_damaged_recording_is_told_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
