#include "build.h"

#include "buf.h"
#include "build_env.h"
#include "build_kept.h"
#include "build_record.h"
#include "expect.h"
#include "file.h"
#include "gate_table.h"
#include "json.h"
#include "load.h"
#include "objects.h"
#include "proc.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* How many compilers the build system may start: all of them, the gate decides. */
enum { MAX_STARTED = 400, PROGRESS_EVERY_S = 2, OBJECTS_MIB = 8192 };

struct build {
	const struct fa_build_opts *opts;
	const struct fa_sink *sink;
	int step;
	char *root; /* source/build */
	char *dir;  /* of the gate, inside root */
	char *log;
	char *objects; /* compiled ones, kept by content for other builds */
	struct fa_units units;
	struct fa_expect expect;
	struct fa_json *estimates; /* for the record */
	char *profile;             /* as build.py names it; "" before it has */
	char *learnt;              /* under which its times are kept */
	int64_t event_offset;      /* read of dir/events so far */
	struct fa_buf partial;
	double began, now, told;
	int64_t held_mib;           /* by all processes of the build */
	struct fa_gate_table table; /* of all builds; to be read */
	int cancel;                 /* what fa_proc watches */
	bool draining;
	bool kept_told;
	char *wheel;
	char *failed_unit, *failed_text; /* the first unit that stopped, and why */
	bool no_memory;
	bool no_space;
	char *refusal, *refusal_next; /* a sentence of build.py's */
	char ninja[512];              /* what the build system itself found wrong, no compiler of it */
	char last[512];               /* last line said, for want of anything better */
};

static void build_release(struct build *b)
{
	fa_units_release(&b->units);
	fa_gate_table_close(&b->table);
	fa_expect_release(&b->expect);
	fa_json_free(b->estimates);
	fa_buf_release(&b->partial);
	free(b->root);
	free(b->dir);
	free(b->log);
	free(b->objects);
	free(b->profile);
	free(b->learnt);
	free(b->wheel);
	free(b->failed_unit);
	free(b->failed_text);
	free(b->refusal);
	free(b->refusal_next);
}

static void look_for_full_disk(struct build *b, const char *text)
{
	if (strstr(text, "No space left on device") || strstr(text, "Disk quota exceeded"))
		b->no_space = true;
}

/* ---- progress */

/* MiB of the units of other builds. */
static int64_t held_by_others(const struct build *b, const struct fa_gate_seen *seen, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += seen[i].unit.build != b->units.build ? seen[i].unit.rss_mib : 0;
	return sum;
}

/* What the gate sees, and what the build may have of it. */
static void look_at_room(struct build *b, int64_t others_mib, int cpus)
{
	struct fa_gate_room room;
	struct fa_gate_host *h = &b->units.host;

	fa_gate_room_read(&room, 0, NULL);
	h->places = room.cores;
	h->cores = room.cores;
	if (fa_gate_setting("FAINSTALL_GATE_CORES", 0) == 0 && cpus > h->cores)
		h->cores = cpus; /* who has a quota has the whole machine for company */
	h->company = b->expect.company;
	h->memory_mib = room.available_mib < 0 ? -1 : room.available_mib - room.reserve_mib;
	if (h->memory_mib >= 0 && fa_gate_setting("FAINSTALL_GATE_MEMORY_MIB", -1) < 0)
		h->memory_mib += b->held_mib + others_mib; /* what is found is what is left */
}

/* The table of all builds: how far our units are, and which others want a place. Ours are told what we have learnt of them. */
static void look_round(struct build *b)
{
	struct fa_gate_seen *seen = fa_calloc(FA_GATE_SLOTS, sizeof(*seen));
	size_t n = fa_gate_table_list(&b->table, seen);
	struct fa_load load;

	fa_load_read(&load);
	look_at_room(b, held_by_others(b, seen, n), load.cpus);
	fa_units_see(&b->units, seen, n, &load, b->now);
	for (size_t i = 0; i < n; i++) {
		double expected = seen[i].unit.build == b->units.build ? fa_units_expected(&b->units, seen[i].name) : 0;

		if (expected > 0)
			fa_gate_table_tell(&b->table, &seen[i], expected);
	}
	free(seen);
}

