#include "matrix_update.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "kb.h"
#include "matrix.h"
#include "matrix_data.h"
#include "proc.h"
#include "sha256.h"
#include "strv.h"
#include "url.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SIGNED_FOR "fainstall-matrix" /* the namespace of the signature: one made for something else is none */

enum { TABLE_MAX = 64 * 1024 * 1024, HASH_SHOWN = 12, TOOL_MS = 600 * 1000 };

struct update {
	const struct fa_matrix_update_opts *o;
	char *updates; /* where updates are kept */
	char *stage;   /* everything happens in here until it is whole */
	char *tables;  /* the tables as they came, below it */
	char *proved;  /* the file that is proved: the archive, or SHA256SUMS */
	char hash[FA_SHA256_HEX];
	char *proof;
	struct fa_matrix_data before;
	int lock;
};

static bool is_url(const char *text)
{
	return strstr(text, "://") != NULL;
}

/* ---- children */

struct words {
	char first[1024]; /* first line of stdout */
	char said[1024];  /* first line of stderr */
};

static void take_line(void *ctx, const char *line, bool is_err)
{
	struct words *w = ctx;
	char *to = is_err ? w->said : w->first;

	if (!*to)
		snprintf(to, sizeof(w->first), "%s", line);
}

static int run(struct words *w, const char *const *argv, const char *in_path, enum fa_status on_failure, struct fa_err *err)
{
	struct fa_proc_opts p = { .argv = argv, .in_path = in_path, .timeout_ms = TOOL_MS, .line = take_line, .ctx = w };

	*w = (struct words){ "", "" };
	return fa_proc_run(NULL, &p, on_failure, err);
}

/* The worker does what needs curl or libarchive; its exit status is that of the error. */
static int worker(const char *word, const char *a, const char *b, struct fa_err *err)
{
	char *program = fa_dir_own("fainstall-worker", err);
	const char *const argv[] = { program, word, a, b, NULL };
	struct fa_proc_result end = { 0 };
	struct words w = { "", "" };
	struct fa_proc_opts p = { .argv = argv, .timeout_ms = TOOL_MS, .line = take_line, .ctx = &w };
	int rc = program ? fa_proc_run(&end, &p, FA_INTERNAL, err) : -1;

	if (rc < 0 && program && w.said[0]) {
		fa_err_set(err, end.end == FA_PROC_EXITED ? (enum fa_status)end.exit_status : FA_INTERNAL, "%s", w.said);
		fa_err_next(err, "what is in use stays; try again, or name another place");
	}
	free(program);
	return rc;
}

/* ---- where from */

static int copy_file(const char *from, const char *to, size_t max, struct fa_err *err)
{
	struct fa_buf data = FA_BUF_INIT;
	int rc = fa_file_read(&data, from, max, err);

	if (rc == 0)
		rc = fa_file_write(to, fa_buf_str(&data), data.len, err);
	fa_buf_release(&data);
	return rc;
}

static int bring(const char *from, const char *to, struct fa_err *err)
{
	if (!is_url(from))
		return copy_file(from, to, TABLE_MAX, err);
	return fa_url_check(from, err) < 0 ? -1 : worker("fetch", from, to, err);
}

/* What is proved is a copy of ours: nobody changes it between the proof and the reading. */
static int bring_proved(struct update *u, struct fa_err *err)
{
	char *sums = !is_url(u->o->from) && fa_file_is_dir(u->o->from) ? fa_path_join(u->o->from, "SHA256SUMS") : NULL;
	int rc = 0;

	if (sums && !fa_file_exists(sums)) {
		fa_err_set(err, FA_USAGE, "%s: there is no such file, and a folder is proved by it", sums);
		rc = fa_err_next(err, "make it there: find . -name '*.json' | sort | xargs sha256sum >SHA256SUMS");
	}
	u->proved = fa_path_join(u->stage, sums ? "SHA256SUMS" : "archive");
	if (rc == 0)
		rc = bring(sums ? sums : u->o->from, u->proved, err);
	if (rc == 0)
		rc = fa_sha256_file(u->hash, u->proved, err);
	free(sums);
	return rc;
}

/* ---- proof */

