/* The compiler gate: its decision on made-up units, and real gates around fake compilers. This program is also the gate (called
 * as "nvcc") and the compiler ("fakecc"): it does what the name of the unit says. */
#include "gate.h"

#include "buf.h"
#include "file.h"
#include "gate_table.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the decision */

static struct fa_gate_unit waiting(double seconds, int64_t mib)
{
	return (struct fa_gate_unit){ .state = FA_GATE_WAITING, .expect_s = seconds, .priority = seconds, .expect_mib = mib };
}

static struct fa_gate_unit running(int64_t mib, int64_t rss)
{
	return (struct fa_gate_unit){ .state = FA_GATE_RUNNING, .expect_s = 100, .expect_mib = mib, .rss_mib = rss };
}

static const struct fa_gate_room roomy = { .available_mib = 100000, .reserve_mib = 1000, .cores = 16 };

static void the_longest_unit_starts_first(void **state)
{
	struct fa_gate_unit u[] = { waiting(10, 100), waiting(30, 100), waiting(20, 100) };

	(void)state;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), 1);
}

static void nothing_starts_when_every_core_is_taken(void **state)
{
	struct fa_gate_unit u[] = { running(100, 100), running(100, 100), waiting(10, 100) };
	struct fa_gate_room room = roomy;

	(void)state;
	room.cores = 2;
	assert_int_equal(fa_gate_choose(u, 3, &room), -1);
	room.cores = 3;
	assert_int_equal(fa_gate_choose(u, 3, &room), 2);
}

static void what_the_running_ones_will_still_take_is_counted(void **state)
{
	struct fa_gate_unit u[] = { running(6000, 500), waiting(10, 4000) };
	struct fa_gate_room room = roomy;

	(void)state;
	room.available_mib = 10000; /* 10000 - 1000 - 5500 = 3500 */
	assert_int_equal(fa_gate_choose(u, 2, &room), -1);
	u[0].rss_mib = 6000;
	assert_int_equal(fa_gate_choose(u, 2, &room), 1);
}

static void a_smaller_unit_may_pass_one_that_does_not_fit(void **state)
{
	struct fa_gate_unit u[] = { running(1000, 1000), waiting(100, 9000), waiting(10, 2000) };
	struct fa_gate_room room = roomy;

	(void)state;
	room.available_mib = 5000;
	assert_int_equal(fa_gate_choose(u, 3, &room), 2);
}

static void a_unit_that_fits_nowhere_starts_alone_after_a_while(void **state)
{
	struct fa_gate_unit u[] = { waiting(100, 9000), running(100, 100) };
	struct fa_gate_room room = roomy;

	(void)state;
	room.available_mib = 5000;
	u[0].waited_s = FA_GATE_PATIENCE_S + 1;
	assert_int_equal(fa_gate_choose(u, 2, &room), -1);
	assert_int_equal(fa_gate_choose(u, 1, &room), 0);
	u[0].waited_s = 1;
	assert_int_equal(fa_gate_choose(u, 1, &room), -1);
}

static void a_killed_unit_waits_until_it_is_alone(void **state)
{
	struct fa_gate_unit u[] = { waiting(100, 100), waiting(10, 100), running(100, 100) };

	(void)state;
	u[0].alone = true;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), 1);
	u[1].state = FA_GATE_FREE;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), -1);
	u[2].state = FA_GATE_FREE;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), 0);
	u[0].state = FA_GATE_RUNNING;
	u[1].state = FA_GATE_WAITING;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), -1);
}

/* Another build may have hours to do. */
static void a_killed_unit_waits_for_its_own_build_only(void **state)
{
	struct fa_gate_unit u[] = { waiting(100, 100), waiting(10, 100), running(100, 100) };

	(void)state;
	u[0].alone = true;
	u[0].build = 1;
	u[1].build = u[2].build = 2;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), -1); /* its turn has come: nothing new beside it */
	u[2].state = FA_GATE_FREE;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), 0);
}

