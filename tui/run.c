/* The loop: keys, events of the job and a fresh look at the machine go into the model; what the model wants is done here. */
#include "tui.h"

#include "closing.h"
#include "draw.h"
#include "screen.h"
#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REDRAW_MS = 100, STOP_MS = 5000, LIST_MS = 8000 /* an index that was named: the keys wait for it */ };

struct wizard {
	struct tui_model m;
	struct tui_grid grid;
	const struct tui_opts *opts;
	struct fa_matrix *matrix;
	struct fa_facts facts, old_facts;
	struct fa_plan plan;
	struct fa_job *job;
	pid_t reader; /* child that reads the machine; 0 none */
	int reader_fd;
	struct fa_buf read; /* what it said */
	char *lock;         /* its name, when chosen here */
	char *environment;  /* that is adopted without --env */
	int64_t shown_ms;
	bool dirty, anew, plain, tty_gone;
};

static volatile sig_atomic_t got_signal;
static int wake[2] = { -1, -1 };

/* A byte in the pipe wakes the loop also when the signal came just before poll. */
static void on_signal(int sig)
{
	int saved = errno;
	if (sig != SIGWINCH)
		got_signal = sig;
	if (write(wake[1], "", 1) < 0) /* full: somebody will wake up anyway */
		errno = saved;
	errno = saved;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the plan */

static void make_plan(struct wizard *w)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_plan fresh = FA_PLAN_INIT;
	bool made = fa_source_add(w->matrix, &w->m.wish, LIST_MS, &err) == 0 &&
	            fa_resolve(&fresh, &w->facts, &w->m.wish, w->matrix, &err) == 0 &&
	            (fresh.status == FA_PLAN_IMPOSSIBLE || fa_plan_steps(&fresh, &w->facts, w->matrix, &err) == 0);
	tui_model_set_plan(&w->m, made ? &fresh : NULL, &err);
	fa_plan_release(&w->plan);
	w->plan = fresh;
	w->m.plan = made ? &w->plan : NULL;
}

/* ---- the machine, read again in a child: a probe that hangs must not stop the keys */

static void read_machine(struct wizard *w)
{
	int fds[2];
	if (w->opts->foreign || w->reader || pipe2(fds, O_CLOEXEC) < 0) {
		w->m.reading = w->reader != 0;
		return;
	}
	w->reader = fork();
	if (w->reader == 0) {
		struct fa_facts facts = FA_FACTS_INIT;
		struct fa_sys sys;
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		fa_sys_real(&sys);
		fa_detect(&facts, &sys, fa_wish_get(&w->m.wish, FA_WISH_ENV));
		char *text = fa_json_print(fa_facts_to_json(&facts), false);
		for (size_t at = 0, len = strlen(text); at < len;) {
			ssize_t n = write(fds[1], text + at, len - at);
			if (n <= 0)
				_exit(1);
			at += (size_t)n;
		}
		_exit(0);
	}
	close(fds[1]);
	w->reader_fd = fds[0];
	if (w->reader < 0) {
		close(fds[0]);
		w->reader = 0;
		w->m.reading = false;
	}
	fa_buf_reset(&w->read);
}

static void machine_read(struct wizard *w)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_json *j = NULL;
	struct fa_facts fresh = FA_FACTS_INIT;
	close(w->reader_fd);
	waitpid(w->reader, NULL, 0);
	w->reader = 0;
	if (fa_json_parse(&j, fa_buf_str(&w->read), w->read.len, "facts", &err) == 0 &&
	    fa_facts_from_json(&fresh, j, "facts", &err) == 0) {
		fa_facts_release(&w->old_facts);
		w->old_facts = w->facts;
		w->facts = fresh;
		w->m.plan_on = false;
	} else {
		fa_facts_release(&fresh);
		tui_say(&w->m, "The machine could not be read again: %.300s", err.text);
	}
	fa_json_free(j);
	tui_model_set_facts(&w->m, &w->facts);
	make_plan(w);
}

static void reader_ready(struct wizard *w)
{
	fa_buf_reserve(&w->read, 65536);
	ssize_t n = read(w->reader_fd, w->read.data + w->read.len, 65536);
	if (n > 0) {
		w->read.len += (size_t)n;
		w->read.data[w->read.len] = '\0';
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		machine_read(w);
	}
}

/* ---- the job */