static int no_proof(struct update *u, struct fa_err *err)
{
	fa_err_set(err, FA_INTEGRITY, "%s: nothing proves it: no sha256 was given and there is no signature", u->o->from);
	return fa_err_next(
	        err,
	        "its sha256 is %s: when whoever made it names the same one, give it with --sha256; or give --signature FILE",
	        u->hash);
}

static int prove_by_hash(struct update *u, struct fa_err *err)
{
	if (strcmp(u->hash, u->o->sha256) != 0) {
		fa_err_set(err, FA_INTEGRITY, "%s: sha256 %s needed, %s found", u->o->from, u->o->sha256, u->hash);
		return fa_err_next(err, "it is damaged or another one; what is in use stays");
	}
	u->proof = fa_strf("sha256 %s", u->hash);
	return 0;
}

/* The allowed signers: those named, the user's, the machine's. The caller's; NULL with err. */
static char *find_signers(const struct update *u, struct fa_err *err)
{
	char *config = fa_dir_config(), *mine = fa_path_join(config, "allowed_signers");
	const char *places[] = { u->o->signers ? u->o->signers : mine,
		                 u->o->signers ? NULL : "/etc/fainstall/allowed_signers" };
	char *found = NULL;

	for (int i = 0; i < 2 && !found; i++)
		if (places[i] && fa_file_exists(places[i]))
			found = fa_path_absolute(places[i]);
	if (!found) {
		fa_err_set(err, FA_INTEGRITY, "%s: there is no list of allowed signers", places[0]);
		fa_err_next(err, "write one, \"NAME namespaces=\\\"" SIGNED_FOR
		                 "\\\" KEY\" a line (ssh-keygen(1)), or give --sha256");
	}
	free(config);
	free(mine);
	return found;
}

/* The signature beside what it signs. 1: here it is, 0: there is none, -1. */
static int bring_signature(struct update *u, const char *to, struct fa_err *err)
{
	const char *named = u->o->signature;
	bool folder = !is_url(u->o->from) && fa_file_is_dir(u->o->from);
	char *beside = folder ? fa_strf("%s/SHA256SUMS.sig", u->o->from) : fa_strf("%s.sig", u->o->from);
	struct fa_err why = FA_ERR_INIT;
	int rc = 0;

	if (named)
		rc = bring(named, to, err) < 0 ? -1 : 1;
	else if (is_url(beside))
		rc = bring(beside, to, &why) == 0;
	else if (fa_file_exists(beside))
		rc = bring(beside, to, err) < 0 ? -1 : 1;
	free(beside);
	return rc;
}

static int wrong_signature(const struct update *u, const struct words *w, struct fa_err *err)
{
	fa_err_set(err, FA_INTEGRITY, "%s: its signature is of nobody who may sign (%s)", u->o->from,
	           w->said[0]    ? w->said
	           : w->first[0] ? w->first
	                         : "no answer of ssh-keygen");
	return fa_err_next(err, "what is in use stays; allowed signers are named with --signers FILE");
}

static int check_signature(struct update *u, const char *signature, const char *signers, struct fa_err *err)
{
	const char *const who[] = { "ssh-keygen", "-Y", "find-principals", "-s", signature, "-f", signers, NULL };
	struct words w, name;
	const char *verify[] = { "ssh-keygen", "-Y", "verify",   "-f", signers,   "-I",
		                 name.first,   "-n", SIGNED_FOR, "-s", signature, NULL };
	struct fa_proc_result end = { 0 };
	struct fa_proc_opts p = { .argv = who, .timeout_ms = TOOL_MS, .line = take_line, .ctx = &name };

	name = (struct words){ "", "" };
	if (fa_proc_run(&end, &p, FA_INTEGRITY, err) < 0) {
		if (end.end != FA_PROC_NOT_STARTED)
			return wrong_signature(u, &name, err);
		fa_err_set(err, FA_MACHINE, "ssh-keygen is not there: the signature cannot be checked");
		return fa_err_next(err, "install openssh-client, or give the sha256 with --sha256");
	}
	if (run(&w, verify, u->proved, FA_INTEGRITY, err) < 0)
		return wrong_signature(u, &w, err);
	u->proof = fa_strf("signed by %s", name.first);
	return 0;
}

