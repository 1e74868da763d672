/* Compilers, build tools, and the CUDA toolkits. */
#include "file.h"
#include "probe.h"
#include "read.h"

#include <stdlib.h>
#include <string.h>

/* ---- compilers, ninja, git, uv, conda */

struct command {
	struct fa_strv argv;
};

static const char *const *words(const struct command *c)
{
	return (const char *const *)c->argv.v;
}

/* What the variable says (it may hold several words: "ccache gcc"), else the first of the names that is in PATH. */
static bool compiler(struct command *out, struct fa_probe *p, const char *variable, const char *const names[2])
{
	const char *set = p->sys->env(p->sys->ctx, variable);
	char *path = NULL;

	*out = (struct command){ .argv = FA_STRV_INIT };
	if (set && *set)
		fa_strv_split(&out->argv, set, " ");
	for (size_t i = 0; !out->argv.n && !path && i < 2; i++) {
		path = p->sys->find(p->sys->ctx, names[i]);
		if (path)
			fa_strv_push(&out->argv, names[i]);
	}
	free(path);
	if (out->argv.n)
		fa_strv_push(&out->argv, "--version");
	return out->argv.n > 0;
}

static const char *const c_names[2] = { "gcc", "cc" }, *const cxx_names[2] = { "g++", "c++" };

static const struct {
	enum fa_fact fact;
	const char *program;
	const char *tool; /* word of the parser */
} tools[] = { { FA_FACT_NINJA, "ninja", "ninja" }, { FA_FACT_GIT, "git", "git" }, { FA_FACT_UV, "uv", "uv" } };

/* The environment's own program wins over that in PATH. */
static char *own_program(struct fa_probe *p, const char *program)
{
	char *own = p->target.exists ? fa_strf("%s/bin/%s", p->target.dir, program) : NULL;
	char *path = own ? p->sys->find(p->sys->ctx, own) : NULL;

	free(own);
	return path;
}

/* `own`: that of the environment, else that in PATH when the environment has none: PyPI's programs are slow scripts, and their
 * version stands in a file (fa_detect_own_tools). */
static bool tool_command(struct command *out, struct fa_probe *p, const char *program, bool own)
{
	char *path = own_program(p, program);

	*out = (struct command){ .argv = FA_STRV_INIT };
	if (!own) {
		bool has_own = path != NULL;

		free(path);
		path = has_own ? NULL : p->sys->find(p->sys->ctx, program);
	}
	if (path) {
		fa_strv_push(&out->argv, path);
		fa_strv_push(&out->argv, "--version");
	}
	free(path);
	return out->argv.n > 0;
}

void fa_detect_tools_begin(struct fa_probe *p)
{
	struct command c;

	if (compiler(&c, p, "CC", c_names))
		fa_probe_begin(p, words(&c));
	fa_strv_release(&c.argv);
	if (compiler(&c, p, "CXX", cxx_names))
		fa_probe_begin(p, words(&c));
	fa_strv_release(&c.argv);
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		if (tool_command(&c, p, tools[i].program, false))
			fa_probe_begin(p, words(&c));
		fa_strv_release(&c.argv);
	}
}

static void detect_compiler(struct fa_probe *p, enum fa_fact fact, const char *variable, const char *const names[2],
                            const char *tool)
{
	struct command c;

	if (compiler(&c, p, variable, names))
		fa_probe_tool(p, tool, words(&c));
	else
		fa_probe_none(p, fact, "find", names[0], "PATH");
	if (c.argv.n && !p->out->v[fact].known && p->sys->env(p->sys->ctx, variable))
		fa_probe_problem(p, "compiler_not_found", variable, "unset it, or name a compiler that is there",
		                 "%s=%s names a compiler that cannot be run", variable, p->sys->env(p->sys->ctx, variable));
	fa_strv_release(&c.argv);
}

/* conda is slow to start (0.3 s) but keeps a file about each package of its own. */
static void detect_conda(struct fa_probe *p)
{
	const char *set = p->sys->env(p->sys->ctx, "CONDA_EXE");
	char *exe = set && *set ? fa_strdup(set) : p->sys->find(p->sys->ctx, "conda");
	char *bin = exe ? fa_path_dir(exe) : NULL, *prefix = bin ? fa_path_dir(bin) : NULL;
	char *meta = prefix ? fa_path_join(prefix, "conda-meta") : NULL, *version = NULL;
	struct fa_strv names = FA_STRV_INIT;

	if (meta)
		p->sys->list(p->sys->ctx, meta, &names);
	for (size_t i = 0; i < names.n && !version; i++)
		if (!strncmp(names.v[i], "conda-", 6) && names.v[i][6] >= '0' && names.v[i][6] <= '9')
			version = fa_strndup(names.v[i] + 6, strcspn(names.v[i] + 6, "-"));
	if (version)
		fa_facts_set_text(p->out, FA_FACT_CONDA, version, meta);
	else if (!exe)
		fa_probe_none(p, FA_FACT_CONDA, "find", "conda", "PATH");
	free(version);
	fa_strv_release(&names);
	free(meta);
	free(prefix);
	free(bin);
	free(exe);
}

void fa_detect_tools(struct fa_probe *p)
{
	detect_compiler(p, FA_FACT_CC, "CC", c_names, "gcc");
	detect_compiler(p, FA_FACT_CXX, "CXX", cxx_names, "cxx");
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		struct command c;

		if (tool_command(&c, p, tools[i].program, false))
			fa_probe_tool(p, tools[i].tool, words(&c));
		fa_strv_release(&c.argv);
	}
	detect_conda(p);
}

void fa_detect_own_tools(struct fa_probe *p)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		struct command c;
		char *path;

		if (p->out->v[tools[i].fact].known)
			continue;
		path = p->sys->find(p->sys->ctx, tools[i].program);
		if (tool_command(&c, p, tools[i].program, true))
			fa_probe_tool(p, tools[i].tool, words(&c));
		else if (!path)
			fa_probe_none(p, tools[i].fact, "find", tools[i].program, "PATH");
		fa_strv_release(&c.argv);
		free(path);
	}
}
