/* The target environment: its interpreter, what is installed in it, and torch. Python itself is started once, to say where it
 * looks for packages; torch is never imported. */
#include "file.h"
#include "probe.h"
#include "read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which environment */

/* fainstall's folder of a kind: below the variable's, else below `usual` of the user's home. */
static char *own_folder(struct fa_probe *p, const char *variable, const char *usual)
{
	const char *xdg = p->sys->env(p->sys->ctx, variable), *home = p->sys->env(p->sys->ctx, "HOME");

	if (xdg && *xdg == '/')
		return fa_path_join(xdg, "fainstall");
	return fa_strf("%s/%s/fainstall", home && *home == '/' ? home : "", usual);
}

static char *interpreter(struct fa_probe *p, const char *dir)
{
	static const char *const names[] = { "bin/python", "bin/python3" };
	char *found = NULL;

	for (size_t i = 0; i < 2 && !found; i++) {
		char *path = fa_path_join(dir, names[i]);

		found = p->sys->find(p->sys->ctx, path);
		free(path);
	}
	return found;
}

/* A shim of pyenv is a shell script that takes longer than Python itself: what it would start is written in a file. */
static char *behind_shim(struct fa_probe *p, const char *path)
{
	const char *chosen = p->sys->env(p->sys->ctx, "PYENV_VERSION");
	char *shims = strstr(path, "/shims/") ? fa_strndup(path, (size_t)(strstr(path, "/shims/") - path)) : NULL;
	char *file = shims ? fa_path_join(shims, "version") : NULL;
	char *version = chosen ? fa_strdup(chosen) : file ? fa_probe_read(p, file) : NULL, *real = NULL, *program;

	if (shims && version) {
		version[strcspn(version, "\n:")] = '\0';
		program = fa_strf("%s/versions/%s/bin/python3", shims, version);
		real = p->sys->find(p->sys->ctx, program);
		free(program);
	}
	free(version);
	free(file);
	free(shims);
	return real;
}

static char *base_interpreter(struct fa_probe *p)
{
	static const char *const names[] = { "python3", "python" };
	char *found = NULL, *real;

	for (size_t i = 0; i < 2 && !found; i++)
		found = p->sys->find(p->sys->ctx, names[i]);
	real = found ? behind_shim(p, found) : NULL;
	if (!real)
		return found;
	free(found);
	return real;
}

static void choose_folder(struct fa_probe *p, const char *env)
{
	struct fa_target *t = &p->target;
	const char *venv = p->sys->env(p->sys->ctx, "VIRTUAL_ENV"), *conda = p->sys->env(p->sys->ctx, "CONDA_PREFIX");

	if (env) {
		t->dir = strchr(env, '/') ? fa_path_absolute(env) : fa_strf("%s/envs/%s/current", t->data, env);
		t->origin = fa_strdup("--env");
	} else if (venv && *venv) {
		t->dir = fa_strdup(venv);
		t->origin = fa_strdup("VIRTUAL_ENV");
	} else if (conda && *conda) {
		t->dir = fa_strdup(conda);
		t->origin = fa_strdup("CONDA_PREFIX");
	} else {
		t->dir = fa_strf("%s/envs/default/current", t->data);
		t->origin = fa_strdup("the environment \"default\"");
	}
	while (strlen(t->dir) > 1 && t->dir[strlen(t->dir) - 1] == '/')
		t->dir[strlen(t->dir) - 1] = '\0';
}

void fa_target_init(struct fa_probe *p, const char *env)
{
	struct fa_target *t = &p->target;
	struct fa_strv names = FA_STRV_INIT;
	char *meta;

	t->data = own_folder(p, "XDG_DATA_HOME", ".local/share");
	choose_folder(p, env);
	t->python = interpreter(p, t->dir);
	t->exists = t->python != NULL;
	if (!t->exists)
		t->python = base_interpreter(p);
	meta = fa_path_join(t->dir, "conda-meta");
	t->is_conda = t->exists && p->sys->list(p->sys->ctx, meta, &names) == FA_SYS_DONE;
	fa_strv_release(&names);
	free(meta);
}

void fa_target_release(struct fa_target *t)
{
	free(t->dir);
	free(t->python);
	free(t->origin);
	free(t->data);
	*t = (struct fa_target){ 0 };
}

