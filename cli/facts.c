#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* `--read TOOL=FILE`; FILE may be - for standard input. */
static int read_tool(struct fa_facts *f, const char *piece, struct fa_err *err)
{
	struct fa_facts more = FA_FACTS_INIT;
	struct fa_buf text = FA_BUF_INIT;
	const char *equals = strchr(piece, '='), *path;
	char *tool;
	int rc = -1;

	if (!equals || equals == piece || !equals[1]) {
		fa_err_set(err, FA_USAGE, "--read: \"%s\" is not of the form TOOL=FILE", piece);
		return fa_err_next(err, "tools are: %s", fa_read_tools());
	}
	tool = fa_strndup(piece, (size_t)(equals - piece));
	path = strcmp(equals + 1, "-") != 0 ? equals + 1 : "/dev/stdin";
	if (fa_file_read(&text, path, FA_FILE_MAX, err) < 0) {
		fa_err_next(err, "give the file that holds the output of %s", tool);
		goto done;
	}
	if (fa_read_tool(&more, tool, fa_buf_str(&text), text.len, err) < 0)
		goto done;
	fa_facts_merge(f, &more);
	rc = 0;
done:
	fa_facts_release(&more);
	fa_buf_release(&text);
	free(tool);
	return rc;
}

static int record_machine(struct fa_facts *f, const struct fa_sys *real, const char *env, const char *dir, struct fa_err *err)
{
	struct fa_sys recorder;
	int rc;

	if (fa_sys_record(&recorder, real, dir, err) < 0)
		return -1;
	fa_detect(f, &recorder, env);
	rc = fa_sys_recorded(&recorder, err);
	fa_sys_close(&recorder);
	return rc;
}

static int this_machine(struct fa_facts *f, const char *env, const char *record_dir, struct fa_err *err)
{
	struct fa_sys real;
	int rc = 0;

	fa_sys_real(&real);
	if (record_dir)
		rc = record_machine(f, &real, env, record_dir, err);
	else
		fa_detect(f, &real, env);
	fa_sys_close(&real);
	return rc;
}

/* --rebuild: what is installed is no reason to keep it. */
static void as_if_not_installed(struct fa_facts *f)
{
	static const enum fa_fact installed[] = { FA_FACT_FLASH_ATTN, FA_FACT_FLASH_ATTN_3, FA_FACT_FLASH_ATTN_4 };

	for (size_t i = 0; i < sizeof(installed) / sizeof(*installed); i++)
		if (fa_facts_has(f, installed[i]))
			fa_facts_set_text(f, installed[i], "", "--rebuild");
}

int cli_facts(struct fa_facts *out, const struct cli *c, struct fa_err *err)
{
	const char *host = c->v[CLI_OPT_HOST], *record = c->v[CLI_OPT_RECORD], *env = fa_wish_get(&c->wish, FA_WISH_ENV);

	*out = (struct fa_facts)FA_FACTS_INIT;
	if (record && (host || c->read.n)) {
		fa_err_set(err, FA_USAGE, "--record saves the answers of this machine; --host and --read describe another");
		return fa_err_next(err, "leave one of them out");
	}
	if (host && fa_detect_host(out, host, env, err) < 0) {
		if (!err->next[0])
			fa_err_next(err, "give what `fainstall detect --json` printed, or the folder of `fainstall detect "
			                 "--record DIR`");
		return -1;
	}
	for (size_t i = 0; i < c->read.n; i++)
		if (read_tool(out, c->read.v[i], err) < 0)
			return -1;
	if (!host && !c->read.n && this_machine(out, env, record, err) < 0)
		return -1;
	for (size_t i = 0; i < c->set.n; i++) {
		if (fa_facts_assign(out, c->set.v[i], err) < 0) {
			if (!err->next[0])
				fa_err_next(err, "`fainstall detect --json` shows the facts, their names and their form");
			return -1;
		}
	}
	if (c->v[CLI_OPT_REBUILD])
		as_if_not_installed(out);
	return 0;
}