static void each_build_keeps_its_own_number_of_jobs(void **state)
{
	struct fa_gate_unit u[] = { running(100, 100), waiting(50, 100), waiting(10, 100) };

	(void)state;
	u[0].build = u[1].build = 7;
	u[0].jobs = u[1].jobs = 1;
	assert_int_equal(fa_gate_choose(u, 3, &roomy), 2);
}

static void pressure_holds_new_units_back(void **state)
{
	struct fa_gate_unit u[] = { running(100, 100), waiting(10, 100) };
	struct fa_gate_room room = roomy;

	(void)state;
	room.pressure = 12;
	assert_int_equal(fa_gate_choose(u, 2, &room), -1);
}

static void other_users_get_an_even_share_while_they_want_it(void **state)
{
	const struct fa_gate_others nobody = { 0 }, one = { .users = 1, .waiting_users = 1, .running = 16 },
	                            quiet = { .users = 1, .running = 10, .growing_mib = 5000, .held_mib = 1000 },
	                            hungry = {
		                            .users = 1, .waiting_users = 1, .running = 2, .growing_mib = 500, .held_mib = 9500
	                            };
	struct fa_gate_room room = roomy;

	(void)state;
	fa_gate_share(&room, &nobody, 100);
	assert_memory_equal(&room, &roomy, sizeof(room));
	fa_gate_share(&room, &one, 0); /* they were here first and have every core */
	assert_int_equal(room.cores, 8);
	room = roomy;
	fa_gate_share(&room, &quiet, 0);
	assert_int_equal(room.cores, 6);
	assert_int_equal(room.available_mib, 95000);
	room = (struct fa_gate_room){ .available_mib = 11000, .reserve_mib = 1000, .cores = 16 };
	fa_gate_share(&room, &hungry, 30000); /* of 49,500 in all we hold more than half */
	assert_int_equal(room.cores, 14);
	assert_int_equal(room.available_mib, 0);
	room = (struct fa_gate_room){ .available_mib = -1, .cores = 1 };
	fa_gate_share(&room, &one, 0);
	assert_int_equal(room.cores, 1);
	assert_int_equal(room.available_mib, -1);
}

static void unknown_memory_does_not_count(void **state)
{
	struct fa_gate_unit u[] = { running(100000, 0), waiting(10, 100000) };
	struct fa_gate_room room = roomy;

	(void)state;
	room.available_mib = -1;
	assert_int_equal(fa_gate_choose(u, 2, &room), 1);
}

/* ---- what compilers say */

static void the_first_real_error_is_found(void **state)
{
	static const char *const cases[][2] = {
		{ "In file included from x\na.cu(3): warning: error: not this\n  a.cu(5): error: identifier \"y\" is "
		  "undefined\nmore error:",
		  "a.cu(5): error: identifier \"y\" is undefined" },
		{ "nvcc fatal   : Unsupported gpu architecture 'compute_130'\n",
		  "nvcc fatal   : Unsupported gpu architecture 'compute_130'" },
		{ "nvcc error   : 'cicc' died due to signal 9 (Kill signal)",
		  "nvcc error   : 'cicc' died due to signal 9 (Kill signal)" },
		{ "ptxas fatal   : Unsupported .version 9.5; current version is '9.0'\n",
		  "ptxas fatal   : Unsupported .version 9.5; current version is '9.0'" },
		{ "x.cpp:3:10: fatal error: Python.h: No such file or directory\n",
		  "x.cpp:3:10: fatal error: Python.h: No such file or directory" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t len = 0;
		const char *line = fa_gate_first_error(cases[i][0], &len);
		char *copy;

		assert_non_null(line);
		copy = fa_strndup(line, len);
		assert_string_equal(copy, cases[i][1]);
		free(copy);
	}
	assert_null(fa_gate_first_error("all well\n", &(size_t){ 0 }));
	assert_true(fa_gate_speaks_of_memory("nvcc error   : 'cicc' died due to signal 9 (Kill signal)"));
	assert_false(fa_gate_speaks_of_memory("a.cu(5): error: identifier \"y\" is undefined"));
}

/* ---- real gates around fake compilers */

static char self[4096], *home, *table;

static double seconds_now(void)
{
	return fa_gate_clock();
}

static void note(const char *what, const char *unit)
{
	char *path = fa_strf("%s/trace", getenv("FAKE_HOME")), *line = fa_strf("%s %s %d\n", what, unit, (int)getpid());
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);

	if (write(fd, line, strlen(line)) < 0)
		_exit(99);
	close(fd);
	free(path);
	free(line);
}

