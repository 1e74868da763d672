/* The build as a whole, around a fake interpreter that plays build.py: what is told, what is said when it stops. This program is
 * also the gate (called as "nvcc"). */
#include "build.h"

#include "buf.h"
#include "build_env.h"
#include "file.h"
#include "gate.h"
#include "json.h"
#include "proc.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char self[4096], *home;
static struct fa_buf told; /* one line an event */
static volatile int cancel;
static int64_t ended, most_ahead; /* units, and by how many more were said to be done */
static int64_t total;             /* units of the build, as said last */

static void listen(void *ctx, const struct fa_event *e)
{
	(void)ctx;
	fa_buf_addf(&told, "%s %s %s %s\n", fa_event_word(e->kind), e->id, fa_outcome_word(e->status), e->text);
	if (e->kind == FA_EVENT_LOG && strstr(e->text, "cancel me"))
		cancel = 1;
	if (e->kind == FA_EVENT_UNIT_BEGIN && !strcmp(e->id, "slow"))
		cancel = FA_BUILD_DRAIN;
	ended += e->kind == FA_EVENT_UNIT_END;
	if (e->kind == FA_EVENT_UNIT_END)
		total = e->total;
	if (e->kind == FA_EVENT_UNIT_END && e->done - ended > most_ahead)
		most_ahead = e->done - ended;
}

static const struct fa_sink sink = { .emit = listen };

static char *path_of(const char *name)
{
	return fa_path_join(home, name);
}

static void script(const char *name, const char *text)
{
	char *path = path_of(name), *dir = fa_path_dir(path);

	assert_int_equal(fa_file_mkdirs(dir, NULL), 0);
	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	assert_int_equal(chmod(path, 0755), 0);
	free(path);
	free(dir);
}

/* The compiler: a unit called bad fails, slow takes its time, one called full meets a full disk, all others make their object. */
static const char compiler[] = "#!/bin/sh\n"
                               "for a; do last=$a; done\n"
                               "case $last in *slow*) sleep 0.7 ;; esac\n"
                               "case $last in *bad*) echo 'bad.cu(3): error: no such thing'; exit 2 ;; esac\n"
                               "case $last in *full*) cat \"$0\" >/dev/full; exit 1 ;; esac\n"
                               ": >\"$last\"\n";

static int set_up(void **state)
{
	char template[] = "/tmp/fa-build-test-XXXXXX", *worker, *table, *data;

	(void)state;
	home = fa_strdup(mkdtemp(template));
	worker = path_of("fainstall-worker");
	table = path_of("table");
	data = path_of("data");
	assert_int_equal(symlink(self, worker), 0);
	script("cuda/bin/nvcc", compiler);
	script("source/setup.py", "");
	script("recipes/build.py", "");
	setenv("FAINSTALL_DATA", home, 1);
	setenv("FAINSTALL_GATE_TABLE", table, 1);
	setenv("FAINSTALL_GATE_RESERVE_MIB", "0", 1);
	setenv("FAINSTALL_GATE_MEMORY_MIB", "100000000", 1);
	setenv("XDG_DATA_HOME", data, 1);
	setenv("XDG_STATE_HOME", data, 1);
	fa_buf_reset(&told);
	cancel = 0;
	ended = most_ahead = 0;
	free(worker);
	free(table);
	free(data);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fa_file_remove_tree(home, NULL);
	free(home);
	return 0;
}

/* Builds with an "interpreter" that runs this shell text; hip: the CK build, with the hipcc of the folder rocm. */
static int build_for(char **wheel, bool hip, const char *python, struct fa_err *err)
{
	char *source = path_of("source"), *interpreter = path_of("python"), *home_of = path_of(hip ? "rocm" : "cuda"),
	     *wheels = path_of("wheels");
	struct fa_plan_build plan = { .wanted = true, .profile = (char *)"training" };
	struct fa_build_opts opts = { .source = source,
		                      .python = interpreter,
		                      .cuda_home = hip ? NULL : home_of,
		                      .rocm_home = hip ? home_of : NULL,
		                      .wheel_dir = wheels,
		                      .build = &plan,
		                      .version = "2.8.3",
		                      .cancel = &cancel };
	char *text = fa_strf("#!/bin/sh\nset -e\ncc() { \"$PYTORCH_NVCC\" -c x.cu -o \"$1.o\"; }\n%s\n", python);
	int rc;

	script("python", text);
	fa_strv_push(&plan.archs, hip ? "gfx90a" : "90");
	if (hip)
		fa_strv_push(&plan.archs, "gfx942");
	rc = fa_build_wheel(wheel, NULL, &opts, &sink, 3, err);
	fa_strv_release(&plan.archs);
	free(text);
	free(source);
	free(interpreter);
	free(home_of);
	free(wheels);
	return rc;
}

