#include "report.h"

#include "buf.h"
#include "fainstall.h"
#include "file.h"
#include "json.h"
#include "redact.h"

#include <stdlib.h>
#include <string.h>

struct fa_report {
	struct fa_json *json;
};

struct fa_report *fa_report_new(void)
{
	struct fa_report *r = fa_calloc(1, sizeof(*r));

	r->json = fa_json_new_object();
	fa_json_set_string(r->json, "schema", "fainstall.report/1");
	fa_json_set_string(r->json, "fainstall", FA_VERSION);
	fa_json_set(r->json, "facts", fa_json_new_object());
	fa_json_set(r->json, "choice", fa_json_new_object());
	fa_json_set(r->json, "steps", fa_json_new_array());
	fa_json_set(r->json, "checks", fa_json_new_array());
	fa_json_set(r->json, "figures", fa_json_new_object());
	fa_json_set_string(r->json, "verdict", "not_run");
	return r;
}

void fa_report_free(struct fa_report *r)
{
	if (!r)
		return;
	fa_json_free(r->json);
	free(r);
}

struct fa_json *fa_report_json(struct fa_report *r)
{
	return r->json;
}

void fa_report_describe(struct fa_report *r, const struct fa_facts *facts, const struct fa_plan *plan)
{
	struct fa_strv wish = FA_STRV_INIT;

	fa_json_set(r->json, "facts", fa_facts_to_json(facts));
	fa_json_set(r->json, "choice", fa_choice_to_json(&plan->choice));
	fa_wish_argv(&plan->wish, &wish);
	fa_json_set(r->json, "wish", fa_json_new_strv(&wish));
	fa_strv_release(&wish);
}

int fa_report_write(const struct fa_report *r, const char *path, struct fa_err *err)
{
	struct fa_json *clean = fa_redact_json(r->json);
	char *text = fa_json_print(clean, true);
	char *dir = fa_path_dir(path);
	int rc = -1;

	if (fa_file_mkdirs(dir, err) == 0)
		rc = fa_file_write(path, text, strlen(text), err);
	free(dir);
	free(text);
	fa_json_free(clean);
	return rc;
}
