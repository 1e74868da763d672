#include "buf.h"
#include "file.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
	struct fa_buf out, err;
	int lines, ticks;
	int64_t most_mib;
	double first_line;
	volatile int *cancel_at_line; /* set when the first line comes */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_line(void *ctx, const char *line, bool is_err)
{
	struct seen *s = ctx;

	if (!s->lines++)
		s->first_line = now();
	fa_buf_addf(is_err ? &s->err : &s->out, "[%s]", line);
	if (s->cancel_at_line)
		*s->cancel_at_line = 1;
}

static void on_tick(void *ctx, double seconds, int64_t tree_mib)
{
	struct seen *s = ctx;

	assert_true(seconds > 0);
	s->ticks++;
	if (tree_mib > s->most_mib)
		s->most_mib = tree_mib;
}

static void forget(struct seen *s)
{
	fa_buf_release(&s->out);
	fa_buf_release(&s->err);
	*s = (struct seen){ 0 };
}

static int run_sh(struct fa_proc_result *r, struct fa_proc_opts *o, const char *script, struct fa_err *err)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	int rc;

	o->argv = argv;
	rc = fa_proc_run(r, o, FA_BUILD, err);
	o->argv = NULL;
	return rc;
}

static void lines_arrive_without_their_end_and_stderr_is_marked(void **state)
{
	struct seen s = { 0 };
	struct fa_proc_opts o = { .line = on_line, .ctx = &s };
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(&r, &o, "printf 'a\\n\\nb\\r\\nc\\rd'; printf 'e\\nf' >&2; cat", &err), 0);
	assert_string_equal(fa_buf_str(&s.out), "[a][][b][c][d]");
	assert_string_equal(fa_buf_str(&s.err), "[e][f]");
	assert_int_equal(r.end, FA_PROC_EXITED);
	forget(&s);
	o.merge = true;
	assert_int_equal(run_sh(&r, &o, "echo a; echo b >&2; echo c", &err), 0);
	assert_string_equal(fa_buf_str(&s.out), "[a][b][c]");
	forget(&s);
}

static void a_line_without_end_is_cut_and_the_rest_goes_on(void **state)
{
	struct seen s = { 0 };
	struct fa_proc_opts o = { .line = on_line, .ctx = &s };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(NULL, &o, "head -c 200000 /dev/zero | tr '\\0' x; echo; echo end", &err), 0);
	assert_int_equal(s.lines, 2);
	assert_int_equal(s.out.len, 65536 + 2 + 5);
	forget(&s);
	assert_int_equal(run_sh(NULL, &o, "printf 'a\\0b\\n'", &err), 0);
	assert_string_equal(fa_buf_str(&s.out), "[a b]");
	forget(&s);
}

static void endings_are_told_apart(void **state)
{
	static const char *const nowhere[] = { "fa-no-such-program", "x", NULL };
	static const char *const denied[] = { "/etc/passwd", NULL };
	struct fa_proc_opts o = { 0 };
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(&r, &o, "echo 'cause: x' >&2; echo later; exit 3", &err), -1);
	assert_int_equal(r.end, FA_PROC_EXITED);
	assert_int_equal(r.exit_status, 3);
	assert_int_equal(err.status, FA_BUILD);
	assert_non_null(strstr(err.text, "exit status 3: cause: x"));
	assert_int_equal(run_sh(&r, &o, "kill -9 $$", &err), -1);
	assert_int_equal(r.end, FA_PROC_SIGNALLED);
	assert_int_equal(r.signal, SIGKILL);
	assert_non_null(strstr(err.text, "killed (signal 9)"));
	assert_int_equal(run_sh(&r, &o, "kill -SEGV $$", &err), -1);
	assert_non_null(strstr(err.text, "signal 11 (Segmentation fault)"));
	o.argv = nowhere;
	assert_int_equal(fa_proc_run(&r, &o, FA_MACHINE, &err), -1);
	assert_int_equal(r.end, FA_PROC_NOT_STARTED);
	assert_int_equal(r.start_errno, ENOENT);
	assert_string_equal(err.text, "fa-no-such-program: not found in PATH");
	o.argv = denied;
	assert_int_equal(fa_proc_run(&r, &o, FA_MACHINE, &err), -1);
	assert_int_equal(r.end, FA_PROC_NOT_STARTED);
	assert_int_equal(r.start_errno, EACCES);
}