/* "eat_hdim120…" takes 120 MiB and keeps them until it was seen to (the file `seen`), 30 s at most. */
static void eat(const char *amount)
{
	size_t size = (size_t)atol(amount) << 20;
	volatile char *p = malloc(size); /* or a compiler would leave out what nobody reads */
	char *seen = fa_strf("%s/seen", getenv("FAKE_HOME"));

	for (size_t done = 0; p && done < size; done += 4096) {
		p[done] = 1;
		if (done % (1 << 20) == 0)
			usleep(1000);
	}
	for (int i = 0; i < 3000 && access(seen, F_OK) != 0; i++)
		usleep(10000);
	free(seen);
	free((void *)p);
}

/* The compiler: "slow…" 30 s; "hang…" for ever, without using CPU; "crash…" of signal
 * 11; "bad…" fails; "once…" is killed the first time; "hog…" always; "own…" leaves a child in a session of
 * its own; all others 30 ms. */
static int fake_compiler(int argc, char **argv)
{
	const char *out = argv[argc - 1], *unit = fa_path_base(out);
	char *mark = fa_strf("%s/mark.%s", getenv("FAKE_HOME"), unit);
	bool first = access(mark, F_OK) != 0;

	note("begin", unit);
	close(open(mark, O_WRONLY | O_CREAT, 0666));
	free(mark);
	if (!strncmp(unit, "bad", 3)) {
		usleep(50000);
		printf("%s.cu(7): warning #1: nothing\n%s.cu(9): error: no such kernel\n", unit, unit);
		return 2;
	}
	if (!strncmp(unit, "hog", 3) || (!strncmp(unit, "once", 4) && first))
		kill(getpid(), SIGKILL);
	if (!strncmp(unit, "eat", 3))
		eat(strstr(unit, "_hdim") + 5);
	if (!strncmp(unit, "hang", 4))
		pause();
	if (!strncmp(unit, "crash", 5)) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer would tell of it and exit */
		raise(SIGSEGV);
	}
	if (!strncmp(unit, "slow", 4)) {
		if (fork() == 0) { /* as nvcc: sh, cicc */
			sleep(30);
			_exit(0);
		}
		sleep(30);
	}
	usleep(30000);
	close(open(out, O_WRONLY | O_CREAT, 0666));
	note("end", unit);
	return 0;
}

