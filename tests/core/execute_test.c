/* The execute stage without network, compiler or real Python: tests/data/execute/python stands in for Python and pip, and the
 * build is a function of this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "buf.h"
#include "build.h"
#include "environment.h"
#include "execute.h"
#include "file.h"
#include "json.h"
#include "lock.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char data[] = "tests/data/execute";
static const char wheel_name[] = "flash_attn-2.8.3+fa.t-py3-none-any.whl";
static const char misfit[] = "flash_attn-2.8.3+misfit-py3-none-any.whl";
static const char wheel_hash[] = "sha256:6be16ee3393c22d6c5cb14db404019aa8a2edff1e76415f0388870143d57ae22";

/* ---- the build */

static int n_built;
static volatile int stop;
static bool stop_in_build;

int fa_build_preflight(const struct fa_build_opts *o, const struct fa_sink *s, int step, struct fa_err *err)
{
	(void)o, (void)s, (void)step, (void)err;
	return 0;
}

int fa_build_wheel(char **out, struct fa_json **record, const struct fa_build_opts *o, const struct fa_sink *s, int step,
                   struct fa_err *err)
{
	char *from = fa_path_join(data, wheel_name), *setup = fa_path_join(o->source, "setup.py");
	struct fa_buf b = FA_BUF_INIT, edited = FA_BUF_INIT;
	int rc = -1;

	(void)s, (void)step, (void)record;
	n_built++;
	assert_non_null(o->tools);
	assert_int_equal(fa_file_read(&edited, setup, 1000, NULL), 0);
	assert_string_equal(fa_buf_str(&edited), "c++20 c++20");
	if (stop_in_build) {
		stop = 1;
		fa_err_set(err, FA_INTERRUPTED, "interrupted");
		goto done;
	}
	*out = fa_path_join(o->wheel_dir, wheel_name);
	assert_int_equal(fa_file_read(&b, from, 1 << 20, NULL), 0);
	rc = fa_file_write(*out, b.data, b.len, err);
done:
	fa_buf_release(&b);
	fa_buf_release(&edited);
	free(from);
	free(setup);
	return rc;
}

/* ---- a run */

static char home[] = "/tmp/fainstall-execute-XXXXXX";
static struct fa_buf told; /* ends of steps: "pip skipped everything needed is there\n" */

static void hear(void *ctx, const struct fa_event *e)
{
	(void)ctx;
	if (e->kind == FA_EVENT_STEP_END || e->kind == FA_EVENT_NOTE || e->kind == FA_EVENT_WARNING)
		fa_buf_addf(&told, "%s %s %s\n", e->id, fa_outcome_word(e->status), e->text);
}

static const struct fa_sink sink = { hear, NULL };

static void set_folder(const char *variable, const char *below)
{
	char *path = fa_path_join(home, below);

	setenv(variable, path, 1);
	free(path);
}

static void fake(const char *variable, const char *file)
{
	char *path = fa_path_join(data, file), *absolute = fa_path_absolute(path);

	setenv(variable, absolute, 1);
	free(path);
	free(absolute);
}

