#include "pip.h"

#include "buf.h"
#include "environment_make.h"
#include "file.h"
#include "json.h"
#include "version.h"
#include "wheelhouse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From this release on the report is stable; from the later one on a dry run reads metadata alone. */
static const char least_pip[] = "23.0";

/* ---- which pip */

/* A virtual environment of ours with a pip pinned in recipes/pip.json. Made once. The interpreter's path, the caller's. */
static char *own_pip(const struct fa_environment *env, struct fa_child_context *c, struct fa_err *err)
{
	char *data = fa_dir_data(), *minor = fa_version_head(env->version, 2), *dir = fa_strf("%s/tools/pip-%s", data, minor);
	char *python = fa_path_join(dir, "bin/python"), *proof = fa_path_join(dir, "ready");
	char *recipe = fa_dir_own("recipes/pip.txt", err);
	const char *const make[] = { env->python, "-I", "-m", "venv", dir, NULL };
	const char *const get[] = { python,
		                    "-I",
		                    "-m",
		                    "pip",
		                    "install",
		                    "--no-input",
		                    "--quiet",
		                    "--upgrade",
		                    "--disable-pip-version-check",
		                    "--no-deps",
		                    "--require-hashes",
		                    "-r",
		                    recipe,
		                    NULL };
	struct fa_child made = { .argv = make }, got = { .argv = get };
	int rc = recipe ? 0 : -1;

	if (rc == 0 && !fa_file_exists(proof)) {
		rc = fa_file_remove_tree(dir, err);
		if (rc == 0)
			rc = fa_file_mkdirs(dir, err);
		if (rc == 0)
			rc = fa_child_run(c, &made, FA_MACHINE, err);
		if (rc == 0)
			rc = fa_child_run(c, &got, FA_NETWORK, err);
		if (rc == 0)
			rc = fa_file_write(proof, "", 0, err);
	}
	if (rc < 0) {
		free(python);
		python = NULL;
	}
	free(data);
	free(minor);
	free(dir);
	free(proof);
	free(recipe);
	return python;
}

/* The words that call pip for this environment. */
static int pip_words(struct fa_strv *argv, const struct fa_environment *env, struct fa_child_context *c, struct fa_err *err)
{
	const struct fa_distribution *pip = fa_environment_find(env, "pip");
	char *own = NULL;

	if (pip && pip->version && fa_version_compare(pip->version, least_pip) >= 0) {
		fa_strv_push(argv, env->python);
	} else {
		own = own_pip(env, c, err);
		if (!own)
			return -1;
		fa_strv_push(argv, own);
	}
	fa_strv_push(argv, "-I");
	fa_strv_push(argv, "-m");
	fa_strv_push(argv, "pip");
	if (own) {
		fa_strv_push(argv, "--python");
		fa_strv_push(argv, env->python);
	}
	free(own);
	return 0;
}

static void common_words(struct fa_strv *argv)
{
	static const char *const words[] = { "install", "--no-input", "--disable-pip-version-check", "--no-color",
		                             "--progress-bar=off" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		fa_strv_push(argv, words[i]);
	if (!getenv("PIP_RETRIES"))
		fa_strv_push(argv, "--retries=3");
}

/* ---- errors */

static const struct {
	const char *text;
	enum fa_status status;
	const char *says, *next;
} faults[] = {
	{ "DO NOT MATCH THE HASHES", FA_INTEGRITY, "a package is not the file that was pinned (sha256)",
	  "the index or a mirror serves another file under this name: do not install it; try another index" },
	{ "No space left on device", FA_MACHINE, "the disk is full", "free some space, then run this again" },
	{ "externally-managed-environment", FA_MACHINE, "this Python belongs to the distribution",
	  "choose an environment: --env NAME or --env DIR" },
	{ "Permission denied", FA_MACHINE, "a folder cannot be written", "choose an environment of your own: --env DIR" },
	{ "Name or service not known", FA_NETWORK, "the package index cannot be reached: its name is not known here",
	  "check the network, or the proxy and index set for pip (pip config list)" },
	{ "Temporary failure in name resolution", FA_NETWORK,
	  "the package index cannot be reached: names are not resolved here",
	  "check the network, or the proxy and index set for pip (pip config list)" },
	{ "Connection refused", FA_NETWORK, "the package index cannot be reached: connection refused",
	  "check the network, or the proxy and index set for pip (pip config list)" },
	{ "Network is unreachable", FA_NETWORK, "the package index cannot be reached: network is unreachable",
	  "check the network, or the proxy and index set for pip (pip config list)" },
	{ "Tunnel connection failed", FA_NETWORK, "the package index cannot be reached through the proxy",
	  "check https_proxy and no_proxy" },
	{ "CERTIFICATE_VERIFY_FAILED", FA_NETWORK, "the certificate of the package index is not trusted here",
	  "name your organisation's CA bundle in PIP_CERT" },
	{ "timed out", FA_NETWORK, "the package index does not answer in time",
	  "try again, or set PIP_DEFAULT_TIMEOUT to more seconds" },
	{ "ResolutionImpossible", FA_IMPOSSIBLE, "the requirements contradict each other", "" },
	{ "No matching distribution found", FA_IMPOSSIBLE, "the index has no fitting file", "" },
};

/* The last line that begins with ERROR:, without that word. The caller's; NULL: none. */
static char *last_error(const char *output)
{
	const char *found = NULL;

	for (const char *p = output; (p = strstr(p, "ERROR: ")); p++)
		if (p == output || p[-1] == '\n')
			found = p;
	return found ? fa_strndup(found + 7, strcspn(found + 7, "\n")) : NULL;
}

int fa_pip_explain(const char *output, enum fa_status otherwise, struct fa_err *err)
{
	char *line = last_error(output);

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		if (!strstr(output, faults[i].text))
			continue;
		fa_err_set(err, faults[i].status, "pip: %s%s%.700s", faults[i].says, line ? ": " : "", line ? line : "");
		if (faults[i].next[0])
			fa_err_next(err, "%s", faults[i].next);
		free(line);
		return -1;
	}
	fa_err_set(err, otherwise, "pip: %.900s", line ? line : "stopped without saying why");
	fa_err_next(err, "the log of this run shows all that pip said");
	free(line);
	return -1;
}