static int build(char **wheel, const char *python, struct fa_err *err)
{
	return build_for(wheel, false, python, err);
}

static bool was_told(const char *text)
{
	return strstr(fa_buf_str(&told), text) != NULL;
}

static void units_are_told_and_the_wheel_comes_out(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel,
	                       "echo 'fainstall {\"units\": [\"one\", \"two\"]}'\ncc one\ncc two\n"
	                       "echo 'fainstall {\"wheel\": \"/w/x.whl\"}'",
	                       &err),
	                 0);
	assert_string_equal(wheel, "/w/x.whl");
	assert_true(was_told("unit_begin one"));
	assert_true(was_told("unit_end one ok"));
	assert_true(was_told("unit_end two ok"));
	assert_true(was_told("progress"));
	free(wheel);
}

static void the_record_names_each_unit(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	char *wheel = NULL, *path = path_of("source/build/build.json");
	const struct fa_json *units, *one;

	(void)state;
	assert_int_equal(
	        build(&wheel,
	              "echo 'fainstall {\"units\": [\"one\", \"old\"], \"profile\": \"bf16\"}'\necho '[1/2] x'\ncc one\n"
	              "echo 'fainstall {\"wheel\": \"/w/x.whl\"}'",
	              &err),
	        0);
	assert_int_equal(fa_json_read_file(&j, path, &err), 0);
	assert_string_equal(fa_json_get_string(j, "schema"), "fainstall.build/1");
	assert_string_equal(fa_json_get_string(j, "profile"), "bf16");
	units = fa_json_get(j, "units");
	assert_int_equal(fa_json_len(units), 2);
	one = fa_json_at(units, 0);
	assert_string_equal(fa_json_get_string(one, "unit"), "one");
	assert_true(fa_json_get_number(one, "begin", -1) >= 0);
	assert_true(fa_json_get_bool(fa_json_at(units, 1), "kept"));
	fa_json_free(j);
	free(wheel);
	free(path);
}

static void the_first_error_of_the_unit_that_failed_is_said(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel, "echo 'fainstall {\"units\": [\"bad\"]}'\ncc bad", &err), -1);
	assert_int_equal(err.status, FA_BUILD);
	assert_string_equal(err.text, "bad: bad.cu(3): error: no such thing");
	assert_non_null(strstr(err.next, "fainstall diagnose"));
	assert_null(wheel);
}

static void a_full_disk_in_the_middle_is_said_and_something_to_change(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel, "echo 'fainstall {\"units\": [\"full\"]}'\ncc full", &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	assert_non_null(strstr(err.text, "full: the disk is full"));
	assert_non_null(strstr(err.next, "free some space, then run this again"));
	err = (struct fa_err)FA_ERR_INIT; /* the build system's own files, not a compiler's */
	assert_int_equal(build(&wheel, "cat \"$0\" >/dev/full", &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	assert_non_null(strstr(err.text, "the disk is full"));
}

static void a_refusal_is_passed_on(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel, "echo 'fainstall {\"error\": \"no kernel left\", \"next\": \"widen it\"}'\nexit 1",
	                       &err),
	                 -1);
	assert_int_equal(err.status, FA_BUILD);
	assert_string_equal(err.text, "no kernel left");
	assert_string_equal(err.next, "widen it");
}

static void a_crash_is_told_by_its_last_line(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel, "echo 'Traceback'\necho 'NameError: name x'\nexit 1", &err), -1);
	assert_non_null(strstr(err.text, "NameError: name x"));
}