static int fresh_home(void **state)
{
	char *folder = fa_path_absolute(data);

	(void)state;
	strcpy(home, "/tmp/fainstall-execute-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	set_folder("XDG_DATA_HOME", "data");
	set_folder("XDG_CACHE_HOME", "cache");
	set_folder("XDG_STATE_HOME", "state");
	setenv("PIP_FIND_LINKS", folder, 1);
	setenv("PIP_NO_INDEX", "1", 1);
	setenv("FAINSTALL_DATA", ".", 1);
	unsetenv("FAINSTALL_FAKE_PIP");
	unsetenv("FAINSTALL_FAKE_NO_VENV");
	fake("FAINSTALL_FAKE_REPORT", "report.json");
	free(folder);
	n_built = 0;
	stop = 0;
	stop_in_build = false;
	return 0;
}

static int drop_home(void **state)
{
	(void)state;
	return fa_file_remove_tree(home, NULL);
}

struct run {
	struct fa_plan plan;
	struct fa_facts facts;
	struct fa_environment env;
	struct fa_execute_result result;
	struct fa_lock lock;
	struct fa_report *report;
	struct fa_execute_opts opts;
	struct fa_err err;
};

static void prepare_plan(struct run *r, const char *plan_file)
{
	struct fa_json *j = NULL;
	char *python = fa_path_absolute("tests/data/execute/python"), *plan = fa_path_join(data, plan_file);

	memset(r, 0, sizeof(*r));
	r->env = (struct fa_environment)FA_ENVIRONMENT_INIT;
	r->report = fa_report_new();
	assert_int_equal(fa_json_read_file(&j, plan, NULL), 0);
	assert_int_equal(fa_plan_from_json(&r->plan, j, "plan", NULL), 0);
	fa_json_free(j);
	fa_facts_set_text(&r->facts, FA_FACT_PYTHON, "3.11.7", NULL);
	fa_facts_set_text(&r->facts, FA_FACT_PYTHON_PATH, python, NULL);
	fa_facts_set_text(&r->facts, FA_FACT_DISTRO, "debian", NULL);
	r->opts = (struct fa_execute_opts){ .plan = &r->plan, .facts = &r->facts, .cancel = &stop };
	fa_buf_reset(&told);
	free(python);
	free(plan);
}

static void prepare(struct run *r)
{
	prepare_plan(r, "plan.json");
}

static void environment_is(struct run *r, const char *kind, const char *path)
{
	fa_json_set_string(r->plan.steps[0].args, "kind", kind);
	fa_json_set_string(r->plan.steps[0].args, "path", path);
}

static int go(struct run *r)
{
	return fa_execute(&r->result, &r->env, &r->lock, r->report, &r->opts, &sink, &r->err);
}

static void finish(struct run *r, bool keep)
{
	struct fa_child_context c = { .sink = &sink, .step = -1 };

	if (keep)
		assert_int_equal(fa_environment_commit(&r->env, NULL), 0);
	else
		fa_environment_undo(&r->env, &c);
	fa_environment_release(&r->env);
	fa_plan_release(&r->plan);
	fa_facts_release(&r->facts);
	fa_lock_release(&r->lock);
	fa_report_free(r->report);
	free(r->result.wheel);
	free(r->result.cuda_home);
}

static void must(struct run *r)
{
	if (go(r) < 0)
		fail_msg("%s\n%s", r->err.text, fa_buf_str(&told));
}

static bool said(const char *text)
{
	return strstr(fa_buf_str(&told), text) != NULL;
}

static bool there(const char *below)
{
	char *path = fa_path_join(home, below);
	bool is = fa_file_exists(path);

	free(path);
	return is;
}

/* ---- tests */

static void a_plan_becomes_an_environment_and_a_lock(void **state)
{
	struct run r;
	const struct fa_lock_package *p;

	(void)state;
	prepare(&r);
	must(&r);
	assert_int_equal(n_built, 1);
	p = fa_lock_package(&r.lock, "flash-attn");
	assert_non_null(p);
	assert_string_equal(p->version, "2.8.3+fa.t");
	assert_string_equal(p->hashes.v[0], wheel_hash);
	assert_true(p->built);
	assert_non_null(fa_lock_package(&r.lock, "torch"));
	assert_null(fa_lock_package(&r.lock, "ninja"));
	assert_string_equal(fa_lock_get(&r.lock, "source.file"), "flash_attn-2.8.3.tar.gz");
	assert_null(fa_lock_get(&r.lock, "build.env.MAX_JOBS"));
	assert_null(fa_lock_get(&r.lock, "build.env.CUDA_HOME"));
	assert_non_null(fa_lock_get(&r.lock, "tool.einops"));
	assert_true(there("data/fainstall/envs/t/gen-1/lib/site/flash_attn-2.8.3+fa.t.dist-info"));
	assert_false(there("data/fainstall/envs/t/current"));
	assert_true(there("data/fainstall/wheels/flash_attn-2.8.3+fa.t-py3-none-any.whl.sha256"));
	finish(&r, true);
	assert_true(there("data/fainstall/envs/t/current/bin/python"));
	assert_false(there("data/fainstall/envs/t/gen-1/fainstall/unfinished"));
}

static void an_undone_environment_leaves_nothing(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	must(&r);
	finish(&r, false);
	assert_false(there("data/fainstall/envs/t"));
	assert_true(there("data/fainstall/wheels"));
}

static void what_is_done_is_not_done_again(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	must(&r);
	finish(&r, false);
	prepare(&r);
	must(&r);
	assert_int_equal(n_built, 1);
	assert_true(said("build skipped the wheel is there: flash_attn-2.8.3+fa.t"));
	assert_true(said("unpack skipped"));
	finish(&r, true);
	prepare(&r);
	r.opts.rebuild = true;
	must(&r);
	assert_int_equal(n_built, 2);
	assert_true(said("fetch skipped flash_attn-2.8.3.tar.gz is here already") || said("fetch ok"));
	assert_true(said("unpack skipped flash_attn-2.8.3 is unpacked already"));
	assert_non_null(strstr(r.env.path, "gen-2"));
	finish(&r, true);
}

static void a_stop_in_the_build_is_an_interruption(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	stop_in_build = true;
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_INTERRUPTED);
	assert_true(said("build failed interrupted"));
	finish(&r, false);
	assert_false(there("data/fainstall/envs/t"));
	stop = 0;
	stop_in_build = false;
	prepare(&r);
	must(&r);
	assert_true(said("unpack skipped"));
	finish(&r, true);
}

