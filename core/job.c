/* The front end's side of a job: starts fainstall-worker, reads its events, stops it. */
#include "job.h"

#include "buf.h"
#include "file.h"
#include "job_json.h"
#include "json.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	GRACE_MS = 4000,   /* the worker's own 2 s, and as much again to tidy up */
	KILL_MS = 200,     /* SIGTERM to SIGKILL for what a dead worker left */
	READ_SIZE = 65536, /* bytes at a time */
	LINE_MAX_BYTES = 1 << 20,
};

struct fa_job {
	pid_t pid;        /* 0: reaped */
	int to, from;     /* socket to its stdin, pipe from its stdout; -1 closed */
	int poll, timer;  /* what fa_job_fd() gives; the time limit after a cancel */
	int life;         /* pidfd of the worker: readable once it is dead; -1: the kernel has none */
	int complaints;   /* unlinked file that is its stderr */
	struct fa_buf in; /* received, not yet read as events */
	size_t used;      /* bytes of it that are */
	bool cancelled;   /* by us */
	bool done;        /* DONE was given */
	bool error_told;  /* the ERROR before a DONE that is made here */
	bool ended;       /* end of its output, and reaped */
	int wait_status;
	struct timespec begun;
};

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

/* ---- starting */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static _Noreturn void become_worker(const char *program, int in, int out, int complaints)
{
	const char *const argv[] = { program, NULL };
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(complaints, 2) >= 0)
		execv(program, (char *const *)argv);
	dprintf(2, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

static int watch(struct fa_job *j, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(j->poll, EPOLL_CTL_ADD, fd, &e);
}

static int open_channels(struct fa_job *j, int child[2], struct fa_err *err)
{
	int in[2], out[2];
	FILE *complaints;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0)
		return fa_err_set(err, FA_INTERNAL, "no socket for the worker: %s", strerror(errno));
	j->to = in[0];
	child[0] = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return fa_err_set(err, FA_INTERNAL, "no pipe for the worker: %s", strerror(errno));
	j->from = out[0];
	child[1] = out[1];
	complaints = tmpfile();
	if (complaints) {
		j->complaints = fcntl(fileno(complaints), F_DUPFD_CLOEXEC, 3);
		fclose(complaints);
	} else {
		j->complaints = open("/dev/null", O_RDWR | O_CLOEXEC);
	}
	j->poll = epoll_create1(EPOLL_CLOEXEC);
	j->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (j->complaints < 0 || j->poll < 0 || j->timer < 0 || watch(j, j->from) < 0 || watch(j, j->timer) < 0 ||
	    fcntl(j->from, F_SETFL, O_NONBLOCK) < 0)
		return fa_err_set(err, FA_INTERNAL, "no channel for the worker: %s", strerror(errno));
	return 0;
}

