/* The worker's side of a job: reads it from stdin, runs it, writes events to stdout, stops when told or when nobody listens. */
#include "job.h"

#include "buf.h"
#include "build.h"
#include "child.h"
#include "diagnose.h"
#include "environment.h"
#include "execute.h"
#include "file.h"
#include "job_json.h"
#include "json.h"
#include "lock.h"
#include "matrix.h"
#include "proc.h"
#include "redact.h"
#include "report.h"
#include "wheelhouse.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	JOB_MAX = 64 << 20, /* bytes of a job */
	WATCH_MS = 100,     /* how often the watcher looks */
	PATIENCE_MS = 1300, /* from a cancel to the end, when nothing is being put back */
	TIDY_MS = 20000,    /* when something is */
};

static volatile int cancel_flag; /* what everything that can wait looks at */
static volatile int tidying;     /* an environment is being put back */
static pthread_mutex_t out_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool done_told;
static struct timespec begun;
static const char *log_path;

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9;
}

/* ---- events out */

static void write_out(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			cancel_flag = 1; /* nobody listens any more */
			return;
		}
		text += n;
		len -= (size_t)n;
	}
}

static size_t step_offset; /* bytes of the log before the running step */

static void note_step(const struct fa_event *e)
{
	struct stat st;

	if (e->kind == FA_EVENT_STEP_BEGIN && log_path && stat(log_path, &st) == 0)
		step_offset = (size_t)st.st_size;
}

static void log_event(const struct fa_event *e)
{
	switch (e->kind) {
	case FA_EVENT_LOG:
	case FA_EVENT_PROGRESS:
	case FA_EVENT_STEP_BEGIN:
	case FA_EVENT_STEP_END: return; /* children and steps write their own lines */
	default: break;
	}
	fa_log_line(log_path, "-- %s %s %s%s%s%s%s", fa_event_word(e->kind), fa_outcome_word(e->status), e->id,
	            *e->id ? ": " : "", e->text, *e->next ? "; " : "", e->next);
}

static void emit(void *ctx, const struct fa_event *event)
{
	struct fa_event e = *event;
	struct fa_json *j;
	struct fa_buf line = FA_BUF_INIT;
	char *text;

	(void)ctx;
	fa_redact(e.text);
	fa_redact(e.next);
	j = fa_event_to_json(&e);
	text = fa_json_print(j, false);
	fa_buf_addf(&line, "%s\n", text);
	pthread_mutex_lock(&out_mutex);
	if (!done_told) {
		note_step(&e);
		log_event(&e);
		write_out(line.data, line.len);
		done_told = e.kind == FA_EVENT_DONE;
	}
	pthread_mutex_unlock(&out_mutex);
	fa_buf_release(&line);
	free(text);
	fa_json_free(j);
}

static const struct fa_sink sink = { emit, NULL };

static void tell_done(enum fa_status code, const char *text)
{
	struct fa_event e = fa_event_new(FA_EVENT_DONE);

	e.code = code;
	e.status = code == FA_OK ? FA_OUTCOME_OK : FA_OUTCOME_FAILED;
	e.seconds = seconds();
	snprintf(e.text, sizeof(e.text), "%s", text);
	emit(NULL, &e);
}

static void tell_error(const struct fa_err *err)
{
	struct fa_event e = fa_event_new(FA_EVENT_ERROR);

	e.code = err->status;
	snprintf(e.text, sizeof(e.text), "%s", err->text);
	snprintf(e.next, sizeof(e.next), "%s", err->next);
	emit(NULL, &e);
}

/* ---- why */

enum { CAUSES_TOLD = 2 };

static const double sure_enough = 0.5; /* below it a cause is a guess: `fainstall diagnose` on the log tells it when asked */

