/* Recording the answers of a machine into a folder, and answering from one. */
#include "file.h"
#include "json.h"
#include "sys.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define INDEX "answers.json"
#define SCHEMA "fainstall.answers/1"

static const char *const results[] = { "done", "not_there", "denied", "timed_out", "crashed", "not_recorded" };

/* What was asked, as one text: the argument vector joined by blanks. */
static char *joined(const char *const *argv)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; *argv; argv++)
		fa_buf_addf(&b, "%s%s", b.len ? " " : "", *argv);
	return fa_buf_detach(&b);
}

/* ---- recording */

struct record {
	const struct fa_sys *inner;
	char *dir;
	struct fa_json *rows;
	struct fa_strv files; /* names in use */
	struct fa_err err;    /* the first answer that could not be written */
};

static void add_part(struct fa_buf *b, const char *text)
{
	for (; *text; text++)
		if (isalnum((unsigned char)*text) || strchr("._+=", *text))
			fa_buf_addc(b, *text);
		else if (b->len && b->data[b->len - 1] != '-')
			fa_buf_addc(b, '-');
}

/* "read /proc/meminfo" -> proc-meminfo, "run gcc --version" -> gcc-version, "read /etc/os-release" -> os-release */
static void add_stem(struct fa_buf *b, const char *kind, const char *of)
{
	bool run = !strcmp(kind, "run"), query = strstr(of, "--query-gpu") != NULL;

	if (!strncmp(of, "/sys/fs/cgroup/", 15))
		of += 8; /* cgroup-memory.max */
	else if (!strncmp(of, "/etc/", 5))
		of += 5;
	if (run && strstr(of, "import sys")) {
		add_part(b, "python-sys");
		return;
	}
	if (run && *of == '/') { /* the program's folder says nothing */
		size_t len = strcspn(of, " ");

		while (len && of[len - 1] != '/')
			len--;
		of += len;
	}
	add_part(b, query ? "nvidia-smi-query" : of);
	if (!strcmp(kind, "list"))
		fa_buf_adds(b, "-list");
}

static char *file_name(struct record *r, const char *kind, const char *of)
{
	struct fa_buf b = FA_BUF_INIT;
	const char *end = strstr(of, "--query-gpu") ? ".csv" : ".txt";
	char *name;

	add_stem(&b, kind, of);
	if (b.len > 100) {
		b.len = 100;
		b.data[100] = '\0';
	}
	name = fa_strf("%s%s", fa_buf_str(&b), end);
	for (int n = 2; fa_strv_has(&r->files, name) || !strcmp(name, ".txt"); n++) {
		free(name);
		name = fa_strf("%s-%d%s", fa_buf_str(&b), n, end);
	}
	fa_buf_release(&b);
	fa_strv_push(&r->files, name);
	return name;
}

static struct fa_json *add_row(struct record *r, const char *kind, const char *of)
{
	struct fa_json *row;

	fa_json_each (known, r->rows)
		if (!strcmp(fa_json_get_string(known, "ask"), kind) && !strcmp(fa_json_get_string(known, "of"), of))
			return NULL; /* asked twice: the first answer counts */
	row = fa_json_new_object();
	fa_json_set_string(row, "ask", kind);
	fa_json_set_string(row, "of", of);
	fa_json_push(r->rows, row);
	return row;
}

static void add_file(struct record *r, struct fa_json *row, const char *key, const char *kind, const char *text, size_t len)
{
	char *name, *path;

	if (!len)
		return;
	name = file_name(r, kind, fa_json_get_string(row, "of"));
	path = fa_path_join(r->dir, name);
	if (r->err.status == FA_OK)
		fa_file_write(path, text, len, &r->err);
	fa_json_set_string(row, key, name);
	free(path);
	free(name);
}

static enum fa_sys_result record_text(struct record *r, const char *kind, const char *of, enum fa_sys_result result,
                                      const char *text, size_t len)
{
	struct fa_json *row = add_row(r, kind, of);

	if (row) {
		fa_json_set_string(row, "result", results[result]);
		add_file(r, row, "file", kind, text, len);
	}
	return result;
}

static enum fa_sys_result record_read(void *ctx, const char *path, struct fa_buf *out)
{
	struct record *r = ctx;
	size_t before = out->len;
	enum fa_sys_result result = r->inner->read(r->inner->ctx, path, out);

	return record_text(r, "read", path, result, fa_buf_str(out) + before, out->len - before);
}

static enum fa_sys_result record_ask(void *ctx, const char *question, struct fa_buf *out)
{
	struct record *r = ctx;
	size_t before = out->len;
	enum fa_sys_result result = r->inner->ask(r->inner->ctx, question, out);

	return record_text(r, "ask", question, result, fa_buf_str(out) + before, out->len - before);
}

static enum fa_sys_result record_list(void *ctx, const char *path, struct fa_strv *out)
{
	struct record *r = ctx;
	struct fa_strv names = FA_STRV_INIT;
	enum fa_sys_result result = r->inner->list(r->inner->ctx, path, &names);
	char *text = fa_strv_join(&names, "\n");