/* Parses what a first run locked. */
static void lock_of_a_run(struct fa_lock *out)
{
	struct run r;
	struct fa_buf text = FA_BUF_INIT;

	prepare(&r);
	must(&r);
	fa_lock_print(&text, &r.lock);
	assert_int_equal(fa_lock_parse(out, text.data, text.len, "lock", NULL), 0);
	fa_buf_release(&text);
	finish(&r, true);
}

static void a_lock_is_reproduced_without_asking_pip_or_building(void **state)
{
	struct fa_lock l;
	struct run r;

	(void)state;
	lock_of_a_run(&l);
	unsetenv("FAINSTALL_FAKE_REPORT");
	prepare(&r);
	r.opts.lock = &l;
	r.opts.frozen = true;
	must(&r);
	assert_int_equal(n_built, 1);
	assert_true(r.result.as_locked);
	assert_true(said("pin ok 3 packages as locked, 2 to install"));
	finish(&r, true);
	fa_lock_release(&l);
}

static void a_lost_wheel_is_built_again_unless_frozen(void **state)
{
	char *wheels = fa_path_join(home, "data/fainstall/wheels");
	struct fa_lock l;
	struct run r;

	(void)state;
	lock_of_a_run(&l);
	fa_file_remove_tree(wheels, NULL);
	prepare(&r);
	r.opts.lock = &l;
	r.opts.frozen = true;
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_INTEGRITY);
	finish(&r, false);
	prepare(&r);
	r.opts.lock = &l;
	must(&r);
	assert_int_equal(n_built, 2);
	assert_true(said("rebuilt  byte for byte the wheel of the lock"));
	assert_true(r.result.as_locked);
	finish(&r, true);
	fa_lock_release(&l);
	free(wheels);
}

static void a_damaged_wheel_of_the_wheelhouse_is_not_used(void **state)
{
	char *wheel = fa_strf("%s/data/fainstall/wheels/%s", home, wheel_name);
	struct run r;

	(void)state;
	prepare(&r);
	must(&r);
	finish(&r, true);
	unlink(wheel);
	assert_int_equal(fa_file_write(wheel, "no wheel", 8, NULL), 0);
	prepare(&r);
	must(&r);
	assert_int_equal(n_built, 2);
	finish(&r, true);
	free(wheel);
}

static void an_edit_that_does_not_apply_is_refused(void **state)
{
	static const char edit[] = "{\"edits\":[{\"file\":\"setup.py\",\"find\":\"c++17\",\"replace\":\"c++20\",\"count\":4}]}";
	struct run r;

	(void)state;
	prepare(&r);
	fa_json_free(r.plan.steps[4].args);
	assert_int_equal(fa_json_parse(&r.plan.steps[4].args, edit, strlen(edit), "edit", NULL), 0);
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_BUILD);
	assert_non_null(strstr(r.err.text, "\"c++17\" is there 2 times, the recipe edits 4"));
	finish(&r, false);
}

static void a_hash_that_differs_is_refused(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	fa_json_set_string(r.plan.steps[2].args, "sha256", "00dd64a9e0280e0447b8a0c2541bad4bf6ac65bdeaa2f90e51a9e57de0370d00");
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_INTEGRITY);
	finish(&r, false);
	assert_int_equal(n_built, 0);
}

/* ---- a folder of sources */

static void put(const char *below, const char *text)
{
	char *path = fa_path_join(home, below), *dir = fa_path_dir(path);

	assert_int_equal(fa_file_mkdirs(dir, NULL), 0);
	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	free(path);
	free(dir);
}