static void kept_units_are_said(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel,
	                       "echo 'fainstall {\"units\": [\"a\", \"b\", \"c\"]}'\ncc c\necho '[1/1] nvcc c'\n"
	                       "echo 'fainstall {\"wheel\": \"/w/x.whl\"}'",
	                       &err),
	                 0);
	assert_true(was_told("2 of 3 units are there from before"));
	free(wheel);
}

static void what_has_not_ended_is_not_done(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(
	        build(&wheel,
	              "echo 'fainstall {\"units\": [\"a\", \"b\", \"c\"]}'\necho '[1/3] nvcc a'\nsleep 0.3\ncc a\ncc b\ncc c\n"
	              "echo 'fainstall {\"wheel\": \"/w/x.whl\"}'",
	              &err),
	        0);
	assert_int_equal(ended, 3);
	assert_int_equal(most_ahead, 0);
	free(wheel);
}

static void stopped_by_the_user_is_no_failure_of_the_build(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel, "echo 'cancel me'\nsleep 30", &err), -1);
	assert_int_equal(err.status, FA_INTERRUPTED);
}

static void drained_the_units_that_run_finish_and_no_other_starts(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL, *object = path_of("source/slow.o");

	(void)state;
	setenv("FAINSTALL_GATE_CORES", "1", 1);
	assert_int_equal(build(&wheel,
	                       "echo 'fainstall {\"units\": [\"slow\", \"later\"]}'\ncc slow & sleep 0.2; cc later || rc=$?; "
	                       "wait; exit $rc",
	                       &err),
	                 -1);
	unsetenv("FAINSTALL_GATE_CORES");
	assert_int_equal(err.status, FA_INTERRUPTED);
	assert_true(was_told("note draining"));
	assert_true(was_told("unit_end slow ok"));
	assert_false(was_told("unit_begin later"));
	assert_true(fa_file_exists(object));
	free(object);
}

/* As a power cut leaves it, or a full disk, or somebody: another size, nothing in it, one byte changed. */
static void an_object_that_was_damaged_since_is_made_again(void **state)
{
	static const char *const damage[] = { "", "x", NULL /* only rewritten */ };
	char *wheel = NULL, *object = path_of("source/one.o");
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	script("cuda/bin/nvcc", "#!/bin/sh\nfor a; do last=$a; done\necho object >$last\n");
	for (int i = -1; i < 3; i++) {
		bool is_damaged = i >= 0 && damage[i];

		if (i >= 0 && damage[i])
			assert_int_equal(fa_file_write(object, damage[i], strlen(damage[i]), NULL), 0);
		fa_buf_reset(&told);
		assert_int_equal(build(&wheel,
		                       "echo 'fainstall {\"units\": [\"one\"]}'\ntest -e one.o || cc one\n"
		                       "echo 'fainstall {\"wheel\": \"/w/x.whl\"}'",
		                       &err),
		                 0);
		free(wheel);
		assert_int_equal(was_told("warning damaged_object"), is_damaged);
		assert_int_equal(was_told("unit_end one ok"), is_damaged || i < 0);
	}
	free(object);
}

/* ninja would compile what reads such a source again at each run, and never again what is an object of tomorrow. */
static void files_dated_ahead_of_the_clock_count_as_new(void **state)
{
	const struct timespec tomorrow[2] = { { .tv_sec = time(NULL) + 86400 }, { .tv_sec = time(NULL) + 86400 } };
	char *wheel = NULL, *object = path_of("source/one.o"), *header = path_of("source/deep/er/one.h");
	struct fa_err err = FA_ERR_INIT;
	struct stat st;

	(void)state;
	script("source/deep/er/one.h", "");
	script("source/one.o", "object");
	assert_int_equal(utimensat(AT_FDCWD, header, tomorrow, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, object, tomorrow, 0), 0);
	assert_int_equal(build(&wheel, "echo 'fainstall {\"wheel\": \"/w/x.whl\"}'", &err), 0);
	assert_true(was_told("note clock"));
	assert_true(was_told("2 files were dated ahead"));
	assert_false(fa_file_exists(object));
	assert_int_equal(stat(header, &st), 0);
	assert_true(st.st_mtime <= time(NULL));
	free(wheel);
	free(object);
	free(header);
}

