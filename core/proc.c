#include "proc.h"

#include "buf.h"
#include "file.h"
#include "supervise.h"
#include "tree.h"
#include "url.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LINE_MAX_BYTES = 65536,
	CANCEL_LOOK_MS = 50,
	/* A supervisor that says nothing for so long after it was told to stop is stuck in the kernel itself. */
	STUCK_MS = FA_SUPERVISE_GRACE_MS + FA_SUPERVISE_GIVE_UP_MS + 2000
};

struct stream {
	int fd; /* -1: at its end */
	bool is_err;
	bool cut; /* the rest of a line too long is dropped */
	bool after_cr;
	struct fa_buf line;
};

struct run {
	const struct fa_proc_opts *o;
	struct fa_proc_result r;
	struct stream streams[2];
	int log_fd;
	int channel;
	pid_t supervisor, child;
	int64_t begin_ms, output_ms, stop_ms; /* stop_ms: when it was told to stop, 0 not yet */
	int wait_status, left;
	int64_t oom_kills; /* of this machine before it began; -1 unknown */
	bool over;         /* the supervisor's last report is here, or it is gone */
	char last[400];    /* last line that said something, stderr's before stdout's */
	bool last_is_err;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* How often the kernel killed for want of memory since it started, in control groups too. -1 unknown. */
static int64_t count_oom_kills(void)
{
	struct fa_buf text = FA_BUF_INIT;
	const char *at =
	        fa_file_read(&text, "/proc/vmstat", 1 << 20, NULL) == 0 ? strstr(fa_buf_str(&text), "\noom_kill ") : NULL;
	int64_t n = at ? strtoll(at + strlen("\noom_kill "), NULL, 10) : -1;

	fa_buf_release(&text);
	return n;
}

/* ---- before: what to run */

static const char *env_value(const char *const *envp, const char *name)
{
	size_t len = strlen(name);

	if (!envp)
		return getenv(name);
	for (; *envp; envp++)
		if (!strncmp(*envp, name, len) && (*envp)[len] == '=')
			return *envp + len + 1;
	return NULL;
}

/* As execvp does, with the PATH that the command will have. NULL with *error set. */
static char *find_program(const struct fa_proc_opts *o, int *error)
{
	const char *name = o->argv[0], *path = env_value(o->envp, "PATH");
	bool denied = false;

	if (strchr(name, '/')) {
		if (access(name, X_OK) == 0)
			return fa_path_absolute(name);
		*error = errno;
		return NULL;
	}
	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; name[0] && p; p = strchr(p, ':')) {
		p += *p == ':';
		size_t len = strcspn(p, ":");
		char *dir = len ? fa_strndup(p, len) : fa_strdup("."), *joined = fa_path_join(dir, name);
		char *full = fa_path_absolute(joined);

		free(dir);
		free(joined);
		if (fa_file_is_executable(full))
			return full;
		denied = denied || (fa_file_exists(full) && !fa_file_is_dir(full));
		free(full);
		if (!p[len])
			break;
		p += len;
	}
	*error = denied ? EACCES : ENOENT;
	return NULL;
}

/* "python -m pip install x": the program without its folder, arguments cut, no secrets. */
static char *what_ran(const struct fa_proc_opts *o)
{
	struct fa_buf b = FA_BUF_INIT;
	char *shown;
	size_t i;

	fa_buf_adds(&b, fa_path_base(o->argv[0]));
	for (i = 1; o->argv[i] && b.len + strlen(o->argv[i]) < 120; i++)
		fa_buf_addf(&b, " %s", o->argv[i]);
	if (o->argv[i])
		fa_buf_adds(&b, " …");
	for (char *p = b.data; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	shown = fa_url_redact(b.data);
	fa_buf_release(&b);
	return shown;
}

/* ---- while it runs */

static void log_bytes(struct run *run, const char *data, size_t len)
{
	while (run->log_fd >= 0 && len) {
		ssize_t n = write(run->log_fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) { /* a full disk stops the log, not the command: that will say so itself */
			close(run->log_fd);
			run->log_fd = -1;
			return;
		}
		data += n;
		len -= (size_t)n;
	}
}

static void remember(struct run *run, const char *line, bool is_err)
{
	const char *text = line + strspn(line, " \t");

	if (!*text || (run->last_is_err && !is_err))
		return;
	snprintf(run->last, sizeof(run->last), "%s", text);
	run->last_is_err = is_err;
}

static void end_line(struct run *run, struct stream *s)
{
	const char *line = fa_buf_str(&s->line);

	remember(run, line, s->is_err);
	if (run->o->line)
		run->o->line(run->o->ctx, line, s->is_err);
	fa_buf_reset(&s->line);
	s->cut = false;
}

/* A line ends at LF, CR LF, and at a CR alone: programs redraw their progress with it. */
static void take_bytes(struct run *run, struct stream *s, const char *p, size_t len)
{
	while (len) {
		size_t n = 0, room = LINE_MAX_BYTES - s->line.len;

		if (s->after_cr && *p == '\n') {
			p++;
			len--;
			s->after_cr = false;
			continue;
		}
		s->after_cr = false;
		while (n < len && p[n] != '\n' && p[n] != '\r' && p[n])
			n++;
		fa_buf_add(&s->line, p, n < room ? n : room);
		if (n < len && !p[n] && n < room) {
			fa_buf_addc(&s->line, ' ');
		} else if (n < len && p[n]) {
			s->after_cr = p[n] == '\r';
			end_line(run, s);
		}
		n += n < len;
		p += n;
		len -= n;
	}
}

static void read_stream(struct run *run, struct stream *s)
{
	char buf[65536];
	ssize_t n = read(s->fd, buf, sizeof(buf));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (s->line.len)
			end_line(run, s);
		close(s->fd);
		s->fd = -1;
		return;
	}
	run->output_ms = now_ms();
	log_bytes(run, buf, (size_t)n);
	take_bytes(run, s, buf, (size_t)n);
}