static void start_job(struct wizard *w)
{
	struct fa_err err = FA_ERR_INIT;
	struct fa_job_opts o = { .kind = FA_JOB_INSTALL,
		                 .plan = &w->plan,
		                 .facts = &w->facts,
		                 .lock_path = w->opts->lock_path,
		                 .write_lock_path = w->m.start.write_lock_path,
		                 .rebuild = w->opts->rebuild,
		                 .strict = w->opts->strict,
		                 .verify = FA_VERIFY_NORMAL };
	fa_job_free(w->job);
	w->job = NULL;
	if (fa_job_start(&w->job, &o, &err) == 0)
		return;
	struct fa_event e = fa_event_new(FA_EVENT_ERROR);
	e.code = err.status;
	snprintf(e.text, sizeof e.text, "%s", err.text);
	snprintf(e.next, sizeof e.next, "%s", err.next);
	tui_model_event(&w->m, &e);
	e = fa_event_new(FA_EVENT_DONE);
	e.code = err.status;
	e.seconds = 0;
	tui_model_event(&w->m, &e);
}

static void job_ready(struct wizard *w)
{
	struct fa_event e;
	int got = 0;
	/* Not without end: keys are read in between. */
	for (int i = 0; i < 500 && (got = fa_job_next(w->job, &e)) == 1; i++)
		tui_model_event(&w->m, &e);
	if (got < 0) {
		fa_job_free(w->job);
		w->job = NULL;
	}
	w->dirty = true;
}

/* Ends what runs and waits for its end: nothing of ours goes on without us. */
static void stop_job(struct wizard *w)
{
	struct fa_event e;
	int64_t until = now_ms() + STOP_MS;
	if (!w->job)
		return;
	fa_job_cancel(w->job);
	while (now_ms() < until && w->m.work.running) {
		struct pollfd p = { fa_job_fd(w->job), POLLIN, 0 };
		poll(&p, 1, 100);
		int got;
		while ((got = fa_job_next(w->job, &e)) == 1)
			tui_model_event(&w->m, &e);
		if (got < 0)
			break;
	}
	fa_job_free(w->job);
	w->job = NULL;
}

/* ---- what the model wants */

static bool carry_out(struct wizard *w)
{
	unsigned want = w->m.want;
	w->m.want = 0;
	if (want & TUI_WANT_FACTS)
		read_machine(w);
	if ((want & TUI_WANT_PLAN) && !w->reader)
		make_plan(w);
	if (want & TUI_WANT_START)
		start_job(w);
	if ((want & TUI_WANT_STOP) && w->job)
		fa_job_cancel(w->job);
	if ((want & TUI_WANT_DRAIN) && w->job)
		fa_job_drain(w->job);
	if (want & TUI_WANT_SUSPEND)
		tui_term_suspend();
	if (want & TUI_WANT_COPY)
		tui_term_clipboard(w->m.copied);
	if (want & (TUI_WANT_REDRAW | TUI_WANT_SUSPEND)) {
		w->anew = true;
		w->m.want = 0;
	}
	w->dirty |= want != 0;
	w->plain = want & TUI_WANT_PLAIN;
	return !(want & (TUI_WANT_QUIT | TUI_WANT_PLAIN));
}

static void take_size(struct wizard *w)
{
	int rows, cols;
	tui_term_size(&rows, &cols);
	if (rows != w->m.rows || cols != w->m.cols) {
		tui_model_resize(&w->m, rows, cols);
		w->dirty = w->anew = true;
	}
}

/* ---- the loop */

static bool read_keys(struct wizard *w)
{
	uint32_t key;
	while ((key = tui_term_key()) != 0) {
		if (key == TUI_TERM_RESIZED)
			take_size(w);
		else
			tui_model_key(&w->m, key);
		w->dirty = true;
		if (w->m.want && !carry_out(w))
			return false;
	}
	return true;
}

static void show(struct wizard *w)
{
	w->grid.ascii = tui_term_ascii();
	tui_draw(&w->grid, &w->m);
	tui_term_show(&w->grid, w->anew);
	w->dirty = w->anew = false;
	w->shown_ms = now_ms();
}

/* How long poll may wait: for the next picture when one is due, a second while times run, else for ever. */
static int wait_ms(const struct wizard *w)
{
	int64_t due = w->shown_ms + REDRAW_MS - now_ms();
	if (w->dirty)
		return due < 0 ? 0 : (int)due;
	return w->m.work.running ? 1000 : -1;
}

static bool turn(struct wizard *w)
{
	struct pollfd fds[] = { { STDIN_FILENO, POLLIN, 0 },
		                { wake[0], POLLIN, 0 },
		                { w->job ? fa_job_fd(w->job) : -1, POLLIN, 0 },
		                { w->reader ? w->reader_fd : -1, POLLIN, 0 } };
	char drain[64];
	int n = poll(fds, 4, wait_ms(w));
	bool keys = n > 0 && fds[0].revents & POLLIN;
	tui_model_tick(&w->m, now_ms());
	take_size(w);
	if (n == 0 && w->m.work.running)
		w->dirty = true;
	if (n > 0 && fds[1].revents && read(wake[0], drain, sizeof drain) < 0 && errno != EAGAIN)
		return false;
	if (got_signal)
		return false;
	if (n > 0 && !keys && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) {
		w->tty_gone = true;
		return false;
	}
	if (n > 0 && fds[2].revents)
		job_ready(w);
	if (n > 0 && fds[3].revents) {
		reader_ready(w);
		w->dirty = true;
	}
	if (!read_keys(w) || (w->m.want && !carry_out(w)))
		return false;
	if (w->dirty && (keys || w->anew || now_ms() - w->shown_ms >= REDRAW_MS))
		show(w);
	return true;
}