static void tell_cause(const struct fa_cause *c, size_t lines_before)
{
	struct fa_event e = fa_event_new(FA_EVENT_CAUSE);

	e.number = (int64_t)(c->evidence[0].line + lines_before);
	snprintf(e.id, sizeof(e.id), "%s", c->id);
	snprintf(e.text, sizeof(e.text), "%s", c->title ? c->title : c->id);
	snprintf(e.evidence, sizeof(e.evidence), "%s", c->evidence[0].text);
	snprintf(e.next, sizeof(e.next), "%s", c->repair.n ? c->repair.v[0] : "");
	emit(NULL, &e);
}

/* What the step that stopped has printed, read as `fainstall diagnose` would. An error here is no second error. */
static void tell_causes(const struct fa_facts *facts)
{
	struct fa_buf log = FA_BUF_INIT;
	struct fa_diagnosis d = FA_DIAGNOSIS_INIT;
	struct fa_diagnoser *diagnoser = NULL;
	struct fa_matrix *matrix = NULL;
	size_t lines_before = 0;

	if (fa_file_read(&log, log_path, FA_FILE_MAX, NULL) < 0 || log.len < step_offset || fa_matrix_open(&matrix, NULL) < 0 ||
	    fa_diagnoser_new(&diagnoser, matrix, NULL) < 0)
		goto done;
	for (size_t i = 0; i < step_offset; i++)
		lines_before += log.data[i] == '\n';
	if (fa_diagnose_text(&d, diagnoser, log.data + step_offset, log.len - step_offset, facts, NULL) == 0)
		for (size_t i = 0; i < d.n_causes && i < CAUSES_TOLD && d.causes[i].confidence >= sure_enough; i++)
			tell_cause(&d.causes[i], lines_before);
done:
	fa_diagnosis_release(&d);
	fa_diagnoser_free(diagnoser);
	fa_matrix_close(matrix);
	fa_buf_release(&log);
}

/* ---- stopping */

static void on_signal(int signal)
{
	(void)signal;
	cancel_flag = 1;
}

static void catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
	a.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &a, NULL);
}

/* What the front end says after the job: its end means stop, the word to drain that nothing new is to start. */
static void listen(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char said[64];
	ssize_t n;

	if (poll(&p, 1, WATCH_MS) <= 0)
		return;
	n = read(STDIN_FILENO, said, sizeof(said));
	if (n <= 0)
		cancel_flag = 1;
	else if (!cancel_flag && memmem(said, (size_t)n, FA_JOB_DRAIN, strlen(FA_JOB_DRAIN)))
		cancel_flag = FA_BUILD_DRAIN;
}

/* Waits for the word or a signal to stop, then gives the work a while to stop by itself. What still hangs then (a library
 * without time-outs) is ended with everything below it. */
static void *watch(void *arg)
{
	int waited = 0;

	(void)arg;
	while (!cancel_flag || cancel_flag == FA_BUILD_DRAIN)
		listen();
	for (; waited < (tidying ? TIDY_MS : PATIENCE_MS); waited += WATCH_MS)
		poll(NULL, 0, WATCH_MS);
	fa_proc_kill_tree(getpid(), 0);
	tell_done(FA_INTERRUPTED, "interrupted");
	_exit(FA_INTERRUPTED);
}

static int start_watching(void)
{
	pthread_t thread;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return rc == 0 ? 0 : -1;
}

/* ---- job in */

/* One line; what follows on stdin is only its end. */
static int read_job(struct fa_job_read *job, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_json *j = NULL;
	char *end = NULL;
	int rc = -1;

	while (!end && text.len < JOB_MAX) {
		ssize_t n;

		fa_buf_reserve(&text, 65536);
		n = read(STDIN_FILENO, text.data + text.len, 65536);
		if (n < 0 && errno == EINTR && !cancel_flag)
			continue;
		if (n <= 0)
			break;
		end = memchr(text.data + text.len, '\n', (size_t)n);
		text.len += (size_t)n;
	}
	if (!end)
		fa_err_set(err, FA_INTERNAL, "the job on stdin ends too early");
	else if (fa_json_parse(&j, text.data, (size_t)(end - text.data), "job", err) == 0)
		rc = fa_job_from_json(job, j, err);
	fa_json_free(j);
	fa_buf_release(&text);
	return rc;
}