static void tell_progress(struct build *b)
{
	struct fa_event e = fa_event_new(FA_EVENT_PROGRESS);

	if (!b->units.n)
		return;
	look_round(b);
	e.step = b->step;
	e.done = (int64_t)fa_units_done(&b->units);
	e.total = (int64_t)b->units.n;
	e.number = (int64_t)fa_units_running(&b->units);
	e.seconds = fa_units_left(&b->units, b->now);
	e.rest_s = fa_units_rest(&b->units, b->now);
	if (b->draining)
		e.seconds = e.rest_s;
	snprintf(e.unit, sizeof(e.unit), "units");
	b->told = b->now;
	if (!b->draining)
		fa_build_record_estimate(b->estimates, b->now - b->began, e.seconds);
	fa_emit(b->sink, &e);
}

static void unit_began(struct build *b, const char *name)
{
	struct fa_event e = fa_event_new(FA_EVENT_UNIT_BEGIN);

	fa_units_begin(&b->units, name, b->now);
	e.step = b->step;
	e.number = (int64_t)fa_units_running(&b->units);
	e.done = (int64_t)fa_units_done(&b->units);
	e.total = (int64_t)b->units.n;
	snprintf(e.id, sizeof(e.id), "%s", name);
	fa_emit(b->sink, &e);
}

static void remember(struct build *b, const char *name, const struct fa_unit_use *use)
{
	const struct fa_expect_sample sample = { .work = fa_units_work(&b->units.host, use),
		                                 .trust = use->seconds > 0 ? use->cpu / use->seconds : 0,
		                                 .peak_mib = use->peak_mib };

	if (use->cpu > 0)
		fa_expect_remember(&b->expect, b->learnt, name, &sample);
}

static void unit_ended(struct build *b, const char *name, const struct fa_json *j, enum fa_outcome status)
{
	struct fa_event e = fa_event_new(FA_EVENT_UNIT_END);

	e.seconds = fa_json_get_number(j, "seconds", -1);
	e.peak_mib = (int64_t)fa_json_get_number(j, "peak_mib", -1);
	if (status == FA_OUTCOME_OK) {
		const struct fa_unit_use use = { .seconds = e.seconds,
			                         .cpu = fa_json_get_number(j, "cpu", 0),
			                         .busy = fa_json_get_number(j, "busy", -1),
			                         .peak_mib = e.peak_mib };

		fa_units_end(&b->units, name, b->now, &use);
		remember(b, name, &use);
	} else {
		fa_units_again(&b->units, name, b->now);
	}
	e.step = b->step;
	e.done = (int64_t)fa_units_done(&b->units);
	e.total = (int64_t)b->units.n;
	e.status = status;
	snprintf(e.id, sizeof(e.id), "%s", name);
	snprintf(e.text, sizeof(e.text), "%s", fa_json_get_string(j, "text") ? fa_json_get_string(j, "text") : "");
	fa_emit(b->sink, &e);
	tell_progress(b);
}

static void unit_failed(struct build *b, const char *name, const struct fa_json *j, bool memory)
{
	const char *text = fa_json_get_string(j, "text");

	look_for_full_disk(b, text ? text : "");
	if (!b->failed_unit) {
		b->failed_unit = fa_strdup(name);
		b->failed_text = fa_strdup(text ? text : "");
		b->no_memory = memory;
	}
	unit_ended(b, name, j, FA_OUTCOME_FAILED);
}

static void unit_kept(struct build *b, const char *name)
{
	struct fa_event e = fa_event_new(FA_EVENT_UNIT_END);

	fa_units_there(&b->units, name);
	e.step = b->step;
	e.done = (int64_t)fa_units_done(&b->units);
	e.total = (int64_t)b->units.n;
	e.status = FA_OUTCOME_SKIPPED;
	snprintf(e.id, sizeof(e.id), "%s", name);
	snprintf(e.text, sizeof(e.text), "compiled before, taken from the object store");
	fa_emit(b->sink, &e);
}