	record_text(r, "list", path, result, text ? text : "", text ? strlen(text) : 0);
	fa_strv_append(out, &names);
	fa_strv_release(&names);
	free(text);
	return result;
}

static void record_run(void *ctx, const char *const *argv, unsigned timeout_ms, struct fa_command_result *out)
{
	struct record *r = ctx;
	char *of = joined(argv);
	struct fa_json *row;

	r->inner->run(r->inner->ctx, argv, timeout_ms, out);
	row = add_row(r, "run", of);
	if (row) {
		fa_json_set_string(row, "result", results[out->result]);
		if (out->result == FA_SYS_DONE)
			fa_json_set_number(row, "exit", out->exit_status);
		if (out->result == FA_SYS_CRASHED)
			fa_json_set_number(row, "signal", out->signal);
		add_file(r, row, "file", "run", fa_buf_str(&out->out), out->out.len);
		add_file(r, row, "stderr", "run", fa_buf_str(&out->err), out->err.len);
	}
	free(of);
}

static char *record_find(void *ctx, const char *program)
{
	struct record *r = ctx;
	char *path = r->inner->find(r->inner->ctx, program);
	struct fa_json *row = add_row(r, "find", program);

	if (row)
		fa_json_set(row, "value", fa_json_new_string(path));
	return path;
}

static const char *record_env(void *ctx, const char *name)
{
	struct record *r = ctx;
	const char *value = r->inner->env(r->inner->ctx, name);
	struct fa_json *row = value ? add_row(r, "env", name) : NULL;

	if (row)
		fa_json_set_string(row, "value", value);
	return value;
}

static int64_t record_free_mib(void *ctx, const char *path)
{
	struct record *r = ctx;
	int64_t mib = r->inner->free_mib(r->inner->ctx, path);
	struct fa_json *row = add_row(r, "free_mib", path);

	if (row)
		fa_json_set_number(row, "value", (double)mib);
	return mib;
}

static void record_begin_run(void *ctx, const char *const *argv, unsigned timeout_ms)
{
	struct record *r = ctx;

	if (r->inner->begin_run)
		r->inner->begin_run(r->inner->ctx, argv, timeout_ms);
}

static void record_begin_ask(void *ctx, const char *question)
{
	struct record *r = ctx;

	if (r->inner->begin_ask)
		r->inner->begin_ask(r->inner->ctx, question);
}

static char *record_target(void *ctx, const char *env)
{
	struct record *r = ctx;
	struct fa_json *row = env ? add_row(r, "target", "") : NULL;

	if (row)
		fa_json_set_string(row, "value", env);
	return fa_strdup(env);
}

static void record_close(void *ctx)
{
	struct record *r = ctx;

	free(r->dir);
	fa_json_free(r->rows);
	fa_strv_release(&r->files);
	free(r);
}

int fa_sys_record(struct fa_sys *out, const struct fa_sys *inner, const char *dir, struct fa_err *err)
{
	struct record *r;

	*out = (struct fa_sys){ 0 };
	if (fa_file_mkdirs(dir, err) < 0)
		return -1;
	r = fa_calloc(1, sizeof(*r));
	r->inner = inner;
	r->dir = fa_strdup(dir);
	r->rows = fa_json_new_array();
	*out = (struct fa_sys){ .ctx = r,
		                .read = record_read,
		                .list = record_list,
		                .run = record_run,
		                .find = record_find,
		                .env = record_env,
		                .free_mib = record_free_mib,
		                .ask = record_ask,
		                .begin_run = record_begin_run,
		                .begin_ask = record_begin_ask,
		                .target = record_target,
		                .close = record_close };
	return 0;
}

int fa_sys_recorded(struct fa_sys *s, struct fa_err *err)
{
	struct record *r = s->ctx;
	struct fa_buf b = FA_BUF_INIT;
	char *path;
	int rc;

	if (r->err.status != FA_OK) {
		if (err)
			*err = r->err;
		return -1;
	}
	fa_buf_addf(&b, "{\n\t\"schema\": \"%s\",\n\t\"answers\": [", SCHEMA);
	fa_json_each (row, r->rows) {
		char *line = fa_json_print(row, false);

		fa_buf_addf(&b, "%s\n\t\t%s", row == fa_json_first(r->rows) ? "" : ",", line);
		free(line);
	}
	fa_buf_adds(&b, "\n\t]\n}\n");
	path = fa_path_join(r->dir, INDEX);
	rc = fa_file_write(path, fa_buf_str(&b), b.len, err);
	free(path);
	fa_buf_release(&b);
	return rc;
}

/* ---- replaying: everything that was not recorded is FA_SYS_NOT_RECORDED, never this machine */

struct replay {
	char *dir;
	struct fa_json *index;
	const struct fa_json *rows;
};

