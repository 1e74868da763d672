#include "tree.h"

#include "buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct pids {
	pid_t *v;
	size_t n, cap;
};

static void push(struct pids *p, pid_t pid)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 32;
		p->v = fa_realloc(p->v, p->cap, sizeof(*p->v));
	}
	p->v[p->n++] = pid;
}

static bool holds(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] == pid)
			return true;
	return false;
}

static void push_once(struct pids *p, pid_t pid)
{
	if (!holds(p, pid))
		push(p, pid);
}

/* Small files of /proc in one piece; "" when it is gone. */
static size_t slurp(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	while (fd >= 0 && len + 1 < size && (n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	out[len] = '\0';
	return len;
}

/* State and parent; the name in between may hold anything, also ") R 1". */
static bool read_stat(pid_t pid, char *state, pid_t *parent)
{
	char path[48], text[1024], *end;
	int ppid;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	slurp(path, text, sizeof(text));
	end = strrchr(text, ')');
	if (!end || sscanf(end, ") %c %d", state, &ppid) != 2)
		return false;
	*parent = ppid;
	return true;
}

/* /proc/PID/task/TID/children costs little, but kernels without CONFIG_PROC_CHILDREN lack it. */
static bool have_children_files(void)
{
	static int known = -1;

	if (known < 0)
		known = access("/proc/thread-self/children", R_OK) == 0;
	return known;
}

static void children_of_task(struct pids *out, pid_t pid, const char *tid)
{
	char path[96], text[4096], *end;
	int fd;
	ssize_t n;
	size_t have = 0;

	snprintf(path, sizeof(path), "/proc/%ld/task/%.20s/children", (long)pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *p = text;

		text[have + (size_t)n] = '\0';
		while ((end = strchr(p, ' '))) { /* each number is followed by a blank */
			push_once(out, (pid_t)strtol(p, NULL, 10));
			p = end + 1;
		}
		have = strlen(p);
		memmove(text, p, have);
	}
	if (fd >= 0)
		close(fd);
}

static void children_of(struct pids *out, pid_t pid)
{
	char path[48];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			children_of_task(out, pid, e->d_name);
	if (d)
		closedir(d);
}

/* pid, parent, pid, parent, … of every process. */
static void scan_all(struct pids *out)
{
	struct dirent *e;
	pid_t pid, parent;
	char state;
	DIR *d = opendir("/proc");

	while (d && (e = readdir(d))) {
		pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid <= 0 || !read_stat(pid, &state, &parent))
			continue;
		push(out, pid);
		push(out, parent);
	}
	if (d)
		closedir(d);
}

/* Descendants of every pid that `out` holds already, appended: breadth first, so parents stand before their children. */
static void descend(struct pids *out)
{
	struct pids all = { NULL, 0, 0 };
	bool cheap = have_children_files();

	if (!cheap)
		scan_all(&all);
	for (size_t i = 0; i < out->n; i++) {
		if (cheap)
			children_of(out, out->v[i]);
		for (size_t k = 0; k + 1 < all.n; k += 2)
			if (all.v[k + 1] == out->v[i])
				push_once(out, all.v[k]);
	}
	free(all.v);
}

void fa_tree_init(struct fa_tree *t, pid_t root)
{
	*t = (struct fa_tree){ .root = root };
}

void fa_tree_release(struct fa_tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].pidfd >= 0)
			close(t->v[i].pidfd);
	free(t->v);
	t->v = NULL;
	t->n = t->cap = 0;
}

/* A pidfd turns readable when the last thread ended, reaped or not. */
static bool ended(const struct fa_tree_member *m)
{
	struct pollfd p = { .fd = m->pidfd, .events = POLLIN };
	pid_t parent;
	char state;

	if (m->pidfd >= 0)
		return poll(&p, 1, 0) > 0;
	return !read_stat(m->pid, &state, &parent) || state == 'Z' || state == 'X';
}

static void drop_ended(struct fa_tree *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!ended(&t->v[i]))
			t->v[kept++] = t->v[i];
		else if (t->v[i].pidfd >= 0)
			close(t->v[i].pidfd);
	}
	t->n = kept;
}

static void add_member(struct fa_tree *t, pid_t pid, const struct pids *tree)
{
	struct fa_tree_member m = { .pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0) };
	pid_t parent;
	char state;

	/* Between listing and opening the number may have gone to a stranger: its parent tells. */
	if (!read_stat(pid, &state, &parent) || !holds(tree, parent) || ended(&m)) {
		if (m.pidfd >= 0)
			close(m.pidfd);
		return;
	}
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 32;
		t->v = fa_realloc(t->v, t->cap, sizeof(*t->v));
	}
	t->v[t->n++] = m;
}

size_t fa_tree_gather(struct fa_tree *t)
{
	struct pids found = { NULL, 0, 0 };
	size_t roots;

	drop_ended(t);
	push(&found, t->root);
	for (size_t i = 0; i < t->n; i++)
		push(&found, t->v[i].pid);
	roots = found.n;
	descend(&found);
	for (size_t i = roots; i < found.n; i++)
		add_member(t, found.v[i], &found);
	free(found.v);
	return t->n;
}

void fa_tree_signal(const struct fa_tree *t, int sig)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].pidfd >= 0)
			syscall(SYS_pidfd_send_signal, t->v[i].pidfd, sig, NULL, 0);
		else
			kill(t->v[i].pid, sig);
	}
}

static int64_t resident_kib(pid_t pid)
{
	char path[48], text[256];
	long size, resident;

	snprintf(path, sizeof(path), "/proc/%ld/statm", (long)pid);
	if (!slurp(path, text, sizeof(text)) || sscanf(text, "%ld %ld", &size, &resident) != 2)
		return 0;
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* "pid (name) state …": the name may hold anything. Fields after it: state, 10 others, utime, stime, cutime, cstime. */
static void add_time(struct fa_tree_use *use, pid_t pid)
{
	char path[48], text[1024], state, *end;
	unsigned long user, system;
	long children_user, children_system;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if (!slurp(path, text, sizeof(text)) || !(end = strrchr(text, ')')) ||
	    sscanf(end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu %ld %ld", &state, &user, &system,
	           &children_user, &children_system) != 5)
		return;
	use->ticks += user + system + (unsigned long)children_user + (unsigned long)children_system;
	use->waits |= state == 'T' || state == 't' || state == 'D';
}

int64_t fa_tree_resident_kib(pid_t root)
{
	struct pids found = { NULL, 0, 0 };
	int64_t sum = 0;

	push(&found, root);
	descend(&found);
	for (size_t i = 1; i < found.n; i++)
		sum += resident_kib(found.v[i]);
	free(found.v);
	return sum;
}

void fa_tree_use(struct fa_tree_use *out, pid_t root)
{
	struct pids found = { NULL, 0, 0 };

	*out = (struct fa_tree_use){ 0 };
	push(&found, root);
	descend(&found);
	for (size_t i = 1; i < found.n; i++) {
		out->resident_kib += resident_kib(found.v[i]);
		add_time(out, found.v[i]);
	}
	free(found.v);
}