/* setuptools splits CXX at blanks, torch writes nvcc's path into a command line; the build system keeps to what the same path made. */
static void the_gate_is_called_by_a_path_without_blanks(void **state)
{
	char *plain = path_of("gate"),
	     *odd = path_of("my ma\xc3\xb1"
	                    "ana & co/gate"),
	     *bin, *again;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	bin = fa_build_gate_bin(plain, &err);
	assert_memory_equal(bin, plain, strlen(plain));
	free(bin);
	bin = fa_build_gate_bin(odd, &err);
	again = fa_build_gate_bin(odd, &err);
	assert_non_null(bin);
	assert_string_equal(bin, again);
	assert_null(strpbrk(bin, " &\xc3"));
	assert_true(fa_file_is_dir(bin));
	rmdir(bin);
	free(bin);
	free(again);
	free(plain);
	free(odd);
}

static void settings_of_other_builds_are_named_and_left_out(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	setenv("NVCC_APPEND_FLAGS", "-G", 1);
	assert_int_equal(build(&wheel, "echo \"flags=$NVCC_APPEND_FLAGS.\"\necho 'fainstall {\"wheel\": \"/w/x.whl\"}'", &err),
	                 0);
	unsetenv("NVCC_APPEND_FLAGS");
	assert_true(was_told("warning environment"));
	assert_true(was_told("NVCC_APPEND_FLAGS"));
	assert_true(was_told("flags=."));
	free(wheel);
}

/* A command line as torch's builder writes it for a CK kernel: -c twice, no list of headers. */
static void a_kernel_of_ck_goes_through_the_gate_as_hipcc(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL, *kept = path_of("data/fainstall/objects");

	(void)state;
	script("rocm/bin/hipcc", "#!/bin/sh\nfor a; do [ \"$p\" = -o ] && o=$a; [ \"$p\" = -MF ] && d=$a; p=$a; done\n"
	                         ": >\"$o\"; echo \"$o: $PWD/fmha_x.hip\" >\"$d\"; echo \"hipcc: $*\" >&2\n");
	setenv("HIPCC_COMPILE_FLAGS_APPEND", "-O0", 1);
	setenv("OPT_DIM", "32", 1);
	assert_int_equal(build_for(&wheel, true,
	                           "echo 'fainstall {\"units\": [\"fmha_x\"]}'\n: >fmha_x.hip\n"
	                           "echo \"set $BUILD_TARGET $GPU_ARCHS $ROCM_HOME/ $FLASH_ATTN_CUDA_ARCHS $OPT_DIM.\"\n"
	                           "\"$PYTORCH_NVCC\" -I/x -c -c $PWD/fmha_x.hip -o $PWD/fmha_x.o --offload-arch=gfx90a -mllvm "
	                           "--lsr-drop-solution=1 -fno-gpu-rdc\n"
	                           "rm fmha_x.o\n\"$PYTORCH_NVCC\" -I/x -c -c $PWD/fmha_x.hip -o $PWD/fmha_x.o "
	                           "--offload-arch=gfx90a -mllvm --lsr-drop-solution=1 -fno-gpu-rdc\n"
	                           "[ -e fmha_x.o ]\necho 'fainstall {\"wheel\": \"/w/x.whl\"}'",
	                           &err),
	                 0);
	unsetenv("HIPCC_COMPILE_FLAGS_APPEND");
	unsetenv("OPT_DIM");
	assert_true(was_told("set rocm gfx90a;gfx942 "));
	assert_true(was_told("/rocm/  ."));
	assert_true(was_told("unit_end fmha_x ok"));
	assert_true(was_told("HIPCC_COMPILE_FLAGS_APPEND, OPT_DIM") || was_told("OPT_DIM, HIPCC_COMPILE_FLAGS_APPEND"));
	assert_true(fa_file_is_dir(kept)); /* the second was not compiled */
	assert_null(strstr(strstr(fa_buf_str(&told), "hipcc: ") + 1, "hipcc: "));
	free(kept);
	free(wheel);
}