static void step_becomes(struct run *r, size_t i, enum fa_step_kind kind, const char *args)
{
	r->plan.steps[i].kind = kind;
	fa_json_free(r->plan.steps[i].args);
	assert_int_equal(fa_json_parse(&r->plan.steps[i].args, args, strlen(args), "args", NULL), 0);
}

/* setup.py lies in a folder of the source, and two steps edit it. */
static void take_folder(struct run *r, const char *below)
{
	char *folder = fa_path_join(home, below),
	     *clone = fa_strf("{\"url\":\"%s\",\"submodules\":[{\"path\":\"csrc/cutlass\"}]}", folder);

	step_becomes(r, 2, FA_STEP_CLONE, clone);
	step_becomes(r, 3, FA_STEP_EDIT,
	             "{\"edits\":[{\"file\":\"hopper/setup.py\",\"find\":\" fetch\",\"replace\":\"\",\"count\":1}]}");
	step_becomes(r, 4, FA_STEP_EDIT,
	             "{\"edits\":[{\"file\":\"hopper/setup.py\",\"find\":\"c++17\",\"replace\":\"c++20\",\"count\":2}]}");
	step_becomes(r, 7, FA_STEP_BUILD, "{\"folder\":\"hopper\"}");
	free(folder);
	free(clone);
}

static void prepare_folder(struct run *r, const char *below)
{
	char *setup = fa_path_join(below, "hopper/setup.py"), *header = fa_path_join(below, "csrc/cutlass/x.h");

	put(setup, "c++17 fetch c++17");
	put(header, "one");
	prepare(r);
	take_folder(r, below);
	free(setup);
	free(header);
}

static void a_folder_of_sources_is_copied_and_edits_add_up(void **state)
{
	char *setup = fa_path_join(home, "src/hopper/setup.py");
	struct fa_buf text = FA_BUF_INIT;
	struct run r;

	(void)state;
	prepare_folder(&r, "src");
	must(&r); /* the build reads what both edits made of it, in the folder that the step names */
	assert_int_equal(n_built, 1);
	assert_int_equal(fa_file_read(&text, setup, 100, NULL), 0);
	assert_string_equal(fa_buf_str(&text), "c++17 fetch c++17");
	assert_int_equal(strlen(fa_lock_get(&r.lock, "source.tree")), 64);
	assert_null(fa_lock_get(&r.lock, "source.url"));
	finish(&r, true);
	prepare_folder(&r, "src");
	must(&r);
	assert_int_equal(n_built, 1);
	finish(&r, true);
	prepare_folder(&r, "elsewhere/src"); /* the same source, wherever it lies */
	must(&r);
	assert_int_equal(n_built, 1);
	finish(&r, true);
	prepare_folder(&r, "src");
	put("src/csrc/cutlass/x.h", "two"); /* another one, where the last lay */
	must(&r);
	assert_int_equal(n_built, 2);
	finish(&r, true);
	fa_buf_release(&text);
	free(setup);
}

static void a_submodule_that_is_not_there_is_named(void **state)
{
	char *path = fa_path_join(home, "src/csrc/cutlass/x.h");
	struct run r;

	(void)state;
	prepare_folder(&r, "src");
	unlink(path);
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_USAGE);
	assert_non_null(strstr(r.err.text, "src/csrc/cutlass: nothing is there"));
	assert_non_null(strstr(r.err.next, "submodule update --init csrc/cutlass"));
	finish(&r, false);
	free(path);
}

static void a_lock_knows_its_folder_of_sources(void **state)
{
	char *wheels = fa_path_join(home, "data/fainstall/wheels"), *tree;
	struct fa_buf text = FA_BUF_INIT;
	struct fa_lock l;
	struct run r;

	(void)state;
	prepare_folder(&r, "src");
	must(&r);
	fa_lock_print(&text, &r.lock);
	assert_int_equal(fa_lock_parse(&l, text.data, text.len, "lock", NULL), 0);
	assert_null(strstr(fa_buf_str(&text), home));
	tree = fa_strdup(fa_lock_get(&l, "source.tree"));
	finish(&r, true);
	assert_int_equal(fa_file_remove_tree(wheels, NULL), 0);
	prepare_folder(&r, "other"); /* the same files */
	r.opts.lock = &l;
	must(&r);
	assert_int_equal(n_built, 2);
	assert_string_equal(fa_lock_get(&r.lock, "source.tree"), tree);
	finish(&r, true);
	assert_int_equal(fa_file_remove_tree(wheels, NULL), 0);
	prepare_folder(&r, "other");
	put("other/csrc/cutlass/x.h", "two");
	r.opts.lock = &l;
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_INTEGRITY);
	assert_non_null(strstr(r.err.text, "is another source"));
	finish(&r, false);
	prepare_folder(&r, "src");
	step_becomes(&r, 2, FA_STEP_CLONE, "{\"url\":\"http://127.0.0.1:9/x.git\",\"commit\":\"0\"}");
	r.opts.lock = &l;
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_INTEGRITY);
	assert_non_null(strstr(r.err.next, "--source DIR"));
	finish(&r, false);
	fa_buf_release(&text);
	fa_lock_release(&l);
	free(wheels);
	free(tree);
}