/* ---- asking Python */

static const char program[] = "import sys;"
                              "print('version='+sys.version.replace(chr(10),' '));"
                              "print('abiflags='+getattr(sys,'abiflags',''));"
                              "print('base_prefix='+getattr(sys,'base_prefix',sys.prefix));"
                              "[print('path='+p) for p in sys.path]";

static void python_argv(const struct fa_probe *p, const char *argv[4])
{
	argv[0] = p->target.python;
	argv[1] = "-c";
	argv[2] = program;
	argv[3] = NULL;
}

void fa_detect_python_begin(struct fa_probe *p)
{
	const char *argv[4];

	python_argv(p, argv);
	if (p->target.python)
		fa_probe_begin(p, argv);
}

/* What Python printed; the caller's; NULL: it did not, and a problem says why. */
static char *ask_python(struct fa_probe *p)
{
	struct fa_command_result r = { 0 };
	const char *argv[4];
	char *answer = NULL;

	python_argv(p, argv);
	p->sys->run(p->sys->ctx, argv, FA_PROBE_TIMEOUT_MS, &r);
	if (r.result == FA_SYS_DONE && r.exit_status == 0 && strstr(fa_buf_str(&r.out), "version="))
		answer = fa_strdup(fa_buf_str(&r.out));
	else if (r.result == FA_SYS_TIMED_OUT)
		fa_probe_problem(p, "python_hangs", "python",
		                 "look at its sitecustomize and at network file systems in its path",
		                 "%s gave no answer in %d s", p->target.python, FA_PROBE_TIMEOUT_MS / 1000);
	else if (r.result != FA_SYS_NOT_RECORDED)
		fa_probe_problem(p, "python_broken", "python", "repair the environment, or name another with --env",
		                 "%s does not run: %.200s", p->target.python,
		                 r.err.len ? fa_buf_str(&r.err) : "it ended without a word");
	fa_command_result_release(&r);
	return answer;
}

static void set_python(struct fa_probe *p, const char *answer)
{
	char *version = fa_probe_value(answer, "version"), *line = version ? fa_strf("Python %s", version) : NULL;
	char *flags = fa_probe_value(answer, "abiflags"), *abi;
	const char *known;

	if (line)
		fa_read(p->out, "python", p->target.python, line, strlen(line));
	known = fa_facts_text(p->out, FA_FACT_PYTHON_ABI);
	if (flags && strchr(flags, 't') && known && !strchr(known, 't')) {
		abi = fa_strf("%st", known);
		fa_facts_set_text(p->out, FA_FACT_PYTHON_ABI, abi, p->target.python);
		free(abi);
	}
	free(flags);
	free(line);
	free(version);
}

/* BASE/include/python3.11/Python.h, with t when free-threaded */
static void set_headers(struct fa_probe *p, const char *answer)
{
	char *base = fa_probe_value(answer, "base_prefix");
	const char *python = fa_facts_text(p->out, FA_FACT_PYTHON), *abi = fa_facts_text(p->out, FA_FACT_PYTHON_ABI);
	int major, minor;
	char *path;

	if (base && python && abi && sscanf(python, "%d.%d", &major, &minor) == 2) {
		path = fa_strf("%s/include/python%d.%d%s/Python.h", base, major, minor, strchr(abi, 't') ? "t" : "");
		fa_facts_set_bool(p->out, FA_FACT_PYTHON_HEADERS, fa_probe_there(p, path), path);
		free(path);
	}
	free(base);
}

/* Without an answer: pyvenv.cfg knows the version ("version = 3.11.7", uv: "version_info = 3.11.7"). */
static void python_by_file(struct fa_probe *p)
{
	char *path = fa_path_join(p->target.dir, "pyvenv.cfg"), *text = fa_probe_read(p, path);
	const char *at = text ? strstr(text, "version") : NULL;
	char *version = at ? fa_read_version(at, false) : NULL, *line = version ? fa_strf("Python %s", version) : NULL;

	if (line)
		fa_read(p->out, "python", path, line, strlen(line));
	free(line);
	free(version);
	free(text);
	free(path);
}

/* ---- packages */