/* ---- log and report */

static char *dated(const char *folder, const char *suffix)
{
	char *state = fa_dir_state(), stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	char *path;

	gmtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	path = fa_strf("%s/%s/%s-%ld%s", state, folder, stamp, (long)getpid(), suffix);
	free(state);
	return path;
}

static char *open_log(struct fa_err *err)
{
	char *path = dated("logs", ".log"), *dir = fa_path_dir(path);

	if (fa_file_mkdirs(dir, err) < 0 || fa_file_write(path, "", 0, err) < 0) {
		free(path);
		path = NULL;
	}
	free(dir);
	return path;
}

static void write_report(struct fa_report *report, const struct fa_job_opts *o, const char *verdict)
{
	char *path = o->report_path ? fa_strdup(o->report_path) : dated("reports", ".json");
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = fa_report_json(report);

	if (verdict)
		fa_json_set_string(j, "verdict", verdict);
	fa_json_set_number(j, "seconds", seconds());
	fa_json_set_string(j, "log", log_path);
	if (fa_report_write(report, path, &err) < 0)
		fa_emit_text(&sink, FA_EVENT_WARNING, "report", "no report: %s", err.text);
	else
		fa_emit_text(&sink, FA_EVENT_NOTE, "report", "report: %s", path);
	free(path);
}

/* ---- verify */

struct upstream { /* its repository: a folder and what it is, or why there is none */
	char *dir, *from, *why;
};

/* The folder named, or the plan's clone. Without either the verification says what would be needed; that is no error. */
static int find_upstream(struct upstream *out, struct fa_report *report, const struct fa_job_opts *o, struct fa_err *err)
{
	static const char hint[] = "fainstall verify --upstream --upstream-source FOLDER";
	struct fa_execute_opts opts = { .plan = o->plan, .facts = o->facts, .cancel = &cancel_flag, .log_path = log_path };
	const struct fa_choice *c = &o->plan->choice;

	if (o->upstream_source) {
		out->dir = fa_strdup(o->upstream_source);
		return 0;
	}
	if (!o->plan->n_steps) {
		out->why = fa_strf("needs upstream's repository in a folder, as no commit is known for %s %s: %s", c->line,
		                   c->flash_attn, hint);
		return 0;
	}
	if (fa_execute_clone(&out->dir, report, &opts, &sink, err) == 0) {
		out->from = fa_strdup(fa_path_base(out->dir));
		return 0;
	}
	if (err->status == FA_INTERRUPTED)
		return -1;
	out->why = fa_strf("needs upstream's repository, which could not be cloned (%s): %s", err->text, hint);
	*err = (struct fa_err)FA_ERR_INIT;
	return 0;
}

static int verify(struct fa_report *report, const struct fa_job_opts *o, const char *python, const char *cuda_home,
                  const struct upstream *upstream, struct fa_err *err)
{
	struct fa_verify_opts opts = { .python = python,
		                       .cuda_home = cuda_home,
		                       .choice = &o->plan->choice,
		                       .mode = o->verify,
		                       .strict = o->strict,
		                       .log_path = log_path,
		                       .cancel = &cancel_flag,
		                       .upstream_dir = upstream ? upstream->dir : NULL,
		                       .upstream_from = upstream ? upstream->from : NULL,
		                       .upstream_why = upstream ? upstream->why : NULL,
		                       .upstream_tests = o->upstream_tests };
	int rc = fa_verify(report, &opts, &sink, (int)o->plan->n_steps, err);

	if (cancel_flag)
		return fa_err_set(err, FA_INTERRUPTED, "interrupted");
	return rc;
}

