#include "execute.h"

#include "buf.h"
#include "fainstall.h"
#include "file.h"
#include "folder.h"
#include "json.h"
#include "pip.h"
#include "report.h"
#include "run.h"
#include "source.h"
#include "wheelhouse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

static const struct {
	fa_step_function *run;
	bool builds; /* only needed to make a wheel: left out when it is there */
} kinds[FA_STEP_COUNT] = {
	[FA_STEP_ENVIRONMENT] = { fa_step_environment, false },
	[FA_STEP_PIN] = { fa_step_pin, false },
	[FA_STEP_PIP] = { fa_step_pip, false },
	[FA_STEP_FETCH] = { fa_step_fetch, true },
	[FA_STEP_CLONE] = { fa_step_clone, true },
	[FA_STEP_UNPACK] = { fa_step_unpack, true },
	[FA_STEP_EDIT] = { fa_step_edit, true },
	[FA_STEP_TOOLKIT] = { fa_step_toolkit, true },
	[FA_STEP_PREFLIGHT] = { fa_step_preflight, true },
	[FA_STEP_BUILD] = { fa_step_build, true },
	[FA_STEP_XRAY] = { fa_step_xray, false },
	[FA_STEP_INSTALL] = { fa_step_install, false },
};

/* ---- what the steps share */

void fa_run_say(struct fa_run *run, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(run->said, sizeof(run->said), fmt, ap);
	va_end(ap);
}

void fa_run_skip(struct fa_run *run, const char *fmt, ...)
{
	va_list ap;

	run->outcome = FA_OUTCOME_SKIPPED;
	va_start(ap, fmt);
	vsnprintf(run->said, sizeof(run->said), fmt, ap);
	va_end(ap);
}

void fa_run_progress(struct fa_run *run, int64_t done, int64_t total, const char *unit)
{
	struct fa_event e = fa_event_new(FA_EVENT_PROGRESS);

	e.step = run->step;
	e.done = done;
	e.total = total;
	snprintf(e.unit, sizeof(e.unit), "%s", unit);
	fa_emit(run->sink, &e);
}

bool fa_run_cancelled(const struct fa_run *run)
{
	return run->opts->cancel && *run->opts->cancel;
}

bool fa_run_is_choice(const struct fa_run *run, const char *name)
{
	char *a, *b;
	bool same;

	if (!run->choice->package)
		return false;
	a = fa_lock_normal_name(name);
	b = fa_lock_normal_name(run->choice->package);
	same = !strcmp(a, b);
	free(a);
	free(b);
	return same;
}

const struct fa_lock_package *fa_run_locked(const struct fa_run *run)
{
	return run->opts->lock && run->choice->package ? fa_lock_package(run->opts->lock, run->choice->package) : NULL;
}

static bool says_ck(const struct fa_run *run)
{
	return run->choice->route && !strcmp(run->choice->route, "ck");
}

const char *fa_run_cuda_home(const struct fa_run *run)
{
	const char *home = run->toolkit ? run->toolkit : fa_facts_text(run->opts->facts, FA_FACT_CUDA_HOME);

	return home && *home ? home : NULL;
}

const char *fa_run_rocm_home(const struct fa_run *run)
{
	const struct fa_facts *f = run->opts->facts;

	for (size_t i = 0; says_ck(run) && i < f->n_toolkits; i++)
		if (f->toolkits[i].kind && !strcmp(f->toolkits[i].kind, "rocm"))
			return f->toolkits[i].home;
	return NULL;
}

char *fa_run_cache(const char *name)
{
	char *cache = fa_dir_cache(), *path = fa_path_join(cache, name);

	free(cache);
	return path;
}

char *fa_run_data(const char *name)
{
	char *data = fa_dir_data(), *path = fa_path_join(data, name);

	free(data);
	return path;
}

char *fa_run_digest(const char *text, int len)
{
	struct fa_sha256 s;
	char hex[FA_SHA256_HEX];

	fa_sha256_init(&s);
	fa_sha256_add(&s, text, strlen(text));
	fa_sha256_hex(&s, hex);
	return fa_strndup(hex, (size_t)len);
}