static int run_pip(const struct fa_strv *argv, enum fa_status on_failure, struct fa_child_context *c, struct fa_err *err)
{
	struct fa_buf all = FA_BUF_INIT;
	struct fa_child child = { .argv = (const char *const *)argv->v, .all = &all, .cwd = "/" };
	struct fa_err ended = FA_ERR_INIT;
	int rc = fa_child_run(c, &child, on_failure, &ended);

	if (rc < 0 && ended.status == FA_INTERRUPTED && err)
		*err = ended;
	else if (rc < 0)
		fa_pip_explain(fa_buf_str(&all), on_failure, err);
	fa_buf_release(&all);
	return rc;
}

/* ---- report */

/* Does the file come from that index: the same scheme and host? */
static bool of_index(const char *url, const char *index)
{
	const char *host = strstr(index, "://");
	size_t len;

	if (!host)
		return false;
	len = (size_t)(host + 3 - index) + strcspn(host + 3, "/");
	return !strncmp(url, index, len) && (url[len] == '/' || !url[len]);
}

static bool of_indexes(const char *url, const struct fa_strv *indexes)
{
	for (size_t i = 0; indexes && i < indexes->n; i++)
		if (of_index(url, indexes->v[i]))
			return true;
	return false;
}

static int report_package(struct fa_lock *out, struct fa_strv *files, const struct fa_strv *indexes, const struct fa_json *row,
                          struct fa_err *err)
{
	const struct fa_json *meta = fa_json_get(row, "metadata"), *info = fa_json_get(row, "download_info");
	const char *name = fa_json_get_string(meta, "name"), *version = fa_json_get_string(meta, "version");
	const char *url = fa_json_get_string(info, "url");
	const struct fa_json *hashes = fa_json_get(fa_json_get(info, "archive_info"), "hashes");
	const char *sha256 = fa_json_get_string(hashes, "sha256");
	struct fa_lock_package *p;

	if (!name || !version || !url)
		return fa_err_set(err, FA_MACHINE, "pip's report names no %s", !name ? "package" : "version or file");
	if (!sha256 || strlen(sha256) != 64) {
		fa_err_set(err, FA_NETWORK, "the index gives no sha256 for %s %s", name, version);
		return fa_err_next(err, "use an index that does (pip config list shows the one in use)");
	}
	p = fa_lock_add_package(out, name, version);
	fa_strv_pushf(&p->hashes, "sha256:%s", sha256);
	if (fa_json_get_bool(row, "is_direct") || of_indexes(url, indexes))
		p->url = fa_strndup(url, strcspn(url, "#"));
	if (files)
		fa_strv_pushf(files, "%s %s", p->name, url);
	return 0;
}

int fa_pip_report(struct fa_lock *out, struct fa_strv *files, const struct fa_strv *indexes, const char *text, size_t len,
                  struct fa_err *err)
{
	struct fa_json *j = NULL;
	int rc = fa_json_parse(&j, text, len, "pip's report", err);

	if (rc == 0 && fa_json_type(fa_json_get(j, "install")) != FA_JSON_ARRAY)
		rc = fa_err_set(err, FA_MACHINE, "pip's report: no list \"install\"");
	if (rc == 0)
		fa_json_each (row, fa_json_get(j, "install"))
			if (report_package(out, files, indexes, row, err) < 0) {
				rc = -1;
				break;
			}
	fa_json_free(j);
	return rc;
}

