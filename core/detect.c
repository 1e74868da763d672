#include "detect.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "probe.h"
#include "read.h"

#include <stdlib.h>
#include <string.h>

/* ---- asking */

char *fa_probe_read(struct fa_probe *p, const char *path)
{
	struct fa_buf b = FA_BUF_INIT;

	if (p->sys->read(p->sys->ctx, path, &b) == FA_SYS_DONE)
		return b.data ? fa_buf_detach(&b) : fa_strdup("");
	fa_buf_release(&b);
	return NULL;
}

bool fa_probe_there(struct fa_probe *p, const char *path)
{
	char *text = fa_probe_read(p, path);
	bool there = text != NULL;

	free(text);
	return there;
}

void fa_probe_none(struct fa_probe *p, enum fa_fact id, const char *ask, const char *of, const char *origin)
{
	if (!p->sys->recorded || p->sys->recorded(p->sys->ctx, ask, of))
		fa_facts_set_text(p->out, id, "", origin);
}

char *fa_probe_ask(struct fa_probe *p, const char *question, enum fa_sys_result *result)
{
	struct fa_buf b = FA_BUF_INIT;
	enum fa_sys_result r = p->sys->ask(p->sys->ctx, question, &b);

	if (result)
		*result = r;
	return b.data ? fa_buf_detach(&b) : fa_strdup("");
}

char *fa_probe_value(const char *answer, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = answer; *line;) {
		size_t n = strcspn(line, "\n");

		if (n > len && line[len] == '=' && !strncmp(line, key, len))
			return fa_strndup(line + len + 1, n - len - 1);
		line += n + (line[n] == '\n');
	}
	return NULL;
}

void fa_probe_problem(struct fa_probe *p, const char *id, const char *tool, const char *repair, const char *fmt, ...)
{
	struct fa_buf b = FA_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	fa_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	fa_facts_add_problem(p->out, id, tool, fa_buf_str(&b), repair);
	fa_buf_release(&b);
}

static char *command_line(const char *const *argv)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; *argv; argv++)
		fa_buf_addf(&b, "%s%s", b.len ? " " : "", *argv);
	return fa_buf_detach(&b);
}

void fa_probe_begin(struct fa_probe *p, const char *const *argv)
{
	if (p->sys->begin_run)
		p->sys->begin_run(p->sys->ctx, argv, FA_PROBE_TIMEOUT_MS);
}

void fa_probe_tool(struct fa_probe *p, const char *tool, const char *const *argv)
{
	struct fa_command_result r = { 0 };
	struct fa_facts found = FA_FACTS_INIT;
	unsigned timeout_ms = p->timeout_ms ? p->timeout_ms : FA_PROBE_TIMEOUT_MS;
	char *origin = command_line(argv);
	bool driver;

	p->sys->run(p->sys->ctx, argv, timeout_ms, &r);
	switch (r.result) {
	case FA_SYS_DONE:
		if (!r.out.len && r.err.len) {
			fa_read(&found, tool, origin, r.err.data, r.err.len);
			break;
		}
		fa_read(&found, tool, origin, fa_buf_str(&r.out), r.out.len);
		break;
	case FA_SYS_TIMED_OUT:
		driver = !strncmp(tool, "nvidia-smi", 10);
		fa_probe_problem(p, driver ? "driver_hangs" : "tool_hangs", tool,
		                 driver ? "look for Xid in: sudo dmesg; restart the machine"
		                        : "run it by hand; what it waits for is shown by: strace -f -p PID",
		                 "%s gave no answer in %u s", origin, timeout_ms / 1000);
		break;
	case FA_SYS_CRASHED:
		fa_probe_problem(p, "tool_crashed", tool, "install the package that the tool belongs to again",
		                 "%s was ended by signal %d", origin, r.signal);
		break;
	case FA_SYS_DENIED:
		fa_probe_problem(p, "tool_permission", tool, "look at its permissions", "%s cannot be started", origin);
		break;
	case FA_SYS_NOT_THERE:
	case FA_SYS_NOT_RECORDED: break;
	}
	fa_facts_merge(p->out, &found);
	fa_facts_release(&found);
	fa_command_result_release(&r);
	free(origin);
}