static void ended(struct run *run, const struct fa_supervise_report *rep)
{
	run->over = true;
	run->wait_status = rep->wait_status;
	run->left = rep->left;
	run->r.cpu_seconds = rep->cpu_seconds;
}

static void read_channel(struct run *run)
{
	struct fa_supervise_report rep;
	ssize_t n = recv(run->channel, &rep, sizeof(rep), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(rep)) { /* it was killed from outside: only what it started can still be stopped */
		run->over = true;
		run->wait_status = SIGKILL;
		if (run->child > 0) {
			fa_proc_kill_tree(run->child, 0);
			kill(-run->child, SIGKILL);
		}
		return;
	}
	if (rep.pid > 0)
		run->child = rep.pid;
	run->r.peak_mib = (rep.peak_kib + 1023) / 1024;
	switch (rep.kind) {
	case FA_SUPERVISE_STARTED: break;
	case FA_SUPERVISE_NOT_STARTED:
		run->over = true;
		run->r.end = FA_PROC_NOT_STARTED;
		run->r.start_errno = rep.error;
		break;
	case FA_SUPERVISE_SAMPLE:
		if (run->o->tick)
			run->o->tick(run->o->ctx, (double)(now_ms() - run->begin_ms) / 1000, (rep.tree_kib + 1023) / 1024);
		break;
	case FA_SUPERVISE_ENDED: ended(run, &rep); break;
	}
}