static void a_rocm_without_hipcc_is_named(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build_for(&wheel, true, "", &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	assert_non_null(strstr(err.text, "rocm/bin/hipcc"));
	assert_non_null(strstr(err.next, "ROCM_PATH"));
}

static void units_too_many_for_a_line_are_read_from_a_file(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL;

	(void)state;
	assert_int_equal(build(&wheel,
	                       "echo '{\"units\": [\"one\", \"later\"]}' >told.json\necho \"fainstall {\\\"in\\\": "
	                       "\\\"$PWD/told.json\\\"}\"\n"
	                       "cc one\necho 'fainstall {\"wheel\": \"/w/x.whl\"}'",
	                       &err),
	                 0);
	assert_true(was_told("unit_end one ok"));
	assert_int_equal(total, 2);
	free(wheel);
}

static void what_is_missing_is_named(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	char *wheel = NULL, *nvcc = path_of("cuda/bin/nvcc"), *setup = path_of("source/setup.py");

	(void)state;
	unlink(nvcc);
	assert_int_equal(symlink("nowhere", nvcc), 0);
	assert_int_equal(build(&wheel, "", &err), -1);
	assert_int_equal(err.status, FA_MACHINE);
	assert_non_null(strstr(err.text, "cuda/bin/nvcc"));
	unlink(setup);
	assert_int_equal(build(&wheel, "", &err), -1);
	assert_int_equal(err.status, FA_BUILD);
	assert_non_null(strstr(err.text, "setup.py"));
	free(nvcc);
	free(setup);
}

/* ---- the Python half, on a release of a few lines */

static void collect(void *ctx, const char *line, bool is_err)
{
	(void)ctx;
	(void)is_err;
	fa_buf_addf(&told, "%s\n", line);
}

static void must_pass(const char *program)
{
	const char *argv[] = { "python3", program, NULL };
	struct fa_proc_opts proc = { .argv = argv, .timeout_ms = 60000, .line = collect, .merge = true };
	struct fa_proc_result result;
	struct fa_err err = FA_ERR_INIT;

	fa_buf_reset(&told);
	if (fa_proc_run(&result, &proc, FA_CHECK, &err) < 0)
		fail_msg("%s\n%s", err.text, fa_buf_str(&told));
}

static void profiles_of_a_small_release(void **state)
{
	(void)state;
	must_pass("tests/gate/profile_test.py");
}

static void profiles_of_a_small_hopper(void **state)
{
	(void)state;
	must_pass("tests/gate/hopper_test.py");
}

static void a_changed_source_and_torch_without_torch(void **state)
{
	(void)state;
	must_pass("tests/gate/build_py_test.py");
}

static void kernels_of_ck(void **state)
{
	(void)state;
	must_pass("tests/gate/ck_test.py");
}

static void what_the_preflight_finds_has_its_own_cause(void **state)
{
	(void)state;
	must_pass("tests/gate/preflight_test.py");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(units_are_told_and_the_wheel_comes_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_record_names_each_unit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_first_error_of_the_unit_that_failed_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_in_the_middle_is_said_and_something_to_change, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_refusal_is_passed_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_crash_is_told_by_its_last_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kept_units_are_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_has_not_ended_is_not_done, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stopped_by_the_user_is_no_failure_of_the_build, set_up, tear_down),
		cmocka_unit_test_setup_teardown(drained_the_units_that_run_finish_and_no_other_starts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_object_that_was_damaged_since_is_made_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_dated_ahead_of_the_clock_count_as_new, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_gate_is_called_by_a_path_without_blanks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(settings_of_other_builds_are_named_and_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_missing_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_kernel_of_ck_goes_through_the_gate_as_hipcc, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_rocm_without_hipcc_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(units_too_many_for_a_line_are_read_from_a_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(profiles_of_a_small_release, set_up, tear_down),
		cmocka_unit_test_setup_teardown(profiles_of_a_small_hopper, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_changed_source_and_torch_without_torch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kernels_of_ck, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_the_preflight_finds_has_its_own_cause, set_up, tear_down),
	};
	int failed;

	if (!strcmp(fa_path_base(argv[0]), "nvcc") || !strcmp(fa_path_base(argv[0]), "hipcc"))
		return fa_gate_main(argc, argv);
	if (!realpath("/proc/self/exe", self))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	fa_buf_release(&told);
	return failed ? 1 : 0;
}
