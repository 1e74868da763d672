/* Parsers: C library, compilers, kernel, distribution, memory. */
#include "buf.h"
#include "read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *line, const char *word)
{
	return !strncasecmp(line, word, strlen(word));
}

static void set_text(struct fa_reading *r, enum fa_fact id, const char *text)
{
	fa_facts_set_text(r->out, id, text, r->origin);
}

/* ---- C library */

static char *glibc_of_line(const char *line)
{
	char *rest, *version = NULL;

	if (!begins(line, "ldd ") && !begins(line, "glibc ") && !begins(line, "GNU C Library") && !strstr(line, "(GNU libc)"))
		return NULL;
	rest = fa_read_outside_parentheses(line);
	version = fa_read_version(rest, false);
	free(rest);
	return version;
}

void fa_read_ldd(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		char *version = glibc_of_line(r->lines->v[i]);

		if (version)
			set_text(r, FA_FACT_GLIBC, version);
		free(version);
		if (fa_facts_has(r->out, FA_FACT_GLIBC))
			return;
		if (begins(r->lines->v[i], "musl libc")) {
			set_text(r, FA_FACT_GLIBC, "");
			return;
		}
	}
	fa_read_unusable(r, "version of the C library");
}

/* ---- compilers */

/* Word for the family; NULL: the line names no compiler. GCC says who it is only by its licence lines when it is called cc. */
static const char *family(const char *line, const char *gnu, bool is_gnu)
{
	static const struct {
		const char *words, *name;
	} known[] = {
		{ "Apple clang", "apple-clang" },
		{ "AOCC", "aocc" },
		{ "clang version", "clang" },
		{ "clang-version", "clang" },
		{ "nvc++", "nvc++" },
		{ "nvc ", "nvc" },
		{ "icpx", "icpx" },
		{ "oneAPI DPC++", "icpx" },
		{ "Intel(R) oneAPI", "icx" },
		{ "icc (ICC)", "icc" },
		{ "icpc (ICC)", "icpc" },
		{ "nvcc: NVIDIA", NULL },
		{ "Microsoft (R)", NULL },
		{ "tcc version", "tcc" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strstr(line, known[i].words))
			return known[i].name;
	if (strstr(line, "gcc") || strstr(line, "g++") || strstr(line, "GCC") || strstr(line, "MinGW"))
		return gnu;
	return is_gnu ? gnu : NULL;
}

/* "nvc++ 24.5-1" and "12.2.0" alone (gcc -dumpfullversion); the "-12" of "gcc-12" is no version since it has no dot. */
static char *compiler_version(const char *line)
{
	char *rest = fa_read_outside_parentheses(line), *version = fa_read_version(rest, false);

	free(rest);
	return version;
}

static bool only_version(const char *line)
{
	size_t n = strspn(line, "0123456789.");

	return n && !line[n] && strchr(line, '.');
}

static void read_compiler(struct fa_reading *r, enum fa_fact id, const char *gnu)
{
	bool is_gnu = strstr(r->text, "Free Software Foundation") != NULL;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i], *name = only_version(line) ? gnu : family(line, gnu, is_gnu);
		char *version = name ? compiler_version(line) : NULL, *text;

		if (!version || begins(line, "Copyright") || begins(line, "Configured with") || begins(line, "COLLECT_") ||
		    strstr(line, ": error")) {
			free(version);
			continue;
		}
		text = fa_strf("%s %s", name, version);
		set_text(r, id, text);
		free(text);
		free(version);
		return;
	}
	fa_read_unusable(r, "version of a compiler");
}

void fa_read_gcc(struct fa_reading *r)
{
	read_compiler(r, FA_FACT_CC, "gcc");
}

void fa_read_cxx(struct fa_reading *r)
{
	read_compiler(r, FA_FACT_CXX, "g++");
}

/* The banner is translated ("Version 19.38.33133 für x86", "用于 x64 的 … 19.29.30133 版"): only numbers and the target count. */
static const char *cl_target(const char *line)
{
	static const char *const targets[] = { "x64", "x86", "ARM64", "ARM", "80x86" };

	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		const char *p = strstr(line, targets[i]);
		size_t len = strlen(targets[i]);

		if (p && (p == line || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[len]))
			return targets[i];
	}
	return NULL;
}

