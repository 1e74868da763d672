#include "sys_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTPUT = 4 << 20 };

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void close_pair(int fd[2])
{
	if (fd[0] >= 0)
		close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
}

static void restore_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child: standard streams in place, a group of its own. */
static void child_setup(int out, int err)
{
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	restore_signals();
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(127);
	closefrom(3);
}

/* Returns in the child with 0, in the parent with 1, -1 when it could not be started. */
static int start(struct fa_child *c, unsigned timeout_ms)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };

	*c = (struct fa_child){ .pid = -1, .out = -1, .err = -1, .deadline_ms = now_ms() + timeout_ms };
	c->result.result = FA_SYS_DENIED;
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		goto fail;
	c->pid = fork();
	if (c->pid < 0)
		goto fail;
	if (c->pid == 0) {
		child_setup(out[1], err[1]);
		return 0;
	}
	setpgid(c->pid, c->pid); /* both sides, so that neither has to wait */
	close(out[1]);
	close(err[1]);
	c->out = out[0];
	c->err = err[0];
	return 1;
fail:
	close_pair(out);
	close_pair(err);
	return -1;
}

void fa_child_exec(struct fa_child *c, const char *program, const char *const *argv, unsigned timeout_ms)
{
	if (start(c, timeout_ms) != 0)
		return;
	execv(program, (char *const *)argv);
	_exit(errno == ENOENT ? 127 : 126);
}

static void write_out(const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(1, data, len);

		if (n < 0 && errno != EINTR)
			return;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

void fa_child_call(struct fa_child *c, fa_answer *answer, const char *question, unsigned timeout_ms)
{
	struct fa_buf text = FA_BUF_INIT;

	if (start(c, timeout_ms) != 0)
		return;
	answer(&text, question);
	write_out(fa_buf_str(&text), text.len);
	_exit(0); /* without what our side would do at its end */
}

/* false: this stream has ended. */
static bool take(int fd, struct fa_buf *into)
{
	ssize_t n;

	fa_buf_reserve(into, 65536);
	n = read(fd, into->data + into->len, 65536);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (into->len + (size_t)n <= MAX_OUTPUT)
		into->len += (size_t)n; /* what is beyond is read and dropped */
	into->data[into->len] = '\0';
	return n > 0;
}

static void read_streams(struct fa_child *c)
{
	struct pollfd p[2] = { { c->out, POLLIN, 0 }, { c->err, POLLIN, 0 } };

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		int64_t left = c->deadline_ms - now_ms();
		int n = poll(p, 2, left > 0 ? (int)left : 0); /* late for us is not late for it: what it said is taken */

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			c->result.result = FA_SYS_TIMED_OUT;
			return;
		}
		if (p[0].revents && !take(c->out, &c->result.out))
			p[0].fd = -1;
		if (p[1].revents && !take(c->err, &c->result.err))
			p[1].fd = -1;
	}
}

/* A child may close its streams and go on: it gets what is left of its time. */
static bool wait_until(pid_t pid, int64_t deadline_ms, int *status)
{
	for (;;) {
		pid_t got = waitpid(pid, status, WNOHANG);
		struct timespec pause = { 0, 1000000 };

		if (got == pid || (got < 0 && errno != EINTR))
			return got == pid;
		if (now_ms() >= deadline_ms)
			return false;
		nanosleep(&pause, NULL);
	}
}

static void end(struct fa_child *c)
{
	int status = 0;
	bool ended = wait_until(c->pid, c->deadline_ms, &status);

	kill(-c->pid, SIGKILL); /* also what it left behind */
	if (!ended) {
		c->result.result = FA_SYS_TIMED_OUT;
		/* one that hangs in the kernel does not die: it is not waited for longer */
		wait_until(c->pid, now_ms() + 200, &status);
		return;
	}
	if (WIFSIGNALED(status)) {
		c->result.result = FA_SYS_CRASHED;
		c->result.signal = WTERMSIG(status);
		return;
	}
	c->result.exit_status = WEXITSTATUS(status);
}

void fa_child_finish(struct fa_child *c, struct fa_command_result *out)
{
	if (c->pid >= 0) {
		c->result.result = FA_SYS_DONE;
		read_streams(c);
		close(c->out);
		close(c->err);
		end(c);
	}
	*out = c->result;
	*c = (struct fa_child){ .pid = -1, .out = -1, .err = -1 };
}