static int prove_by_signature(struct update *u, struct fa_err *err)
{
	char *signature = fa_path_join(u->stage, "signature"), *signers = NULL;
	int got = bring_signature(u, signature, err), rc = -1;

	if (got == 0)
		no_proof(u, err);
	else if (got > 0 && (signers = find_signers(u, err)))
		rc = check_signature(u, signature, signers, err);
	free(signature);
	free(signers);
	return rc;
}

/* ---- from what was proved to tables */

/* The folder that holds about.json: the archive's top, or its one folder. */
static void find_tables(struct update *u)
{
	char *about = fa_path_join(u->tables, "about.json");
	DIR *d = fa_file_exists(about) ? NULL : opendir(u->tables);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char *inner = e->d_name[0] == '.' ? NULL : fa_path_join(u->tables, e->d_name);
		char *there = inner ? fa_path_join(inner, "about.json") : NULL;

		if (there && fa_file_exists(there)) {
			free(u->tables);
			u->tables = inner;
			inner = NULL;
			closedir(d);
			d = NULL;
		}
		free(inner);
		free(there);
	}
	if (d)
		closedir(d);
	free(about);
}

/* The hash that SHA256SUMS gives a file: "HEX  NAME", "HEX *./NAME". The caller's; NULL: it is not listed. */
static char *listed_hash(const struct fa_strv *lines, const char *name)
{
	for (size_t i = 0; i < lines->n; i++) {
		const char *line = lines->v[i], *file = line + 64;

		if (strspn(line, "0123456789abcdef") != 64 || (*file != ' ' && *file != '*'))
			continue;
		file += strspn(file, " *");
		file += !strncmp(file, "./", 2) ? 2 : 0;
		if (!strcmp(file, name))
			return fa_strndup(line, 64);
	}
	return NULL;
}

static int copy_listed(struct update *u, const struct fa_strv *lines, const char *name, struct fa_err *err)
{
	char *hash = listed_hash(lines, name), *from = fa_path_join(u->o->from, name), *to = fa_path_join(u->tables, name);
	char *dir = fa_path_dir(to), found[FA_SHA256_HEX];
	int rc = -1;

	if (!hash)
		fa_err_set(err, FA_INTEGRITY, "%s: is not listed in SHA256SUMS", from);
	else if (fa_file_mkdirs(dir, err) == 0 && copy_file(from, to, TABLE_MAX, err) == 0 &&
	         fa_sha256_file(found, to, err) == 0)
		rc = !strcmp(found, hash) ? 0
		                          : fa_err_set(err, FA_INTEGRITY, "%s: sha256 %s needed, %s found", from, hash, found);
	free(hash);
	free(from);
	free(to);
	free(dir);
	return rc;
}

static int copy_folder(struct update *u, struct fa_err *err)
{
	struct fa_strv lines = FA_STRV_INIT;
	struct fa_buf sums = FA_BUF_INIT;
	int rc = fa_file_read(&sums, u->proved, TABLE_MAX, err);

	fa_strv_split(&lines, fa_buf_str(&sums), "\r\n");
	for (int i = 0; rc == 0 && fa_matrix_table_name(i); i++) {
		char *name = fa_strf("%s.json", fa_matrix_table_name(i));

		rc = copy_listed(u, &lines, name, err);
		free(name);
	}
	fa_strv_release(&lines);
	fa_buf_release(&sums);
	return rc;
}

static int get_tables(struct update *u, struct fa_err *err)
{
	u->tables = fa_path_join(u->stage, "tables");
	if (!is_url(u->o->from) && fa_file_is_dir(u->o->from))
		return copy_folder(u, err);
	if (worker("unpack", u->proved, u->tables, err) < 0)
		return -1;
	find_tables(u);
	return 0;
}

/* ---- is it good? */

static int refuse(struct fa_err *err)
{
	if (err && !err->next[0])
		fa_err_next(err, "it was not taken; what is in use stays");
	return -1;
}

static int check_age(struct update *u, struct fa_err *err)
{
	for (int i = 0; fa_matrix_table_name(i); i++) {
		const char *name = fa_matrix_table_name(i);
		char *theirs = fa_matrix_date(u->tables, name), *ours = fa_matrix_date(u->before.dir, name);
		bool older = *theirs && strcmp(theirs, ours) < 0;

		if (older)
			fa_err_set(err, FA_USAGE, "%s: %s.json: checked %s is older than %s, which is in use", u->o->from, name,
			           theirs, ours);
		free(theirs);
		free(ours);
		if (older)
			return refuse(err);
	}
	return 0;
}