static void a_missing_working_folder_is_named(void **state)
{
	struct fa_proc_opts o = { .cwd = "/no/such/folder" };
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(&r, &o, "true", &err), -1);
	assert_int_equal(r.end, FA_PROC_NOT_STARTED);
	assert_non_null(strstr(err.text, "/no/such/folder"));
}

static void environment_folder_and_path_are_those_given(void **state)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", "X=1 2", NULL };
	static const char *const nopath[] = { "PATH=/nowhere", NULL };
	struct seen s = { 0 };
	struct fa_proc_opts o = { .line = on_line, .ctx = &s, .envp = env, .cwd = "/usr" };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(NULL, &o, "pwd; echo \"$X$HOME\"", &err), 0);
	assert_string_equal(fa_buf_str(&s.out), "[/usr][1 2]");
	forget(&s);
	o.envp = nopath;
	assert_int_equal(run_sh(NULL, &o, "true", &err), -1);
	assert_string_equal(err.text, "sh: not found in PATH");
}

/* Only 0, 1, 2 are open; stdin is at its end; no signal is ignored or blocked; the group is its own. */
static void the_child_inherits_nothing(void **state)
{
	struct seen s = { 0 };
	struct fa_proc_opts o = { .line = on_line, .ctx = &s };
	struct fa_err err = FA_ERR_INIT;
	int fd = dup(1), low = fcntl(fd, F_DUPFD, 40);
	sigset_t usr, old;

	(void)state;
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr, &old);
	signal(SIGINT, SIG_IGN);
	assert_int_equal(run_sh(NULL, &o,
	                        "cat; ls /proc/$$/fd; awk '/Sig(Blk|Ign)/{print $1 substr($2, 10)}' "
	                        "/proc/self/status;"
	                        "[ $(awk '{print $5}' /proc/$$/stat) = $$ ] && echo group",
	                        &err),
	                 0);
	assert_string_equal(fa_buf_str(&s.out), "[0][1][2][SigBlk:0000000][SigIgn:0000000][group]");
	signal(SIGINT, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(fd);
	close(low);
	forget(&s);
}

static void the_log_holds_everything_and_grows(void **state)
{
	char path[64];
	struct fa_buf text = FA_BUF_INIT;
	struct fa_proc_opts o = { .log_path = path };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/fa-proc-log-%ld", (long)getpid());
	assert_int_equal(run_sh(NULL, &o, "echo a", &err), 0);
	assert_int_equal(run_sh(NULL, &o, "printf 'b\\n' >&2; exit 1", &err), -1);
	assert_non_null(strstr(err.next, path));
	assert_int_equal(fa_file_read(&text, path, 1000, &err), 0);
	assert_string_equal(fa_buf_str(&text), "a\nb\n");
	unlink(path);
	fa_buf_release(&text);
	o.log_path = "/no/such/folder/log";
	assert_int_equal(run_sh(NULL, &o, "true", &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	assert_non_null(strstr(err.text, "/no/such/folder/log"));
}

static void secrets_of_a_url_are_not_said(void **state)
{
	static const char *const argv[] = { "sh", "-c", "echo \"see $0\" >&2; exit 1", "https://me:secret@host/x?sig=hidden",
		                            NULL };
	struct fa_proc_opts o = { .argv = argv };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_proc_run(NULL, &o, FA_BUILD, &err), -1);
	assert_non_null(strstr(err.text, "https://***@host/x"));
	assert_null(strstr(err.text, "secret"));
	assert_null(strstr(err.text, "hidden"));
}

static void limits_stop_it(void **state)
{
	struct fa_proc_opts o = { .timeout_ms = 300 };
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(&r, &o, "while :; do echo x; sleep 0.05; done", &err), -1);
	assert_int_equal(r.end, FA_PROC_TIMED_OUT);
	assert_true(r.seconds < 2.5);
	o.timeout_ms = 0;
	o.silence_ms = 300;
	assert_int_equal(run_sh(&r, &o, "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done; sleep 60", &err), -1);
	assert_int_equal(r.end, FA_PROC_SILENT);
	assert_true(r.seconds > 0.7 && r.seconds < 3.5);
	assert_non_null(strstr(err.text, "said nothing"));
}