void fa_run_need_glibc(struct fa_run *run, const char *version)
{
	const char *known = fa_lock_get(run->lock, "need.glibc");

	if (!known || fa_version_compare(known, version) < 0)
		fa_lock_set(run->lock, "need.glibc", "%s", version);
}

/* A name may list several platforms: the least of them is what it needs (PEP 513, 571, 599, 600). */
void fa_run_need_of_file(struct fa_run *run, const char *name)
{
	static const char *const older[][2] = { { "manylinux1_", "2.5" },
		                                { "manylinux2010_", "2.12" },
		                                { "manylinux2014_", "2.17" } };
	char least[16] = "", found[16];
	int major, minor;

	for (size_t i = 0; i < sizeof(older) / sizeof(*older); i++)
		if (strstr(name, older[i][0]) && !*least)
			snprintf(least, sizeof(least), "%s", older[i][1]);
	for (const char *p = name; (p = strstr(p, "manylinux_")); p++) {
		if (sscanf(p, "manylinux_%3d_%3d_", &major, &minor) != 2)
			continue;
		snprintf(found, sizeof(found), "%d.%d", major, minor);
		if (!*least || fa_version_compare(found, least) < 0)
			memcpy(least, found, sizeof(least));
	}
	if (*least)
		fa_run_need_glibc(run, least);
}

/* ---- a folder of requirements: build tools, a toolkit */

/* What pip said when it was first asked for these is said again: tools do not change from one run to the next. */
static int pin_once(struct fa_lock *pins, struct fa_run *run, const struct fa_pip_wish *wish, struct fa_err *err)
{
	char *all = fa_strv_join(wish->requirements, "\n"), *minor = fa_version_head(run->env->version, 2);
	char *digest = fa_run_digest(all, 12), *folder = fa_run_data("pins"),
	     *path = fa_strf("%s/%s-%s", folder, minor, digest);
	struct fa_buf text = FA_BUF_INIT;
	int rc = fa_lock_read(pins, path, NULL);

	if (rc < 0)
		rc = fa_pip_resolve(pins, NULL, wish, &run->child, err);
	fa_lock_print(&text, pins);
	if (rc == 0)
		rc = fa_file_mkdirs(folder, err);
	if (rc == 0)
		rc = fa_file_write(path, fa_buf_str(&text), text.len, err);
	fa_buf_release(&text);
	free(all);
	free(minor);
	free(digest);
	free(folder);
	free(path);
	return rc;
}

/* As locked, when the lock says; else as pip resolves them. */
static int pin_folder(struct fa_lock *pins, struct fa_run *run, const char *prefix, const struct fa_strv *requirements,
                      bool alone, struct fa_err *err)
{
	struct fa_pip_wish wish = { .env = run->env, .requirements = requirements, .afresh = true, .alone = alone };
	const struct fa_lock *l = run->opts->lock;
	size_t len = strlen(prefix);

	for (size_t i = 0; l && i < l->n_entries; i++) {
		const struct fa_lock_entry *e = &l->entries[i];
		size_t version = strcspn(e->value, " ");
		char *text;

		if (strncmp(e->key, prefix, len) != 0 || e->key[len] != '.' || !e->value[version])
			continue;
		text = fa_strndup(e->value, version);
		fa_strv_push(&fa_lock_add_package(pins, e->key + len + 1, text)->hashes, e->value + version + 1);
		free(text);
	}
	return pins->n_packages ? 0 : pin_once(pins, run, &wish, err);
}

static void lock_folder(struct fa_run *run, const char *prefix, const struct fa_lock *pins)
{
	for (size_t i = 0; i < pins->n_packages; i++) {
		char *key = fa_strf("%s.%s", prefix, pins->packages[i].name);

		fa_lock_set(run->lock, key, "%s %s", pins->packages[i].version, pins->packages[i].hashes.v[0]);
		free(key);
	}
}