static int check_findings(struct update *u, int n, const char *findings, struct fa_err *err)
{
	fa_err_set(err, FA_USAGE, "%s: %.*s%s", u->o->from, (int)strcspn(findings, "\n"), findings, n > 1 ? ", and more" : "");
	return refuse(err);
}

static int check_rows(struct update *u, struct fa_err *err)
{
	char *recipes = fa_dir_own("recipes", err);
	struct fa_buf findings = FA_BUF_INIT;
	struct fa_matrix *m = NULL;
	struct fa_kb *kb;
	int n = -1, rc = -1;

	if (!recipes || fa_matrix_open_at(&m, u->tables, recipes, NULL, err) < 0)
		goto done;
	n = fa_matrix_check(m, &findings, err);
	if (n > 0)
		check_findings(u, n, fa_buf_str(&findings), err);
	else if (n == 0)
		rc = fa_matrix_kb(&kb, m, err);
	if (rc < 0)
		refuse(err);
done:
	fa_matrix_close(m);
	fa_buf_release(&findings);
	free(recipes);
	return rc;
}

/* ---- into use */

static struct fa_json *hashes_of(const char *dir)
{
	struct fa_json *files = fa_json_new_object();
	char hex[FA_SHA256_HEX];

	for (int i = 0; fa_matrix_table_name(i); i++) {
		char *name = fa_strf("%s.json", fa_matrix_table_name(i)), *path = fa_path_join(dir, name);

		if (fa_sha256_file(hex, path, NULL) == 0)
			fa_json_set_string(files, name, hex);
		free(name);
		free(path);
	}
	return files;
}

static int write_origin(const struct update *u, const char *dir, struct fa_err *err)
{
	char *path = fa_path_join(dir, "origin.json"), *text;
	char *from = is_url(u->o->from) ? fa_url_redact(u->o->from) : fa_path_absolute(u->o->from);
	struct fa_json *j = fa_json_new_object();
	int rc;

	fa_json_set_string(j, "schema", "fainstall.origin/1");
	fa_json_set_string(j, "from", from);
	fa_json_set_string(j, "proof", u->proof);
	fa_json_set(j, "files", hashes_of(dir));
	text = fa_json_print(j, true);
	rc = fa_file_write(path, text, strlen(text), err);
	free(path);
	free(from);
	free(text);
	fa_json_free(j);
	return rc;
}

/* Only the tables that the program reads, each flushed to the disk. */
static int gather(struct update *u, const char *dir, struct fa_err *err)
{
	int rc = fa_file_mkdirs(dir, err);

	for (int i = 0; rc == 0 && fa_matrix_table_name(i); i++) {
		char *name = fa_strf("%s.json", fa_matrix_table_name(i));
		char *from = fa_path_join(u->tables, name), *to = fa_path_join(dir, name), *folder = fa_path_dir(to);

		rc = fa_file_mkdirs(folder, err);
		if (rc == 0)
			rc = copy_file(from, to, TABLE_MAX, err);
		free(name);
		free(from);
		free(to);
		free(folder);
	}
	return rc == 0 ? write_origin(u, dir, err) : -1;
}

static int point_to(const struct update *u, const char *name, struct fa_err *err)
{
	char *fresh = fa_path_join(u->stage, "link"), *link = fa_path_join(u->updates, "current");
	int rc = 0;

	if (symlink(name, fresh) < 0 || rename(fresh, link) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: cannot be written: %s", link, strerror(errno));
	free(fresh);
	free(link);
	return rc;
}

/* What is neither in use now nor was before: a program that started before the update still reads the former one. */
static void remove_others(const struct update *u, const char *now)
{
	const char *was = fa_path_base(u->before.dir);
	DIR *d = opendir(u->updates);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char *path = fa_path_join(u->updates, e->d_name);

		if (e->d_name[0] != '.' && strcmp(e->d_name, "current") != 0 && (!now || strcmp(e->d_name, now) != 0) &&
		    strcmp(e->d_name, was) != 0)
			fa_file_remove_tree(path, NULL);
		free(path);
	}
	if (d)
		closedir(d);
}

