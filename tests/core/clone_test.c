#include "buf.h"
#include "clone.h"
#include "file.h"
#include "strv.h"

#include "loopback.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

static struct loopback server;
static char work[64];
static char *repos, *target;
static struct fa_buf facts;

static int start_all(void **state)
{
	char *path;
	int rc;

	(void)state;
	snprintf(work, sizeof(work), "/tmp/fa-clone-XXXXXX");
	if (!mkdtemp(work))
		return -1;
	setenv("HOME", work, 1);
	repos = fa_path_join(work, "repos");
	target = fa_path_join(work, "clones/out");
	if (fa_file_mkdirs(repos, NULL) < 0 || loopback_start(&server, "tests/net/git_server.py", repos, NULL) < 0)
		return -1;
	path = fa_path_join(repos, "facts");
	rc = fa_file_read(&facts, path, 10000, NULL);
	free(path);
	return rc;
}

static int stop_all(void **state)
{
	(void)state;
	loopback_stop(&server);
	fa_buf_release(&facts);
	free(repos);
	free(target);
	return fa_file_remove_tree(work, NULL);
}

/* Nothing of an earlier test, and nothing half done. */
static int clean(void **state)
{
	char *dir = fa_path_dir(target);

	(void)state;
	fa_file_remove_tree(dir, NULL);
	free(dir);
	return 0;
}

static void assert_nothing_left(void)
{
	char *command = fa_strf("test -z \"$(ls -A %s/clones 2>/dev/null)\"", work);

	assert_int_equal(system(command), 0);
	free(command);
}

/* The id that the server's script gave a name. Static storage for two. */
static const char *id_of(const char *name)
{
	static char ids[2][41];
	static int turn;
	char *key = fa_strf("%s ", name);
	const char *at = strstr(fa_buf_str(&facts), key);

	assert_non_null(at);
	turn = !turn;
	snprintf(ids[turn], sizeof(ids[turn]), "%.40s", at + strlen(key));
	free(key);
	return ids[turn];
}

static int take(const char *place, const char *ref, const char *commit, const char *sub, unsigned silence_s,
                const volatile int *cancel, char *found, struct fa_err *err)
{
	char *url = strstr(place, "://") ? fa_strdup(place) : fa_strf("http://127.0.0.1:%d/%s", server.port, place);
	struct fa_clone_submodule s = { .path = sub };
	struct fa_clone_opts o = { .url = url,
		                   .ref = ref,
		                   .commit = commit,
		                   .path = target,
		                   .submodules = &s,
		                   .n_submodules = sub != NULL,
		                   .silence_s = silence_s ? silence_s : 60,
		                   .cancel = cancel };
	int rc = fa_clone(found, &o, err);

	if (rc == 0)
		assert_true(fa_file_is_dir(target));
	else
		assert_nothing_left();
	free(url);
	return rc;
}

static void assert_file(const char *name, const char *want)
{
	char *path = fa_path_join(target, name);
	struct fa_buf text = FA_BUF_INIT;

	if (fa_file_read(&text, path, 1000, NULL) < 0)
		fail_msg("%s is not there", path);
	assert_string_equal(fa_buf_str(&text), want);
	fa_buf_release(&text);
	free(path);
}

static bool has(const char *name)
{
	char *path = fa_path_join(target, name);
	bool there = fa_file_exists(path);

	free(path);
	return there;
}

static void a_tag_gives_its_files_byte_for_byte(void **state)
{
	char found[41], *path;
	struct fa_err err = FA_ERR_INIT;
	struct stat st;

	(void)state;
	unlink("/tmp/fa-hook-ran");
	assert_int_equal(take("plain/main.git", "refs/tags/v1", id_of("v1"), NULL, 0, NULL, found, &err), 0);
	assert_string_equal(found, id_of("v1"));
	assert_file("setup.py", "a\r\nb\n"); /* .gitattributes asks for other line ends */
	assert_file("docs/link", "a\r\nb\n");
	path = fa_path_join(target, "run");
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_mode & 0100);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_false(has(".git"));
	assert_false(has("csrc/cutlass/include"));
	assert_int_not_equal(access("/tmp/fa-hook-ran", F_OK), 0);
	free(path);
}

