/* `fainstall diagnose [FILE|-]`: the cause of a failure, from its output. */
#include "cli.h"

#include "bundle.h"
#include "diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void print(const struct cli *c, const struct fa_diagnosis *d)
{
	struct fa_buf out = FA_BUF_INIT;
	struct fa_json *j;
	char *text;

	if (c->v[CLI_OPT_JSON]) {
		j = fa_diagnosis_to_json(d);
		text = fa_json_print(j, true);
		fa_buf_adds(&out, text);
		free(text);
		fa_json_free(j);
	} else if (!c->v[CLI_OPT_QUIET]) {
		fa_diagnosis_print(&out, d);
	}
	fputs(fa_buf_str(&out), stdout);
	fa_buf_release(&out);
}

static const char *log_file(const struct cli *c, struct fa_err *err)
{
	if (c->words.n == 1)
		return c->words.v[0];
	if (c->words.n == 0 && !isatty(STDIN_FILENO))
		return "-";
	fa_err_set(err, FA_USAGE, c->words.n ? "diagnose reads one log, %zu were given" : "diagnose needs a log to read",
	           c->words.n);
	fa_err_next(err, "write `fainstall diagnose build.log`, or pipe the log into it");
	return NULL;
}

static const char bundle_file[] = "fainstall-bundle.json";

/* The plan for these facts goes in too: what fainstall would have done says where it differs from what was done. */
static int write_bundle(const struct cli *c, const struct fa_facts *facts, struct fa_matrix *m, const struct fa_diagnosis *d,
                        const char *log, struct fa_err *err)
{
	struct fa_plan plan = FA_PLAN_INIT;
	struct utsname machine;
	struct fa_names names = { .user = getenv("USER"), .home = getenv("HOME") };
	int rc = -1;

	if (uname(&machine) == 0)
		names.host = machine.nodename;
	if (fa_resolve(&plan, facts, &c->wish, m, err) == 0 && fa_plan_steps(&plan, facts, m, err) == 0)
		rc = fa_bundle_write(bundle_file, facts, &plan, d, log, &names, err);
	if (rc == 0 && !c->v[CLI_OPT_QUIET])
		fprintf(stderr, "%s is written: read it once, then attach it to your report.\n", bundle_file);
	fa_plan_release(&plan);
	return rc;
}

int cli_diagnose(const struct cli *c, int *status, struct fa_err *err)
{
	const char *path = log_file(c, err);
	struct fa_diagnosis d = FA_DIAGNOSIS_INIT;
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_diagnoser *diagnoser = NULL;
	struct fa_matrix *m = NULL;
	int rc = -1;

	if (!path || fa_matrix_open(&m, err) < 0)
		return -1;
	if (cli_facts(&facts, c, err) < 0 || fa_diagnoser_new(&diagnoser, m, err) < 0 ||
	    fa_diagnose_file(&d, diagnoser, path, &facts, err) < 0)
		goto done;
	print(c, &d);
	if (c->v[CLI_OPT_BUNDLE] && write_bundle(c, &facts, m, &d, path, err) < 0)
		goto done;
	*status = FA_OK;
	rc = 0;
	if (!d.n_causes) {
		rc = fa_err_set(err, FA_CHECK, "%s: no known cause in %zu line%s", path, d.n_lines, d.n_lines == 1 ? "" : "s");
		fa_err_next(err, "give the whole output, from the command to its end%s",
		            d.n_unknown ? "; the lines above that look like errors are the ones to report" : "");
	}
done:
	fa_diagnosis_release(&d);
	fa_diagnoser_free(diagnoser);
	fa_facts_release(&facts);
	fa_matrix_close(m);
	return rc;
}