/* The steps of a plan that takes a file: fetch, pip, xray, install. */
static void take_wheels(struct run *r, const char *first, const char *second)
{
	static const char names[][8] = { "fetch", "pip", "xray", "install" };
	struct fa_json *args = fa_json_new_object();
	char *path = fa_strf("tests/data/execute/%s", first), *url = fa_path_absolute(path);

	for (size_t i = 2; i < r->plan.n_steps; i++) {
		free(r->plan.steps[i].title);
		fa_json_free(r->plan.steps[i].args);
	}
	r->plan.n_steps = 2;
	fa_json_set_string(args, "id", "wheel");
	fa_json_set_string(args, "kind", "wheel");
	fa_json_set_string(args, "url", url);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		enum fa_step_kind kind;

		assert_int_equal(fa_step_find(&kind, names[i]), 0);
		fa_plan_add_step(&r->plan, kind, names[i], i ? fa_json_new_object() : args);
	}
	r->plan.choice.build.wanted = false;
	if (second)
		fa_strv_take(&r->plan.fallbacks, fa_strf("%.*s%s", (int)(strlen(url) - strlen(first)), url, second));
	free(path);
	free(url);
}

static void a_wheel_that_does_not_fit_gives_way_to_the_next_candidate(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	take_wheels(&r, misfit, wheel_name);
	must(&r);
	assert_true(said("fallback"));
	assert_true(said("misfit.so does not fit this environment"));
	assert_true(said("the next candidate is flash_attn-2.8.3+fa.t-py3-none-any.whl"));
	assert_string_equal(fa_lock_package(&r.lock, "flash-attn")->version, "2.8.3+fa.t");
	finish(&r, true);
}

static void without_another_candidate_the_next_command_is_named(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	take_wheels(&r, misfit, misfit);
	fa_wish_set(&r.plan.wish, FA_WISH_TORCH, "2.11.0", NULL);
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_CHECK);
	assert_string_equal(r.err.next, "build it from source instead: fainstall install --torch 2.11.0 --route source");
	assert_true(there("data/fainstall/envs/t"));
	finish(&r, false);
	assert_false(there("data/fainstall/envs/t"));
}

static void pip_that_cannot_resolve_changes_nothing(void **state)
{
	struct run r;

	(void)state;
	setenv("FAINSTALL_FAKE_PIP", "ERROR: No matching distribution found for torch==2.11.0", 1);
	prepare(&r);
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_IMPOSSIBLE);
	finish(&r, false);
	assert_false(there("data/fainstall/envs/t"));
}

static void a_python_without_venv_names_the_package(void **state)
{
	struct run r;

	(void)state;
	setenv("FAINSTALL_FAKE_NO_VENV", "1", 1);
	prepare(&r);
	if (go(&r) < 0 && r.err.status == FA_MACHINE)
		assert_non_null(strstr(r.err.next, "apt-get install python3.11-venv"));
	finish(&r, false);
}

static void a_plan_larger_than_the_disk_is_refused_first(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	r.plan.steps[2].bytes = (int64_t)1 << 60;
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_MACHINE);
	assert_non_null(strstr(r.err.text, "GiB needed"));
	assert_int_equal(told.len, 0);
	finish(&r, false);
}

static void a_folder_that_is_no_environment_is_refused(void **state)
{
	struct run r;

	(void)state;
	prepare(&r);
	environment_is(&r, "venv", "tests/data");
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_USAGE);
	assert_non_null(strstr(r.err.text, "is not an environment"));
	finish(&r, false);
}