static void time_and_memory_are_those_of_the_tree(void **state)
{
	/* Two processes that hold 60 MB each at the same time, whenever they were started. */
	static const char py[] = "exec python3 -c 'import os, time\n"
	                         "r, w = os.pipe()\n"
	                         "pid = os.fork()\n"
	                         "x = bytearray(b\"1\") * 60000000\n"
	                         "os.write(w, b\"x\") if pid == 0 else os.read(r, 1)\n"
	                         "time.sleep(1.2)\n"
	                         "while time.process_time() < 0.3: pass\n"
	                         "pid and os.wait()'";
	struct seen s = { 0 };
	struct fa_proc_opts o = { .tick = on_tick, .ctx = &s };
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(&r, &o, py, &err), 0);
	assert_true(r.peak_mib >= 114 && r.peak_mib < 400);
	assert_true(r.cpu_seconds >= 0.3);
	assert_true(r.seconds >= 0.5);
	assert_true(s.ticks >= 1);
	assert_int_equal(run_sh(&r, &o, "true", &err), 0);
	assert_true(r.peak_mib < 60);
}

/* A name that only processes of one test carry in their environment. */
static int running_with(const char *mark)
{
	char *argv0 = fa_strf("grep -lsz '^%s$' /proc/[0-9]*/environ | wc -l", mark);
	FILE *f = popen(argv0, "r");
	int n = -1;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &n), 1);
	pclose(f);
	free(argv0);
	return n;
}