static void take_event(struct build *b, const char *line, size_t len)
{
	struct fa_json *j = NULL;
	const char *what, *name;

	if (fa_json_parse(&j, line, len, "events", NULL) < 0)
		return;
	what = fa_json_get_string(j, "what");
	name = fa_json_get_string(j, "unit");
	if (!what || !name) {
		fa_json_free(j);
		return;
	}
	if (!strcmp(what, "begin")) {
		unit_began(b, name);
	} else if (!strcmp(what, "end")) {
		unit_ended(b, name, j, FA_OUTCOME_OK);
	} else if (!strcmp(what, "failed") || !strcmp(what, "no_memory")) {
		unit_failed(b, name, j, !strcmp(what, "no_memory"));
	} else if (!strcmp(what, "killed") || !strcmp(what, "pushed_out")) {
		unit_ended(b, name, j, FA_OUTCOME_SKIPPED);
		fa_expect_outgrown(&b->expect, b->learnt, name, (int64_t)fa_json_get_number(j, "peak_mib", 0));
		fa_emit_text(b->sink, FA_EVENT_WARNING, "memory_short", "%s %s at %.0f MiB; it is compiled once more, alone",
		             name,
		             !strcmp(what, "killed") ? "was killed for want of memory"
		                                     : "was stopped to give the others memory",
		             fa_json_get_number(j, "peak_mib", 0));
	} else if (!strcmp(what, "kept")) {
		unit_kept(b, name);
	} else if (!strcmp(what, "stopped")) {
		unit_ended(b, name, j, FA_OUTCOME_SKIPPED);
	}
	fa_json_free(j);
}

