#include "buf.h"
#include "environment.h"
#include "file.h"
#include "index.h"
#include "strv.h"
#include "url.h"

#include "loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define DATA "tests/data/index/"

static struct loopback server;
static char work[64];

static int start_all(void **state)
{
	(void)state;
	snprintf(work, sizeof(work), "/tmp/fa-index-XXXXXX");
	if (!mkdtemp(work))
		return -1;
	setenv("XDG_CACHE_HOME", work, 1);
	unsetenv("PIP_FIND_LINKS");
	unsetenv("PIP_EXTRA_INDEX_URL");
	return loopback_start(&server, "tests/net/bad_server.py", "tests/data/index", NULL);
}

static int stop_all(void **state)
{
	(void)state;
	loopback_stop(&server);
	return fa_file_remove_tree(work, NULL);
}

static void assert_field(const char *line, const char *got, const char *want)
{
	if (strcmp(got ? got : "-", want) != 0)
		fail_msg("%s\ngot %s", line, got ? got : "-");
}

static void run_case(const char *line)
{
	struct fa_strv f = FA_STRV_INIT;
	struct fa_buf page = FA_BUF_INIT;
	struct fa_index_file found;
	char *path, *url, *size;
	bool there;

	fa_strv_split(&f, line, "|");
	assert_int_equal(f.n, 5);
	path = fa_path_join(DATA, f.v[0]);
	url = fa_strf("https://mirror.example/simple/%.*s/", (int)strcspn(f.v[0], "."), f.v[0]);
	assert_int_equal(fa_file_read(&page, path, FA_FILE_MAX, NULL), 0);
	there = fa_index_read_page(&found, fa_buf_str(&page), page.len, f.v[1], url);
	size = found.size >= 0 ? fa_strf("%lld", (long long)found.size) : NULL;
	assert_int_equal(there, strcmp(f.v[2], "-") != 0);
	assert_field(line, found.url, f.v[2]);
	assert_field(line, found.sha256, f.v[3]);
	assert_field(line, size, f.v[4]);
	fa_index_file_release(&found);
	fa_buf_release(&page);
	fa_strv_release(&f);
	free(path);
	free(url);
	free(size);
}

static void every_page_is_read_as_written(void **state)
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

static void assert_setting(const char *list, const char *name, const char *want)
{
	char *got = fa_index_pip_setting(list, name);

	assert_field(name, got, want);
	free(got);
}

static void settings_of_pip_are_read_in_its_order(void **state)
{
	static const char list[] =
	        "global.index-url='https://a/simple'\nglobal.find-links='\\n/opt/it\\'s\\n/b'\n:env:.cert='/ca.pem'\n"
	        "global.cert='/other.pem'\ninstall.index-url=\"https://b/'x'\"\nglobal.timeout=60\n";

	(void)state;
	assert_setting(list, "cert", "/ca.pem");
	assert_setting(list, "index-url", "https://b/'x'");
	assert_setting(list, "find-links", "\n/opt/it's\n/b");
	assert_setting(list, "timeout", "60");
	assert_setting(list, "index", "-");
	assert_setting("", "cert", "-");
}

static int find(struct fa_index_file *out, const char *package, const char *file, struct fa_err *err)
{
	struct fa_environment env = FA_ENVIRONMENT_INIT; /* without pip: the variables alone */
	struct fa_child_context c = { .step = -1 };

	int rc = fa_index_find(out, package, file, &env, &c, err);

	fa_environment_release(&env);
	return rc;
}

static void a_file_is_found_where_the_variables_point(void **state)
{
	char *index = fa_strf("http://me:secret@127.0.0.1:%d/simple", server.port), *want;
	struct fa_index_file f;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	setenv("PIP_INDEX_URL", index, 1);
	setenv("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt", 1);
	assert_int_equal(find(&f, "Flash_Attn", "flash_attn-2.8.3.tar.gz", &err), 0);
	want = fa_strf("http://me:secret@127.0.0.1:%d/packages/x/flash_attn-2.8.3.tar.gz", server.port);
	assert_string_equal(f.url, want);
	assert_string_equal(f.ca, "/etc/ssl/certs/ca-certificates.crt");
	fa_index_file_release(&f);
	assert_int_equal(find(&f, "torch", "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl", &err), 0);
	assert_string_equal(
	        f.url,
	        "https://files.example/t/torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl"); /* another host: no password */
	assert_int_equal(f.size, 531000000);
	fa_index_file_release(&f);
	unsetenv("PIP_CERT");
	free(want);
	free(index);
}