static const char *const *marked_env(char *mark)
{
	static const char *env[3];

	env[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
	env[1] = mark;
	return env;
}

/* What a stopped tree may hold: shells that ignore SIGTERM, sessions of their own, orphans, stopped processes. */
static void write_tree(struct fa_buf *b, unsigned *seed, int depth)
{
	static const char *const before[] = { "", "trap '' TERM INT HUP; ", "" };
	static const char *const wrap[] = { "sh -c", "setsid sh -c", "setsid -f sh -c", "nohup sh -c" };
	int children = depth ? 1 + (int)(rand_r(seed) % 3) : 0;

	fa_buf_adds(b, before[rand_r(seed) % 3]);
	for (int i = 0; i < children; i++) {
		struct fa_buf inner = FA_BUF_INIT;

		write_tree(&inner, seed, depth - 1);
		fa_buf_addf(b, "%s \"$(cat <<'E%d_%d'\n%s\nE%d_%d\n)\" >&2 & ", wrap[rand_r(seed) % 4], depth, i,
		            fa_buf_str(&inner), depth, i);
		fa_buf_release(&inner);
	}
	switch (rand_r(seed) % 4) {
	case 0: fa_buf_adds(b, "exit 0"); break;                   /* its children are orphans */
	case 1: fa_buf_adds(b, "kill -STOP $$; sleep 100"); break; /* cannot hear SIGTERM */
	default: fa_buf_adds(b, "while :; do sleep 100; done"); break;
	}
}

/* One random tree is started, stopped when it said "go", and looked for. 0: nobody is left. */
static int stop_random_tree(unsigned seed, double *seconds)
{
	char *mark = fa_strf("FA_TREE_TEST=%ld.%u", (long)getpid(), seed);
	volatile int cancel = 0;
	struct seen s = { .cancel_at_line = &cancel };
	struct fa_proc_opts o = {
		.envp = marked_env(mark), .cancel = &cancel, .line = on_line, .ctx = &s, .timeout_ms = 20000
	};
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;
	struct fa_buf script = FA_BUF_INIT, tree = FA_BUF_INIT;
	unsigned random = seed;
	int rc, left;

	write_tree(&tree, &random, 3);
	fa_buf_addf(&script, "sh -c \"$(cat <<'TOP'\n%s\nTOP\n)\" & sleep 0.%u; echo go; sleep 100", fa_buf_str(&tree),
	            1 + seed % 4);
	rc = run_sh(&r, &o, fa_buf_str(&script), &err);
	*seconds = now() - s.first_line;
	left = running_with(mark);
	if (left || rc != -1 || r.end != FA_PROC_CANCELLED || err.status != FA_INTERRUPTED || *seconds > 4)
		print_error("tree %u: end %d, %d left, %.2f s\n", seed, (int)r.end, left, *seconds);
	fa_buf_release(&script);
	fa_buf_release(&tree);
	forget(&s);
	free(mark);
	return left || rc != -1 || r.end != FA_PROC_CANCELLED || *seconds > 4;
}

/* Fifty, ten at a time, each in a program of its own: 2 s are the promise, 4 the limit on a machine that does other work too. */
static void a_stopped_tree_leaves_nobody(void **state)
{
	enum { AT_ONCE = 10, EACH = 5 };
	pid_t pids[AT_ONCE];
	int status;

	(void)state;
	for (unsigned i = 0; i < AT_ONCE; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			int bad = 0;
			double seconds, worst = 0;

			for (unsigned k = 0; k < EACH; k++) {
				bad += stop_random_tree(1 + i * EACH + k, &seconds);
				worst = seconds > worst ? seconds : worst;
			}
			printf("slowest of %d trees: %.2f s\n", EACH, worst);
			fflush(stdout);
			_exit(bad);
		}
	}
	for (int i = 0; i < AT_ONCE; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

static void what_outlives_the_command_is_stopped(void **state)
{
	char *mark = fa_strf("FA_TREE_TEST=late%ld", (long)getpid());
	struct fa_proc_opts o = { .envp = marked_env(mark) };
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(run_sh(&r, &o, "setsid -f sh -c \"trap '' TERM; while :; do sleep 100; done\"; exit 0", &err), 0);
	assert_true(r.seconds < 4);
	assert_int_equal(running_with(mark), 0);
	free(mark);
}

/* The program that asked dies: its commands must not live on. */
static void the_tree_ends_with_the_program_that_asked(void **state)
{
	char *mark = fa_strf("FA_TREE_TEST=dead%ld", (long)getpid());
	struct fa_proc_opts o = { .envp = marked_env(mark) };
	struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
	double begin;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		run_sh(NULL, &o, "setsid sh -c \"trap '' TERM; sleep 100; sleep 100\" & sleep 100", NULL);
		_exit(0);
	}
	begin = now();
	while (running_with(mark) < 2 && now() - begin < 10)
		nanosleep(&pause, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	begin = now();
	while (running_with(mark) > 0 && now() - begin < 5)
		nanosleep(&pause, NULL);
	assert_int_equal(running_with(mark), 0);
	free(mark);
}

static void a_host_that_ignores_children_is_served_too(void **state)
{
	struct fa_proc_opts o = { 0 };
	struct fa_proc_result r;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(run_sh(&r, &o, "exit 5", &err), -1);
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(r.exit_status, 5);
}

static void children_of_the_host_stay_its_own(void **state)
{
	struct fa_proc_opts o = { 0 };
	struct fa_err err = FA_ERR_INIT;
	int status = 0;
	pid_t pid;

	(void)state;
	while (waitpid(-1, NULL, WNOHANG) > 0) /* adopted in the tests before */
		;
	pid = fork();
	if (pid == 0)
		_exit(7);
	assert_int_equal(run_sh(NULL, &o, "true", &err), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
}

static void kill_tree_reaches_every_descendant(void **state)
{
	struct timespec pause = { .tv_nsec = 300 * 1000 * 1000 };
	char *mark = fa_strf("FA_TREE_TEST=kill%ld", (long)getpid());
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		putenv(mark);
		execlp("sh", "sh", "-c",
		       "setsid sh -c \"trap '' TERM; (setsid sleep 100 &) ; sleep 100; sleep 100\" & wait; sleep 100",
		       (char *)NULL);
		_exit(1);
	}
	nanosleep(&pause, NULL);
	fa_proc_kill_tree(getpid(), 200);
	waitpid(pid, NULL, 0);
	assert_int_equal(running_with(mark), 0);
	free(mark);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_arrive_without_their_end_and_stderr_is_marked),
		cmocka_unit_test(a_line_without_end_is_cut_and_the_rest_goes_on),
		cmocka_unit_test(endings_are_told_apart),
		cmocka_unit_test(a_missing_working_folder_is_named),
		cmocka_unit_test(environment_folder_and_path_are_those_given),
		cmocka_unit_test(the_child_inherits_nothing),
		cmocka_unit_test(the_log_holds_everything_and_grows),
		cmocka_unit_test(secrets_of_a_url_are_not_said),
		cmocka_unit_test(limits_stop_it),
		cmocka_unit_test(time_and_memory_are_those_of_the_tree),
		cmocka_unit_test(a_stopped_tree_leaves_nobody),
		cmocka_unit_test(what_outlives_the_command_is_stopped),
		cmocka_unit_test(the_tree_ends_with_the_program_that_asked),
		cmocka_unit_test(a_host_that_ignores_children_is_served_too),
		cmocka_unit_test(children_of_the_host_stay_its_own),
		cmocka_unit_test(kill_tree_reaches_every_descendant),
	};

	fa_proc_adopt_orphans();
	return cmocka_run_group_tests_name("proc", tests, NULL, NULL) ? 1 : 0;
}