/* "flash_attn-2.8.3.dist-info", "torch-2.5.1-py3.11.egg-info" */
static bool package_folder(const char *entry, char **name, char **version)
{
	static const char *const ends[] = { ".dist-info", ".egg-info" };
	const char *dash = strchr(entry, '-');
	size_t len = strlen(entry);

	for (size_t i = 0; dash && dash > entry && isdigit((unsigned char)dash[1]) && i < 2; i++) {
		size_t end = strlen(ends[i]);

		if (len < end || strcmp(entry + len - end, ends[i]) != 0)
			continue;
		*name = fa_strndup(entry, (size_t)(dash - entry));
		*version = fa_strndup(dash + 1, (size_t)(entry + len - end - dash - 1));
		(*version)[strcspn(*version, "-")] = '\0';
		return true;
	}
	return false;
}

struct site {
	struct fa_facts found;
	char *torch;        /* folder of the first torch on the path */
	char *torch_listed; /* version by its dist-info */
	char *nvcc_home;    /* a toolkit made of wheels */
	char *nvcc_version;
};

static void site_release(struct site *s)
{
	fa_facts_release(&s->found);
	free(s->torch);
	free(s->torch_listed);
	free(s->nvcc_home);
	free(s->nvcc_version);
}

static void keep(char **field, char *text)
{
	if (*field)
		free(text);
	else
		*field = text;
}

static void read_entry(struct site *s, const char *dir, const char *entry)
{
	char *name, *version, *origin;
	struct fa_facts one = FA_FACTS_INIT;

	if (!package_folder(entry, &name, &version))
		return;
	origin = fa_path_join(dir, entry);
	fa_read_package(&one, name, version, origin);
	fa_facts_merge(&one, &s->found); /* what came first on the path wins */
	fa_facts_merge(&s->found, &one);
	if (!strcasecmp(name, "torch"))
		keep(&s->torch_listed, fa_strdup(version));
	if (!strcasecmp(name, "nvidia_cuda_nvcc"))
		keep(&s->nvcc_version, fa_strdup(version));
	fa_facts_release(&one);
	free(origin);
	free(name);
	free(version);
}

static void read_site(struct fa_probe *p, struct site *s, const char *dir)
{
	struct fa_strv names = FA_STRV_INIT;

	if (p->sys->list(p->sys->ctx, dir, &names) != FA_SYS_DONE)
		names.n = 0;
	for (size_t i = 0; i < names.n; i++)
		read_entry(s, dir, names.v[i]);
	if (fa_strv_has(&names, "torch"))
		keep(&s->torch, fa_path_join(dir, "torch"));
	if (fa_strv_has(&names, "nvidia") && s->nvcc_version)
		keep(&s->nvcc_home, fa_strf("%s/nvidia/cu%.*s", dir, (int)strcspn(s->nvcc_version, "."), s->nvcc_version));
	fa_strv_release(&names);
}

/* Archives and the working folder are on the path too. */
static bool holds_packages(const char *dir)
{
	size_t len = strlen(dir);

	return dir[0] == '/' && !(len > 4 && !strcmp(dir + len - 4, ".zip")) && !strstr(dir, "lib-dynload");
}

static void read_path(struct fa_probe *p, struct site *s, const char *answer)
{
	struct fa_strv lines = FA_STRV_INIT;

	fa_strv_split(&lines, answer, "\n");
	for (size_t i = 0; i < lines.n; i++)
		if (!strncmp(lines.v[i], "path=", 5) && holds_packages(lines.v[i] + 5))
			read_site(p, s, lines.v[i] + 5);
	fa_strv_release(&lines);
}

/* ---- torch */

/* "cuda: Optional[str] = '13.0'", "hip = None" */
static char *assigned(const char *text, const char *name, bool *is_none)
{
	size_t len = strlen(name);

	*is_none = false;
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		const char *equals = memchr(line, '=', n), *quote;

		if (!strncmp(line, name, len) && !isalnum((unsigned char)line[len]) && line[len] != '_' && equals) {
			quote = equals + 1 + strspn(equals + 1, " ");
			*is_none = !strncmp(quote, "None", 4);
			return *quote == '\'' || *quote == '"' ? fa_strndup(quote + 1, strcspn(quote + 1, "'\"\n")) : NULL;
		}
		line += n + (line[n] == '\n');
	}
	return NULL;
}