static int take_into_use(struct update *u, const char *date, struct fa_err *err)
{
	char *name = fa_strf("%s-%.*s", date, HASH_SHOWN, u->hash), *dir = fa_path_join(u->updates, name);
	char *whole = fa_path_join(u->stage, "whole"), *old = fa_path_join(u->stage, "old");
	int rc = gather(u, whole, err);

	if (rc == 0 && fa_file_exists(dir)) /* it was taken before, and damaged since */
		rename(dir, old);
	if (rc == 0 && rename(whole, dir) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: cannot be written: %s", dir, strerror(errno));
	if (rc == 0)
		rc = point_to(u, name, err);
	if (rc == 0)
		remove_others(u, name);
	free(name);
	free(dir);
	free(whole);
	free(old);
	return rc;
}

/* Is it what is in use, whole, already? */
static bool in_use(const struct update *u)
{
	return u->before.from && strstr(fa_path_base(u->before.dir), "-") &&
	       !strncmp(strrchr(fa_path_base(u->before.dir), '-') + 1, u->hash, HASH_SHOWN);
}

/* ---- the order of it all */

static int lock_updates(struct update *u, struct fa_err *err)
{
	char *path = fa_path_join(u->updates, ".lock");
	int rc = 0;

	u->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (u->lock < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: cannot be written: %s", path, strerror(errno));
	else if (flock(u->lock, LOCK_EX | LOCK_NB) < 0) {
		fa_err_set(err, FA_MACHINE, "another update of the knowledge is under way");
		rc = fa_err_next(err, "wait for it, then run the same command again");
	}
	free(path);
	return rc;
}

static int begin(struct update *u, struct fa_err *err)
{
	u->updates = fa_matrix_updates();
	u->lock = -1;
	if (fa_matrix_data_find(&u->before, err) < 0 || fa_file_mkdirs(u->updates, err) < 0 || lock_updates(u, err) < 0)
		return -1;
	u->stage = fa_path_join(u->updates, "stage"); /* ours alone while the lock is held */
	if (fa_file_remove_tree(u->stage, err) < 0)
		return -1;
	return fa_file_mkdirs(u->stage, err);
}

static void end(struct update *u)
{
	if (u->stage && u->lock >= 0)
		fa_file_remove_tree(u->stage, NULL);
	if (u->lock >= 0)
		close(u->lock);
	fa_matrix_data_release(&u->before);
	free(u->updates);
	free(u->stage);
	free(u->tables);
	free(u->proved);
	free(u->proof);
}

static int update(struct fa_matrix_update_result *out, struct update *u, struct fa_err *err)
{
	if (bring_proved(u, err) < 0)
		return -1;
	if ((u->o->sha256 ? prove_by_hash(u, err) : prove_by_signature(u, err)) < 0)
		return -1;
	out->was = fa_strdup(u->before.date);
	out->proof = fa_strdup(u->proof);
	out->same = in_use(u);
	if (out->same) {
		out->date = fa_strdup(u->before.date);
		return 0;
	}
	if (get_tables(u, err) < 0 || check_rows(u, err) < 0 || check_age(u, err) < 0)
		return refuse(err);
	out->date = fa_matrix_date(u->tables, "about");
	return take_into_use(u, out->date, err);
}

int fa_matrix_update(struct fa_matrix_update_result *out, const struct fa_matrix_update_opts *opts, struct fa_err *err)
{
	struct update u = { .o = opts };
	int rc;

	*out = (struct fa_matrix_update_result){ 0 };
	rc = begin(&u, err);
	if (rc == 0)
		rc = update(out, &u, err);
	end(&u);
	return rc;
}

void fa_matrix_update_release(struct fa_matrix_update_result *r)
{
	free(r->date);
	free(r->was);
	free(r->proof);
	*r = (struct fa_matrix_update_result){ 0 };
}

int fa_matrix_update_shipped(struct fa_err *err)
{
	struct update u = { .o = NULL };
	int rc = begin(&u, err);
	char *link = rc == 0 ? fa_path_join(u.updates, "current") : NULL;

	if (rc == 0 && unlink(link) < 0 && errno != ENOENT)
		rc = fa_err_set(err, FA_MACHINE, "%s: cannot be removed: %s", link, strerror(errno));
	free(link);
	end(&u);
	return rc;
}