static void stop(struct run *run, enum fa_proc_end why)
{
	run->r.end = why;
	run->stop_ms = now_ms();
	send(run->channel, "s", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void look_at_limits(struct run *run)
{
	const struct fa_proc_opts *o = run->o;
	int64_t now = now_ms();

	if (run->stop_ms) {
		if (now - run->stop_ms > STUCK_MS) {
			kill(run->supervisor, SIGKILL);
			run->left = 1;
			run->over = true;
		}
	} else if (o->cancel && *o->cancel) {
		stop(run, FA_PROC_CANCELLED);
	} else if (o->timeout_ms && now - run->begin_ms >= (int64_t)o->timeout_ms) {
		stop(run, FA_PROC_TIMED_OUT);
	} else if (o->silence_ms && now - run->output_ms >= (int64_t)o->silence_ms) {
		stop(run, FA_PROC_SILENT);
	}
}

static int sleep_ms(const struct run *run)
{
	const struct fa_proc_opts *o = run->o;
	int64_t now = now_ms(), least = o->cancel ? CANCEL_LOOK_MS : 1000, rest;

	if (!run->stop_ms && o->timeout_ms && (rest = run->begin_ms + o->timeout_ms - now) < least)
		least = rest;
	if (!run->stop_ms && o->silence_ms && (rest = run->output_ms + o->silence_ms - now) < least)
		least = rest;
	return least > 0 ? (int)least : 0;
}

static void watch(struct run *run)
{
	while (!run->over) {
		struct pollfd p[3] = { { .fd = run->channel, .events = POLLIN },
			               { .fd = run->streams[0].fd, .events = POLLIN },
			               { .fd = run->streams[1].fd, .events = POLLIN } };

		if (poll(p, 3, sleep_ms(run)) > 0) {
			for (int i = 0; i < 2; i++)
				if (p[i + 1].revents)
					read_stream(run, &run->streams[i]);
			if (p[0].revents)
				read_channel(run);
		}
		if (!run->over)
			look_at_limits(run);
	}
	/* All writers are gone but those that could not be stopped: take what lies in the pipes, wait for nothing. */
	for (int i = 0; i < 2; i++) {
		struct pollfd p = { .fd = run->streams[i].fd, .events = POLLIN };

		while (run->streams[i].fd >= 0 && poll(&p, 1, 0) > 0)
			read_stream(run, &run->streams[i]);
		if (run->streams[i].line.len)
			end_line(run, &run->streams[i]);
	}
}

/* ---- start */

static int open_log(struct run *run, struct fa_err *err)
{
	if (!run->o->log_path)
		return 0;
	run->log_fd = open(run->o->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (run->log_fd < 0)
		return fa_err_set(err, FA_MACHINE, "%s: the log cannot be written: %s", run->o->log_path, strerror(errno));
	return 0;
}

static pid_t fork_supervisor(const struct fa_supervise_order *order)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the copy */
	pid = fork();
	if (pid == 0)
		fa_supervise(order);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static int start(struct run *run, const char *program, struct fa_err *err)
{
	int out[2] = { -1, -1 }, errs[2] = { -1, -1 }, pair[2] = { -1, -1 }, rc = -1;
	struct fa_supervise_order order = { .program = program, .cwd = run->o->cwd, .in_path = run->o->in_path, .err_fd = -1 };

	if (pipe2(out, O_CLOEXEC) < 0 || (!run->o->merge && pipe2(errs, O_CLOEXEC) < 0) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		fa_err_set(err, FA_MACHINE, "no pipe for a command: %s", strerror(errno));
		goto done;
	}
	/* execve takes them without const, and leaves them alone. */
	order.argv = (char *const *)(uintptr_t)run->o->argv;
	order.envp = run->o->envp ? (char *const *)(uintptr_t)run->o->envp : environ;
	order.out_fd = out[1];
	order.err_fd = errs[1];
	order.channel = pair[1];
	run->supervisor = fork_supervisor(&order);
	if (run->supervisor < 0) {
		fa_err_set(err, FA_MACHINE, "no process for a command: %s", strerror(errno));
		goto done;
	}
	run->streams[0].fd = out[0];
	run->streams[1].fd = errs[0];
	run->channel = pair[0];
	out[0] = errs[0] = pair[0] = -1;
	rc = 0;
done:
	for (int i = 0; i < 2; i++) {
		if (out[i] >= 0)
			close(out[i]);
		if (errs[i] >= 0)
			close(errs[i]);
		if (pair[i] >= 0)
			close(pair[i]);
	}
	return rc;
}

static void reap_supervisor(struct run *run)
{
	while (run->supervisor > 0 && waitpid(run->supervisor, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- after: what to say */

static void tell_last_words(const struct run *run, struct fa_err *err)
{
	char *last = fa_url_redact(run->last);
	size_t len = err ? strlen(err->text) : 0;

	if (err && last[0])
		snprintf(err->text + len, sizeof(err->text) - len, ": %s", last);
	if (run->o->log_path)
		fa_err_next(err, "read the end of %s", run->o->log_path);
	free(last);
}

static void tell_not_started(const struct run *run, const char *what, enum fa_status status, struct fa_err *err)
{
	const char *name = run->o->argv[0];
	int e = run->r.start_errno;

	if (run->o->cwd && !fa_file_is_dir(run->o->cwd)) {
		fa_err_set(err, status, "%s: cannot start in %s: no such folder", what, run->o->cwd);
	} else if (e == ENOENT && !strchr(name, '/')) {
		fa_err_set(err, status, "%s: not found in PATH", name);
		fa_err_next(err, "install %s, or add its folder to PATH", name);
	} else if (e == ENOENT && fa_file_exists(name)) {
		fa_err_set(err, status, "%s: cannot start: the interpreter in its first line is not there", name);
	} else if (e == ENOEXEC) {
		fa_err_set(err, status, "%s: cannot start: not a program for this machine", name);
	} else {
		fa_err_set(err, status, "%s: cannot start: %s", name, strerror(e));
		if (e == EACCES)
			fa_err_next(err, "make it executable (chmod +x), or see whether its disk is mounted noexec");
	}
}

static void tell_signal(const struct run *run, const char *what, enum fa_status status, struct fa_err *err)
{
	int sig = run->r.signal;

	if (sig != SIGKILL) {
		fa_err_set(err, status, "%s: ended by signal %d (%s)", what, sig, strsignal(sig));
		tell_last_words(run, err);
		return;
	}
	fa_err_set(err, status, "%s: killed (signal 9) when its processes held %lld MiB, %s", what, (long long)run->r.peak_mib,
	           run->r.out_of_memory ? "by the kernel for want of memory" : "by somebody, or by a limit of this machine");
	if (!run->r.out_of_memory)
		fa_err_next(err, "see `dmesg` and the limits of the session or batch system that this runs in");
}

static void tell_out_of_memory(const struct run *run, struct fa_err *err)
{
	fa_err_next(err,
	            "the kernel killed a process for want of memory (tree at most %lld MiB): free memory, or run fewer jobs at "
	            "once (--jobs)",
	            (long long)run->r.peak_mib);
}

static int tell(const struct run *run, enum fa_status status, struct fa_err *err)
{
	char *what = what_ran(run->o);

	switch (run->r.end) {
	case FA_PROC_EXITED:
		fa_err_set(err, status, "%s: exit status %d", what, run->r.exit_status);
		tell_last_words(run, err);
		break;
	case FA_PROC_SIGNALLED: tell_signal(run, what, status, err); break;
	case FA_PROC_NOT_STARTED: tell_not_started(run, what, status, err); break;
	case FA_PROC_TIMED_OUT:
		fa_err_set(err, status, "%s: not done after %.0f s, stopped", what, run->o->timeout_ms / 1000.0);
		tell_last_words(run, err);
		break;
	case FA_PROC_SILENT:
		fa_err_set(err, status, "%s: said nothing for %.0f s, stopped", what, run->o->silence_ms / 1000.0);
		tell_last_words(run, err);
		break;
	case FA_PROC_CANCELLED: fa_err_set(err, FA_INTERRUPTED, "%s: stopped as asked", what); break;
	}
	if (run->r.out_of_memory && run->r.end != FA_PROC_CANCELLED)
		tell_out_of_memory(run, err);
	if (run->left)
		fa_err_next(err, "%d of its processes did not end even when killed: see `ps -eo pid,stat,args | grep ' D'`",
		            run->left);
	free(what);
	return -1;
}

static void classify(struct run *run)
{
	run->r.seconds = (double)(now_ms() - run->begin_ms) / 1000;
	run->r.out_of_memory = run->oom_kills >= 0 && count_oom_kills() > run->oom_kills;
	if (run->stop_ms || run->r.end == FA_PROC_NOT_STARTED)
		return;
	if (WIFEXITED(run->wait_status)) {
		run->r.end = FA_PROC_EXITED;
		run->r.exit_status = WEXITSTATUS(run->wait_status);
	} else {
		run->r.end = FA_PROC_SIGNALLED;
		run->r.signal = WTERMSIG(run->wait_status);
	}
}

int fa_proc_run(struct fa_proc_result *out, const struct fa_proc_opts *opts, enum fa_status on_failure, struct fa_err *err)
{
	struct run run = { .o = opts,
		           .r = { .end = FA_PROC_NOT_STARTED },
		           .streams = { { .fd = -1 }, { .fd = -1, .is_err = true } },
		           .log_fd = -1,
		           .channel = -1,
		           .oom_kills = count_oom_kills(),
		           .begin_ms = now_ms(),
		           .output_ms = now_ms() };
	char *program = find_program(opts, &run.r.start_errno);
	int rc = -1;

	if (program && opts->cwd && !fa_file_is_dir(opts->cwd))
		run.r.start_errno = ENOENT;
	if (run.r.start_errno) {
		tell(&run, on_failure, err);
		goto done;
	}
	if (open_log(&run, err) < 0)
		goto done;
	if (start(&run, program, err) < 0) {
		run.r.start_errno = EAGAIN;
		goto done;
	}
	run.r.end = FA_PROC_EXITED;
	watch(&run);
	close(run.channel); /* a supervisor that still listens stops */
	reap_supervisor(&run);
	classify(&run);
	if (run.r.end == FA_PROC_EXITED && run.r.exit_status == 0)
		rc = 0;
	else
		tell(&run, on_failure, err);
done:
	for (int i = 0; i < 2; i++) {
		if (run.streams[i].fd >= 0)
			close(run.streams[i].fd);
		fa_buf_release(&run.streams[i].line);
	}
	if (run.log_fd >= 0)
		close(run.log_fd);
	free(program);
	if (out)
		*out = run.r;
	return rc;
}

void fa_proc_adopt_orphans(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Children of ours that ended stay to be reaped by whoever waits for them; they do not count as running. */
void fa_proc_kill_tree(pid_t pid, unsigned grace_ms)
{
	struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	int64_t begin = now_ms(), now;
	struct fa_tree t;

	fa_tree_init(&t, pid);
	if (fa_tree_gather(&t) && grace_ms) {
		fa_tree_signal(&t, SIGTERM);
		fa_tree_signal(&t, SIGCONT);
	}
	for (now = begin; fa_tree_gather(&t) && now - begin < grace_ms + FA_SUPERVISE_GIVE_UP_MS; now = now_ms()) {
		if (now - begin >= grace_ms)
			fa_tree_signal(&t, SIGKILL);
		nanosleep(&pause, NULL);
	}
	fa_tree_release(&t);
}
