#include "supervise.h"

#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHANNEL = 3, OUT = 4, ERR = 5, FIRST_FREE = 6, SAMPLE_MS = 250 };

struct supervisor {
	pid_t child;
	bool child_ended;
	int status;
	int signals; /* signalfd */
	bool stop;
	int64_t peak_kib;
	int64_t own_kib; /* a child's maxrss starts with what its parent had at fork: up to this it says nothing */
};

static int64_t clock_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* Known numbers for the three descriptors that are ours, /dev/null on 0 to 2, nothing else: a pipe of the host program that
 * stayed open here would keep its reader waiting. */
static void take_descriptors(const struct fa_supervise_order *o)
{
	int channel = fcntl(o->channel, F_DUPFD, 16);
	int out = fcntl(o->out_fd, F_DUPFD, 16);
	int err = o->err_fd < 0 ? -1 : fcntl(o->err_fd, F_DUPFD, 16);
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	dup3(channel, CHANNEL, O_CLOEXEC);
	dup3(out, OUT, O_CLOEXEC);
	dup3(err < 0 ? out : err, ERR, O_CLOEXEC);
	closefrom(FIRST_FREE);
}

static void default_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			sigaction(s, &dfl, NULL);
}

static int open_signals(void)
{
	sigset_t all, watched;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGTERM);
	sigaddset(&watched, SIGINT);
	sigaddset(&watched, SIGHUP);
	return signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int spawn(pid_t *pid, const struct fa_supervise_order *o)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, OUT, 1);
	posix_spawn_file_actions_adddup2(&files, ERR, 2);
	posix_spawn_file_actions_addclosefrom_np(&files, 3);
	if (o->in_path)
		posix_spawn_file_actions_addopen(&files, 0, o->in_path, O_RDONLY, 0);
	if (o->cwd)
		posix_spawn_file_actions_addchdir_np(&files, o->cwd);
	rc = posix_spawn(pid, o->program, &files, &attr, o->argv, o->envp);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return rc;
}

static void report(struct supervisor *s, enum fa_supervise_kind kind, int error, int64_t tree_kib, int left, bool must)
{
	struct fa_supervise_report r = {
		.kind = kind, .error = error, .wait_status = s->status, .left = left, .pid = s->child
	};
	struct pollfd p = { .fd = CHANNEL, .events = POLLOUT };
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	if (used.ru_maxrss > s->own_kib && used.ru_maxrss > s->peak_kib)
		s->peak_kib = used.ru_maxrss;
	r.tree_kib = tree_kib;
	r.peak_kib = s->peak_kib;
	r.cpu_seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	                (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	while (send(CHANNEL, &r, sizeof(r), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && must && (errno == EAGAIN || errno == EINTR))
		poll(&p, 1, 1000);
}

/* Every ended child, ours or adopted, is reaped; only the command's own status is kept. */
static bool reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == s->child) {
			s->child_ended = true;
			s->status = status;
		}
	return pid < 0; /* none left */
}

static void wait_for_something(struct supervisor *s, int timeout_ms)
{
	struct pollfd p[2] = { { .fd = s->signals, .events = POLLIN }, { .fd = CHANNEL, .events = s->stop ? 0 : POLLIN } };
	struct signalfd_siginfo info;
	char order;

	if (s->stop)
		p[1].fd = -1;
	poll(p, 2, timeout_ms);
	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			s->stop = true;
	if (p[1].revents && (recv(CHANNEL, &order, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN))
		s->stop = true;
}

static void sample(struct supervisor *s, bool tell)
{
	int64_t kib = fa_tree_resident_kib(getpid());

	if (kib > s->peak_kib)
		s->peak_kib = kib;
	if (tell)
		report(s, FA_SUPERVISE_SAMPLE, 0, kib, 0, false);
}

/* Short commands are seen early, long ones cost four looks a second; fewer where a look is dear (many processes, no list of
 * children in /proc): about a fiftieth of a core. */
static void watch(struct supervisor *s)
{
	int64_t begin = now_ms(), step = 10, next = begin + step, told = begin, cost;

	while (!reap(s) && !s->child_ended && !s->stop) {
		int64_t now = now_ms();

		if (now >= next) {
			cost = -clock_ms(CLOCK_PROCESS_CPUTIME_ID);
			sample(s, now - told >= SAMPLE_MS);
			cost += clock_ms(CLOCK_PROCESS_CPUTIME_ID);
			told = now - told >= SAMPLE_MS ? now : told;
			step = step * 2 < SAMPLE_MS ? step * 2 : SAMPLE_MS;
			next = now + (cost * 50 > 2000 ? 2000 : cost * 50 > step ? cost * 50 : step);
			continue;
		}
		wait_for_something(s, (int)(next - now));
	}
}

/* Waits, at most for `ms`, until nobody is left. */
static bool all_gone_within(struct supervisor *s, int64_t ms)
{
	int64_t end = now_ms() + ms, now;

	while (!reap(s) && (now = now_ms()) < end)
		wait_for_something(s, (int)(end - now < 50 ? end - now : 50));
	return reap(s);
}

static int stop_tree(struct supervisor *s)
{
	int64_t give_up;
	struct fa_tree t;
	size_t left;
	int rest = 0;

	if (reap(s))
		return 0;
	fa_tree_init(&t, getpid());
	fa_tree_gather(&t);
	fa_tree_signal(&t, SIGTERM);
	fa_tree_signal(&t, SIGCONT); /* a stopped one would not hear the other */
	if (!all_gone_within(s, FA_SUPERVISE_GRACE_MS)) {
		give_up = now_ms() + FA_SUPERVISE_GIVE_UP_MS;
		do {
			left = fa_tree_gather(&t);
			fa_tree_signal(&t, SIGKILL);
			if (!s->child_ended)
				kill(-s->child, SIGKILL); /* also where /proc shows nothing */
		} while (!all_gone_within(s, 10) && now_ms() < give_up);
		rest = reap(s) ? 0 : (int)left;
	}
	fa_tree_release(&t);
	return rest;
}

_Noreturn void fa_supervise(const struct fa_supervise_order *order)
{
	struct supervisor s = { .child = -1 };
	struct rusage own;
	int error, left;

	setsid(); /* the terminal's Ctrl-C is the parent's to hear */
	prctl(PR_SET_NAME, "fa-supervisor");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	take_descriptors(order);
	default_signals();
	s.signals = open_signals();
	error = spawn(&s.child, order);
	close(OUT);
	close(ERR);
	getrusage(RUSAGE_SELF, &own);
	s.own_kib = own.ru_maxrss;
	if (error) {
		report(&s, FA_SUPERVISE_NOT_STARTED, error, 0, 0, true);
		_exit(0);
	}
	report(&s, FA_SUPERVISE_STARTED, 0, 0, 0, true);
	watch(&s);
	if (s.child_ended && !s.stop)
		all_gone_within(&s, FA_SUPERVISE_LINGER_MS);
	left = stop_tree(&s);
	report(&s, FA_SUPERVISE_ENDED, 0, 0, left, true);
	_exit(0);
}
