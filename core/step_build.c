/* Steps around the binary: preflight, build, xray. */
#include "run.h"

#include "archive.h"
#include "buf.h"
#include "build.h"
#include "elf.h"
#include "fainstall.h"
#include "file.h"
#include "json.h"
#include "wheelhouse.h"
#include "xray.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- preflight, build */

struct builder { /* options and the texts that they point to */
	struct fa_build_opts opts;
	struct fa_plan_build build; /* the plan's, its lists borrowed */
	char *source, *wheel_dir, *log_dir;
};

static bool wish_has(const struct fa_run *run, enum fa_wish_id id, const char *word)
{
	struct fa_strv words = FA_STRV_INIT;
	bool has;

	fa_wish_list(&run->opts->plan->wish, id, &words);
	has = fa_strv_has(&words, word);
	fa_strv_release(&words);
	return has;
}

/* `folder` of the step's arguments: where setup.py is within the source. */
static void builder_init(struct builder *b, const struct fa_run *run, const struct fa_json *args)
{
	const char *folder = fa_json_get_string(args, "folder");
	char *built = fa_run_cache("built");
	const char *log = run->opts->log_path;

	b->source = folder ? fa_path_join(run->source, folder) : fa_strdup(run->source);
	b->wheel_dir = fa_strf("%s/%.12s", built, run->key ? run->key : "wheel");
	b->log_dir = log ? fa_strf("%s.units", log) : fa_path_join(b->wheel_dir, "logs");
	b->build = run->choice->build;
	if (!fa_wish_get(&run->opts->plan->wish,
	                 FA_WISH_JOBS)) /* the plan's number is a forecast by memory; the gate looks again */
		b->build.jobs = 0;
	b->opts = (struct fa_build_opts){ .source = b->source,
		                          .python = run->env->python,
		                          .cuda_home = fa_run_rocm_home(run) ? NULL : fa_run_cuda_home(run),
		                          .rocm_home = fa_run_rocm_home(run),
		                          .tools = run->tools,
		                          .wheel_dir = b->wheel_dir,
		                          .log_dir = b->log_dir,
		                          .build = &b->build,
		                          .relax_cuda = wish_has(run, FA_WISH_RELAX, "cuda-check"),
		                          .version = run->choice->flash_attn,
		                          .cancel = run->opts->cancel };
	free(built);
}

static int builder_folders(const struct builder *b, struct fa_err *err)
{
	return fa_file_mkdirs(b->wheel_dir, err) < 0 || fa_file_mkdirs(b->log_dir, err) < 0 ? -1 : 0;
}

static void builder_release(struct builder *b)
{
	free(b->source);
	free(b->wheel_dir);
	free(b->log_dir);
}

static int need_source(const struct fa_run *run, struct fa_err *err)
{
	return run->source ? 0 : fa_err_set(err, FA_INTERNAL, "the plan builds a source that no step before brings");
}

int fa_step_preflight(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct builder b;
	int rc = -1;

	if (need_source(run, err) < 0)
		return -1;
	builder_init(&b, run, args);
	if (builder_folders(&b, err) == 0)
		rc = fa_build_preflight(&b.opts, run->sink, run->step, err);
	if (rc == 0)
		fa_run_say(run, "compiler, headers and libraries work together");
	fa_file_remove_tree(b.wheel_dir, NULL);
	builder_release(&b);
	return rc;
}

/* What is worth knowing of a wheel years later. */
static struct fa_json *wheel_record(const struct fa_run *run, const char *wheel, const struct fa_json *build)
{
	struct fa_json *j = fa_json_new_object(), *lock = fa_json_new_object();

	fa_json_set_string(j, "schema", "fainstall.wheel/1");
	fa_json_set_string(j, "key", run->key);
	fa_json_set_string(j, "file", fa_path_base(wheel));
	fa_json_set_string(j, "fainstall", FA_VERSION);
	fa_json_set(j, "choice", fa_choice_to_json(run->choice));
	for (size_t i = 0; i < run->lock->n_entries; i++)
		if (strncmp(run->lock->entries[i].key, "fact.", 5) != 0)
			fa_json_set_string(lock, run->lock->entries[i].key, run->lock->entries[i].value);
	fa_json_set(j, "lock", lock);
	fa_json_set_number(j, "seconds", run->build_seconds);
	fa_json_set_number(j, "peak_mib", (double)run->child.peak_mib);
	if (build)
		fa_json_set(j, "build", fa_json_copy(build));
	return j;
}

