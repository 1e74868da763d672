#include "buf.h"
#include "facts.h"
#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int parse(struct fa_facts *out, const char *text, struct fa_err *err)
{
	struct fa_json *j = NULL;
	int rc = -1;

	if (fa_json_parse(&j, text, strlen(text), "facts.json", err) == 0)
		rc = fa_facts_from_json(out, j, "facts.json", err);
	fa_json_free(j);
	return rc;
}

static char *print(const struct fa_facts *f)
{
	struct fa_json *j = fa_facts_to_json(f);
	char *text = fa_json_print(j, false);

	fa_json_free(j);
	return text;
}

static void assert_prints(const struct fa_facts *f, const char *expected)
{
	char *found = print(f);

	assert_string_equal(found, expected);
	free(found);
}

static void what_is_unknown_is_absent_and_what_is_not_there_is_empty(void **state)
{
	struct fa_facts f = FA_FACTS_INIT;

	(void)state;
	assert_prints(&f, "{\"schema\":\"fainstall.facts/1\"}");
	fa_facts_set_text(&f, FA_FACT_TORCH, "", "site-packages");
	fa_facts_clear_gpus(&f);
	assert_prints(
	        &f, "{\"schema\":\"fainstall.facts/1\",\"gpus\":[],\"torch\":\"\",\"origins\":{\"torch\":\"site-packages\"}}");
	assert_false(fa_facts_has(&f, FA_FACT_TORCH));
	assert_null(fa_facts_text(&f, FA_FACT_DRIVER));
	assert_int_equal(fa_facts_number(&f, FA_FACT_CORES, -1), -1);
	fa_facts_release(&f);
}

static void facts_survive_the_way_through_json(void **state)
{
	static const char text[] =
	        "{\"schema\":\"fainstall.facts/1\",\"os\":\"linux\",\"wsl\":false,\"cores\":16,"
	        "\"gpus\":[{\"vendor\":\"nvidia\",\"index\":0,\"name\":\"NVIDIA H200\",\"arch\":\"90\",\"memory_mib\":143771,"
	        "\"pci\":\"0000:06:00.0\"},{\"vendor\":\"amd\",\"index\":1,\"arch\":\"gfx942\"}],\"driver\":\"580.159.04\","
	        "\"toolkits\":[{\"kind\":\"cuda\",\"version\":\"13.0.88\",\"home\":\"/usr/local/cuda\"}],\"cuda_home\":\"\","
	        "\"torch_archs\":[\"80\",\"90\"],\"cached\":[],\"env\":{\"MAX_JOBS\":\"4\"},"
	        "\"problems\":[{\"id\":\"a\",\"tool\":\"b\",\"text\":\"c\",\"repair\":\"d\"}],"
	        "\"origins\":{\"os\":\"uname\",\"gpus\":\"NVML\"},\"doubts\":{\"driver\":\"x\"}}";
	struct fa_facts f;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(parse(&f, text, &err), 0);
	assert_prints(&f, text);
	fa_facts_release(&f);
}

static const struct {
	const char *json, *error;
} refused[] = {
	{ "[]", "facts.json: facts are an object, found a list" },
	{ "{\"schema\":\"fainstall.facts/2\"}",
	  "facts.json: schema \"fainstall.facts/2\" is not known here, needed fainstall.facts/1" },
	{ "{\"tourch\":\"2.8\"}", "facts.json: unknown key \"tourch\"" },
	{ "{\"cores\":\"16\"}", "facts.json: \"cores\" needs a number, found a text" },
	{ "{\"cores\":-1}", "facts.json: \"cores\" needs a whole number from 0, found -1" },
	{ "{\"ram_mib\":1.5}", "facts.json: \"ram_mib\" needs a whole number from 0, found 1.5" },
	{ "{\"driver\":580}", "facts.json: \"driver\" needs a text, found a number" },
	{ "{\"wsl\":\"no\"}", "facts.json: \"wsl\" needs true or false, found a text" },
	{ "{\"gpus\":[{\"sm\":\"90\"}]}", "facts.json: unknown key \"gpus[].sm\"" },
	{ "{\"gpus\":{}}", "facts.json: \"gpus\" needs a list, found an object" },
	{ "{\"torch_archs\":[80]}", "facts.json: \"torch_archs\" needs a text, found a number" },
	{ "{\"problems\":[{}]}", "facts.json: an entry of \"problems\" has no text \"id\"" },
	{ "{\"env\":{\"A\":1}}", "facts.json: \"A\" needs a text, found a number" },
};