static void set_torch_value(struct fa_probe *p, enum fa_fact id, const char *text, const char *name, const char *origin)
{
	bool is_none;
	char *value = assigned(text, name, &is_none), *cut = value ? strchr(value, '-') : NULL;

	if (cut && id == FA_FACT_TORCH_HIP) /* 6.3.42131-fa1d09cbd */
		*cut = '\0';
	if (value)
		fa_facts_set_text(p->out, id, value, origin);
	else if (is_none)
		fa_facts_set_text(p->out, id, "", origin);
	free(value);
}

/* "sm_75 sm_80 compute_90" -> 75, 80, ptx90 */
static void set_archs(struct fa_probe *p, const char *archs, const char *origin)
{
	struct fa_strv words = FA_STRV_INIT, list = FA_STRV_INIT;

	fa_strv_split(&words, archs, " ");
	for (size_t i = 0; i < words.n; i++)
		if (!strncmp(words.v[i], "compute_", 8))
			fa_strv_pushf(&list, "ptx%s", words.v[i] + 8);
		else
			fa_strv_push(&list, words.v[i] + (strncmp(words.v[i], "sm_", 3) ? 0 : 3));
	fa_facts_set_list(p->out, FA_FACT_TORCH_ARCHS, &list, origin);
	fa_strv_release(&words);
	fa_strv_release(&list);
}

static void detect_torch_libraries(struct fa_probe *p, const char *folder)
{
	char *question = fa_strf("torch %s", folder), *answer = fa_probe_ask(p, question, NULL);
	char *abi = fa_probe_value(answer, "cxx11abi"), *archs = fa_probe_value(answer, "archs");
	char *c10 = fa_path_join(folder, "lib/libc10.so"), *python = fa_path_join(folder, "lib/libtorch_python.so");
	const char *cuda = fa_facts_text(p->out, FA_FACT_TORCH_CUDA), *hip = fa_facts_text(p->out, FA_FACT_TORCH_HIP);

	if (abi)
		fa_facts_set_bool(p->out, FA_FACT_TORCH_CXX11ABI, *abi == '1', c10);
	if (archs)
		set_archs(p, archs, python);
	else if (cuda && !*cuda && hip && !*hip)
		set_archs(p, "", "torch/version.py");
	free(c10);
	free(python);
	free(abi);
	free(archs);
	free(answer);
	free(question);
}

static void detect_torch(struct fa_probe *p, const struct site *s)
{
	char *path = fa_path_join(s->torch, "version.py"), *text = fa_probe_read(p, path), *version = NULL;
	bool is_none;

	if (text)
		version = assigned(text, "__version__", &is_none);
	if (version) {
		fa_read_torch_version(p->out, version, path);
		set_torch_value(p, FA_FACT_TORCH_CUDA, text, "cuda", path);
		set_torch_value(p, FA_FACT_TORCH_HIP, text, "hip", path);
		detect_torch_libraries(p, s->torch);
	} else if (s->torch_listed) {
		fa_probe_problem(p, "torch_broken", "site-packages",
		                 "install torch again: python -m pip install --force-reinstall torch",
		                 "torch %s is listed as installed, but %s is not there", s->torch_listed, path);
	}
	if (version && s->torch_listed && strncmp(version, s->torch_listed, strcspn(version, "+")) != 0)
		fa_facts_doubt(p->out, FA_FACT_TORCH, "its version.py and its dist-info tell different versions");
	free(version);
	free(text);
	free(path);
}

/* ---- all */

static const enum fa_fact of_environment[] = { FA_FACT_TORCH,      FA_FACT_TORCH_CUDA,   FA_FACT_TORCH_HIP,
	                                       FA_FACT_FLASH_ATTN, FA_FACT_FLASH_ATTN_3, FA_FACT_FLASH_ATTN_4,
	                                       FA_FACT_TRITON };

static void copy_packages(struct fa_probe *p, const struct site *s)
{
	static const enum fa_fact facts[] = { FA_FACT_FLASH_ATTN, FA_FACT_FLASH_ATTN_3, FA_FACT_FLASH_ATTN_4,
		                              FA_FACT_TRITON,     FA_FACT_NINJA,        FA_FACT_UV };

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (s->found.v[facts[i]].known && !p->out->v[facts[i]].known)
			fa_facts_set_text(p->out, facts[i], s->found.v[facts[i]].text, s->found.v[facts[i]].origin);
}