static int fill_folder(const char *path, struct fa_run *run, const struct fa_lock *pins, struct fa_err *err)
{
	char *tmp = fa_strf("%s.tmp", path), *dir = fa_path_dir(path);
	int rc = fa_file_remove_tree(tmp, err);

	if (rc == 0)
		rc = fa_file_mkdirs(dir, err);
	if (rc == 0)
		rc = fa_pip_install(run->env, pins, NULL, tmp, false, &run->child, err);
	if (rc == 0 && rename(tmp, path) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s cannot be put in its place", path);
	if (rc < 0)
		fa_file_remove_tree(tmp, NULL);
	free(tmp);
	free(dir);
	return rc;
}

int fa_run_folder_of(char **out, struct fa_run *run, const char *name, const char *prefix, const struct fa_strv *requirements,
                     bool alone, bool *fresh, struct fa_err *err)
{
	struct fa_lock pins = FA_LOCK_INIT;
	struct fa_buf text = FA_BUF_INIT;
	char *digest = NULL, *data = fa_run_data(name), *minor = fa_version_head(run->env->version, 2);
	int rc = pin_folder(&pins, run, prefix, requirements, alone, err);

	if (rc < 0)
		goto done;
	fa_lock_print(&text, &pins);
	digest = fa_run_digest(fa_buf_str(&text), 12);
	*out = fa_strf("%s/%s-%s", data, minor, digest);
	lock_folder(run, prefix, &pins);
	*fresh = !fa_file_is_dir(*out);
	if (*fresh)
		rc = fill_folder(*out, run, &pins, err);
	if (rc < 0) {
		free(*out);
		*out = NULL;
	}
done:
	fa_buf_release(&text);
	fa_lock_release(&pins);
	free(digest);
	free(data);
	free(minor);
	return rc;
}

/* ---- a wheel that is ready */

static void add_key_list(struct fa_buf *key, const char *name, const struct fa_strv *list)
{
	char *text = fa_strv_join(list, ",");

	fa_buf_addf(key, "%s=%s\n", name, text);
	free(text);
}

/* The source and its edits, as far as the plan knows them. */
static void add_key_steps(struct fa_buf *key, const struct fa_plan *plan)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct fa_step *s = &plan->steps[i];
		const char *source = NULL;
		char *text, hex[FA_SHA256_HEX];

		if (s->kind == FA_STEP_EDIT) {
			text = fa_json_print(s->args, false);
			fa_buf_addf(key, "edit=%s\n", text);
			free(text);
		} else if (s->kind == FA_STEP_CLONE) {
			source = fa_json_get_string(s->args, "commit");
			source = source ? source : fa_json_get_string(s->args, "url");
			if (source && fa_source_is_folder(source) && fa_folder_digest(hex, source, NULL) == 0)
				source = hex; /* what is in it, not where it lies */
		} else if (s->kind == FA_STEP_FETCH) {
			source = fa_json_get_string(s->args, "sha256");
			source = source ? source : fa_json_get_string(s->args, "file");
		}
		if (source)
			fa_buf_addf(key, "source=%s\n", source);
	}
}

/* Everything that decides about the bits of a build, jobs and folders left out. */
static char *build_key(const struct fa_run *run)
{
	const struct fa_choice *c = run->choice;
	const struct fa_plan_build *b = &c->build;
	const struct fa_lock_package *torch = fa_lock_package(run->lock, "torch");
	const struct fa_distribution *has = fa_environment_find(run->env, "torch");
	const char *machine = fa_facts_text(run->opts->facts, FA_FACT_MACHINE);
	char *minor = fa_version_head(run->env->version, 2), *digest;
	struct fa_buf key = FA_BUF_INIT;

	fa_buf_addf(
	        &key,
	        "fainstall=%s\npackage=%s\nversion=%s\ntorch=%s\nbuild=%s\npython=%s\nmachine=%s\nprofile=%s\nbackward=%d\n",
	        FA_VERSION, c->package ? c->package : "", c->flash_attn ? c->flash_attn : "",
	        torch ? torch->version
	        : has ? has->version
	              : "",
	        c->torch_build ? c->torch_build : "", minor, machine ? machine : "", b->profile ? b->profile : "", b->backward);
	add_key_list(&key, "archs", &b->archs);
	add_key_list(&key, "dtypes", &b->dtypes);
	add_key_list(&key, "head_dims", &b->head_dims);
	add_key_list(&key, "features", &b->features);
	for (size_t i = 0; i < b->env.n; i++)
		if (!fa_lock_of_the_machine(b->env.v[i]))
			fa_buf_addf(&key, "env=%s\n", b->env.v[i]);
	add_key_steps(&key, run->plan);
	digest = fa_run_digest(fa_buf_str(&key), FA_SHA256_HEX - 1);
	fa_buf_release(&key);
	free(minor);
	return digest;
}

