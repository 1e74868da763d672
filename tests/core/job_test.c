/* The front end's side of a job against workers that behave badly: shell scripts under the worker's name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "buf.h"
#include "file.h"
#include "job.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/fainstall-job-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	return setenv("FAINSTALL_LIBEXEC", dir, 1);
}

static int remove_folder(void **state)
{
	(void)state;
	return fa_file_remove_tree(dir, NULL);
}

/* The worker's part as a script; $1… none, the job on stdin. */
static struct fa_job *start(const char *script)
{
	static struct fa_plan plan;
	static struct fa_facts facts;
	struct fa_job_opts opts = { .kind = FA_JOB_INSTALL, .plan = &plan, .facts = &facts };
	char *path = fa_path_join(dir, "fainstall-worker"), *text = fa_strf("#!/bin/sh\n%s\n", script);
	struct fa_err err = FA_ERR_INIT;
	struct fa_job *job = NULL;

	unlink(path);
	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	assert_int_equal(chmod(path, 0755), 0);
	if (fa_job_start(&job, &opts, &err) < 0)
		fail_msg("%s", err.text);
	free(path);
	free(text);
	return job;
}

/* The next event, waited for; the kind, or -1 at the end. */
static int next(struct fa_job *job, struct fa_event *e)
{
	for (;;) {
		struct pollfd p = { .fd = fa_job_fd(job), .events = POLLIN };
		int got = fa_job_next(job, e);

		if (got)
			return got > 0 ? (int)e->kind : -1;
		assert_true(poll(&p, 1, 10000) == 1);
	}
}

static void events_arrive_in_order(void **state)
{
	struct fa_job *job =
	        start("read job; echo '{\"event\":\"note\",\"text\":\"a\"}'; echo '{\"event\":\"done\",\"code\":0}'");
	struct fa_event e;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_NOTE);
	assert_string_equal(e.text, "a");
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(e.code, 0);
	assert_int_equal(next(job, &e), -1);
	fa_job_free(job);
}

static void the_job_arrives_whole(void **state)
{
	struct fa_job *job =
	        start("read job; case $job in *fainstall.job/1*'\"verify\":'*) echo '{\"event\":\"done\",\"code\":0}';; esac");
	struct fa_event e;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(e.code, 0);
	fa_job_free(job);
}

static void other_lines_than_events_do_no_harm(void **state)
{
	struct fa_job *job = start("read job; echo hello; echo '{'; echo '{\"event\":\"unheard\"}'; printf '{\"event\":'; "
	                           "sleep 0.1; echo '\"done\",\"code\":3}'");
	struct fa_event e;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(e.code, FA_IMPOSSIBLE);
	fa_job_free(job);
}

static void a_crash_is_an_error_and_an_end(void **state)
{
	struct fa_job *job = start("read job; echo 'last words' >&2; kill -SEGV $$");
	struct fa_event e;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_ERROR);
	assert_non_null(strstr(e.text, "signal 11"));
	assert_non_null(strstr(e.text, "last words"));
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(e.code, FA_INTERNAL);
	assert_int_equal(next(job, &e), -1);
	fa_job_free(job);
}

static void an_end_without_a_result_is_an_error(void **state)
{
	struct fa_job *job = start("exit 3");
	struct fa_event e;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_ERROR);
	assert_non_null(strstr(e.text, "exit 3"));
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	fa_job_free(job);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Reads a pid that the script wrote; nothing of it may run. (Dead and not yet waited for is dead.) */
static void assert_gone(const char *name)
{
	char *path = fa_path_join(dir, name), *stat;
	struct fa_buf text = FA_BUF_INIT, status = FA_BUF_INIT;
	pid_t pid;

	assert_int_equal(fa_file_read(&text, path, 100, NULL), 0);
	pid = (pid_t)atol(fa_buf_str(&text));
	assert_true(pid > 1);
	stat = fa_strf("/proc/%ld/stat", (long)pid);
	if (fa_file_read(&status, stat, 4096, NULL) == 0 && !strstr(fa_buf_str(&status), ") Z "))
		fail_msg("still there: %s", fa_buf_str(&status));
	fa_buf_release(&text);
	fa_buf_release(&status);
	free(path);
	free(stat);
}