static int keep_wheel(struct fa_run *run, const char *wheel, const struct fa_json *build, struct fa_err *err)
{
	struct fa_json *record;
	char *kept = NULL;
	int rc = fa_sha256_file(run->wheel_sha256, wheel, err);

	if (rc < 0)
		return -1;
	record = wheel_record(run, wheel, build);
	rc = fa_wheelhouse_add(&kept, wheel, run->wheel_sha256, record, err);
	fa_json_free(record);
	if (rc == 0) {
		free(run->wheel);
		run->wheel = kept;
		run->built_now = run->built = true;
	}
	return rc;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int fa_step_build(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct builder b;
	struct fa_json *record = NULL;
	char *wheel = NULL;
	double begun = now();
	int rc = -1;

	if (need_source(run, err) < 0)
		return -1;
	builder_init(&b, run, args);
	if (builder_folders(&b, err) < 0 || fa_build_wheel(&wheel, &record, &b.opts, run->sink, run->step, err) < 0)
		goto done;
	run->build_seconds = now() - begun;
	rc = keep_wheel(run, wheel, record, err);
	if (rc == 0)
		fa_run_say(run, "%s, sha256 %.12s…", fa_path_base(run->wheel), run->wheel_sha256);
done:
	fa_file_remove_tree(b.wheel_dir, NULL); /* objects lie elsewhere */
	fa_json_free(record);
	free(wheel);
	builder_release(&b);
	return rc;
}

/* ---- xray */

struct xrayed { /* of all binaries in a wheel together */
	struct fa_strv archs, symbols;
	char *glibc;
	int n_binaries;
};

static void xrayed_release(struct xrayed *x)
{
	fa_strv_release(&x->archs);
	fa_strv_release(&x->symbols);
	free(x->glibc);
}

static void higher(char **version, const char *other)
{
	if (!other || (*version && fa_version_compare(*version, other) >= 0))
		return;
	free(*version);
	*version = fa_strdup(other);
}

static void add_once(struct fa_strv *to, const struct fa_strv *more)
{
	for (size_t i = 0; i < more->n; i++)
		if (!fa_strv_has(to, more->v[i]))
			fa_strv_push(to, more->v[i]);
}

static int refuse(const struct fa_xray *x, const char *so, struct fa_err *err)
{
	char *sentence = fa_xray_sentence(x);

	fa_err_set(err, FA_CHECK, "%s does not fit this environment: %.700s", fa_path_base(so), sentence);
	free(sentence);
	return -1;
}

static int look_through(struct xrayed *all, const struct fa_run *run, const char *so, const char *site, struct fa_err *err)
{
	struct fa_xray x = FA_XRAY_INIT;
	struct fa_elf *elf = NULL;
	int rc = fa_xray(&x, so, site, fa_run_cuda_home(run), err);

	if (rc == 0 && !fa_xray_fits(&x))
		rc = refuse(&x, so, err);
	if (rc == 0)
		rc = fa_elf_open(&elf, so, err);
	if (rc == 0) {
		fa_elf_undefined(elf, &all->symbols);
		fa_elf_close(elf);
		add_once(&all->archs, &x.archs);
		higher(&all->glibc, x.glibc);
		all->n_binaries++;
	}
	fa_xray_release(&x);
	return rc;
}

static bool is_binary(const char *name)
{
	size_t len = strlen(name);

	return (len > 3 && !strcmp(name + len - 3, ".so")) || strstr(name, ".so.");
}

static int xray_wheel(struct xrayed *all, const struct fa_run *run, struct fa_err *err)
{
	struct fa_strv names = FA_STRV_INIT;
	char *tmp = fa_run_cache("xray"), *dir = fa_strf("%s/%ld", tmp, (long)getpid());
	char *site = fa_environment_torch_site(run->env);
	int rc = fa_archive_list(&names, run->wheel, err);
	bool any = false;

	for (size_t i = 0; i < names.n; i++)
		any |= is_binary(names.v[i]);
	if (rc == 0 && any) {
		fa_file_remove_tree(dir, NULL);
		rc = fa_file_mkdirs(tmp, err);
		if (rc == 0)
			rc = fa_archive_unpack(run->wheel, dir, 0, (int64_t)16 << 30, run->opts->cancel, err);
	}
	for (size_t i = 0; i < names.n && rc == 0; i++) {
		char *so = is_binary(names.v[i]) ? fa_path_join(dir, names.v[i]) : NULL;

		if (so)
			rc = look_through(all, run, so, site, err);
		free(so);
	}
	fa_file_remove_tree(dir, NULL);
	fa_strv_release(&names);
	free(site);
	free(tmp);
	free(dir);
	return rc;
}

/* What every card served needs is in the file? PTX is code too, compiled when it is first used. */
static int remember(struct fa_run *run, struct xrayed *x)
{
	char *archs, *symbols, *digest;

	fa_strv_sort(&x->archs);
	fa_strv_sort(&x->symbols);
	archs = fa_strv_join(&x->archs, " ");
	symbols = fa_strv_join(&x->symbols, "\n");
	digest = fa_run_digest(symbols, FA_SHA256_HEX - 1);
	fa_lock_set(run->lock, "binary.archs", "%s", archs);
	fa_lock_set(run->lock, "binary.symbols", "%zu sha256:%s", x->symbols.n, digest);
	if (x->glibc)
		fa_run_need_glibc(run, x->glibc);
	fa_run_say(run, "%d %s, %zu symbols found, code for %s", x->n_binaries, x->n_binaries == 1 ? "binary" : "binaries",
	           x->symbols.n, x->archs.n ? archs : "no GPU");
	free(archs);
	free(symbols);
	free(digest);
	return 0;
}

/* Built again from the locked source: is it the same thing? */
static int compare_with_lock(const struct fa_run *run, struct fa_err *err)
{
	static const char *const keys[] = { "binary.archs", "binary.symbols" };
	const struct fa_lock_package *locked = fa_run_locked(run);
	char *hash;
	bool same;

	if (!locked || !locked->built || !run->built_now)
		return 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const char *was = fa_lock_get(run->opts->lock, keys[i]), *is = fa_lock_get(run->lock, keys[i]);

		if (was && is && strcmp(was, is) != 0)
			return fa_err_set(err, FA_INTEGRITY, "the wheel built again is another one: %s is %s, the lock says %s",
			                  keys[i], is, was);
	}
	hash = fa_strf("sha256:%s", run->wheel_sha256);
	same = fa_strv_has(&locked->hashes, hash);
	free(hash);
	if (same)
		fa_emit_text(run->sink, FA_EVENT_NOTE, "rebuilt", "byte for byte the wheel of the lock");
	else
		fa_emit_text(run->sink, FA_EVENT_WARNING, "rebuilt_differs",
		             "built again: same symbols and architectures as the lock says, other bytes (sha256 %.12s…)",
		             run->wheel_sha256);
	return 0;
}