static void what_no_index_has_and_what_does_not_answer_differ(void **state)
{
	char *index = fa_strf("http://127.0.0.1:%d/simple/", server.port), *good = fa_strdup(index);
	struct fa_index_file f;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	setenv("PIP_INDEX_URL", index, 1);
	assert_int_equal(find(&f, "flash-attn", "flash_attn-9.9.9.tar.gz", &err), -1);
	assert_int_equal(err.status, FA_IMPOSSIBLE);
	assert_non_null(strstr(err.text, "flash_attn-9.9.9.tar.gz"));
	setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:1/simple", 1);
	assert_int_equal(find(&f, "flash-attn", "flash_attn-2.8.3.tar.gz", &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_null(strstr(err.text, "secret"));
	setenv("PIP_EXTRA_INDEX_URL", good, 1); /* another index has it */
	assert_int_equal(find(&f, "flash-attn", "flash_attn-2.8.3.tar.gz", &err), 0);
	fa_index_file_release(&f);
	unsetenv("PIP_EXTRA_INDEX_URL");
	free(index);
	free(good);
}

static void a_folder_of_wheels_comes_first(void **state)
{
	char *path = fa_path_join(work, "flash_attn-2.8.3.tar.gz"), *links = fa_strf("/nowhere file://%s", work);
	struct fa_index_file f;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(fa_file_write(path, "x", 1, NULL), 0);
	setenv("PIP_FIND_LINKS", links, 1);
	setenv("PIP_NO_INDEX", "1", 1);
	assert_int_equal(find(&f, "flash-attn", "flash_attn-2.8.3.tar.gz", &err), 0);
	assert_string_equal(f.url, path);
	fa_index_file_release(&f);
	assert_int_equal(find(&f, "flash-attn", "flash_attn-2.8.4.tar.gz", &err), -1);
	assert_int_equal(err.status, FA_NETWORK);
	assert_non_null(strstr(err.text, "no-index"));
	unsetenv("PIP_FIND_LINKS");
	unsetenv("PIP_NO_INDEX");
	free(path);
	free(links);
}

static void assert_text(char *got, const char *want)
{
	assert_string_equal(got, want);
	free(got);
}

static void urls_are_joined_shown_and_judged(void **state)
{
	(void)state;
	assert_text(fa_url_join("https://h/a/b/", "../c"), "https://h/a/c");
	assert_text(fa_url_join("https://h/a/b", "../../../c"), "https://h/c");
	assert_text(fa_url_join("https://h", "x/./y"), "https://h/x/y");
	assert_text(fa_url_join("https://h/a?x=/q", "y"), "https://h/y");
	assert_text(fa_url_join("https://h/a/", "//i/z"), "https://i/z");
	assert_text(fa_url_join("https://h/a/", "http://i"), "http://i");
	assert_text(fa_url_redact("get https://u:p@h/x?k=1 and http://i/#f"), "get https://***@h/x?*** and http://i/#f");
	assert_text(fa_url_redact("a://b@c@d/e"), "a://***@d/e");
	assert_text(fa_url_host("https://u:p@h:8/x"), "h:8");
	assert_text(fa_url_host("x"), "");
	assert_int_equal(fa_url_check("http://[::1]:80/x", NULL), 0);
	assert_int_equal(fa_url_check("http://127.1.2.3/x", NULL), 0);
	assert_int_equal(fa_url_check("http://LOCALHOST:1/x", NULL), 0);
	assert_int_equal(fa_url_check("http://localhost.evil/x", NULL), -1);
	assert_int_equal(fa_url_check("http://127.0.0.1.evil/x", NULL), -1);
	assert_int_equal(fa_url_check("http://127.0.0.1@evil/x", NULL), -1);
	assert_int_equal(fa_url_check("ssh://h/x", NULL), -1);
	assert_int_equal(fa_url_check("https://h/\nx", NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_page_is_read_as_written),
		cmocka_unit_test(settings_of_pip_are_read_in_its_order),
		cmocka_unit_test(a_file_is_found_where_the_variables_point),
		cmocka_unit_test(what_no_index_has_and_what_does_not_answer_differ),
		cmocka_unit_test(a_folder_of_wheels_comes_first),
		cmocka_unit_test(urls_are_joined_shown_and_judged),
	};

	return cmocka_run_group_tests_name("index", tests, start_all, stop_all) ? 1 : 0;
}