static void read_events(struct build *b)
{
	char *path = fa_path_join(b->dir, "events"), chunk[16384];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	while (fd >= 0 && (n = pread(fd, chunk, sizeof(chunk), b->event_offset)) > 0) {
		fa_buf_add(&b->partial, chunk, (size_t)n);
		b->event_offset += n;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	for (char *start = b->partial.data, *end; start && (end = strchr(start, '\n'));) {
		struct fa_buf rest = FA_BUF_INIT;

		take_event(b, start, (size_t)(end - start));
		fa_buf_adds(&rest, end + 1);
		fa_buf_release(&b->partial);
		b->partial = rest;
		start = b->partial.data;
	}
}

static void raise_flag(const struct build *b, const char *name)
{
	char *path = fa_path_join(b->dir, name);

	fa_file_write(path, "", 0, NULL);
	free(path);
}

static void on_tick(void *ctx, double seconds, int64_t tree_mib)
{
	struct build *b = ctx;

	(void)seconds;
	b->held_mib = tree_mib;
	b->now = fa_gate_clock();
	read_events(b);
	if (b->now - b->told >= PROGRESS_EVERY_S)
		tell_progress(b);
	if (!b->opts->cancel || !*b->opts->cancel)
		return;
	if (*b->opts->cancel != FA_BUILD_DRAIN) {
		b->cancel = 1;
	} else if (!b->draining) {
		b->draining = true;
		raise_flag(b, "drain");
		fa_emit_text(b->sink, FA_EVENT_NOTE, "draining", "nothing new starts; %zu units still run",
		             fa_units_running(&b->units));
		tell_progress(b);
	}
}

/* ---- what build.py and the build system say */

static int archs(const struct build *b)
{
	return b->opts->build->archs.n > 1 ? (int)b->opts->build->archs.n : 1;
}

/* The same unit for two architectures takes twice as long. */
static char *learnt_key(const struct build *b)
{
	char *archs = fa_strv_join(&b->opts->build->archs, "+"), *key = fa_strf("%s.sm%s", b->profile, archs);

	free(archs);
	return key;
}

static void set_units(struct build *b, const struct fa_json *j)
{
	struct fa_strv names = FA_STRV_INIT;
	struct fa_buf text = FA_BUF_INIT;
	char *path = fa_path_join(b->dir, "units");
	struct fa_json *here;

	free(b->profile);
	b->profile = fa_strdup(fa_json_get_string(j, "profile") ? fa_json_get_string(j, "profile") : "");
	free(b->learnt);
	b->learnt = learnt_key(b);
	here = fa_expect_here(&b->expect, b->learnt);
	fa_json_get_strv(j, "units", &names);
	fa_expect_add(&b->expect, fa_json_get(j, "expect"));
	fa_units_set(&b->units, &names, b->expect.shipped, here, fa_expect_speed(&b->expect), archs(b));
	fa_json_free(here);
	look_round(b);
	fa_units_print(&b->units, &text);
	fa_file_write(path, fa_buf_str(&text), text.len, NULL);
	fa_buf_release(&text);
	fa_strv_release(&names);
	free(path);
	tell_progress(b);
}

static void take_word(struct build *b, const char *text)
{
	struct fa_json *j = NULL, *written = NULL;

	if (fa_json_parse(&j, text, strlen(text), "build.py", NULL) < 0)
		return;
	if (fa_json_get_string(j, "in") && fa_json_read_file(&written, fa_json_get_string(j, "in"), NULL) == 0) {
		fa_json_free(j); /* too long for a line: thousands of units */
		j = written;
	}
	if (fa_json_get(j, "units"))
		set_units(b, j);
	if (fa_json_get_string(j, "wheel") && !b->wheel)
		b->wheel = fa_strdup(fa_json_get_string(j, "wheel"));
	if (fa_json_get_string(j, "error") && !b->refusal) {
		b->refusal = fa_strdup(fa_json_get_string(j, "error"));
		b->refusal_next = fa_strdup(fa_json_get_string(j, "next"));
	}
	fa_json_free(j);
}

/* "[3/31] c++ …" of the build system: 31 of all units are to be compiled, the others are there from before. */
static void look_for_kept(struct build *b, const char *line)
{
	unsigned done, to_do;
	size_t ended = fa_units_done(&b->units); /* the gate may tell of the first before or after this line */

	if (b->kept_told || !b->units.n || sscanf(line, "[%u/%u]", &done, &to_do) != 2)
		return;
	b->kept_told = true;
	if (to_do < b->units.n)
		fa_emit_text(b->sink, FA_EVENT_NOTE, "kept", "%zu of %zu units are there from before", b->units.n - to_do,
		             b->units.n);
	fa_units_keep(&b->units, to_do > ended ? to_do - ended : 0);
}

static void on_line(void *ctx, const char *line, bool is_err)
{
	struct build *b = ctx;
	struct fa_event e = fa_event_new(FA_EVENT_LOG);

	b->now = fa_gate_clock();
	if (!strncmp(line, "fainstall {", 11)) {
		take_word(b, line + 10);
		return;
	}
	look_for_kept(b, line);
	look_for_full_disk(b, line);
	if (!b->ninja[0] && !strncmp(line, "ninja: error: ", 14))
		snprintf(b->ninja, sizeof(b->ninja), "%s", line);
	if (strspn(line, " \t") < strlen(line))
		snprintf(b->last, sizeof(b->last), "%s", line);
	e.step = b->step;
	snprintf(e.id, sizeof(e.id), "%s", is_err ? "err" : "out");
	snprintf(e.text, sizeof(e.text), "%s", line);
	fa_emit(b->sink, &e);
}

/* ---- setting it up */

static int link_gate(const struct build *b, struct fa_err *err)
{
	static const char *const names[] = { "nvcc", "hipcc", "c++" };
	char *worker = fa_dir_own("fainstall-worker", err), *bin = worker ? fa_build_gate_bin(b->dir, err) : NULL;
	int rc = bin ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < sizeof(names) / sizeof(*names); i++) {
		char *path = fa_path_join(bin, names[i]);

		unlink(path);
		if (symlink(worker, path) < 0)
			rc = fa_err_set(err, FA_MACHINE, "%s: %s", path, strerror(errno));
		free(path);
	}
	free(worker);
	free(bin);
	return rc;
}

/* A fresh folder for the gate; what was measured before stays. */
static int set_up_gate(struct build *b, struct fa_err *err)
{
	static const char *const old[] = { "events", "stop", "drain", "tmp", "units" };
	int rc = fa_file_mkdirs(b->dir, err);

	for (size_t i = 0; rc == 0 && i < sizeof(old) / sizeof(*old); i++) {
		char *path = fa_path_join(b->dir, old[i]);

		rc = fa_file_remove_tree(path, err);
		free(path);
	}
	return rc < 0 ? rc : link_gate(b, err);
}