static int set_up(void **state)
{
	char template[] = "/tmp/fa-gate-test-XXXXXX", *path;

	(void)state;
	home = fa_strdup(mkdtemp(template));
	table = fa_path_join(home, "table");
	for (int i = 0; i < 2; i++) {
		path = fa_path_join(home, i ? "fakecc" : "nvcc");
		assert_int_equal(symlink(self, path), 0);
		free(path);
	}
	path = fa_path_join(home, "fakecc");
	setenv("FAKE_HOME", home, 1);
	setenv("FAINSTALL_GATE_NVCC", path, 1);
	setenv("FAINSTALL_GATE_TABLE", table, 1);
	setenv("FAINSTALL_GATE_DIR", home, 1);
	setenv("FAINSTALL_GATE_CORES", "4", 1);
	setenv("FAINSTALL_GATE_RESERVE_MIB", "0", 1);
	setenv("FAINSTALL_GATE_MEMORY_MIB", "100000000", 1);
	unsetenv("FAINSTALL_GATE_JOBS");
	free(path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fa_file_remove_tree(home, NULL);
	free(home);
	free(table);
	return 0;
}

static pid_t gate(const char *unit)
{
	char *out = fa_path_join(home, unit), *nvcc = fa_path_join(home, "nvcc");
	pid_t pid = fork();

	if (pid == 0) {
		char *argv[] = { nvcc, (char *)"-c", (char *)"x.cu", (char *)"-o", out, NULL };
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		execv(nvcc, argv);
		_exit(99);
	}
	free(out);
	free(nvcc);
	return pid;
}

static int ended(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void expect_units(const char *text)
{
	char *path = fa_path_join(home, "units");

	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	free(path);
}

/* Lines of the trace as they happened; `most`: how many ran at a time. */
static char *trace(int *most, int *begun)
{
	struct fa_buf text = FA_BUF_INIT;
	char *path = fa_path_join(home, "trace");
	int now = 0;

	*most = *begun = 0;
	fa_file_read(&text, path, 1 << 20, NULL);
	for (const char *line = fa_buf_str(&text); *line; line = strchr(line, '\n') + 1) {
		now += !strncmp(line, "begin", 5) ? 1 : -1;
		*begun += !strncmp(line, "begin", 5);
		if (now > *most)
			*most = now;
	}
	free(path);
	return fa_buf_detach(&text);
}

static bool events_say(const char *what)
{
	struct fa_buf text = FA_BUF_INIT;
	char *path = fa_path_join(home, "events");
	bool yes;

	fa_file_read(&text, path, 1 << 20, NULL);
	yes = strstr(fa_buf_str(&text), what) != NULL;
	fa_buf_release(&text);
	free(path);
	return yes;
}

static void no_more_units_run_than_there_are_cores(void **state)
{
	pid_t pids[24];
	int most, begun;

	(void)state;
	for (int i = 0; i < 24; i++) {
		char name[16];

		snprintf(name, sizeof(name), "u%d.o", i);
		pids[i] = gate(name);
	}
	for (int i = 0; i < 24; i++)
		assert_int_equal(ended(pids[i]), 0);
	free(trace(&most, &begun));
	assert_int_equal(begun, 24);
	assert_true(most <= 4);
	assert_true(most >= 2);
}

static void memory_limits_them_too(void **state)
{
	pid_t pids[8];
	int most, begun;

	(void)state;
	setenv("FAINSTALL_GATE_MEMORY_MIB", "1000", 1);
	expect_units("a 1 450\nb 1 450\nc 1 450\nd 1 450\ne 1 450\nf 1 450\ng 1 450\nh 1 450\n");
	for (int i = 0; i < 8; i++)
		pids[i] = gate((char[]){ (char)('a' + i), '.', 'o', 0 });
	for (int i = 0; i < 8; i++)
		assert_int_equal(ended(pids[i]), 0);
	free(trace(&most, &begun));
	assert_int_equal(begun, 8);
	assert_true(most <= 2);
}

static void two_builds_share_the_cores(void **state)
{
	char *other = fa_path_join(home, "other");
	pid_t pids[16];
	int most, begun;

	(void)state;
	setenv("FAINSTALL_GATE_CORES", "2", 1);
	fa_file_mkdirs(other, NULL);
	for (int i = 0; i < 16; i++) {
		char name[16];

		setenv("FAINSTALL_GATE_DIR", i % 2 ? other : home, 1);
		snprintf(name, sizeof(name), "u%d.o", i);
		pids[i] = gate(name);
	}
	for (int i = 0; i < 16; i++)
		assert_int_equal(ended(pids[i]), 0);
	free(trace(&most, &begun));
	assert_int_equal(begun, 16);
	assert_true(most <= 2);
	free(other);
}

static void a_unit_that_fails_stops_the_rest_at_once(void **state)
{
	double began = seconds_now();
	pid_t slow, waits, bad;

	(void)state;
	setenv("FAINSTALL_GATE_CORES", "2", 1);
	slow = gate("slow.o");
	usleep(100000);
	bad = gate("bad.o");
	usleep(100000);
	waits = gate("slow2.o");
	assert_int_equal(ended(bad), 2);
	assert_int_not_equal(ended(slow), 0);
	assert_int_not_equal(ended(waits), 0);
	assert_true(seconds_now() - began < 10);
	assert_true(events_say("bad.cu(9): error: no such kernel") || events_say("bad.o.cu(9): error: no such kernel"));
	assert_true(events_say("\"stopped\""));
}

static void a_unit_that_the_kernel_killed_is_tried_again_alone(void **state)
{
	int most, begun;

	(void)state;
	assert_int_equal(ended(gate("once.o")), 0);
	free(trace(&most, &begun));
	assert_int_equal(begun, 2);
	assert_true(events_say("\"killed\""));
	assert_true(events_say("\"end\""));
}

static pid_t first_begun(void);

/* Each was said to take 10 MiB; after the first one nobody believes it of the others. */
static void units_of_a_kind_that_outgrows_what_was_told_are_expected_to(void **state)
{
	struct fa_gate_table t;
	struct fa_gate_seen *seen = fa_calloc(FA_GATE_SLOTS, sizeof(*seen));
	int64_t kin = 0, stranger = 0;
	char *file = fa_strf("%s/seen", getenv("FAKE_HOME"));
	pid_t pids[3];

	(void)state;
	setenv("FAINSTALL_GATE_CORES", "1", 1);
	expect_units("eat_hdim90_a 9 10\neat_hdim90_b 1 20\nother 1 10\n");
	pids[0] = gate("eat_hdim90_a.o");
	assert_true(first_begun() > 0);
	pids[1] = gate("eat_hdim90_b.o");
	pids[2] = gate("other.o");
	assert_int_equal(fa_gate_table_open(&t, table, NULL), 0);
	for (int i = 0; i < 2500 && kin < 150; i++) {
		size_t n = fa_gate_table_list(&t, seen);

		for (size_t k = 0; k < n; k++) {
			kin = !strcmp(seen[k].name, "eat_hdim90_b") ? seen[k].unit.expect_mib : kin;
			stranger = !strcmp(seen[k].name, "other") ? seen[k].unit.expect_mib : stranger;
		}
		usleep(10000);
	}
	fa_gate_table_close(&t);
	close(open(file, O_WRONLY | O_CREAT, 0666));
	free(file);
	assert_in_range(kin, 150, 250);
	assert_int_equal(stranger, 10);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ended(pids[i]), 0);
	free(seen);
}

static void one_that_is_killed_again_fails_for_memory(void **state)
{
	int most, begun;

	(void)state;
	assert_int_equal(ended(gate("hog.o")), 128 + SIGKILL);
	free(trace(&most, &begun));
	assert_int_equal(begun, 2);
	assert_true(events_say("\"no_memory\""));
}

/* Within 2 s; a member that has ended counts until init has taken note. */
static bool group_goes(pid_t group)
{
	for (int i = 0; i < 200; i++) {
		if (kill(-group, 0) < 0)
			return true;
		usleep(10000);
	}
	return false;
}

static pid_t first_begun(void)
{
	for (int i = 0; i < 200; i++) {
		int most, begun, pid = 0;
		char *text = trace(&most, &begun);

		if (begun && sscanf(text, "begin %*s %d", &pid) == 1) {
			free(text);
			return pid;
		}
		free(text);
		usleep(20000);
	}
	return 0;
}

static void a_killed_gate_leaves_no_compiler_behind(void **state)
{
	pid_t slow = gate("slow.o"), compiler = first_begun(), next;

	(void)state;
	assert_true(compiler > 0);
	setenv("FAINSTALL_GATE_CORES", "1", 1);
	kill(slow, SIGKILL);
	next = gate("u.o"); /* gets the place when it is free */
	assert_int_equal(ended(slow), 1000 + SIGKILL);
	assert_int_equal(ended(next), 0);
	assert_true(group_goes(compiler));
}

static void a_gate_told_to_end_takes_its_compiler_along(void **state)
{
	pid_t slow = gate("slow.o"), compiler = first_begun();
	double began = seconds_now();

	(void)state;
	assert_true(compiler > 0);
	kill(slow, SIGTERM);
	assert_int_equal(ended(slow), 128 + SIGTERM);
	assert_true(seconds_now() - began < 5);
	assert_true(group_goes(compiler));
}

static void a_compiler_that_crashes_without_a_word_is_told(void **state)
{
	(void)state;
	assert_int_equal(ended(gate("crash.o")), 128 + SIGSEGV);
	assert_true(events_say("ended by signal 11 without a word"));
}

static void a_compiler_that_hangs_is_a_finding(void **state)
{
	pid_t hang, next;
	double began = seconds_now();

	(void)state;
	setenv("FAINSTALL_GATE_HANG_S", "1", 1);
	hang = gate("hang.o");
	assert_true(first_begun() > 0);
	next = gate("u.o");
	assert_int_not_equal(ended(hang), 0);
	ended(next);
	unsetenv("FAINSTALL_GATE_HANG_S");
	assert_true(seconds_now() - began < 10);
	assert_true(events_say("the compiler hangs: it used no CPU for"));
	assert_true(events_say("\"failed\""));
}

static void drained_the_running_ones_end_and_nothing_starts(void **state)
{
	char *flag = fa_path_join(home, "drain");
	pid_t first, second;

	(void)state;
	setenv("FAINSTALL_GATE_CORES", "1", 1);
	first = gate("u1.o");
	assert_true(first_begun() > 0);
	assert_int_equal(fa_file_write(flag, "", 0, NULL), 0);
	second = gate("u2.o");
	assert_int_equal(ended(first), 0);
	assert_int_equal(ended(second), 1);
	free(flag);
}

static void other_calls_go_straight_through(void **state)
{
	char *nvcc = fa_path_join(home, "nvcc");
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), 1);
		execl(nvcc, nvcc, "--version", "bad", (char *)NULL);
		_exit(99);
	}
	assert_int_equal(ended(pid), 2);
	free(nvcc);
}