static int verify_job(struct fa_report *report, const struct fa_job_opts *o, struct fa_err *err)
{
	const char *python = fa_facts_text(o->facts, FA_FACT_PYTHON_PATH), *home = fa_facts_text(o->facts, FA_FACT_CUDA_HOME);
	struct upstream up = { 0 };
	int rc;

	if (!python || !*python) {
		fa_err_set(err, FA_MACHINE, "there is no environment to verify: no Python is known");
		return fa_err_next(err, "name one with --env, or make one: fainstall install");
	}
	fa_report_describe(report, o->facts, o->plan);
	rc = o->verify == FA_VERIFY_UPSTREAM ? find_upstream(&up, report, o, err) : 0;
	if (rc == 0)
		rc = verify(report, o, python, home && *home ? home : NULL, &up, err);
	free(up.dir);
	free(up.from);
	free(up.why);
	return rc;
}

/* ---- install */

struct install {
	const struct fa_job_opts *o;
	struct fa_report *report;
	struct fa_environment env;
	struct fa_execute_result result;
	struct fa_lock given, made;
	bool have_lock;
	char *wheels; /* beside the given lock */
};

static int read_lock(struct install *i, struct fa_err *err)
{
	const char *path = i->o->lock_path;
	struct fa_buf said = FA_BUF_INIT;
	char *dir;
	int rc;

	if (!path || !fa_file_exists(path)) {
		if (i->o->frozen)
			return fa_err_set(err, FA_INTEGRITY, "%s: there is no lock, and --frozen makes none",
			                  path ? path : "--frozen");
		return 0;
	}
	if (fa_lock_read(&i->given, path, err) < 0)
		return -1;
	i->have_lock = true;
	dir = fa_path_dir(path);
	i->wheels = fa_path_join(dir, "wheels");
	free(dir);
	rc = fa_lock_fits(&i->given, i->o->facts, i->o->frozen, &said, err);
	fa_log_line(log_path, "%s", fa_buf_str(&said));
	fa_buf_release(&said);
	return rc;
}

/* The lock as it is to lie beside `wheels`: the given one when nothing differs from it. */
static int lock_text(struct fa_buf *text, const struct install *i, struct fa_err *err)
{
	if (i->have_lock && i->result.as_locked)
		return fa_file_read(text, i->o->lock_path, FA_FILE_MAX, err);
	fa_lock_print(text, &i->made);
	return 0;
}

static int place_lock(const struct install *i, const char *path, struct fa_err *err)
{
	struct fa_buf text = FA_BUF_INIT;
	char *dir = fa_path_dir(path), *wheels = fa_path_join(dir, "wheels");
	int rc = fa_file_mkdirs(dir, err);

	if (rc == 0 && i->result.built && i->result.wheel)
		rc = fa_wheel_place(i->result.wheel, i->result.sha256, wheels, err);
	if (rc == 0)
		rc = lock_text(&text, i, err);
	if (rc == 0)
		rc = fa_file_write(path, fa_buf_str(&text), text.len, err);
	fa_buf_release(&text);
	free(dir);
	free(wheels);
	return rc;
}

/* What the environment keeps of its own making. */
static int leave_notes(const struct install *i, struct fa_err *err)
{
	char *notes = fa_environment_notes(&i->env), *lock = fa_path_join(notes, "requirements.lock");
	char *report = fa_path_join(notes, "report.json");
	int rc = place_lock(i, lock, err);

	if (rc == 0)
		rc = fa_report_write(i->report, report, err);
	free(notes);
	free(lock);
	free(report);
	return rc;
}

static int finish(struct install *i, struct fa_err *err)
{
	const char *path = i->o->write_lock_path;
	char *current;

	if (i->env.open && leave_notes(i, err) < 0)
		return -1;
	if (fa_environment_commit(&i->env, err) < 0)
		return -1;
	if (path && place_lock(i, path, err) < 0)
		return -1;
	if (path)
		fa_emit_text(&sink, FA_EVENT_NOTE, "lock", "lock: %s", path);
	/* a wheel that was built again, byte for byte, goes back to where the lock looks for it */
	if (i->have_lock && i->result.built && i->result.as_locked && fa_file_is_dir(i->wheels))
		fa_wheel_place(i->result.wheel, i->result.sha256, i->wheels, NULL);
	if (i->env.path) {
		current = i->env.root ? fa_path_join(i->env.root, "current") : fa_strdup(i->env.path);
		fa_emit_text(&sink, FA_EVENT_NOTE, "environment", "environment: %s", current);
		free(current);
	}
	return 0;
}