/* ---- resolve */

static int write_lines(const char *path, const struct fa_strv *lines, struct fa_err *err)
{
	char *text = fa_strv_join(lines, "\n");
	int rc = fa_file_write(path, text, strlen(text), err);

	free(text);
	return rc;
}

/* A folder of our own for a moment. The caller's, to be removed. */
static char *scratch(struct fa_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = fa_strf("%s/fainstall-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");

	if (mkdtemp(dir))
		return dir;
	fa_err_set(err, FA_MACHINE, "no temporary folder can be made in %s", tmp && *tmp == '/' ? tmp : "/tmp");
	fa_err_next(err, "free some space there, or set TMPDIR to another folder");
	free(dir);
	return NULL;
}

static int resolve_in(const char *dir, struct fa_lock *out, struct fa_strv *files, const struct fa_pip_wish *w,
                      struct fa_child_context *c, struct fa_err *err)
{
	char *report = fa_path_join(dir, "report.json"), *limits = fa_path_join(dir, "constraints.txt");
	struct fa_strv argv = FA_STRV_INIT;
	struct fa_buf text = FA_BUF_INIT;
	int rc = -1;

	if (pip_words(&argv, w->env, c, err) < 0)
		goto done;
	common_words(&argv);
	fa_strv_push(&argv, "--dry-run");
	fa_strv_push(&argv, "--report");
	fa_strv_push(&argv, report);
	fa_strv_push(&argv, "--only-binary=:all:");
	if (w->afresh)
		fa_strv_push(&argv, "--ignore-installed");
	if (w->alone)
		fa_strv_push(&argv, "--no-deps");
	if (w->offline) {
		fa_strv_push(&argv, "--no-index");
		fa_strv_push(&argv, "--find-links");
		fa_strv_take(&argv, fa_wheelhouse());
	}
	for (size_t i = 0; w->indexes && i < w->indexes->n; i++)
		fa_strv_pushf(&argv, "--extra-index-url=%s", w->indexes->v[i]);
	if (w->constraints && w->constraints->n) {
		if (write_lines(limits, w->constraints, err) < 0)
			goto done;
		fa_strv_push(&argv, "-c");
		fa_strv_push(&argv, limits);
	}
	fa_strv_push(&argv, "--");
	fa_strv_append(&argv, w->requirements);
	if (run_pip(&argv, FA_NETWORK, c, err) < 0 || fa_file_read(&text, report, FA_FILE_MAX, err) < 0)
		goto done;
	rc = fa_pip_report(out, files, w->indexes, fa_buf_str(&text), text.len, err);
done:
	fa_buf_release(&text);
	fa_strv_release(&argv);
	free(report);
	free(limits);
	return rc;
}

int fa_pip_resolve(struct fa_lock *out, struct fa_strv *files, const struct fa_pip_wish *wish, struct fa_child_context *c,
                   struct fa_err *err)
{
	char *dir;
	int rc;

	if (!wish->requirements->n)
		return 0;
	dir = scratch(err);
	if (!dir)
		return -1;
	rc = resolve_in(dir, out, files, wish, c, err);
	fa_file_remove_tree(dir, NULL);
	free(dir);
	return rc;
}

/* ---- install */

static int write_requirements(const char *path, const struct fa_lock *packages, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	int rc;

	for (size_t i = 0; i < packages->n_packages; i++)
		fa_lock_print_requirement(&text, &packages->packages[i]);
	rc = fa_file_write(path, fa_buf_str(&text), text.len, err);
	fa_buf_release(&text);
	return rc;
}

int fa_pip_install(const struct fa_environment *env, const struct fa_lock *packages, const char *find_links, const char *target,
                   bool again, struct fa_child_context *c, struct fa_err *err)
{
	char *dir = scratch(err), *list = dir ? fa_path_join(dir, "requirements.txt") : NULL;
	struct fa_strv argv = FA_STRV_INIT;
	int rc = -1;

	if (!dir || write_requirements(list, packages, err) < 0 || pip_words(&argv, env, c, err) < 0)
		goto done;
	common_words(&argv);
	fa_strv_push(&argv, "--no-deps");
	fa_strv_push(&argv, "--require-hashes");
	if (find_links) {
		fa_strv_push(&argv, "--no-index");
		fa_strv_push(&argv, "--find-links");
		fa_strv_push(&argv, find_links);
	}
	if (target) {
		fa_strv_push(&argv, "--target");
		fa_strv_push(&argv, target);
	}
	if (again)
		fa_strv_push(&argv, "--force-reinstall");
	fa_strv_push(&argv, "-r");
	fa_strv_push(&argv, list);
	rc = run_pip(&argv, FA_MACHINE, c, err);
done:
	if (dir)
		fa_file_remove_tree(dir, NULL);
	fa_strv_release(&argv);
	free(list);
	free(dir);
	return rc;
}