/* A worker that dies while it is written to ends the write; fa_job_next() then tells of its death. */
static void send_job(struct fa_job *j, const struct fa_job_opts *opts)
{
	struct fa_json *json = fa_job_to_json(opts);
	char *text = fa_json_print(json, false);
	struct fa_buf line = FA_BUF_INIT;

	fa_buf_addf(&line, "%s\n", text);
	for (size_t at = 0; at < line.len;) {
		ssize_t n = send(j->to, line.data + at, line.len - at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	fa_buf_release(&line);
	free(text);
	fa_json_free(json);
}

int fa_job_start(struct fa_job **out, const struct fa_job_opts *opts, struct fa_err *err)
{
	struct fa_job *j = fa_calloc(1, sizeof(*j));
	char *program = fa_dir_own("fainstall-worker", err);
	int child[2] = { -1, -1 }, rc = -1;

	j->to = j->from = j->poll = j->timer = j->life = j->complaints = -1;
	clock_gettime(CLOCK_MONOTONIC, &j->begun);
	if (!program || open_channels(j, child, err) < 0)
		goto done;
	fa_proc_adopt_orphans();
	j->pid = fork();
	if (j->pid < 0) {
		j->pid = 0;
		fa_err_set(err, FA_MACHINE, "%s could not be started: %s", program, strerror(errno));
		goto done;
	}
	if (j->pid == 0)
		become_worker(program, child[0], child[1], j->complaints);
	setpgid(j->pid, j->pid);
	j->life = (int)syscall(SYS_pidfd_open, j->pid, 0);
	if (j->life >= 0)
		watch(j, j->life);
	close_fd(&child[0]);
	close_fd(&child[1]);
	send_job(j, opts);
	rc = 0;
done:
	free(program);
	close_fd(&child[0]);
	close_fd(&child[1]);
	if (rc < 0) {
		fa_job_free(j);
		j = NULL;
	}
	*out = j;
	return rc;
}

int fa_job_fd(const struct fa_job *j)
{
	return j->poll;
}

/* ---- events */

/* Takes one whole line out of what was received; NULL: none yet. Borrowed until the next call. */
static char *next_line(struct fa_job *j)
{
	char *start, *end;

	if (j->in.len == j->used)
		return NULL;
	start = j->in.data + j->used;
	end = memchr(start, '\n', j->in.len - j->used);
	if (!end)
		return NULL;
	*end = '\0';
	j->used = (size_t)(end + 1 - j->in.data);
	return start;
}

static void drop_used(struct fa_job *j)
{
	if (!j->used)
		return;
	memmove(j->in.data, j->in.data + j->used, j->in.len - j->used);
	j->in.len -= j->used;
	j->used = 0;
}

/* false: nothing came, or the end, which closes `from`. */
static bool receive(struct fa_job *j)
{
	ssize_t n;

	if (j->from < 0)
		return false;
	drop_used(j);
	if (j->in.len > LINE_MAX_BYTES)
		fa_buf_reset(&j->in); /* no line of ours is so long */
	fa_buf_reserve(&j->in, READ_SIZE);
	n = read(j->from, j->in.data + j->in.len, READ_SIZE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close_fd(&j->from);
		return false;
	}
	j->in.len += (size_t)n;
	return true;
}

static void kill_worker(struct fa_job *j)
{
	if (j->pid)
		kill(j->pid, SIGKILL); /* first: what it has started is ours then, and it starts no more */
}

/* The time limit after a cancel. */
static void look_at_timer(struct fa_job *j)
{
	uint64_t times;

	if (j->timer >= 0 && read(j->timer, &times, sizeof(times)) == sizeof(times))
		kill_worker(j);
}

/* The worker ended its output: it is gone, or as good as gone. What it left running is ended too. */
static void bury(struct fa_job *j)
{
	if (j->ended)
		return;
	if (j->pid) {
		struct timespec nap = { .tv_nsec = 5000000 };
		int tries = 400; /* 2 s: it closes its output by exiting */

		while (waitpid(j->pid, &j->wait_status, WNOHANG) == 0) {
			if (tries-- == 0)
				kill_worker(j);
			nanosleep(&nap, NULL);
		}
		j->pid = 0;
	}
	fa_proc_kill_tree(getpid(), KILL_MS);
	j->ended = true;
}

/* Dead, though something that it started may still hold the pipe? Then what it wrote is all there. */
static bool is_dead(struct fa_job *j)
{
	if (j->pid && waitpid(j->pid, &j->wait_status, WNOHANG) == j->pid)
		j->pid = 0;
	return !j->pid;
}

/* The last line that it wrote to stderr, "" when none. */
static void last_complaint(struct fa_job *j, char *out, size_t size)
{
	char text[4096];
	off_t len = lseek(j->complaints, 0, SEEK_END);
	ssize_t n;
	char *line;

	out[0] = '\0';
	if (len <= 0)
		return;
	n = pread(j->complaints, text, sizeof(text) - 1, len > (off_t)sizeof(text) - 1 ? len - (off_t)sizeof(text) + 1 : 0);
	if (n <= 0)
		return;
	text[n] = '\0';
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	line = strrchr(text, '\n');
	snprintf(out, size, ": %.400s", line ? line + 1 : text);
}

static void tell_death(struct fa_job *j, struct fa_event *e)
{
	char complaint[512];

	*e = fa_event_new(FA_EVENT_ERROR);
	e->code = FA_INTERNAL;
	last_complaint(j, complaint, sizeof(complaint));
	if (WIFSIGNALED(j->wait_status) && WTERMSIG(j->wait_status) == SIGKILL)
		snprintf(e->text, sizeof(e->text), "fainstall-worker was killed (signal 9)%s", complaint);
	else if (WIFSIGNALED(j->wait_status))
		snprintf(e->text, sizeof(e->text), "fainstall-worker crashed (signal %d, %s)%s", WTERMSIG(j->wait_status),
		         strsignal(WTERMSIG(j->wait_status)), complaint);
	else
		snprintf(e->text, sizeof(e->text), "fainstall-worker ended without a result (exit %d)%s",
		         WEXITSTATUS(j->wait_status), complaint);
	snprintf(e->next, sizeof(e->next), "%s", "run it again: it goes on from what is done; the log is in the state folder");
}

/* The worker died without a DONE: an ERROR, unless we stopped it, and the DONE are made here. */
static int make_end(struct fa_job *j, struct fa_event *e)
{
	bool stopped = j->cancelled;

	if (!stopped && !j->error_told) {
		tell_death(j, e);
		j->error_told = true;
		return 1;
	}
	*e = fa_event_new(FA_EVENT_DONE);
	e->code = stopped ? FA_INTERRUPTED : FA_INTERNAL;
	e->status = FA_OUTCOME_FAILED;
	e->seconds = seconds_since(&j->begun);
	snprintf(e->text, sizeof(e->text), "%s", stopped ? "interrupted" : "the worker died");
	j->done = true;
	return 1;
}

static int read_event(struct fa_job *j, struct fa_event *e)
{
	struct fa_json *json;
	char *line;
	int rc;

	while ((line = next_line(j))) {
		if (fa_json_parse(&json, line, strlen(line), "worker", NULL) < 0)
			continue; /* something a library printed */
		rc = fa_event_from_json(e, json, NULL);
		fa_json_free(json);
		if (rc == 0) {
			j->done = e->kind == FA_EVENT_DONE;
			return 1;
		}
	}
	return 0;
}

static int drain(struct fa_job *j, struct fa_event *e)
{
	do {
		if (read_event(j, e))
			return 1;
	} while (receive(j));
	return 0;
}

int fa_job_next(struct fa_job *j, struct fa_event *e)
{
	if (j->done) {
		bury(j);
		return -1;
	}
	look_at_timer(j);
	if (drain(j, e))
		return 1;
	if (j->from >= 0) {
		if (!is_dead(j))
			return 0;
		if (drain(j, e))
			return 1;
		close_fd(&j->from);
	}
	bury(j);
	return make_end(j, e);
}

/* ---- stopping */

void fa_job_cancel(struct fa_job *j)
{
	struct itimerspec limit = { .it_value = { .tv_sec = GRACE_MS / 1000, .tv_nsec = GRACE_MS % 1000 * 1000000L } };

	if (j->cancelled || j->ended)
		return;
	j->cancelled = true;
	if (j->pid)
		kill(j->pid, SIGTERM);
	close_fd(&j->to);
	timerfd_settime(j->timer, 0, &limit, NULL);
}

void fa_job_drain(struct fa_job *j)
{
	static const char word[] = FA_JOB_DRAIN "\n";

	if (!j->cancelled && !j->ended && j->to >= 0)
		send(j->to, word, sizeof(word) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void fa_job_free(struct fa_job *j)
{
	if (!j)
		return;
	if (!j->done && !j->ended)
		kill_worker(j);
	bury(j);
	close_fd(&j->to);
	close_fd(&j->from);
	close_fd(&j->poll);
	close_fd(&j->timer);
	close_fd(&j->life);
	close_fd(&j->complaints);
	fa_buf_release(&j->in);
	free(j);
}
