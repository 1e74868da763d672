#include "source.h"

#include "buf.h"
#include "closest.h"
#include "file.h"
#include "kb.h"
#include "lock.h"
#include "matrix.h"
#include "policy.h"
#include "proc.h"
#include "strv.h"
#include "wish.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && !strcmp(text + a - b, end);
}

static bool has_wheels(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	bool has = false;

	while (d && !has && (e = readdir(d)))
		has = ends_with(e->d_name, ".whl");
	if (d)
		closedir(d);
	return has;
}

static bool is_repository(const char *source)
{
	return !strncmp(source, "git+", 4) || strchr(source, '#') || ends_with(source, ".git") || ends_with(source, ".git/");
}

bool fa_source_is_folder(const char *source)
{
	return !is_repository(source) && !strstr(source, "://") && (strchr(source, '/') || !strcmp(source, "."));
}

enum fa_source_kind fa_source_kind(const char *source)
{
	if (is_repository(source))
		return FA_SOURCE_REPOSITORY;
	if (strstr(source, "://"))
		return FA_SOURCE_INDEX;
	if (!strchr(source, '/') && strcmp(source, ".") != 0)
		return FA_SOURCE_NAME;
	return has_wheels(source) || !fa_file_is_dir(source) ? FA_SOURCE_FOLDER : FA_SOURCE_REPOSITORY;
}

/* ---- a folder */

int fa_source_add_folder(struct fa_matrix *m, const char *name, const char *folder, struct fa_err *err)
{
	char *absolute = fa_path_absolute(folder), *listing;
	struct fa_strv names = FA_STRV_INIT;
	DIR *d = opendir(absolute);
	struct dirent *e;
	int n = -1;

	if (!d) {
		fa_err_set(err, FA_USAGE, "--source: %s cannot be read: %s", folder, strerror(errno));
		fa_err_next(err, "name a folder that holds wheels, the address of an index, or a repository ending with .git");
	}
	while (d && (e = readdir(d)))
		if (ends_with(e->d_name, ".whl") && !strpbrk(e->d_name, " \t\r\n"))
			fa_strv_push(&names, e->d_name);
	if (d) {
		closedir(d);
		fa_strv_sort(&names);
		listing = fa_strv_join(&names, "\n");
		n = fa_matrix_add_source(m, name, absolute, listing, err);
		free(listing);
	}
	fa_strv_release(&names);
	free(absolute);
	return n;
}

/* ---- an index */

struct listing {
	struct fa_buf text;
	char said[2][1024]; /* first lines of stderr: what was wrong, what to do */
	int n_said;
};

static void take_line(void *ctx, const char *line, bool is_err)
{
	struct listing *l = ctx;

	if (!is_err)
		fa_buf_addf(&l->text, "%s\n", line);
	else if (l->n_said < 2)
		snprintf(l->said[l->n_said++], sizeof(l->said[0]), "%s", line);
}

/* Packages of the lines, as an index calls them. */
static void packages(struct fa_strv *out, const struct fa_kb *kb)
{
	for (size_t i = 0; i < kb->n_lines; i++)
		if (kb->lines[i].package)
			fa_strv_take(out, fa_lock_normal_name(kb->lines[i].package));
}

static int ask_index(struct listing *l, const char *url, const struct fa_kb *kb, unsigned timeout_ms, struct fa_err *err)
{
	char *worker = fa_dir_own("fainstall-worker", err);
	struct fa_strv argv = FA_STRV_INIT;
	struct fa_proc_result end = { 0 };
	struct fa_proc_opts p = { .timeout_ms = timeout_ms, .line = take_line, .ctx = l };
	int rc = -1;

	if (!worker)
		return -1;
	fa_strv_push(&argv, worker);
	fa_strv_push(&argv, "list");
	fa_strv_push(&argv, url);
	packages(&argv, kb);
	p.argv = (const char *const *)argv.v;
	rc = fa_proc_run(&end, &p, FA_NETWORK, err);
	if (rc < 0 && l->n_said) {
		fa_err_set(err, end.end == FA_PROC_EXITED ? (enum fa_status)end.exit_status : FA_NETWORK, "--source: %s",
		           l->said[0]);
		fa_err_next(err, "%s", l->said[1][0] ? l->said[1] : "try again, or plan without --source");
	}
	fa_strv_release(&argv);
	free(worker);
	return rc;
}

static int add_index(struct fa_matrix *m, const char *url, const struct fa_kb *kb, unsigned timeout_ms, struct fa_err *err)
{
	struct listing l = { .n_said = 0 };
	int rc = ask_index(&l, url, kb, timeout_ms, err);

	if (rc == 0 && l.text.len && fa_matrix_add_source(m, url, url, fa_buf_str(&l.text), err) < 0)
		rc = -1;
	fa_buf_release(&l.text);
	return rc;
}

/* ---- any */

static bool is_known(const struct fa_kb *kb, const char *name)
{
	for (size_t i = 0; i < kb->n_sources; i++)
		if (!strcmp(kb->sources[i].name, name))
			return true;
	return false;
}

/* A word that is no source of the knowledge. */
static int unknown_name(const struct fa_kb *kb, const char *name, struct fa_err *err)
{
	const char *known[64], *guess;
	size_t n = 0;

	for (size_t i = 0; i < kb->n_sources && n < 64; i++)
		known[n++] = kb->sources[i].name;
	guess = fa_closest(name, known, n);
	fa_err_set(err, FA_USAGE, "--source: no source is called \"%s\"", name);
	return fa_err_next(err,
	                   "write --source %s, a folder with a slash, an index's address, or a repository ending with .git",
	                   guess ? guess : known[0]);
}

int fa_source_add(struct fa_matrix *m, const struct fa_wish *wish, unsigned timeout_ms, struct fa_err *err)
{
	const char *source = fa_wish_get(wish, FA_WISH_SOURCE);
	struct fa_kb *kb;
	int n;

	if (!source)
		return 0;
	if (fa_matrix_kb(&kb, m, err) < 0)
		return -1;
	if (is_known(kb, source))
		return 0;
	switch (fa_source_kind(source)) {
	case FA_SOURCE_NAME: return unknown_name(kb, source, err);
	case FA_SOURCE_REPOSITORY: return 0;
	case FA_SOURCE_INDEX: return fa_wish_get(wish, FA_WISH_OFFLINE) ? 0 : add_index(m, source, kb, timeout_ms, err);
	case FA_SOURCE_FOLDER: break;
	}
	n = fa_source_add_folder(m, source, source, err);
	if (n == 0) {
		fa_err_set(err, FA_USAGE, "--source: %s holds no wheel of Flash-Attention", source);
		return fa_err_next(err, "name a folder with files like flash_attn-2.8.3+….whl");
	}
	return n < 0 ? -1 : 0;
}
