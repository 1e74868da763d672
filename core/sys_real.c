/* The machine we are on. */
#include "file.h"
#include "sys.h"
#include "sys_ask.h"
#include "sys_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MAX_FILE = 4 << 20 };

struct begun {
	char *key;
	struct fa_child child;
};

struct real {
	struct begun *begun; /* started by a hint, not asked for yet */
	size_t n;
};

static enum fa_sys_result result_of_errno(int e)
{
	return e == ENOENT || e == ENOTDIR || e == ELOOP ? FA_SYS_NOT_THERE : FA_SYS_DENIED;
}

static enum fa_sys_result real_read(void *ctx, const char *path, struct fa_buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), saved;
	size_t before = out->len;
	struct stat st;
	ssize_t n = -1;

	(void)ctx;
	if (fd < 0)
		return result_of_errno(errno);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return FA_SYS_NOT_THERE;
	}
	do {
		fa_buf_reserve(out, 65536);
		n = read(fd, out->data + out->len, 65536);
		if (n > 0)
			out->len += (size_t)n;
	} while ((n > 0 && out->len - before < MAX_FILE) || (n < 0 && errno == EINTR));
	saved = errno;
	out->data[out->len] = '\0';
	close(fd);
	return n < 0 ? result_of_errno(saved) : FA_SYS_DONE;
}

static enum fa_sys_result real_list(void *ctx, const char *path, struct fa_strv *out)
{
	DIR *d = opendir(path);
	struct dirent *e;

	(void)ctx;
	if (!d)
		return result_of_errno(errno);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			fa_strv_push(out, e->d_name);
	closedir(d);
	fa_strv_sort(out);
	return FA_SYS_DONE;
}

static char *real_find(void *ctx, const char *program)
{
	struct fa_strv dirs = FA_STRV_INIT;
	const char *path = getenv("PATH");
	char *found = NULL;

	(void)ctx;
	if (strchr(program, '/'))
		return fa_file_is_executable(program) ? fa_strdup(program) : NULL;
	fa_strv_split(&dirs, path ? path : "/usr/local/bin:/usr/bin:/bin", ":");
	for (size_t i = 0; i < dirs.n && !found; i++) {
		found = fa_path_join(dirs.v[i], program);
		if (dirs.v[i][0] != '/' || !fa_file_is_executable(found)) {
			free(found);
			found = NULL;
		}
	}
	fa_strv_release(&dirs);
	return found;
}

static const char *real_env(void *ctx, const char *name)
{
	(void)ctx;
	return getenv(name);
}

/* A folder that will be made lies on the file system of the nearest one that is there. */
static int64_t real_free_mib(void *ctx, const char *path)
{
	char *p = fa_path_absolute(path), *slash;
	struct statvfs st;
	int rc;

	(void)ctx;
	while ((rc = statvfs(*p ? p : "/", &st)) < 0 && errno == ENOENT && (slash = strrchr(p, '/')))
		*slash = '\0';
	free(p);
	return rc < 0 ? -1 : (int64_t)((double)st.f_bavail * (double)st.f_frsize / 1048576.0);
}

/* ---- commands and questions */

static char *run_key(const char *const *argv)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; *argv; argv++)
		fa_buf_add(&b, *argv, strlen(*argv) + 1);
	for (size_t i = 0; i + 1 < b.len; i++)
		if (!b.data[i])
			b.data[i] = '\x1f';
	return fa_buf_detach(&b);
}

static struct fa_child *add_child(struct real *r, char *key)
{
	r->begun = fa_realloc(r->begun, r->n + 1, sizeof(*r->begun));
	r->begun[r->n].key = key;
	return &r->begun[r->n++].child;
}

static bool take_child(struct real *r, const char *key, struct fa_child *out)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->begun[i].key, key)) {
			*out = r->begun[i].child;
			free(r->begun[i].key);
			r->begun[i] = r->begun[--r->n];
			return true;
		}
	return false;
}

static void start_run(struct fa_child *c, const char *const *argv, unsigned timeout_ms)
{
	char *program = real_find(NULL, argv[0]);

	*c = (struct fa_child){ .pid = -1, .out = -1, .err = -1 };
	c->result.result = FA_SYS_NOT_THERE;
	if (program)
		fa_child_exec(c, program, argv, timeout_ms);
	free(program);
}

static void start_ask(struct fa_child *c, const char *question)
{
	fa_answer *answer = fa_ask_answer(question);

	*c = (struct fa_child){ .pid = -1, .out = -1, .err = -1 };
	c->result.result = FA_SYS_NOT_THERE;
	if (answer)
		fa_child_call(c, answer, question, FA_ASK_TIMEOUT_MS);
}

static void real_begin_run(void *ctx, const char *const *argv, unsigned timeout_ms)
{
	start_run(add_child(ctx, run_key(argv)), argv, timeout_ms);
}

static void real_begin_ask(void *ctx, const char *question)
{
	start_ask(add_child(ctx, fa_strdup(question)), question);
}

static void real_run(void *ctx, const char *const *argv, unsigned timeout_ms, struct fa_command_result *out)
{
	char *key = run_key(argv);
	struct fa_child c;

	if (!take_child(ctx, key, &c))
		start_run(&c, argv, timeout_ms);
	fa_child_finish(&c, out);
	free(key);
}

static enum fa_sys_result real_ask(void *ctx, const char *question, struct fa_buf *out)
{
	struct fa_command_result r;
	enum fa_sys_result result;
	struct fa_child c;

	if (!take_child(ctx, question, &c))
		start_ask(&c, question);
	fa_child_finish(&c, &r);
	fa_buf_add(out, fa_buf_str(&r.out), r.out.len);
	result = r.result;
	fa_command_result_release(&r);
	return result;
}

static void real_close(void *ctx)
{
	struct real *r = ctx;

	while (r->n) {
		struct fa_command_result unused;

		r->begun[r->n - 1].child.deadline_ms = 0; /* nobody asked for it */
		fa_child_finish(&r->begun[r->n - 1].child, &unused);
		fa_command_result_release(&unused);
		free(r->begun[--r->n].key);
	}
	free(r->begun);
	free(r);
}

void fa_sys_real(struct fa_sys *out)
{
	*out = (struct fa_sys){ .ctx = fa_calloc(1, sizeof(struct real)),
		                .read = real_read,
		                .list = real_list,
		                .run = real_run,
		                .find = real_find,
		                .env = real_env,
		                .free_mib = real_free_mib,
		                .ask = real_ask,
		                .begin_run = real_begin_run,
		                .begin_ask = real_begin_ask,
		                .close = real_close };
}

void fa_sys_close(struct fa_sys *s)
{
	if (s->close)
		s->close(s->ctx);
	*s = (struct fa_sys){ 0 };
}

void fa_command_result_release(struct fa_command_result *r)
{
	fa_buf_release(&r->out);
	fa_buf_release(&r->err);
}