static void ready(struct fa_run *run, char *wheel)
{
	if (!wheel || fa_sha256_file(run->wheel_sha256, wheel, NULL) < 0) {
		free(wheel);
		return;
	}
	free(run->wheel);
	run->wheel = wheel;
	run->wheel_ready = run->built = true;
}

/* What was known of the wheel when it was built belongs into this lock too. */
static void recall(struct fa_run *run)
{
	char *path = fa_strf("%s.json", run->wheel);
	struct fa_json *j = NULL;

	if (fa_json_read_file(&j, path, NULL) == 0)
		fa_json_each (e, fa_json_get(j, "lock"))
			if (!fa_lock_get(run->lock, fa_json_key(e)))
				fa_lock_set(run->lock, fa_json_key(e), "%s", fa_json_string(e) ? fa_json_string(e) : "");
	fa_json_free(j);
	free(path);
}

static int find_locked_wheel(struct fa_run *run, const struct fa_lock_package *p, struct fa_err *err)
{
	for (size_t i = 0; i < p->hashes.n && !run->wheel_ready; i++) {
		const char *hex = p->hashes.v[i] + strlen("sha256:");

		if (run->opts->wheels)
			ready(run, fa_wheel_in(run->opts->wheels, hex));
		if (!run->wheel_ready)
			ready(run, fa_wheelhouse_by_hash(hex));
	}
	if (run->wheel_ready || !run->opts->frozen)
		return 0;
	fa_err_set(err, FA_INTEGRITY, "the wheel of %s %s that the lock names is not at hand, and --frozen builds none",
	           p->name, p->version);
	return fa_err_next(err, "put it into the folder wheels beside the lock, or leave --frozen out to build it again");
}

static void copy_source_entries(struct fa_run *run)
{
	static const char *const prefixes[] = { "source.", "tool.", "toolkit.", "compiler." };
	const struct fa_lock *l = run->opts->lock;

	for (size_t i = 0; l && i < l->n_entries; i++)
		for (size_t k = 0; k < sizeof(prefixes) / sizeof(*prefixes); k++)
			if (!strncmp(l->entries[i].key, prefixes[k], strlen(prefixes[k])))
				fa_lock_set(run->lock, l->entries[i].key, "%s", l->entries[i].value);
}

int fa_run_find_wheel(struct fa_run *run, struct fa_err *err)
{
	const struct fa_lock_package *locked = fa_run_locked(run);
	int rc = 0;

	if (run->looked || !run->choice->build.wanted)
		return 0;
	run->looked = true;
	run->key = build_key(run);
	copy_source_entries(run);
	if (locked && locked->built && (!run->opts->rebuild || run->opts->frozen))
		rc = find_locked_wheel(run, locked, err);
	if (rc == 0 && !run->wheel_ready && !run->opts->rebuild)
		ready(run, fa_wheelhouse_by_key(run->key));
	if (run->wheel_ready)
		recall(run);
	return rc;
}

/* ---- before the first step */