static void facts_of_a_wrong_form_are_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct fa_facts f;
		struct fa_err err = FA_ERR_INIT;

		assert_int_equal(parse(&f, refused[i].json, &err), -1);
		assert_string_equal(err.text, refused[i].error);
		assert_int_equal(err.status, FA_USAGE);
	}
}

static void null_is_unknown(void **state)
{
	struct fa_facts f;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(parse(&f, "{\"driver\":null,\"gpus\":[{\"arch\":\"8.6\",\"memory_mib\":null}]}", &err), 0);
	assert_false(f.v[FA_FACT_DRIVER].known);
	assert_int_equal(f.gpus[0].memory_mib, -1);
	assert_string_equal(f.gpus[0].arch, "86");
	assert_string_equal(f.gpus[0].vendor, "nvidia");
	fa_facts_release(&f);
}

static const struct {
	const char *assignment, *expected; /* JSON without the schema, or the error */
} assigned[] = {
	{ "driver=550.54.15", "\"driver\":\"550.54.15\",\"origins\":{\"driver\":\"--set\"}}" },
	{ "torch=", "\"torch\":\"\",\"origins\":{\"torch\":\"--set\"}}" },
	{ "cores=8", "\"cores\":8,\"origins\":{\"cores\":\"--set\"}}" },
	{ "wsl=yes", "\"wsl\":true,\"origins\":{\"wsl\":\"--set\"}}" },
	{ "torch_archs=80, 90", "\"torch_archs\":[\"80\",\"90\"],\"origins\":{\"torch_archs\":\"--set\"}}" },
	{ "cached=", "\"cached\":[],\"origins\":{\"cached\":\"--set\"}}" },
	{ "gpus.0.arch=8.6",
	  "\"gpus\":[{\"vendor\":\"nvidia\",\"index\":0,\"arch\":\"86\"}],\"origins\":{\"gpus\":\"--set\"}}" },
	{ "gpus.0.arch=gfx90a:xnack-",
	  "\"gpus\":[{\"vendor\":\"amd\",\"index\":0,\"arch\":\"gfx90a\"}],\"origins\":{\"gpus\":\"--set\"}}" },
	{ "gpus=", "\"gpus\":[]}" },
	{ "toolkits=", "\"toolkits\":[]}" },
	{ "toolkits.0.version=12.8.93",
	  "\"toolkits\":[{\"kind\":\"cuda\",\"version\":\"12.8.93\"}],\"origins\":{\"toolkits\":\"--set\"}}" },
	{ "env.MAX_JOBS=4", "\"env\":{\"MAX_JOBS\":\"4\"}}" },
	{ "driver=unknown", NULL },
	{ "driver", "--set driver: needs FACT=VALUE" },
	{ "=3", "--set =3: needs FACT=VALUE" },
	{ "drivr=3", "--set drivr: there is no such fact" },
	{ "cores=many", "--set cores=many: needs a whole number" },
	{ "cores=-1", "--set cores=-1: needs a whole number" },
	{ "wsl=maybe", "--set wsl=maybe: needs true or false" },
	{ "gpus.2.arch=86", "--set gpus.2.arch: there are 0 of them, so the next is number 0" },
	{ "gpus.x.arch=86", "--set gpus.x.arch: needs a number and a field, as in gpus.0.arch=86" },
	{ "gpus.0.sm=86", "--set gpus.0.sm: a card has vendor, index, name, arch, memory_mib and pci" },
	{ "gpus=86", "--set gpus=86: say gpus.0.…=VALUE for one of them, or gpus= for none" },
};