/* ---- the whole */

static void detect_variables(struct fa_probe *p)
{
	for (const char *const *name = fa_read_env_names; *name; name++) {
		const char *value = strchr(*name, '*') ? NULL : p->sys->env(p->sys->ctx, *name);

		if (value)
			fa_facts_add_env(p->out, *name, value);
	}
}

/* What takes longest is started first, so that detection takes as long as the slowest probe and not as long as their sum. */
void fa_detect(struct fa_facts *out, const struct fa_sys *sys, const char *env)
{
	struct fa_probe p = { .out = out, .sys = sys };
	char *target = sys->target ? sys->target(sys->ctx, env) : fa_strdup(env);

	*out = (struct fa_facts)FA_FACTS_INIT;
	if (sys->begin_ask)
		sys->begin_ask(sys->ctx, "nvml");
	fa_target_init(&p, target);
	fa_detect_python_begin(&p);
	fa_detect_toolkits_begin(&p);
	fa_detect_tools_begin(&p);
	fa_detect_system(&p);
	fa_detect_memory(&p);
	fa_detect_nvidia(&p); /* may start nvidia-smi, so before those that only wait */
	fa_detect_tools(&p);
	fa_detect_toolkits(&p);
	fa_detect_python(&p);
	fa_detect_own_tools(&p);
	fa_detect_amd(&p);
	detect_variables(&p);
	fa_target_release(&p.target);
	free(target);
}

/* ---- a recorded machine */

/* Outputs that somebody saved by hand: the names say which tool. Later ones win, so the order is from rough to exact. */
static const struct {
	const char *name; /* a * stands for anything */
	const char *tool;
} saved[] = {
	{ "os-release.txt", "os-release" },
	{ "uname*.txt", "uname" },
	{ "lscpu.txt", "lscpu" },
	{ "*meminfo.txt", "meminfo" },
	{ "ldd-version.txt", "ldd" },
	{ "gcc-version.txt", "gcc" },
	{ "cc-version.txt", "gcc" },
	{ "g++-version.txt", "cxx" },
	{ "c++-version.txt", "cxx" },
	{ "nvcc-version.txt", "nvcc" },
	{ "ninja-version.txt", "ninja" },
	{ "git-version.txt", "git" },
	{ "uv-version.txt", "uv" },
	{ "pip-version.txt", "pip" },
	{ "conda-version.txt", "conda" },
	{ "env.txt", "env" },
	{ "collect_env.txt", "collect_env" },
	{ "pip-debug*.txt", "pip-debug" },
	{ "python-VV.txt", "python" },
	{ "pip-list.txt", "pip-list" },
	{ "torch.txt", "torch" },
	{ "nv_tegra_release.txt", "nv_tegra_release" },
	{ "proc-driver-nvidia-version.txt", "proc-nvidia-version" },
	{ "lspci*.txt", "lspci" },
	{ "proc-driver-nvidia-gpus*information.txt", "proc-nvidia-gpu" },
	{ "rocm-smi*.txt", "rocm-smi" },
	{ "rocminfo.txt", "rocminfo" },
	{ "deviceQuery.txt", "deviceQuery" },
	{ "nvidia-smi-L.txt", "nvidia-smi-L" },
	{ "nvidia-smi.txt", "nvidia-smi" },
	{ "nvidia-smi-q.txt", "nvidia-smi-q" },
	{ "nvidia-smi-query.csv", "nvidia-smi-query" },
};

static bool fits(const char *pattern, const char *name)
{
	const char *star = strchr(pattern, '*');
	size_t before = star ? (size_t)(star - pattern) : 0, after = star ? strlen(star + 1) : 0, len = strlen(name);

	if (!star)
		return !strcmp(pattern, name);
	return len >= before + after && !strncmp(pattern, name, before) && !strcmp(star + 1, name + len - after);
}