int main(int argc, char **argv)
{
	const char *name = fa_path_base(argv[0]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_unit_starts_first),
		cmocka_unit_test(nothing_starts_when_every_core_is_taken),
		cmocka_unit_test(what_the_running_ones_will_still_take_is_counted),
		cmocka_unit_test(a_smaller_unit_may_pass_one_that_does_not_fit),
		cmocka_unit_test(a_unit_that_fits_nowhere_starts_alone_after_a_while),
		cmocka_unit_test(a_killed_unit_waits_until_it_is_alone),
		cmocka_unit_test(a_killed_unit_waits_for_its_own_build_only),
		cmocka_unit_test(each_build_keeps_its_own_number_of_jobs),
		cmocka_unit_test(pressure_holds_new_units_back),
		cmocka_unit_test(other_users_get_an_even_share_while_they_want_it),
		cmocka_unit_test(unknown_memory_does_not_count),
		cmocka_unit_test(the_first_real_error_is_found),
		cmocka_unit_test_setup_teardown(no_more_units_run_than_there_are_cores, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_limits_them_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_builds_share_the_cores, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_unit_that_fails_stops_the_rest_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_unit_that_the_kernel_killed_is_tried_again_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(units_of_a_kind_that_outgrows_what_was_told_are_expected_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_killed_again_fails_for_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_killed_gate_leaves_no_compiler_behind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_gate_told_to_end_takes_its_compiler_along, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_compiler_that_crashes_without_a_word_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_compiler_that_hangs_is_a_finding, set_up, tear_down),
		cmocka_unit_test_setup_teardown(drained_the_running_ones_end_and_nothing_starts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_calls_go_straight_through, set_up, tear_down),
	};

	if (!strcmp(name, "nvcc"))
		return fa_gate_main(argc, argv);
	if (!strcmp(name, "fakecc"))
		return fake_compiler(argc, argv);
	if (!realpath("/proc/self/exe", self))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