/* Free space for what the steps will write, said before anything is begun. */
static int check_disk(const struct fa_run *run, struct fa_err *err)
{
	int64_t need = 0, free_bytes;
	char *data = fa_dir_data(), *at = fa_strdup(data);
	struct statvfs fs;
	int rc = 0;

	for (size_t i = 0; i < run->plan->n_steps; i++)
		need += run->plan->steps[i].bytes > 0 ? run->plan->steps[i].bytes : 0;
	while (statvfs(at, &fs) < 0 && strcmp(at, "/") != 0) {
		char *up = fa_path_dir(at);

		free(at);
		at = up;
	}
	if (need && statvfs(at, &fs) == 0) {
		free_bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
		if (free_bytes < need) {
			fa_err_set(err, FA_MACHINE, "%s: %.1f GiB free, about %.1f GiB needed", data,
			           (double)free_bytes / (1 << 30), (double)need / (1 << 30));
			rc = fa_err_next(err, "free some space, or set XDG_DATA_HOME to a folder with more");
		}
	}
	free(data);
	free(at);
	return rc;
}

static void lock_compilers(struct fa_run *run)
{
	const struct fa_facts *f = run->opts->facts;
	const char *cxx = fa_facts_text(f, FA_FACT_CXX), *rocm = fa_run_rocm_home(run),
	           *home = rocm ? rocm : fa_facts_text(f, FA_FACT_CUDA_HOME);

	if (!run->choice->build.wanted || fa_lock_get(run->lock, "compiler.cxx"))
		return;
	if (cxx && *cxx)
		fa_lock_set(run->lock, "compiler.cxx", "%s", cxx);
	for (size_t i = 0; !run->toolkit && home && i < f->n_toolkits; i++)
		if (f->toolkits[i].home && f->toolkits[i].version && !strcmp(f->toolkits[i].home, home))
			fa_lock_set(run->lock, rocm ? "compiler.hipcc" : "compiler.nvcc", "%s", f->toolkits[i].version);
}

/* ---- the steps */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void begin(struct fa_run *run, const struct fa_step *s)
{
	struct fa_event e = fa_event_new(FA_EVENT_STEP_BEGIN);

	run->outcome = FA_OUTCOME_OK;
	run->said[0] = '\0';
	run->child.peak_mib = -1;
	e.step = run->step;
	snprintf(e.id, sizeof(e.id), "%s", fa_step_word(s->kind));
	snprintf(e.text, sizeof(e.text), "%s", s->title ? s->title : fa_step_word(s->kind));
	fa_log_line(run->opts->log_path, "== %s: %s", e.id, e.text);
	fa_emit(run->sink, &e);
}

static void end(struct fa_run *run, const struct fa_step *s, double seconds, struct fa_report *report)
{
	struct fa_event e = fa_event_new(FA_EVENT_STEP_END);
	struct fa_json *row = fa_json_new_object();

	e.step = run->step;
	e.status = run->outcome;
	e.seconds = seconds;
	e.peak_mib = run->child.peak_mib;
	snprintf(e.id, sizeof(e.id), "%s", fa_step_word(s->kind));
	snprintf(e.text, sizeof(e.text), "%s", run->said);
	fa_log_line(run->opts->log_path, "== %s: %s, %.1f s: %s", e.id, fa_outcome_word(e.status), seconds, e.text);
	fa_json_set_string(row, "id", e.id);
	fa_json_set_string(row, "title", s->title);
	fa_json_set_string(row, "status", fa_outcome_word(e.status));
	fa_json_set_string(row, "text", run->said);
	fa_json_set_number(row, "seconds", seconds);
	if (e.peak_mib >= 0)
		fa_json_set_number(row, "peak_mib", (double)e.peak_mib);
	fa_json_push((struct fa_json *)fa_json_get(fa_report_json(report), "steps"), row);
	fa_emit(run->sink, &e);
}

static int do_step(struct fa_run *run, const struct fa_step *s, struct fa_err *err)
{
	if (kinds[s->kind].builds && run->choice->build.wanted) {
		if (fa_run_find_wheel(run, err) < 0)
			return -1;
		if (run->wheel_ready) {
			fa_run_skip(run, "the wheel is there: %s", fa_path_base(run->wheel));
			return 0;
		}
	}
	if (s->kind != FA_STEP_ENVIRONMENT && s->kind != FA_STEP_CLONE && !run->env->open)
		return fa_err_set(err, FA_INTERNAL, "the plan has no environment step before \"%s\"", fa_step_word(s->kind));
	return kinds[s->kind].run(run, s->args, err);
}