static void a_new_generation_brings_what_the_user_had_added(void **state)
{
	char *site = fa_path_join(home, "data/fainstall/envs/t/gen-1/lib/site"), *command;
	struct fa_buf text = FA_BUF_INIT;
	struct fa_lock l;
	struct run r;

	(void)state;
	prepare(&r);
	must(&r);
	fa_lock_print(&text, &r.lock);
	assert_int_equal(fa_lock_parse(&l, text.data, text.len, "lock", NULL), 0);
	command = fa_strf("%s/data/fainstall/envs/t/gen-1/fainstall/requirements.lock", home);
	assert_int_equal(fa_file_write(command, text.data, text.len, NULL), 0); /* as the worker leaves it there */
	free(command);
	finish(&r, true);
	command = fa_strf("mkdir %s/user_thing-1.0.dist-info", site);
	assert_int_equal(system(command), 0);
	prepare(&r);
	r.opts.lock = &l;
	must(&r);
	assert_true(said("1 packages that you had added are brought along"));
	assert_true(there("data/fainstall/envs/t/gen-2/lib/site/user_thing-1.0.dist-info"));
	assert_null(fa_lock_package(&r.lock, "user-thing"));
	finish(&r, true);
	fa_buf_release(&text);
	fa_lock_release(&l);
	free(command);
	free(site);
}

/* A plan that keeps what gen-1 holds. */
static void prepare_keep(struct run *r, const struct fa_lock *l)
{
	char *python = fa_strf("%s/data/fainstall/envs/t/gen-1/bin/python", home);

	prepare(r);
	r->plan.n_steps = 0;
	r->opts.lock = l;
	r->opts.frozen = l != NULL;
	r->opts.wants_lock = !l;
	fa_facts_set_text(&r->facts, FA_FACT_PYTHON_PATH, python, NULL);
	free(python);
}

static void drop_plan(struct run *r)
{
	r->plan.n_steps = 10;
	finish(r, true);
}

static void what_is_kept_is_held_against_the_lock(void **state)
{
	char *notes = fa_strf("%s/data/fainstall/envs/t/gen-1/fainstall", home),
	     *path = fa_path_join(notes, "requirements.lock");
	struct fa_buf text = FA_BUF_INIT;
	struct fa_lock l;
	struct run r;

	(void)state;
	prepare(&r);
	must(&r);
	fa_lock_print(&text, &r.lock);
	assert_int_equal(fa_lock_parse(&l, text.data, text.len, "lock", NULL), 0);
	finish(&r, true);
	prepare_keep(&r, &l);
	assert_int_equal(go(&r), -1); /* nothing tells from which file it was installed */
	assert_int_equal(r.err.status, FA_INTEGRITY);
	drop_plan(&r);
	assert_int_equal(fa_file_write(path, text.data, text.len, NULL), 0);
	prepare_keep(&r, &l);
	must(&r);
	assert_true(r.result.as_locked);
	drop_plan(&r);
	prepare_keep(&r, NULL);
	must(&r);
	assert_int_equal(r.lock.n_packages, l.n_packages);
	assert_string_equal(fa_lock_get(&r.lock, "source.file"), "flash_attn-2.8.3.tar.gz");
	drop_plan(&r);
	fa_lock_add_package(&l, "einops", "9.9");
	prepare_keep(&r, &l);
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_INTEGRITY);
	assert_non_null(strstr(r.err.text, "einops 0.8.2 is installed, the lock says 9.9"));
	drop_plan(&r);
	fa_buf_release(&text);
	fa_lock_release(&l);
	free(notes);
	free(path);
}

/* ---- adopted environments */

/* An environment with torch and an older flash-attn. The caller's. */
static char *old_environment(void)
{
	char *path = fa_path_join(home, "old"), *script = fa_strf("%s/lib/site", path), *command;

	command = fa_strf("%s/python -m venv %s && printf 'torch==2.11.0\\nflash-attn==2.7.0\\n' >%s/list && "
	                  "%s/bin/python -m pip install -r %s/list",
	                  data, path, home, path, home);
	assert_int_equal(system(command), 0);
	fake("FAINSTALL_FAKE_REPORT", "einops.json");
	free(script);
	free(command);
	return path;
}

static char *content(const char *env, const char *below)
{
	char *path = fa_path_join(env, below);
	struct fa_buf b = FA_BUF_INIT;

	fa_buf_adds(&b, "");
	if (fa_file_exists(path))
		assert_int_equal(fa_file_read(&b, path, 1000, NULL), 0);
	free(path);
	return fa_buf_detach(&b);
}