static int read_saved(struct fa_facts *out, const char *dir, const char *name, const char *tool, struct fa_err *err)
{
	char *path = fa_path_join(dir, name);
	struct fa_facts found = FA_FACTS_INIT;
	struct fa_buf b = FA_BUF_INIT;
	int rc = fa_file_read(&b, path, 16 << 20, err);

	if (rc == 0) {
		fa_read(&found, tool, name, fa_buf_str(&b), b.len);
		fa_facts_merge(out, &found);
	}
	fa_facts_release(&found);
	fa_buf_release(&b);
	free(path);
	return rc;
}

/* A limit of the container, when it was saved beside /proc/meminfo. */
static void read_saved_limit(struct fa_facts *out, const char *dir)
{
	static const char name[] = "cgroup-memory.max.txt";
	char *path = fa_path_join(dir, name);
	struct fa_buf b = FA_BUF_INIT;
	char *end;
	long long limit;

	if (fa_file_read(&b, path, 4096, NULL) == 0) {
		limit = strtoll(fa_buf_str(&b), &end, 10) >> 20;
		if (end != b.data && limit > 0 && limit < fa_facts_number(out, FA_FACT_RAM_AVAILABLE_MIB, 1LL << 40))
			fa_facts_set_number(out, FA_FACT_RAM_AVAILABLE_MIB, limit, name);
	}
	fa_buf_release(&b);
	free(path);
}

static int detect_saved(struct fa_facts *out, const char *dir, struct fa_err *err)
{
	struct fa_sys real;
	struct fa_strv names = FA_STRV_INIT;
	size_t n = 0;
	int rc = 0;

	fa_sys_real(&real);
	real.list(real.ctx, dir, &names);
	fa_sys_close(&real);
	for (size_t s = 0; s < sizeof(saved) / sizeof(*saved); s++)
		for (size_t i = 0; i < names.n && rc == 0; i++)
			if (fits(saved[s].name, names.v[i]) || (!strncmp(saved[s].tool, names.v[i], strlen(saved[s].tool)) &&
			                                        !strcmp(names.v[i] + strlen(saved[s].tool), ".txt"))) {
				rc = read_saved(out, dir, names.v[i], saved[s].tool, err);
				n++;
			}
	read_saved_limit(out, dir);
	fa_strv_release(&names);
	if (rc == 0 && !n) {
		rc = fa_err_set(err, FA_USAGE, "%s: holds no recorded answers", dir);
		fa_err_next(err, "record a machine with: fainstall detect --record DIR");
	}
	return rc;
}

static int detect_replayed(struct fa_facts *out, const char *dir, const char *env, struct fa_err *err)
{
	struct fa_sys sys;

	if (fa_sys_replay(&sys, dir, err) < 0)
		return -1;
	fa_detect(out, &sys, env);
	fa_sys_close(&sys);
	return 0;
}

static int detect_facts_file(struct fa_facts *out, const char *path, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_json *j = NULL;
	char *plain = NULL; /* PowerShell's `script > facts.json` is UTF-16 */
	int rc = fa_file_read(&text, path, FA_FILE_MAX, err);

	if (rc == 0 && text.len >= 2 && strchr("\xff\xfe\xef", text.data[0]))
		plain = fa_read_plain(text.data, text.len);
	if (rc == 0)
		rc = fa_json_parse(&j, plain ? plain : fa_buf_str(&text), plain ? strlen(plain) : text.len, path, err);
	if (rc == 0)
		rc = fa_facts_from_json(out, j, path, err);
	fa_json_free(j);
	fa_buf_release(&text);
	free(plain);
	return rc;
}

int fa_detect_host(struct fa_facts *out, const char *path, const char *env, struct fa_err *err)
{
	char *index = fa_path_join(path, "answers.json"), *facts = fa_path_join(path, "facts.json");
	int rc;

	*out = (struct fa_facts)FA_FACTS_INIT;
	if (!fa_file_is_dir(path))
		rc = detect_facts_file(out, path, err);
	else if (fa_file_exists(index))
		rc = detect_replayed(out, path, env, err);
	else if (fa_file_exists(facts))
		rc = detect_facts_file(out, facts, err);
	else
		rc = detect_saved(out, path, err);
	if (rc < 0)
		fa_facts_release(out);
	free(index);
	free(facts);
	return rc;
}