static int write_job(const struct build *b, const char *path, struct fa_err *err)
{
	const struct fa_plan_build *p = b->opts->build;
	struct fa_json *j = fa_json_new_object();
	char *text, *compiler = fa_build_compiler(b->opts);
	int rc;

	fa_json_set_string(j, "source", b->opts->source);
	fa_json_set_string(j, "build", b->root);
	fa_json_set_string(j, "wheel_dir", b->opts->wheel_dir);
	fa_json_set_string(j, "version", b->opts->version);
	fa_json_set_string(j, "nvcc_path", compiler ? compiler : "");
	fa_json_set_string(j, "profile", p->profile ? p->profile : "full");
	fa_json_set(j, "archs", fa_json_new_strv(&p->archs));
	fa_json_set(j, "dtypes", fa_json_new_strv(&p->dtypes));
	fa_json_set(j, "head_dims", fa_json_new_strv(&p->head_dims));
	fa_json_set(j, "features", fa_json_new_strv(&p->features));
	fa_json_set_bool(j, "backward", p->backward);
	fa_json_set_number(j, "cores",
	                   b->units.jobs && b->units.jobs < b->units.host.places ? b->units.jobs : b->units.host.places);
	fa_json_set(j, "expected", fa_json_copy(b->expect.shipped));
	if (b->opts->rocm_home && b->expect.ck)
		fa_json_set(j, "ck_units", fa_json_copy(b->expect.ck));
	text = fa_json_print(j, true);
	rc = fa_file_write(path, text, strlen(text), err);
	free(text);
	free(compiler);
	fa_json_free(j);
	return rc;
}

/* ---- how it ended */

static int explain(struct build *b, const struct fa_proc_result *r, struct fa_err *err)
{
	if (b->cancel || (b->opts->cancel && *b->opts->cancel))
		return fa_err_set(err, FA_INTERRUPTED, "the build was stopped; what is compiled is kept");
	if (b->no_memory) {
		fa_err_set(err, FA_MACHINE, "%s needs more memory than there is, even alone: %s", b->failed_unit,
		           b->failed_text);
		return fa_err_next(err,
		                   "close other programs, raise the container's memory limit, or choose a smaller profile");
	}
	if (b->no_space) {
		fa_err_set(err, FA_MACHINE, "%s: the disk is full: %s", b->failed_unit ? b->failed_unit : b->root,
		           b->failed_unit ? b->failed_text : b->last);
		return fa_err_next(err, "free some space, then run this again: what is compiled is kept");
	}
	if (b->failed_unit) {
		fa_err_set(err, FA_BUILD, "%s: %s", b->failed_unit, b->failed_text);
		return fa_err_next(err, "fainstall diagnose %s", b->log);
	}
	if (b->ninja[0] || b->refusal) {
		fa_err_set(err, FA_BUILD, "%s", b->ninja[0] ? b->ninja : b->refusal);
		return !b->ninja[0] && b->refusal_next && *b->refusal_next ? fa_err_next(err, "%s", b->refusal_next)
		                                                           : fa_err_next(err, "fainstall diagnose %s", b->log);
	}
	if (r->end == FA_PROC_NOT_STARTED)
		return -1; /* fa_proc_run said what */
	fa_err_set(err, FA_BUILD, "setup.py of flash-attn %s stopped: %s", b->opts->version, b->last);
	return fa_err_next(err, "fainstall diagnose %s", b->log);
}

static int run(struct build *b, const char *job, struct fa_err *err)
{
	char *program = fa_dir_own("recipes/build.py", err);
	struct fa_strv env = FA_STRV_INIT;
	const char *argv[] = { b->opts->python, "-u", program, job, NULL };
	struct fa_proc_result result;
	int rc = -1;

	if (!program)
		return -1;
	if (fa_build_env(&env, b->opts, b->dir, b->objects, MAX_STARTED, b->sink, err) < 0)
		goto done;
	{
		struct fa_proc_opts proc = { .argv = argv,
			                     .envp = (const char *const *)env.v,
			                     .cwd = b->opts->source,
			                     .log_path = b->log,
			                     .cancel = &b->cancel,
			                     .line = on_line,
			                     .tick = on_tick,
			                     .ctx = b };

		rc = fa_proc_run(&result, &proc, FA_BUILD, err);
	}
	b->now = fa_gate_clock();
	read_events(b);
	fa_expect_store(&b->expect, b->learnt, archs(b));
	if (rc == 0 && !b->wheel)
		rc = -1;
	if (rc < 0)
		explain(b, &result, err);
done:
	fa_strv_release(&env);
	free(program);
	return rc;
}