void fa_read_cl(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i], *target = cl_target(line);
		char *version = fa_read_version(line, false), *dot = version ? strchr(version, '.') : NULL;
		char *text;

		if (!version || !dot || !strchr(dot + 1, '.') || !strstr(line, "Microsoft")) {
			free(version);
			continue;
		}
		dot = strchr(dot + 1, '.');
		*dot = '\0';
		set_text(r, FA_FACT_MSVC, version);
		set_text(r, FA_FACT_OS, "windows");
		free(version);
		if (target && strcmp(target, "x64") != 0 && strcmp(target, "ARM64") != 0) {
			text = fa_strf("This prompt's compiler makes code for %s, needed x64", target);
			fa_facts_add_problem(r->out, "compiler_wrong_target", r->tool, text,
			                     "start the \"x64 Native Tools Command Prompt for VS\"");
			free(text);
		}
		return;
	}
	fa_read_unusable(r, "version of a compiler");
}

/* ---- tools with one number */

static void read_number(struct fa_reading *r, enum fa_fact id, const char *word, const char *missing)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i];
		size_t len = strlen(word);
		char *version;

		if (begins(line, word) && line[len] == ' ')
			version = fa_read_version(line + len, false);
		else if (only_version(line) || (!*word && isdigit((unsigned char)line[0])))
			version = fa_read_version(line, false);
		else
			continue;
		if (!version)
			continue;
		set_text(r, id, version);
		free(version);
		return;
	}
	fa_read_unusable(r, missing);
}

void fa_read_ninja(struct fa_reading *r)
{
	read_number(r, FA_FACT_NINJA, "", "version of ninja"); /* PyPI's says 1.13.0.git.kitware.jobserver-pipe-1 */
}

void fa_read_git(struct fa_reading *r)
{
	read_number(r, FA_FACT_GIT, "git version", "version of git");
}

void fa_read_pip(struct fa_reading *r)
{
	read_number(r, FA_FACT_PIP, "pip", "version of pip");
}

void fa_read_uv(struct fa_reading *r)
{
	read_number(r, FA_FACT_UV, "uv", "version of uv");
}

void fa_read_conda(struct fa_reading *r)
{
	read_number(r, FA_FACT_CONDA, "conda", "version of conda");
}

/* ---- kernel, distribution, processor, memory */

static const char *machine_word(const char *word)
{
	static const struct {
		const char *said, *called;
	} machines[] = { { "x86_64", "x86_64" }, { "amd64", "x86_64" }, { "aarch64", "aarch64" }, { "arm64", "aarch64" } };

	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (!strcasecmp(word, machines[i].said))
			return machines[i].called;
	return NULL;
}

static const char *os_word(const char *word)
{
	return !strcmp(word, "Linux")                                 ? "linux"
	       : !strcmp(word, "Darwin")                              ? "darwin"
	       : strstr(word, "_NT-") || !strncmp(word, "Windows", 7) ? "windows"
	                                                              : NULL;
}

static bool read_uname_line(struct fa_reading *r, const char *line)
{
	struct fa_strv words = FA_STRV_INIT;
	const char *os, *machine = NULL;

	fa_strv_split(&words, line, " \t");
	os = words.n ? os_word(words.v[0]) : NULL;
	if (os && words.n >= 3 && isdigit((unsigned char)words.v[2][0])) {
		set_text(r, FA_FACT_OS, os);
		set_text(r, FA_FACT_KERNEL, words.v[2]);
		if (!strcmp(os, "linux"))
			fa_facts_set_bool(r->out, FA_FACT_WSL, strcasestr(words.v[2], "microsoft") != NULL, r->origin);
		for (size_t i = 3; i < words.n; i++)
			if (machine_word(words.v[i]))
				machine = machine_word(words.v[i]);
		if (machine)
			set_text(r, FA_FACT_MACHINE, machine);
	} else {
		os = NULL;
	}
	fa_strv_release(&words);
	return os != NULL;
}

