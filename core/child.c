#include "child.h"

#include "buf.h"
#include "proc.h"
#include "redact.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

extern char **environ;

/* ---- environment */

/* Names that children may see; a final * stands for any ending. Case does not count (http_proxy, HTTP_PROXY). */
static const char *const passed[] = {
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"SHELL",
	"TMPDIR",
	"TMP",
	"TEMP",
	"TZ",
	"LANG",
	"LANGUAGE",
	"LC_*",
	"XDG_*",
	"http_proxy",
	"https_proxy",
	"ftp_proxy",
	"all_proxy",
	"no_proxy",
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"REQUESTS_CA_BUNDLE",
	"NETRC",
	"CURL_CA_BUNDLE",
	"PIP_*",
	"UV_*",
	"LD_LIBRARY_PATH",
	"FAINSTALL_*",
	"CCACHE_*",
};

/* Settings of pip and uv that change what is installed or where: ours to say. */
static const char *const dropped[] = {
	"PIP_TARGET",
	"PIP_PREFIX",
	"PIP_ROOT",
	"PIP_USER",
	"PIP_REQUIREMENT",
	"PIP_CONSTRAINT",
	"PIP_NO_DEPS",
	"PIP_UPGRADE",
	"PIP_EDITABLE",
	"PIP_DRY_RUN",
	"PIP_REPORT",
	"PIP_IGNORE_INSTALLED",
	"PIP_PYTHON",
	"PIP_PLATFORM",
	"PIP_IMPLEMENTATION",
	"PIP_ABI",
	"PIP_PYTHON_VERSION",
	"PIP_ONLY_BINARY",
	"PIP_NO_BINARY",
	"PIP_REQUIRE_HASHES",
	"PIP_PRE",
	"PIP_QUIET",
	"PIP_VERBOSE",
	"PIP_LOG",
	"PIP_FORCE_REINSTALL",
	"PIP_SRC",
	"PIP_NO_INDEX_PAGE",
	"PIP_REQUIRE_VIRTUALENV",
	"PIP_BREAK_SYSTEM_PACKAGES",
	"UV_SYSTEM_PYTHON",
};

static bool named(const char *const *list, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		size_t want = strlen(list[i]);
		bool open = list[i][want - 1] == '*';

		if (open ? len >= want - 1 && !strncasecmp(list[i], name, want - 1)
		         : len == want && !strncasecmp(list[i], name, len))
			return true;
	}
	return false;
}

void fa_child_environment(struct fa_strv *out)
{
	for (char **e = environ; *e; e++) {
		const char *equals = strchr(*e, '=');
		size_t len = equals ? (size_t)(equals - *e) : 0;

		if (len && named(passed, sizeof(passed) / sizeof(*passed), *e, len) &&
		    !named(dropped, sizeof(dropped) / sizeof(*dropped), *e, len))
			fa_strv_push(out, *e);
	}
	fa_strv_push(out, "PYTHONNOUSERSITE=1");
	fa_strv_push(out, "PYTHONUTF8=1");
}

/* A later value of the same name takes the place of an earlier one. */
static void set_variable(struct fa_strv *env, const char *assignment)
{
	size_t len = strcspn(assignment, "=") + 1;

	for (size_t i = 0; i < env->n; i++)
		if (!strncmp(env->v[i], assignment, len)) {
			free(env->v[i]);
			env->v[i] = fa_strdup(assignment);
			return;
		}
	fa_strv_push(env, assignment);
}

/* ---- lines */

static void append(const char *log_path, const char *text, size_t len)
{
	int fd = log_path ? open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			break;
		text += n;
		len -= (size_t)n;
	}
	close(fd);
}

void fa_log_line(const char *log_path, const char *fmt, ...)
{
	struct fa_buf b = FA_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	fa_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	fa_buf_adds(&b, "");
	fa_redact(b.data);
	b.len = strlen(b.data);
	fa_buf_addc(&b, '\n');
	append(log_path, b.data, b.len);
	fa_buf_release(&b);
}

struct listener {
	struct fa_child_context *c;
	const struct fa_child *child;
};

static void hear(void *ctx, const char *line, bool is_err)
{
	struct listener *l = ctx;
	struct fa_event e = fa_event_new(FA_EVENT_LOG);
	char *clean = fa_strdup(line);

	if (l->child->out && !is_err)
		fa_buf_addf(l->child->out, "%s\n", line);
	fa_redact(clean);
	fa_log_line(l->c->log_path, "%s", clean);
	if (l->child->all)
		fa_buf_addf(l->child->all, "%s\n", clean);
	if (l->child->line)
		l->child->line(l->child->ctx, clean);
	if (!l->child->quiet && *clean) {
		e.step = l->c->step;
		snprintf(e.id, sizeof(e.id), "%s", is_err ? "err" : "out");
		snprintf(e.text, sizeof(e.text), "%s", clean);
		fa_emit(l->c->sink, &e);
	}
	free(clean);
}

static void log_command(const char *log_path, const char *const *argv)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; *argv; argv++)
		fa_buf_addf(&b, " %s", *argv);
	fa_log_line(log_path, "$%s", fa_buf_str(&b));
	fa_buf_release(&b);
}

int fa_child_run(struct fa_child_context *c, const struct fa_child *child, enum fa_status on_failure, struct fa_err *err)
{
	struct listener l = { c, child };
	struct fa_strv env = FA_STRV_INIT;
	struct fa_proc_result result;
	struct fa_proc_opts opts = { .argv = child->argv, .cwd = child->cwd, .cancel = c->cancel, .line = hear, .ctx = &l };
	int rc;

	fa_child_environment(&env);
	for (size_t i = 0; child->env && i < child->env->n; i++)
		set_variable(&env, child->env->v[i]);
	opts.envp = (const char *const *)env.v;
	log_command(c->log_path, child->argv);
	rc = fa_proc_run(&result, &opts, on_failure, err);
	fa_log_line(c->log_path, "= %.1f s, %.1f s CPU, %lld MiB", result.seconds, result.cpu_seconds,
	            (long long)result.peak_mib);
	if (result.peak_mib > c->peak_mib)
		c->peak_mib = result.peak_mib;
	fa_strv_release(&env);
	return rc;
}
