#include "plan.h"

#include "buf.h"
#include "json.h"
#include "plan_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void fill(struct fa_plan *p)
{
	struct fa_node *n;
	struct fa_nearest *near;

	*p = (struct fa_plan)FA_PLAN_INIT;
	p->status = FA_PLAN_ACTION;
	p->wish.v[FA_WISH_LINE] = fa_strdup("fa2");
	p->choice.route = fa_strdup("source");
	p->choice.line = fa_strdup("fa2");
	p->choice.flash_attn = fa_strdup("2.8.3");
	p->choice.torch = fa_strdup("2.11.0");
	p->choice.build.wanted = true;
	p->choice.build.jobs = 4;
	p->choice.build.profile = fa_strdup("full");
	fa_strv_push(&p->choice.build.env, "MAX_JOBS=4");
	fa_strv_push(&p->choice.build.archs, "80");
	for (int i = 0; i < 5; i++) {
		n = fa_plan_add_node(p, "torch", "2.11.0", "installed");
		fa_node_add_other(n, "2.15.0", "driver", ">= 580", "570");
		fa_plan_reject(p, "a.whl", "glibc", "2.32", "2.31");
	}
	fa_plan_act(p, "driver_too_old", "Install a driver", NULL);
	fa_plan_warn(p, "slow", "It is slow", "measured");
	fa_plan_serve(p, 0, "86", "fa2", "has code");
	near = fa_plan_add_nearest(p);
	fa_strv_push(&near->wish, "--line");
	near->choice.route = fa_strdup("wheel");
	fa_plan_add_step(p, FA_STEP_BUILD, "Compile", NULL)->bytes = 5;
	fa_strv_push(&p->fallbacks, "b.whl");
	fa_strv_push(&p->checks, "import");
}

static char *bytes(const struct fa_plan *p)
{
	struct fa_json *j = fa_plan_to_json(p);
	char *text = fa_json_print(j, true);

	fa_json_free(j);
	return text;
}

static void what_was_written_is_read_back(void **state)
{
	struct fa_plan a, b;
	struct fa_json *j;
	char *x, *y;

	(void)state;
	fill(&a);
	j = fa_plan_to_json(&a);
	assert_int_equal(fa_plan_from_json(&b, j, "plan", NULL), 0);
	x = bytes(&a);
	y = bytes(&b);
	assert_string_equal(x, y);
	fa_plan_reject(&b, "one", "more", NULL, NULL); /* adding after reading keeps within its memory */
	fa_plan_warn(&b, "one", "more", NULL);
	assert_int_equal(b.n_rejected, 6);
	free(x);
	free(y);
	fa_json_free(j);
	fa_plan_release(&a);
	fa_plan_release(&b);
}

static void assert_refused(const char *text, const char *expected)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j;
	struct fa_plan p;

	assert_int_equal(fa_json_parse(&j, text, strlen(text), "plan", &err), 0);
	assert_int_equal(fa_plan_from_json(&p, j, "plan", &err), -1);
	if (!strstr(err.text, expected))
		fail_msg("expected \"%s\" in \"%s\"", expected, err.text);
	fa_json_free(j);
}

static void what_is_no_plan_is_an_error(void **state)
{
	(void)state;
	assert_refused("{}", "schema fainstall.plan/1 expected");
	assert_refused("{\"schema\":\"fainstall.plan/1\",\"status\":\"maybe\"}", "unknown status \"maybe\"");
	assert_refused("{\"schema\":\"fainstall.plan/1\",\"status\":\"ready\",\"wish\":{\"luck\":\"x\"}}",
	               "unknown wish \"luck\"");
	assert_refused("{\"schema\":\"fainstall.plan/1\",\"status\":\"ready\",\"steps\":[{\"kind\":\"pray\"}]}",
	               "unknown kind of step \"pray\"");
}

static void status_is_an_exit_status(void **state)
{
	struct fa_plan p = FA_PLAN_INIT;

	(void)state;
	assert_int_equal(fa_plan_exit(&p), FA_OK);
	p.status = FA_PLAN_ACTION;
	assert_int_equal(fa_plan_exit(&p), FA_MACHINE);
	p.status = FA_PLAN_IMPOSSIBLE;
	assert_int_equal(fa_plan_exit(&p), FA_IMPOSSIBLE);
}

static void the_text_says_all_of_it(void **state)
{
	struct fa_buf out = FA_BUF_INIT;
	struct fa_plan p;

	(void)state;
	fill(&p);
	fa_plan_print(&out, &p);
	assert_non_null(strstr(fa_buf_str(&out), "Flash-Attention 2.8.3 (fa2) by source"));
	assert_non_null(strstr(fa_buf_str(&out), "Install a driver (driver_too_old)"));
	assert_non_null(strstr(fa_buf_str(&out), "not 2.15.0: driver, needed >= 580, found 570"));
	assert_non_null(strstr(fa_buf_str(&out), "fainstall install --line"));
	fa_buf_release(&out);
	fa_plan_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read_back),
		cmocka_unit_test(what_is_no_plan_is_an_error),
		cmocka_unit_test(status_is_an_exit_status),
		cmocka_unit_test(the_text_says_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