/* SIGWINCH is curses' own until here; the size is asked each time the loop turns. */
static const int signals[] = { SIGTERM, SIGHUP, SIGINT, SIGWINCH };
enum { N_SIGNALS = sizeof signals / sizeof *signals };

static void catch_signals(struct sigaction old[N_SIGNALS])
{
	struct sigaction action = { .sa_handler = on_signal };
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &action, &old[i]);
}

static void release_signals(const struct sigaction old[N_SIGNALS])
{
	for (int i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &old[i], NULL);
	close(wake[0]);
	close(wake[1]);
}

static void wizard_release(struct wizard *w)
{
	if (w->reader) {
		kill(w->reader, SIGKILL);
		waitpid(w->reader, NULL, 0);
		close(w->reader_fd);
	}
	fa_job_free(w->job);
	tui_model_release(&w->m);
	tui_grid_release(&w->grid);
	fa_facts_release(&w->facts);
	fa_facts_release(&w->old_facts);
	fa_plan_release(&w->plan);
	fa_buf_release(&w->read);
	free(w->lock);
	free(w->environment);
}

/* Where the lock goes: where it was asked for, else requirements.lock here, or the next name that is free: a lock that is there
 * already is somebody's. */
static const char *choose_lock(struct wizard *w)
{
	if (w->opts->write_lock_path || w->opts->lock_path)
		return w->opts->write_lock_path ? w->opts->write_lock_path : w->opts->lock_path;
	w->lock = fa_strdup("requirements.lock");
	for (int i = 2; i < 1000 && fa_file_exists(w->lock); i++) {
		free(w->lock);
		w->lock = fa_strf("requirements-%d.lock", i);
	}
	return w->lock;
}

static void wizard_init(struct wizard *w, const struct fa_facts *facts, const struct fa_wish *wish)
{
	w->environment = fa_plan_environment(facts);
	if (w->environment && !*w->environment) {
		free(w->environment);
		w->environment = fa_strdup("the environment that holds torch");
	}
	struct tui_start start = { .active_env = w->environment,
		                   .lock_path = w->opts->lock_path,
		                   .write_lock_path = choose_lock(w),
		                   .foreign = w->opts->foreign,
		                   .rebuild = w->opts->rebuild,
		                   .strict = w->opts->strict };
	fa_facts_merge(&w->facts, facts);
	tui_model_init(&w->m, &start, wish);
	tui_model_set_facts(&w->m, &w->facts);
	make_plan(w);
}

static bool wants_color(enum tui_color color)
{
	const char *no = getenv("NO_COLOR");
	return color == TUI_COLOR_ALWAYS || (color == TUI_COLOR_AUTO && !(no && *no));
}

static int leave(struct wizard *w)
{
	struct fa_buf lines = FA_BUF_INIT;
	int rc = w->plain ? TUI_PLAIN : w->m.exit;
	if (w->tty_gone)
		return FA_INTERRUPTED;
	if (rc != TUI_PLAIN) {
		tui_closing_print(&lines, &w->m);
		fputs(fa_buf_str(&lines), stdout);
		fflush(stdout);
	}
	fa_buf_release(&lines);
	return rc;
}

int tui_run(const struct fa_facts *facts, const struct fa_wish *wish, struct fa_matrix *matrix, const struct tui_opts *opts)
{
	static const struct tui_opts none;
	struct wizard w = { .opts = opts ? opts : &none, .matrix = matrix, .dirty = true, .anew = true };
	struct sigaction old[N_SIGNALS];
	char why[256];
	int rc;
	if (tui_term_open(why, sizeof why, wants_color(w.opts->color)) < 0) {
		fprintf(stderr, "fainstall: %s; going on in plain lines.\n", why);
		return TUI_PLAIN;
	}
	got_signal = 0;
	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
		wake[0] = wake[1] = -1;
	catch_signals(old);
	wizard_init(&w, facts, wish);
	take_size(&w);
	show(&w);
	while (turn(&w))
		;
	stop_job(&w);
	tui_term_close();
	release_signals(old);
	rc = leave(&w);
	wizard_release(&w);
	if (got_signal) {
		signal(got_signal, SIG_DFL);
		raise(got_signal);
	}
	return rc;
}