/* ---- the next candidate */

/* The user's own words, with the route that makes what no file gives. */
static void next_by_source(const struct fa_run *run, struct fa_err *err)
{
	struct fa_strv words = FA_STRV_INIT;
	struct fa_wish wish;
	char *line;

	fa_wish_copy(&wish, &run->plan->wish);
	fa_wish_set(&wish, FA_WISH_ROUTE, "source", NULL);
	fa_wish_argv(&wish, &words);
	line = fa_strv_join(&words, " ");
	if (run->choice->build.wanted)
		fa_err_next(err, "build it again: fainstall install --rebuild %s", line);
	else
		fa_err_next(err, "build it from source instead: fainstall install %s", line);
	free(line);
	fa_strv_release(&words);
	fa_wish_release(&wish);
}

/* Brings the plan's next candidate that can be had. 1: in hand; 0: there is none; -1. A lock names one file: nothing replaces it. */
static int take_fallback(struct fa_run *run, struct fa_err *err)
{
	struct fa_err no = *err;

	while (!run->opts->lock && !run->choice->build.wanted && run->fallback < run->plan->fallbacks.n) {
		const char *url = run->plan->fallbacks.v[run->fallback++];
		struct fa_json *args = fa_json_new_object();
		int rc;

		fa_emit_text(run->sink, FA_EVENT_WARNING, "fallback", "%s; the next candidate is %s", no.text,
		             fa_path_base(url));
		fa_json_set_string(args, "id", "wheel");
		fa_json_set_string(args, "kind", "wheel");
		fa_json_set_string(args, "url", url);
		rc = fa_step_fetch(run, args, &no);
		fa_json_free(args);
		if (rc == 0)
			return 1;
		if (no.status != FA_NETWORK || fa_run_cancelled(run)) {
			*err = no;
			return -1;
		}
	}
	return 0;
}

int fa_step_xray(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct xrayed x = { 0 };
	int rc, next = 1;

	(void)args;
	if (!run->wheel)
		return fa_err_set(err, FA_INTERNAL, "the plan looks through a wheel that no step before brings");
	while ((rc = xray_wheel(&x, run, err)) < 0 && err->status == FA_CHECK && (next = take_fallback(run, err)) > 0) {
		xrayed_release(&x);
		x = (struct xrayed){ 0 };
	}
	if (next == 0)
		next_by_source(run, err);
	run->outcome = FA_OUTCOME_OK; /* a candidate that was here already skips its own fetch only */
	if (rc == 0 && x.n_binaries)
		rc = remember(run, &x);
	else if (rc == 0)
		fa_run_say(run, "%s holds no binary", fa_path_base(run->wheel));
	if (rc == 0)
		rc = compare_with_lock(run, err);
	xrayed_release(&x);
	return rc;
}