static int install(struct install *i, struct fa_err *err)
{
	struct fa_execute_opts opts = { .plan = i->o->plan,
		                        .facts = i->o->facts,
		                        .frozen = i->o->frozen,
		                        .wants_lock = i->o->write_lock_path != NULL,
		                        .rebuild = i->o->rebuild,
		                        .cancel = &cancel_flag,
		                        .log_path = log_path };

	if (read_lock(i, err) < 0)
		return -1;
	opts.lock = i->have_lock ? &i->given : NULL;
	opts.wheels = i->wheels;
	fa_report_describe(i->report, i->o->facts, i->o->plan);
	if (fa_execute(&i->result, &i->env, &i->made, i->report, &opts, &sink, err) < 0)
		return -1;
	if (verify(i->report, i->o, i->env.python ? i->env.python : fa_facts_text(i->o->facts, FA_FACT_PYTHON_PATH),
	           i->result.cuda_home, NULL, err) < 0)
		return -1;
	return finish(i, err);
}

static int install_job(struct fa_report *report, const struct fa_job_opts *o, struct fa_err *err)
{
	struct install i = { .o = o, .report = report, .env = FA_ENVIRONMENT_INIT };
	struct fa_child_context calm = { .sink = &sink, .log_path = log_path, .step = -1 };
	int rc;

	fa_environment_empty_trash();
	rc = install(&i, err);
	if (rc < 0) {
		tidying = !i.env.fresh; /* a fresh one is out of the way at once */
		fa_environment_undo(&i.env, &calm);
		tidying = 0;
	}
	fa_environment_release(&i.env);
	fa_lock_release(&i.given);
	fa_lock_release(&i.made);
	free(i.result.wheel);
	free(i.result.cuda_home);
	free(i.wheels);
	return rc;
}

/* ---- main */

static int run(const struct fa_job_opts *o, struct fa_err *err)
{
	struct fa_report *report = fa_report_new();
	int rc = o->kind == FA_JOB_INSTALL ? install_job(report, o, err) : verify_job(report, o, err);

	if (rc < 0)
		fa_json_set_string(fa_report_json(report), "error", err->text);
	write_report(report, o, rc < 0 && err->status != FA_CHECK ? "failed" : NULL);
	fa_report_free(report);
	return rc;
}

int fa_job_worker_main(void)
{
	struct fa_job_read job = { 0 };
	struct fa_err err = FA_ERR_INIT;
	char *log = NULL;
	int rc = -1;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	catch_signals();
	fa_proc_adopt_orphans();
	if (read_job(&job, &err) < 0)
		goto done;
	log_path = log = open_log(&err);
	if (!log || start_watching() < 0)
		goto done;
	fa_emit_text(&sink, FA_EVENT_NOTE, "log", "log: %s", log);
	rc = run(&job.opts, &err);
done:
	fa_proc_kill_tree(getpid(), 500);
	if (rc < 0 && cancel_flag && err.status != FA_INTERRUPTED)
		fa_err_set(&err, FA_INTERRUPTED, "interrupted");
	if (rc < 0 && err.status != FA_INTERRUPTED) {
		tell_error(&err);
		tell_causes(job.opts.facts);
	}
	tell_done(rc < 0 ? err.status : FA_OK, rc == 0 ? "done" : err.status == FA_INTERRUPTED ? "interrupted" : err.text);
	fa_job_read_release(&job);
	/* `log` stays: the watching thread may still use it */
	return rc < 0 ? (int)err.status : 0;
}