static void a_submodule_comes_at_its_pinned_commit(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(take("plain/main.git", "refs/tags/v2", NULL, "csrc/cutlass", 0, NULL, NULL, &err), 0);
	assert_file("setup.py", "v2\n");
	assert_file("csrc/cutlass/include/cutlass.h", "one\n");
	assert_false(has("csrc/cutlass/.git"));
	assert_false(has("csrc/ck/include"));
}

static void a_submodule_elsewhere_on_the_disk_is_refused(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(take("plain/main.git", "refs/tags/v2", NULL, "csrc/ck", 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_non_null(strstr(err.text, "file:///etc"));
	assert_int_equal(take("plain/main.git", "refs/tags/v2", NULL, "csrc/none", 0, NULL, NULL, &err), -1);
	assert_non_null(strstr(err.text, "names no address for its submodule csrc/none"));
	assert_int_equal(take("plain/main.git", "refs/tags/v2", NULL, "docs", 0, NULL, NULL, &err), -1);
	assert_non_null(strstr(err.text, "has no submodule docs"));
	assert_int_equal(take("plain/main.git", "refs/tags/v2", NULL, "../docs", 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
}

static void an_id_is_found_whether_the_server_serves_ids_or_not(void **state)
{
	char found[41];
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(take("plain/open.git", NULL, id_of("v1"), NULL, 0, NULL, found, &err), 0);
	assert_string_equal(found, id_of("v1"));
	clean(NULL);
	assert_int_equal(take("plain/main.git", NULL, id_of("old"), NULL, 0, NULL, found, &err), 0);
	assert_file("setup.py", "old\n");
	clean(NULL);
	assert_int_equal(take("plain/main.git", "refs/tags/gone", id_of("v1"), NULL, 0, NULL, found, &err),
	                 0); /* the tag is not, the commit is */
	clean(NULL);
	assert_int_equal(take("plain/main.git", NULL, "0123456789012345678901234567890123456789", NULL, 0, NULL, found, &err),
	                 -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "does not hold commit 0123456789012345678901234567890123456789"));
}

static void a_moved_tag_is_an_integrity_error(void **state)
{
	struct fa_err err = FA_ERR_INIT;
	const char *wanted = id_of("v2");

	(void)state;
	assert_int_equal(take("plain/main.git", "refs/tags/v1", wanted, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_non_null(strstr(err.text, wanted));
	assert_non_null(strstr(err.text, id_of("v1")));
}

static void a_missing_tag_or_repository_is_named(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(take("plain/main.git", "refs/tags/v9.9.9", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "has no refs/tags/v9.9.9"));
	assert_int_equal(take("plain/nothing.git", "refs/tags/v1", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_int_equal(take("http://127.0.0.1:1/x.git", "refs/tags/v1", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "127.0.0.1:1"));
}

static void links_that_lead_out_are_refused(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(take("plain/evil.git", "refs/tags/abs", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
	assert_non_null(strstr(err.text, "leads out of it: a/l"));
	assert_int_equal(take("plain/evil.git", "refs/tags/up", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_INTEGRITY);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void a_silent_server_is_given_up(void **state)
{
	static const char *const places[] = { "silent/main.git", "mute/main.git", "slow/main.git" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fa_err err = FA_ERR_INIT;
		double begin = now();

		assert_int_equal(take(places[i], "refs/tags/v1", NULL, NULL, 1, NULL, NULL, &err), -1);
		assert_int_equal(err.status, FA_NETWORK);
		assert_non_null(strstr(err.text, "next to nothing came for 1 s"));
		assert_true(now() - begin < 6);
	}
}

static void a_cut_connection_is_tried_again(void **state)
{
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(take("cutonce/main.git", "refs/tags/v1", id_of("v1"), NULL, 0, NULL, NULL, &err), 0);
	clean(NULL);
	assert_int_equal(take("cut/main.git", "refs/tags/v1", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_int_equal(take("status/main.git", "refs/tags/v1", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
}

static void *set_later(void *flag)
{
	struct timespec t = { .tv_nsec = 400 * 1000 * 1000 };

	nanosleep(&t, NULL);
	*(volatile int *)flag = 1;
	return NULL;
}

static void a_set_flag_stops_it(void **state)
{
	volatile int cancel = 0;
	struct fa_err err = FA_ERR_INIT;
	double begin = now();
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, set_later, (void *)(uintptr_t)&cancel);
	assert_int_equal(take("mute/main.git", "refs/tags/v1", NULL, NULL, 30, &cancel, NULL, &err), -1);
	pthread_join(thread, NULL);
	assert_int_equal(err.status, FA_INTERRUPTED);
	assert_true(now() - begin < 0.4 + 1.5); /* 200 ms, and room for a busy machine */
}

static void bad_options_are_refused_before_anything_is_done(void **state)
{
	static const char *const urls[] = { "file:///tmp/x.git", "ssh://h/x", "git://h/x", "http://example.org/x.git",
		                            "git@github.com:a/b" };
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct fa_clone_opts o = { .url = urls[i], .ref = "refs/tags/v1", .path = target };

		assert_int_equal(fa_clone(NULL, &o, &err), -1);
		assert_int_equal(err.status, FA_USAGE);
	}
	assert_int_equal(take("plain/main.git", "v1", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_int_equal(take("plain/main.git", NULL, "abc", NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	assert_int_equal(take("plain/main.git", NULL, NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(fa_file_mkdirs(target, NULL), 0);
	{
		struct fa_clone_opts o = { .url = "https://h/x", .ref = "refs/tags/v1", .path = target };

		assert_int_equal(fa_clone(NULL, &o, &err), -1);
		assert_int_equal(err.status, FA_MACHINE);
	}
}

/* What the user's settings make of a URL is held to the same rules. */
static void an_address_rewritten_by_settings_is_checked_too(void **state)
{
	char *path = fa_path_join(work, ".gitconfig"), *text, *good;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	text = fa_strf("[url \"file://%s/\"]\n\tinsteadOf = https://a.invalid/\n", repos);
	assert_int_equal(fa_file_write(path, text, strlen(text), NULL), 0);
	assert_int_equal(take("https://a.invalid/main.git", "refs/tags/v1", NULL, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.status, FA_USAGE);
	good = fa_strf("[url \"http://127.0.0.1:%d/plain/\"]\n\tinsteadOf = https://a.invalid/\n[core]\n\tautocrlf = true\n",
	               server.port);
	assert_int_equal(fa_file_write(path, good, strlen(good), NULL), 0);
	assert_int_equal(take("https://a.invalid/main.git", "refs/tags/v2", NULL, NULL, 0, NULL, NULL, &err), 0);
	assert_file("setup.py", "v2\n");
	unlink(path);
	free(path);
	free(text);
	free(good);
}

static void assert_url(const char *modules, const char *path, const char *want)
{
	char *got = fa_clone_submodule_url(modules, path);

	assert_string_equal(got ? got : "-", want);
	free(got);
}

static void addresses_of_submodules_are_read(void **state)
{
	static const char text[] =
	        "# x\n[submodule \"a\"]\n  path = p/a\n\turl=\"https://h/a b\"\r\n[submodule \"b\"]\n\turl = u\n\tpath = p/b";

	(void)state;
	assert_url(text, "p/a", "https://h/a b");
	assert_url(text, "p/b", "u");
	assert_url(text, "p", "-");
	assert_url("", "p", "-");
	assert_url("[s]\npath=p\n[t]\nurl=u\n", "p", "-");
}

#define T(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_tag_gives_its_files_byte_for_byte),
		T(a_submodule_comes_at_its_pinned_commit),
		T(a_submodule_elsewhere_on_the_disk_is_refused),
		T(an_id_is_found_whether_the_server_serves_ids_or_not),
		T(a_moved_tag_is_an_integrity_error),
		T(a_missing_tag_or_repository_is_named),
		T(links_that_lead_out_are_refused),
		T(a_silent_server_is_given_up),
		T(a_cut_connection_is_tried_again),
		T(a_set_flag_stops_it),
		T(bad_options_are_refused_before_anything_is_done),
		T(an_address_rewritten_by_settings_is_checked_too),
		T(addresses_of_submodules_are_read),
	};

	if (access("/usr/lib/git-core/git-http-backend", X_OK) != 0) {
		print_message("no git here: not run\n");
		return 0;
	}
	return cmocka_run_group_tests_name("clone", tests, start_all, stop_all) ? 1 : 0;
}