static const struct fa_json *row_of(const struct replay *r, const char *kind, const char *of)
{
	fa_json_each (row, r->rows) {
		const char *k = fa_json_get_string(row, "ask"), *o = fa_json_get_string(row, "of");

		if (k && o && !strcmp(k, kind) && !strcmp(o, of))
			return row;
	}
	return NULL;
}

static enum fa_sys_result result_of(const struct fa_json *row)
{
	const char *word = row ? fa_json_get_string(row, "result") : NULL;

	for (size_t i = 0; word && i < sizeof(results) / sizeof(*results); i++)
		if (!strcmp(word, results[i]))
			return (enum fa_sys_result)i;
	return FA_SYS_NOT_RECORDED;
}

/* A name with a slash would lead out of the folder. Hosts written by hand may hold a short answer in the row itself. */
static void add_recorded(const struct replay *r, const struct fa_json *row, const char *key, struct fa_buf *out)
{
	const char *name = fa_json_get_string(row, key), *text = fa_json_get_string(row, "text");
	char *path;

	if (text && !strcmp(key, "file"))
		fa_buf_adds(out, text);

	if (!name || strchr(name, '/') || !strcmp(name, ".."))
		return;
	path = fa_path_join(r->dir, name);
	fa_file_read(out, path, 4 << 20, NULL);
	free(path);
}

static enum fa_sys_result replay_text(void *ctx, const char *kind, const char *of, struct fa_buf *out)
{
	const struct fa_json *row = row_of(ctx, kind, of);

	if (row)
		add_recorded(ctx, row, "file", out);
	return result_of(row);
}

static enum fa_sys_result replay_read(void *ctx, const char *path, struct fa_buf *out)
{
	return replay_text(ctx, "read", path, out);
}

static enum fa_sys_result replay_ask(void *ctx, const char *question, struct fa_buf *out)
{
	return replay_text(ctx, "ask", question, out);
}

static enum fa_sys_result replay_list(void *ctx, const char *path, struct fa_strv *out)
{
	struct fa_buf b = FA_BUF_INIT;
	enum fa_sys_result result = replay_text(ctx, "list", path, &b);

	fa_strv_split(out, fa_buf_str(&b), "\n");
	fa_buf_release(&b);
	return result;
}

static void replay_run(void *ctx, const char *const *argv, unsigned timeout_ms, struct fa_command_result *out)
{
	char *of = joined(argv);
	const struct fa_json *row = row_of(ctx, "run", of);

	(void)timeout_ms;
	*out = (struct fa_command_result){ .result = result_of(row) };
	if (row) {
		out->exit_status = (int)fa_json_get_number(row, "exit", 0);
		out->signal = (int)fa_json_get_number(row, "signal", 0);
		add_recorded(ctx, row, "file", &out->out);
		add_recorded(ctx, row, "stderr", &out->err);
	}
	free(of);
}

static char *replay_find(void *ctx, const char *program)
{
	return fa_strdup(fa_json_get_string(row_of(ctx, "find", program), "value"));
}

static const char *replay_env(void *ctx, const char *name)
{
	return fa_json_get_string(row_of(ctx, "env", name), "value");
}

static int64_t replay_free_mib(void *ctx, const char *path)
{
	return (int64_t)fa_json_get_number(row_of(ctx, "free_mib", path), "value", -1);
}

static bool replay_recorded(void *ctx, const char *ask, const char *of)
{
	return row_of(ctx, ask, of) != NULL;
}

/* Without another wish the environment that was looked at when it was recorded. */
static char *replay_target(void *ctx, const char *env)
{
	return fa_strdup(env ? env : fa_json_get_string(row_of(ctx, "target", ""), "value"));
}

static void replay_close(void *ctx)
{
	struct replay *r = ctx;

	fa_json_free(r->index);
	free(r->dir);
	free(r);
}

int fa_sys_replay(struct fa_sys *out, const char *dir, struct fa_err *err)
{
	char *path = fa_path_join(dir, INDEX);
	struct fa_json *index = NULL;
	const char *schema;
	struct replay *r;
	int rc = -1;

	*out = (struct fa_sys){ 0 };
	if (fa_json_read_file(&index, path, err) < 0)
		goto done;
	schema = fa_json_get_string(index, "schema");
	if (!schema || strcmp(schema, SCHEMA) != 0) {
		fa_err_set(err, FA_USAGE, "%s: schema \"%s\" is not known here, needed %s", path, schema ? schema : "", SCHEMA);
		goto done;
	}
	r = fa_calloc(1, sizeof(*r));
	r->dir = fa_strdup(dir);
	r->index = index;
	r->rows = fa_json_get(index, "answers");
	index = NULL;
	*out = (struct fa_sys){ .ctx = r,
		                .read = replay_read,
		                .list = replay_list,
		                .run = replay_run,
		                .find = replay_find,
		                .env = replay_env,
		                .free_mib = replay_free_mib,
		                .ask = replay_ask,
		                .target = replay_target,
		                .recorded = replay_recorded,
		                .close = replay_close };
	rc = 0;
done:
	fa_json_free(index);
	free(path);
	return rc;
}