static void set_takes_every_kind_of_fact_and_names_what_it_refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(assigned) / sizeof(*assigned); i++) {
		struct fa_facts f = FA_FACTS_INIT;
		struct fa_err err = FA_ERR_INIT;
		bool refusal = assigned[i].expected && assigned[i].expected[0] == '-';
		char *want = fa_strf("{\"schema\":\"fainstall.facts/1\"%s%s", assigned[i].expected ? "," : "}",
		                     assigned[i].expected ? assigned[i].expected : "");

		assert_int_equal(fa_facts_assign(&f, assigned[i].assignment, &err), refusal ? -1 : 0);
		if (refusal)
			assert_string_equal(err.text, assigned[i].expected);
		else
			assert_prints(&f, want);
		free(want);
		fa_facts_release(&f);
	}
}

static void the_upper_facts_win_and_cards_complete_each_other(void **state)
{
	struct fa_facts base, top;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(parse(&base,
	                       "{\"driver\":\"550\",\"cores\":4,\"gpus\":[{\"vendor\":\"nvidia\",\"memory_mib\":100}],"
	                       "\"env\":{\"A\":\"1\"},\"origins\":{\"gpus\":\"table\"}}",
	                       &err),
	                 0);
	assert_int_equal(parse(&top,
	                       "{\"driver\":\"580\",\"gpus\":[{\"vendor\":\"nvidia\",\"arch\":\"90\"}],\"env\":{\"B\":\"2\"},"
	                       "\"problems\":[{\"id\":\"x\"}],\"origins\":{\"gpus\":\"list\"}}",
	                       &err),
	                 0);
	fa_facts_merge(&base, &top);
	fa_facts_merge(&base, &top);
	assert_prints(&base, "{\"schema\":\"fainstall.facts/1\",\"cores\":4,\"gpus\":[{\"vendor\":\"nvidia\",\"index\":0,"
	                     "\"arch\":\"90\",\"memory_mib\":100}],\"driver\":\"580\",\"env\":{\"A\":\"1\",\"B\":\"2\"},"
	                     "\"problems\":[{\"id\":\"x\"}],\"origins\":{\"gpus\":\"table, list\"}}");
	fa_facts_release(&base);
	fa_facts_release(&top);
}

static void other_cards_replace_those_that_were_known(void **state)
{
	struct fa_facts base, top;
	struct fa_err err = FA_ERR_INIT;

	(void)state;
	assert_int_equal(parse(&base, "{\"gpus\":[{\"arch\":\"86\",\"memory_mib\":24576,\"name\":\"A\"}]}", &err), 0);
	assert_int_equal(parse(&top, "{\"gpus\":[{\"arch\":\"90\",\"name\":\"B\"}]}", &err), 0);
	fa_facts_merge(&base, &top);
	assert_prints(&base, "{\"schema\":\"fainstall.facts/1\",\"gpus\":[{\"vendor\":\"nvidia\",\"index\":0,\"name\":\"B\","
	                     "\"arch\":\"90\"}]}");
	fa_facts_release(&base);
	fa_facts_release(&top);
}

static void foreign_bytes_become_question_marks(void **state)
{
	struct fa_facts f = FA_FACTS_INIT;

	(void)state;
	fa_facts_set_text(&f, FA_FACT_DRIVER, "5\x1b[1m8\xff\xc3\xa9\n", NULL);
	assert_string_equal(fa_facts_text(&f, FA_FACT_DRIVER), "5?[1m8?\xc3\xa9 ");
	fa_facts_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unknown_is_absent_and_what_is_not_there_is_empty),
		cmocka_unit_test(facts_survive_the_way_through_json),
		cmocka_unit_test(facts_of_a_wrong_form_are_refused_by_name),
		cmocka_unit_test(null_is_unknown),
		cmocka_unit_test(set_takes_every_kind_of_fact_and_names_what_it_refuses),
		cmocka_unit_test(the_upper_facts_win_and_cards_complete_each_other),
		cmocka_unit_test(other_cards_replace_those_that_were_known),
		cmocka_unit_test(foreign_bytes_become_question_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