static void assert_version(const char *env, const char *package, const char *want)
{
	char *below = fa_strf("lib/site/%s/__init__.py", package), *text = content(env, below);
	char *wanted = want ? fa_strf("version = \"%s\"\n", want) : fa_strdup("");

	assert_string_equal(text, wanted);
	free(below);
	free(text);
	free(wanted);
}

static void the_old_flash_attn_comes_back_when_the_new_one_fails(void **state)
{
	char *old = old_environment();
	struct run r;

	(void)state;
	prepare(&r);
	environment_is(&r, "adopt", old);
	must(&r);
	assert_version(old, "flash_attn", "2.8.3+fa.t");
	finish(&r, false);
	assert_version(old, "flash_attn", "2.7.0");
	assert_version(old, "torch", "2.11.0");
	assert_version(old, "einops", NULL);
	assert_false(there("old/fainstall"));
	assert_false(there("old/lib/site/einops-0.8.2.dist-info"));
	free(old);
}

static void a_run_that_was_killed_is_undone_by_the_next(void **state)
{
	char *old = old_environment();
	struct run r;

	(void)state;
	prepare(&r);
	environment_is(&r, "adopt", old);
	must(&r);
	r.env.open = false; /* neither committed nor undone: as after SIGKILL */
	finish(&r, false);
	assert_version(old, "flash_attn", "2.8.3+fa.t");
	assert_true(there("old/fainstall/kept.json"));
	prepare(&r);
	environment_is(&r, "adopt", old);
	r.plan.n_steps = 1;
	must(&r);
	assert_true(said("an earlier run was cut off here"));
	assert_version(old, "flash_attn", "2.7.0");
	assert_version(old, "einops", NULL);
	r.plan.n_steps = 10;
	finish(&r, true);
	free(old);
}

static void torch_of_an_adopted_environment_is_not_replaced(void **state)
{
	char *old = old_environment();
	struct run r;

	(void)state;
	fake("FAINSTALL_FAKE_REPORT", "report.json"); /* names torch again */
	prepare(&r);
	environment_is(&r, "adopt", old);
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_IMPOSSIBLE);
	assert_non_null(strstr(r.err.text, "pip would replace torch"));
	finish(&r, false);
	assert_version(old, "flash_attn", "2.7.0");
	free(old);
}

static void one_run_at_a_time_changes_an_environment(void **state)
{
	char *old = old_environment();
	struct run r, second;

	(void)state;
	prepare(&r);
	environment_is(&r, "adopt", old);
	must(&r);
	prepare(&second);
	environment_is(&second, "adopt", old);
	assert_int_equal(go(&second), -1);
	assert_non_null(strstr(second.err.text, "another fainstall is changing"));
	finish(&second, false);
	finish(&r, true);
	free(old);
}

/* ---- wheels of sources that were named */

/* A wheel plan whose file is taken from our folder: as a mirror of where it is published, or as the only place that has it. */
static char *prepare_wheel(struct run *r, bool mirror)
{
	char *folder = fa_path_absolute(data), *path = fa_path_join(folder, wheel_name);
	struct fa_json *args;

	prepare_plan(r, "wheel-plan.json");
	args = r->plan.steps[2].args;
	fa_json_set_string(args, mirror ? "mirror" : "url", path);
	if (mirror) {
		r->plan.choice.wheel.mirror = fa_strdup(path);
	} else {
		free(r->plan.choice.wheel.url);
		r->plan.choice.wheel.url = fa_strdup(path);
		free(r->plan.choice.wheel.source);
		r->plan.choice.wheel.source = fa_strdup(folder);
	}
	assert_int_equal(fa_wish_set(&r->plan.wish, FA_WISH_SOURCE, folder, NULL), 0);
	free(path);
	return folder;
}

static char *lock_text(const struct fa_lock *l)
{
	struct fa_buf text = FA_BUF_INIT;

	fa_lock_print(&text, l);
	return fa_buf_detach(&text);
}

static void a_mirror_is_in_no_lock(void **state)
{
	struct run r;
	char *folder = prepare_wheel(&r, true), *text;

	(void)state;
	must(&r);
	text = lock_text(&r.lock);
	assert_null(strstr(text, folder));
	assert_null(strstr(text, "--source"));
	assert_non_null(strstr(text, "https://files.example.org/flash_attn-2.8.3%2Bfa.t-py3-none-any.whl"));
	assert_non_null(strstr(text, wheel_hash));
	assert_string_equal(fa_lock_get(&r.lock, "wheel.source"), "official");
	finish(&r, true);
	free(folder);
	free(text);
}

