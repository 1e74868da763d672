/* What a machine remembers of its builds. */
#include "expect.h"

#include "buf.h"
#include "file.h"
#include "json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static char *home;

static int set_up(void **state)
{
	char template[] = "/tmp/fa-expect-test-XXXXXX";

	(void)state;
	home = fa_strdup(mkdtemp(template));
	setenv("XDG_STATE_HOME", home, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fa_file_remove_tree(home, NULL);
	free(home);
	return 0;
}

/* One build in which the unit computed so much and got that share of a core. */
static void built(double work, double trust, int64_t mib)
{
	const struct fa_expect_sample sample = { work, trust, mib };
	struct fa_expect e;

	fa_expect_load(&e);
	fa_expect_remember(&e, "p", "flash_fwd_hdim64_bf16_sm80", &sample);
	fa_expect_store(&e, "p", 1);
	fa_expect_release(&e);
}

static double known(size_t what)
{
	struct fa_expect e;
	struct fa_json *here;
	double v;

	fa_expect_load(&e);
	here = fa_expect_here(&e, "p");
	v = fa_json_number(fa_json_at(fa_json_get(here, "flash_fwd_hdim64_bf16_sm80"), what));
	fa_json_free(here);
	fa_expect_release(&e);
	return v;
}

static void a_quiet_build_corrects_a_loaded_one_at_once(void **state)
{
	(void)state;
	built(120, 0.1, 2000);
	assert_float_equal(known(0), 120, 0.1);
	built(100, 1, 2100);
	assert_float_equal(known(0), 102, 2);
	assert_float_equal(known(1), 2100, 0.1);
}

static void a_loaded_build_hardly_moves_what_a_quiet_one_showed(void **state)
{
	(void)state;
	built(100, 1, 2000);
	for (int i = 0; i < 3; i++)
		built(120, 0.1, 2000);
	assert_float_equal(known(0), 100, 6);
}

static void a_unit_that_has_become_another_is_learnt_anew(void **state)
{
	(void)state;
	built(100, 1, 2000);
	built(40, 1, 1500);
	assert_float_equal(known(0), 40, 0.1);
	built(100, 0.2, 2000); /* at such a load it is no proof */
	assert_true(known(0) < 60);
}

static void times_of_the_clock_are_hardly_trusted(void **state)
{
	static const char old[] = "{\"p flash_fwd_hdim64_bf16_sm80\": [400, 3000], \"speed\": 3.5}";
	char *dir = fa_path_join(home, "fainstall"), *path = fa_path_join(dir, "units.json");

	(void)state;
	assert_int_equal(fa_file_mkdirs(dir, NULL), 0);
	assert_int_equal(fa_file_write(path, old, sizeof(old) - 1, NULL), 0);
	assert_float_equal(known(0), 400, 0.1);
	built(310, 0.5, 3000);
	assert_float_equal(known(0), 325, 1);
	free(dir);
	free(path);
}

static void two_builds_at_once_both_leave_what_they_saw(void **state)
{
	const struct fa_expect_sample sample = { 70, 1, 900 };
	struct fa_expect first, second;

	(void)state;
	fa_expect_load(&first);
	fa_expect_load(&second);
	fa_expect_remember(&first, "p", "flash_fwd_hdim64_bf16_sm80", &sample);
	fa_expect_remember(&second, "q", "flash_fwd_hdim64_bf16_sm80", &sample);
	fa_expect_store(&first, "p", 1);
	fa_expect_store(&second, "q", 1);
	fa_expect_release(&first);
	fa_expect_release(&second);
	assert_float_equal(known(0), 70, 0.1);
}

/* A home that another machine shares: its preflight took half as long again. */
static double ratio_of(double preflight, double to)
{
	struct fa_expect e;
	double weight;

	fa_expect_load(&e);
	weight = e.weight;
	fa_expect_release(&e);
	return pow(preflight / to, weight);
}

static void another_machine_is_told_by_its_preflight(void **state)
{
	(void)state;
	fa_expect_store_preflight(2);
	built(100, 1, 2000);
	assert_float_equal(known(0), 100, 0.1);
	fa_expect_store_preflight(2.1); /* chance */
	assert_float_equal(known(0), 100, 0.1);
	fa_expect_store_preflight(6);
	assert_float_equal(known(0), 100 * ratio_of(6, 2), 0.5);
	assert_true(known(0) > 110);
}

static double speed(void)
{
	struct fa_expect e;
	double v;

	fa_expect_load(&e);
	v = fa_expect_speed(&e);
	fa_expect_release(&e);
	return v;
}

/* The first build after a start takes a third longer than the next: it counts as much as the preflight, not more. */
static void the_speed_is_that_of_several_builds(void **state)
{
	struct fa_expect e;
	struct fa_json *shipped = NULL;
	const struct fa_expect_sample slow = { 160, 1, 2000 };

	(void)state;
	assert_float_equal(speed(), 1, 0.001);
	fa_expect_load(&e);
	fa_expect_store_preflight(4 * e.reference);
	fa_expect_release(&e);
	assert_float_equal(speed(), ratio_of(4, 1), 0.01);
	assert_int_equal(fa_json_parse(&shipped, "{\"flash_fwd_hdim64_bf16_sm80\": [100, 2000]}", 43, "x", NULL), 0);
	for (int build = 1; build <= 3; build++) {
		double before = speed();

		fa_expect_load(&e);
		fa_expect_add(&e, shipped);
		fa_expect_remember(&e, "p", "flash_fwd_hdim64_bf16_sm80", &slow);
		fa_expect_store(&e, "p", 1);
		fa_expect_release(&e);
		assert_true(speed() > before && speed() < 1.6);
	}
	assert_float_equal(speed(), exp((log(ratio_of(4, 1)) + 3 * log(1.6)) / 4), 0.01);
	fa_json_free(shipped);
}

static void a_peak_is_known_of_a_unit_that_never_ended(void **state)
{
	struct fa_expect e;

	(void)state;
	fa_expect_load(&e);
	fa_expect_outgrown(&e, "p", "flash_fwd_hdim64_bf16_sm80", 7000);
	fa_expect_store(&e, "p", 1);
	fa_expect_release(&e);
	assert_float_equal(known(0), 0, 0.001);
	assert_float_equal(known(1), 7000, 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_quiet_build_corrects_a_loaded_one_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_loaded_build_hardly_moves_what_a_quiet_one_showed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_unit_that_has_become_another_is_learnt_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(times_of_the_clock_are_hardly_trusted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_builds_at_once_both_leave_what_they_saw, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_machine_is_told_by_its_preflight, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_speed_is_that_of_several_builds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_peak_is_known_of_a_unit_that_never_ended, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("expect", tests, NULL, NULL) ? 1 : 0;
}