static void wheel_toolkit(struct fa_probe *p, const struct site *s)
{
	char *nvcc = s->nvcc_home ? fa_strf("%s/bin/nvcc", s->nvcc_home) : NULL;
	char *found = nvcc ? p->sys->find(p->sys->ctx, nvcc) : NULL;

	if (found)
		fa_facts_add_toolkit(p->out, "cuda", s->nvcc_version, s->nvcc_home);
	free(found);
	free(nvcc);
}

static void detect_packages(struct fa_probe *p, const char *answer)
{
	struct site s = { .torch = NULL };
	const struct fa_fact_value *pip = &s.found.v[FA_FACT_PIP];

	read_path(p, &s, answer);
	fa_facts_set_text(p->out, FA_FACT_PIP, pip->known ? pip->text : "", pip->known ? pip->origin : p->target.python);
	if (p->target.exists) {
		copy_packages(p, &s);
		if (s.torch)
			detect_torch(p, &s);
		wheel_toolkit(p, &s);
	}
	site_release(&s);
}

static enum fa_sys_result list_ending(struct fa_probe *p, const char *dir, const char *ending, struct fa_strv *out)
{
	struct fa_strv names = FA_STRV_INIT;
	enum fa_sys_result result = p->sys->list(p->sys->ctx, dir, &names);
	size_t len = strlen(ending);

	for (size_t i = 0; i < names.n; i++)
		if (strlen(names.v[i]) > len && !strcmp(names.v[i] + strlen(names.v[i]) - len, ending))
			fa_strv_push(out, names.v[i]);
	fa_strv_release(&names);
	return result;
}

/* Source archives that were fetched before, each in a folder named by its hash (core/step_fetch.c): they need no network again. */
static void add_fetched_sources(struct fa_probe *p, struct fa_strv *out)
{
	char *cache = own_folder(p, "XDG_CACHE_HOME", ".cache"), *dir = fa_path_join(cache, "downloads");
	struct fa_strv hashes = FA_STRV_INIT;

	p->sys->list(p->sys->ctx, dir, &hashes);
	for (size_t i = 0; i < hashes.n; i++) {
		char *one = fa_path_join(dir, hashes.v[i]);

		list_ending(p, one, ".tar.gz", out);
		free(one);
	}
	fa_strv_release(&hashes);
	free(dir);
	free(cache);
}

static void detect_cached(struct fa_probe *p)
{
	char *dir = fa_path_join(p->target.data, "wheels");
	struct fa_strv files = FA_STRV_INIT;
	enum fa_sys_result result = list_ending(p, dir, ".whl", &files);

	add_fetched_sources(p, &files);
	if (result == FA_SYS_DONE || result == FA_SYS_NOT_THERE)
		fa_facts_set_list(p->out, FA_FACT_CACHED, &files, dir);
	fa_strv_release(&files);
	free(dir);
}

/* Known not to be there, which a recording that does not speak of it does not tell. */
static bool no_environment(struct fa_probe *p)
{
	char *python = fa_path_join(p->target.dir, "bin/python");
	bool asked = !p->sys->recorded || p->sys->recorded(p->sys->ctx, "find", python);

	free(python);
	return asked && !p->target.exists;
}

void fa_detect_python(struct fa_probe *p)
{
	char *answer = p->target.python ? ask_python(p) : NULL;

	if (p->target.python) {
		fa_facts_set_text(p->out, FA_FACT_PYTHON_PATH, p->target.python,
		                  p->target.exists ? p->target.origin : "python3 in PATH");
	} else {
		fa_probe_none(p, FA_FACT_PYTHON, "find", "python3", "PATH");
		fa_probe_none(p, FA_FACT_PYTHON_PATH, "find", "python3", "PATH");
	}
	if (answer) {
		set_python(p, answer);
		set_headers(p, answer);
		detect_packages(p, answer);
	} else if (p->target.exists) {
		python_by_file(p);
	}
	for (size_t i = 0; (answer || no_environment(p)) && i < sizeof(of_environment) / sizeof(*of_environment); i++)
		if (!p->out->v[of_environment[i]].known)
			fa_facts_set_text(p->out, of_environment[i], "",
			                  p->target.exists ? p->target.dir : "no environment yet");
	detect_cached(p);
	free(answer);
}