static int check(const struct fa_build_opts *o, struct fa_err *err)
{
	char *setup = fa_path_join(o->source, "setup.py"), *compiler = fa_build_compiler(o);
	int rc = 0;

	if (!fa_file_exists(setup)) {
		rc = fa_err_set(err, FA_BUILD, "%s: not there; the source is incomplete", setup);
	} else if (compiler && !fa_file_is_executable(compiler)) {
		rc = fa_err_set(err, FA_MACHINE, "%s: no compiler there", compiler);
		fa_err_next(err, o->rocm_home
		                         ? "install ROCm with its compiler, or set ROCM_PATH to the folder that holds bin/hipcc"
		                         : "install the CUDA toolkit, or set CUDA_HOME to the folder that holds bin/nvcc");
	} else if (compiler && !o->build->archs.n) {
		rc = fa_err_set(err, FA_USAGE, "no GPU architecture to build for");
		fa_err_next(err, "name them: --arch %s", o->rocm_home ? "gfx942" : "90");
	}
	free(setup);
	free(compiler);
	return rc;
}

/* One build at a time in one source folder. */
static int lock_source(const struct build *b, struct fa_err *err)
{
	char *path = fa_path_join(b->root, "lock");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		fa_err_set(err, FA_MACHINE, "%s: %s", path, strerror(errno));
	else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		fa_err_set(err, FA_MACHINE, "%s: another build works in this source", b->opts->source);
		fa_err_next(err, "wait for it, or stop it");
		close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

static char *objects_path(void)
{
	char *data = fa_dir_data(), *path = fa_path_join(data, "objects");

	free(data);
	return path;
}

/* However it ended: beside the log, and for the caller when it wants one. */
static void keep_record(const struct build *b, struct fa_json **record)
{
	struct fa_json *j = fa_build_record(&b->units, b->opts->build, b->opts->version, b->profile, b->began, b->now,
	                                    &b->expect, b->estimates);
	char *dir = fa_path_dir(b->log), *path = fa_path_join(dir, "build.json"), *text = fa_json_print(j, true);

	fa_file_write(path, text, strlen(text), NULL);
	free(dir);
	free(path);
	free(text);
	if (record)
		*record = j;
	else
		fa_json_free(j);
}

int fa_build_wheel(char **wheel_out, struct fa_json **record, const struct fa_build_opts *opts, const struct fa_sink *sink,
                   int step, struct fa_err *err)
{
	struct build b = { .opts = opts,
		           .sink = sink,
		           .step = step,
		           .profile = fa_strdup(""),
		           .learnt = fa_strdup(""),
		           .table = { .fd = -1, .leader_fd = -1, .mine = -1 } };
	char *job = NULL;
	int rc = -1, lock = -1;

	if (check(opts, err) < 0)
		goto done;
	b.began = b.now = fa_gate_clock();
	b.estimates = fa_json_new_array();
	b.root = fa_path_join(opts->source, "build");
	b.dir = fa_path_join(b.root, "gate");
	b.log = fa_path_join(opts->log_dir ? opts->log_dir : b.root, "build.log");
	job = fa_path_join(b.root, "job.json");
	b.objects = objects_path();
	if (fa_file_mkdirs(b.root, err) < 0 || (opts->log_dir && fa_file_mkdirs(opts->log_dir, err) < 0) ||
	    (lock = lock_source(&b, err)) < 0 || set_up_gate(&b, err) < 0)
		goto done;
	fa_build_check_kept(opts->source, b.dir, sink);
	unlink(b.log); /* of an earlier try: its errors are not ours */
	fa_expect_load(&b.expect);
	b.units.jobs = opts->build->jobs;
	b.units.build = fa_gate_build_id(b.dir);
	b.units.spread = b.expect.spread;
	if (fa_gate_table_open(&b.table, getenv("FAINSTALL_GATE_TABLE"), err) < 0)
		goto done;
	look_round(&b);
	if (write_job(&b, job, err) < 0)
		goto done;
	rc = run(&b, job, err);
	if (rc == 0)
		fa_units_keep(&b.units, 0);
	keep_record(&b, rc == 0 ? record : NULL);
	if (rc < 0)
		goto done;
	tell_progress(&b);
	fa_objects_trim(b.objects, OBJECTS_MIB);
	*wheel_out = b.wheel;
	b.wheel = NULL;
done:
	if (lock >= 0)
		close(lock);
	free(job);
	build_release(&b);
	return rc;
}