void fa_read_uname(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++)
		if (read_uname_line(r, r->lines->v[i]))
			return;
	fa_read_unusable(r, "kernel");
}

/* ID=ubuntu, ID="rhel", ID='arch' */
static char *shell_value(const struct fa_strv *lines, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < lines->n; i++) {
		const char *line = lines->v[i] + strspn(lines->v[i], " \t");
		char *value;

		if (strncmp(line, name, len) != 0 || line[len] != '=')
			continue;
		line += len + 1;
		value = fa_strdup(line + (*line == '"' || *line == '\''));
		if (*value && (value[strlen(value) - 1] == '"' || value[strlen(value) - 1] == '\''))
			value[strlen(value) - 1] = '\0';
		return value;
	}
	return NULL;
}

void fa_read_os_release(struct fa_reading *r)
{
	char *id = shell_value(r->lines, "ID"), *version = shell_value(r->lines, "VERSION_ID");
	char *build = shell_value(r->lines, "BUILD_ID");

	if (id) {
		set_text(r, FA_FACT_OS, "linux");
		set_text(r, FA_FACT_DISTRO, id);
		if (version || (build && !strcmp(build, "rolling"))) /* those have none */
			set_text(r, FA_FACT_DISTRO_VERSION, version ? version : "");
	} else {
		fa_read_unusable(r, "ID= of a distribution");
	}
	free(id);
	free(version);
	free(build);
}

static int64_t number_of(const char *text)
{
	char *end;
	long long n = strtoll(text, &end, 10);

	return end == text || n < 0 || n > (1LL << 50) ? -1 : n;
}

void fa_read_lscpu(struct fa_reading *r)
{
	int64_t cores = -1;
	bool any = false;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i], *colon = strchr(line, ':');
		const char *cpus = fa_read_value(line, "CPU(s)"), *word = colon ? colon + 1 + strspn(colon + 1, " \t") : "";

		if (cpus && cores < 0)
			cores = number_of(cpus);
		if (!any && machine_word(word)) {
			set_text(r, FA_FACT_MACHINE, machine_word(word));
			any = true;
		}
	}
	if (cores > 0)
		fa_facts_set_number(r->out, FA_FACT_CORES, cores, r->origin);
	if (cores <= 0 && !any)
		fa_read_unusable(r, "CPU(s)");
}

void fa_read_meminfo(struct fa_reading *r)
{
	int64_t total = -1, available = -1;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *value = fa_read_value(r->lines->v[i], "MemTotal");

		if (value)
			total = number_of(value);
		value = fa_read_value(r->lines->v[i], "MemAvailable");
		if (value)
			available = number_of(value);
	}
	if (total > 0)
		fa_facts_set_number(r->out, FA_FACT_RAM_MIB, total / 1024, r->origin);
	if (available >= 0)
		fa_facts_set_number(r->out, FA_FACT_RAM_AVAILABLE_MIB, available / 1024, r->origin);
	if (total <= 0 && available < 0)
		fa_read_unusable(r, "MemTotal");
}

/* ---- environment variables */

const char *const fa_read_env_names[] = {
#define ENV(name) name,
#include "env.def"
#undef ENV
	NULL
};

bool fa_read_env_wanted(const char *name)
{
	for (const char *const *n = fa_read_env_names; *n; n++) {
		size_t len = strlen(*n);

		if ((*n)[len - 1] == '*' ? !strncmp(name, *n, len - 1) : !strcmp(name, *n))
			return true;
	}
	return false;
}

void fa_read_env(struct fa_reading *r)
{
	bool any = false;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i], *equals;
		char *name;

		if (begins(line, "export ")) /* `export -p`, or a script's lines */
			line += 7;
		equals = strchr(line, '=');
		if (!equals)
			continue;
		any = true;
		name = fa_strndup(line, (size_t)(equals - line));
		if (fa_read_env_wanted(name))
			fa_facts_add_env(r->out, name, equals + 1);
		free(name);
	}
	if (!any)
		fa_read_unusable(r, "NAME=VALUE");
}