static void a_dead_worker_leaves_nothing_running(void **state)
{
	struct fa_job *job;
	struct fa_event e;

	(void)state;
	job = start("read job; cd \"$FAINSTALL_LIBEXEC\"; setsid sh -c 'echo $$ >orphan; exec sleep 60' & "
	            "while [ ! -s orphan ]; do sleep 0.01; done; kill -KILL $$");
	assert_int_equal(next(job, &e), FA_EVENT_ERROR);
	assert_non_null(strstr(e.text, "signal 9"));
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(next(job, &e), -1);
	assert_gone("orphan");
	fa_job_free(job);
}

static void a_cancel_is_told_and_answered(void **state)
{
	struct fa_job *job = start("read job; trap 'echo \"{\\\"event\\\":\\\"done\\\",\\\"code\\\":130}\"; exit 130' TERM; "
	                           "echo '{\"event\":\"note\",\"text\":\"ready\"}'; while :; do sleep 0.05; done");
	struct fa_event e;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_NOTE);
	fa_job_cancel(job);
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(e.code, FA_INTERRUPTED);
	fa_job_free(job);
}

static void a_drain_is_told_and_a_cancel_after_it_too(void **state)
{
	struct fa_job *job = start(
	        "read job; trap 'echo \"{\\\"event\\\":\\\"done\\\",\\\"code\\\":130}\"; exit 130' TERM; "
	        "read word; echo \"{\\\"event\\\":\\\"note\\\",\\\"text\\\":\\\"$word\\\"}\"; while :; do sleep 0.05; done");
	struct fa_event e;

	(void)state;
	fa_job_drain(job);
	assert_int_equal(next(job, &e), FA_EVENT_NOTE);
	assert_string_equal(e.text, "drain");
	fa_job_cancel(job);
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(e.code, FA_INTERRUPTED);
	fa_job_free(job);
}

static void a_worker_that_does_not_stop_is_killed(void **state)
{
	struct fa_job *job = start("read job; trap '' TERM INT; echo '{\"event\":\"note\",\"text\":\"ready\"}'; "
	                           "while :; do sleep 0.2; done");
	struct fa_event e;
	double begun;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_NOTE);
	fa_job_cancel(job);
	begun = now();
	assert_int_equal(next(job, &e), FA_EVENT_DONE);
	assert_int_equal(e.code, FA_INTERRUPTED);
	assert_true(now() - begun < 6);
	fa_job_free(job);
}

static void a_job_given_up_is_stopped(void **state)
{
	struct fa_job *job = start(
	        "read job; echo $$ >\"$FAINSTALL_LIBEXEC/given-up\"; echo '{\"event\":\"note\",\"text\":\"x\"}'; sleep 60");
	struct fa_event e;

	(void)state;
	assert_int_equal(next(job, &e), FA_EVENT_NOTE);
	fa_job_free(job);
	assert_gone("given-up");
}

static void a_missing_worker_is_an_error_at_once(void **state)
{
	static struct fa_plan plan;
	static struct fa_facts facts;
	struct fa_job_opts opts = { .kind = FA_JOB_INSTALL, .plan = &plan, .facts = &facts };
	char *path = fa_path_join(dir, "fainstall-worker");
	struct fa_err err = FA_ERR_INIT;
	struct fa_job *job = NULL;

	(void)state;
	unlink(path);
	if (fa_job_start(&job, &opts, &err) < 0)
		assert_int_equal(err.status, FA_INTERNAL);
	fa_job_free(job);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_arrive_in_order),
		cmocka_unit_test(the_job_arrives_whole),
		cmocka_unit_test(other_lines_than_events_do_no_harm),
		cmocka_unit_test(a_crash_is_an_error_and_an_end),
		cmocka_unit_test(an_end_without_a_result_is_an_error),
		cmocka_unit_test(a_dead_worker_leaves_nothing_running),
		cmocka_unit_test(a_cancel_is_told_and_answered),
		cmocka_unit_test(a_drain_is_told_and_a_cancel_after_it_too),
		cmocka_unit_test(a_worker_that_does_not_stop_is_killed),
		cmocka_unit_test(a_job_given_up_is_stopped),
		cmocka_unit_test(a_missing_worker_is_an_error_at_once),
	};

	return cmocka_run_group_tests_name("job", tests, make_folder, remove_folder) != 0;
}
