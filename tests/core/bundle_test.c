#include "buf.h"
#include "bundle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct fa_names names = { .user = "ada", .host = "lab7", .home = "/srv/people/ada" };

static void expect(const char *text, const char *expected)
{
	struct fa_buf b = FA_BUF_INIT;

	fa_anonymise(&b, text, &names);
	assert_string_equal(expected, fa_buf_str(&b));
	fa_buf_release(&b);
}

static void names_go_but_words_that_hold_them_stay(void **state)
{
	(void)state;
	expect("ada@lab7:~$ cd canada", "user@host:~$ cd canada");
	expect("File \"/srv/people/ada/x.py\", line 3", "File \"~/x.py\", line 3");
	expect("/home/grace/venv/lib and C:\\Users\\Grace Hopper\\x", "/home/user/venv/lib and C:\\Users\\user Hopper\\x");
}

static void secrets_go(void **state)
{
	(void)state;
	expect("HF_TOKEN=abcdef next", "HF_TOKEN=- next");
	expect("export AWS_SECRET_ACCESS_KEY='a b'", "export AWS_SECRET_ACCESS_KEY=- b'");
	expect("got ghp_0123456789abcdefABCDEF.", "got -");
	expect("https://ada:pw@host.example/x", "https://-@host.example/x");
}

static void ordinary_text_stays(void **state)
{
	static const char text[] = "nvcc error   : 'cicc' died due to signal 9 (Kill signal) key word: sk-1 token_x";

	(void)state;
	expect(text, text);
	expect("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_but_words_that_hold_them_stay),
		cmocka_unit_test(secrets_go),
		cmocka_unit_test(ordinary_text_stays),
	};

	return cmocka_run_group_tests_name("bundle", tests, NULL, NULL) ? 1 : 0;
}