static void a_mirror_with_another_file_is_refused(void **state)
{
	struct run r;
	char *folder = prepare_wheel(&r, true);

	(void)state;
	fa_json_set_string(r.plan.steps[2].args, "sha256", "0000000000000000000000000000000000000000000000000000000000000000");
	assert_int_equal(go(&r), -1);
	assert_int_equal(r.err.status, FA_INTEGRITY);
	finish(&r, false);
	free(folder);
}

static void a_wheel_of_a_folder_lies_beside_the_lock(void **state)
{
	struct run r;
	char *folder = prepare_wheel(&r, false), *text;
	struct fa_lock l;

	(void)state;
	must(&r);
	assert_true(r.result.built);
	text = lock_text(&r.lock);
	assert_null(strstr(text, folder));
	assert_null(strstr(text, "--source"));
	assert_non_null(strstr(text, "--find-links ./wheels"));
	assert_string_equal(fa_lock_get(&r.lock, "wheel.source"), "wheels");
	assert_int_equal(fa_lock_parse(&l, text, strlen(text), "lock", NULL), 0);
	finish(&r, true);
	unsetenv("FAINSTALL_FAKE_REPORT");
	prepare_plan(&r, "wheel-plan.json"); /* whatever the plan says, the lock's file is taken */
	r.opts.lock = &l;
	r.opts.wheels = data;
	r.opts.frozen = true;
	must(&r);
	assert_true(r.result.as_locked);
	finish(&r, true);
	fa_lock_release(&l);
	free(folder);
	free(text);
}

static void a_key_in_an_address_is_in_no_lock(void **state)
{
	struct fa_lock l = FA_LOCK_INIT;
	struct run r;
	char *folder = prepare_wheel(&r, true), *text;

	(void)state;
	free(r.plan.choice.wheel.mirror);
	r.plan.choice.wheel.mirror = NULL;
	fa_wish_set(&r.plan.wish, FA_WISH_SOURCE, "https://bob:secret@wheels.example.org/simple?token=hidden", NULL);
	fa_lock_describe(&l, &r.plan, &r.facts);
	text = lock_text(&l);
	assert_null(strstr(text, "secret"));
	assert_null(strstr(text, "hidden"));
	assert_non_null(strstr(text, "--source https://wheels.example.org/simple"));
	fa_lock_release(&l);
	finish(&r, false);
	free(folder);
	free(text);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fresh_home, drop_home)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_plan_becomes_an_environment_and_a_lock),
		T(an_undone_environment_leaves_nothing),
		T(what_is_done_is_not_done_again),
		T(a_stop_in_the_build_is_an_interruption),
		T(a_lock_is_reproduced_without_asking_pip_or_building),
		T(a_lost_wheel_is_built_again_unless_frozen),
		T(a_damaged_wheel_of_the_wheelhouse_is_not_used),
		T(a_mirror_is_in_no_lock),
		T(a_mirror_with_another_file_is_refused),
		T(a_wheel_of_a_folder_lies_beside_the_lock),
		T(a_key_in_an_address_is_in_no_lock),
		T(an_edit_that_does_not_apply_is_refused),
		T(a_hash_that_differs_is_refused),
		T(a_folder_of_sources_is_copied_and_edits_add_up),
		T(a_submodule_that_is_not_there_is_named),
		T(a_lock_knows_its_folder_of_sources),
		T(a_wheel_that_does_not_fit_gives_way_to_the_next_candidate),
		T(without_another_candidate_the_next_command_is_named),
		T(pip_that_cannot_resolve_changes_nothing),
		T(a_python_without_venv_names_the_package),
		T(a_plan_larger_than_the_disk_is_refused_first),
		T(a_folder_that_is_no_environment_is_refused),
		T(a_new_generation_brings_what_the_user_had_added),
		T(what_is_kept_is_held_against_the_lock),
		T(the_old_flash_attn_comes_back_when_the_new_one_fails),
		T(a_run_that_was_killed_is_undone_by_the_next),
		T(torch_of_an_adopted_environment_is_not_replaced),
		T(one_run_at_a_time_changes_an_environment),
	};
	int failed = cmocka_run_group_tests_name("execute", tests, NULL, NULL);

	fa_buf_release(&told);
	return failed != 0;
}