static int interrupted(struct fa_err *err)
{
	fa_err_set(err, FA_INTERRUPTED, "interrupted");
	return fa_err_next(err, "run it again: it goes on from what is done");
}

static int run_step(struct fa_run *run, size_t i, struct fa_report *report, struct fa_err *err)
{
	const struct fa_step *s = &run->plan->steps[i];
	double begun = now();
	int rc;

	run->step = run->child.step = (int)i;
	begin(run, s);
	rc = fa_run_cancelled(run) ? -1 : do_step(run, s, err);
	if (fa_run_cancelled(run))
		rc = interrupted(err);
	if (rc < 0) {
		run->outcome = FA_OUTCOME_FAILED;
		fa_run_say(run, "%.500s", err->text);
	}
	end(run, s, now() - begun, report);
	return rc;
}

static bool all_as_locked(const struct fa_run *run)
{
	const struct fa_lock *l = run->opts->lock;

	if (!l || l->n_packages != run->lock->n_packages)
		return false;
	for (size_t i = 0; i < l->n_packages; i++) {
		const struct fa_lock_package *p = fa_lock_package(run->lock, l->packages[i].name);

		if (!p || strcmp(p->version, l->packages[i].version) != 0 || !p->hashes.n ||
		    !fa_strv_has(&l->packages[i].hashes, p->hashes.v[0]))
			return false;
	}
	return true;
}

static void release(struct fa_run *run)
{
	fa_lock_release(&run->changes);
	fa_strv_release(&run->files);
	fa_strv_release(&run->fetched);
	free(run->tools);
	free(run->toolkit);
	free(run->source);
	free(run->key);
	free(run->wheel);
	free(run->wheel_url);
}

int fa_execute(struct fa_execute_result *out, struct fa_environment *env, struct fa_lock *lock_out, struct fa_report *report,
               const struct fa_execute_opts *opts, const struct fa_sink *sink, struct fa_err *err)
{
	struct fa_run run = { .opts = opts,
		              .plan = opts->plan,
		              .choice = &opts->plan->choice,
		              .lock = lock_out,
		              .env = env,
		              .sink = sink,
		              .child = { .sink = sink, .log_path = opts->log_path, .cancel = opts->cancel, .step = -1 } };
	int rc = check_disk(&run, err);

	memset(out, 0, sizeof(*out));
	if (rc == 0)
		fa_lock_describe(lock_out, opts->plan, opts->facts);
	if (rc == 0 && !opts->plan->n_steps)
		rc = fa_run_keep(&run, err);
	for (size_t i = 0; i < opts->plan->n_steps && rc == 0; i++)
		rc = run_step(&run, i, report, err);
	if (rc == 0) {
		lock_compilers(&run);
		out->wheel = fa_strdup(run.wheel);
		memcpy(out->sha256, run.wheel_sha256, sizeof(out->sha256));
		out->cuda_home = fa_strdup(fa_run_cuda_home(&run));
		out->built = run.built;
		out->as_locked = all_as_locked(&run);
	}
	release(&run);
	return rc;
}

int fa_execute_clone(char **out, struct fa_report *report, const struct fa_execute_opts *opts, const struct fa_sink *sink,
                     struct fa_err *err)
{
	struct fa_lock lock = FA_LOCK_INIT;
	struct fa_environment env = FA_ENVIRONMENT_INIT;
	struct fa_run run = { .opts = opts,
		              .plan = opts->plan,
		              .choice = &opts->plan->choice,
		              .lock = &lock,
		              .env = &env,
		              .sink = sink,
		              .child = { .sink = sink, .log_path = opts->log_path, .cancel = opts->cancel, .step = -1 } };
	int rc = 0;

	for (size_t i = 0; i < opts->plan->n_steps && rc == 0; i++)
		rc = run_step(&run, i, report, err);
	*out = rc == 0 && run.source ? fa_strdup(run.source) : NULL;
	release(&run);
	fa_lock_release(&lock);
	fa_environment_release(&env);
	return rc;
}
