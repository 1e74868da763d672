#include "gate_table.h"

#include "buf.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct fa_gate_map {
	uint32_t unused;
	uint32_t bell; /* rung when a place becomes free; a futex */
	struct fa_gate_slot slots[FA_GATE_SLOTS];
};

enum { LEADER = FA_GATE_SLOTS /* the byte after those of the slots */, STRANGER_MIB = 65536, STRANGER_S = 7200 };

double fa_gate_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void futex_wait(uint32_t *word, uint32_t value, unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1 << 20, NULL, NULL, 0);
}

/* Open file description locks: they belong to the open file, so children share them and the last one to go frees them. */
static bool lock_byte(int fd, off_t byte, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

static bool is_locked(int fd, off_t byte)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

static char *checked(char *dir, struct fa_err *err)
{
	struct stat st;

	mkdir(dir, 0755);
	if (lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid()) {
		chmod(dir, 0755); /* others read how much is taken */
		return dir;
	}
	fa_err_set(err, FA_MACHINE, "%s: not a folder of yours; the builds of one user share their limits through it", dir);
	free(dir);
	return NULL;
}

char *fa_gate_table_folder(const char *parent, struct fa_err *err)
{
	return checked(fa_strf("%s/fainstall-%u", parent, (unsigned)getuid()), err);
}

/* beside: "/tmp", the caller's, where others' tables are. */
static char *own_table(char **beside, struct fa_err *err)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char *usual = fa_strf("/run/user/%u", (unsigned)getuid());
	bool alone = run && *run == '/' && strcmp(run, usual) != 0 && access(run, W_OK) == 0;
	char *dir = alone ? checked(fa_path_join(run, "fainstall"), err) : fa_gate_table_folder("/tmp", err);
	char *path = dir ? fa_strf("%s/gate-%zu", dir, sizeof(struct fa_gate_map)) : NULL; /* another layout, another table */

	*beside = alone ? NULL : fa_strdup("/tmp");
	free(dir);
	free(usual);
	return path;
}

int fa_gate_table_open(struct fa_gate_table *out, const char *path, struct fa_err *err)
{
	char *own = NULL;
	int rc = -1;

	*out = (struct fa_gate_table){ .fd = -1, .leader_fd = -1, .mine = -1 };
	if (!path && !(path = own = own_table(&out->beside, err))) {
		fa_gate_table_close(out);
		return -1;
	}
	out->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
	out->leader_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (out->fd < 0 || out->leader_fd < 0 || ftruncate(out->fd, sizeof(struct fa_gate_map)) < 0) {
		fa_err_set(err, FA_MACHINE, "%s: %s", path, strerror(errno));
		goto done;
	}
	out->map = mmap(NULL, sizeof(*out->map), PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
	if (out->map == MAP_FAILED) {
		out->map = NULL;
		fa_err_set(err, FA_MACHINE, "%s: %s", path, strerror(errno));
		goto done;
	}
	rc = 0;
done:
	if (rc < 0)
		fa_gate_table_close(out);
	free(own);
	return rc;
}

/* 0: the kernel does not tell. */
static uint64_t pid_namespace(void)
{
	static uint64_t known;
	struct stat st;

	if (!known && stat("/proc/self/ns/pid", &st) == 0)
		known = st.st_ino;
	return known;
}

uint64_t fa_gate_build_id(const char *dir)
{
	uint64_t id = 0;

	for (const char *p = dir; p && *p; p++)
		id = id * 1099511628211u + (unsigned char)*p;
	return id;
}

int fa_gate_table_join(struct fa_gate_table *t, struct fa_err *err)
{
	unsigned start = (unsigned)getpid();

	for (unsigned i = 0; i < FA_GATE_SLOTS; i++) {
		unsigned k = (start + i) % FA_GATE_SLOTS;

		if (!lock_byte(t->fd, k, F_WRLCK))
			continue;
		memset(&t->map->slots[k], 0, sizeof(t->map->slots[k]));
		t->mine = (int)k;
		t->map->slots[k].gate = getpid();
		t->map->slots[k].pids = pid_namespace();
		t->map->slots[k].since = fa_gate_clock();
		return 0;
	}
	return fa_err_set(err, FA_MACHINE, "%d compilers wait already; no place for one more", FA_GATE_SLOTS);
}

struct fa_gate_slot *fa_gate_table_mine(struct fa_gate_table *t)
{
	return &t->map->slots[t->mine];
}

void fa_gate_table_close(struct fa_gate_table *t)
{
	if (t->map)
		munmap(t->map, sizeof(*t->map));
	if (t->leader_fd >= 0)
		close(t->leader_fd);
	if (t->fd >= 0)
		close(t->fd);
	free(t->beside);
	*t = (struct fa_gate_table){ .fd = -1, .leader_fd = -1, .mine = -1 };
}

void fa_gate_table_ring(struct fa_gate_table *t)
{
	__atomic_add_fetch(&t->map->bell, 1, __ATOMIC_SEQ_CST);
	futex_wake(&t->map->bell);
}

void fa_gate_table_requeue(struct fa_gate_table *t, bool alone)
{
	struct fa_gate_slot *s = fa_gate_table_mine(t);

	s->group = 0;
	s->stop = 0;
	s->rss_mib = 0;
	s->cpu_s = 0;
	s->alone = alone;
	s->since = fa_gate_clock();
	__atomic_store_n(&s->state, FA_GATE_WAITING, __ATOMIC_SEQ_CST);
	fa_gate_table_ring(t);
}

/* A slot whose gate was killed while its compiler lives on: end that too. The lock that is still held proves that the group
 * has members, so the number cannot belong to somebody else by now. Numbers of another container mean others here. */
static void end_orphans(const struct fa_gate_slot *s)
{
	if (s->group > 1 && s->pids == pid_namespace() && kill(s->gate, 0) < 0 && errno == ESRCH)
		kill(-s->group, SIGKILL);
}

static bool is_taken(const struct fa_gate_table *t, int slot)
{
	return __atomic_load_n(&t->map->slots[slot].state, __ATOMIC_SEQ_CST) != FA_GATE_FREE &&
	       (slot == t->mine || is_locked(t->leader_fd, slot));
}

static struct fa_gate_unit unit_of(const struct fa_gate_slot *s, double now)
{
	return (struct fa_gate_unit){ .state = (enum fa_gate_state)__atomic_load_n(&s->state, __ATOMIC_SEQ_CST),
		                      .build = s->build,
		                      .jobs = s->jobs,
		                      .expect_s = s->expect_s,
		                      .priority = s->priority,
		                      .expect_mib = s->expect_mib,
		                      .rss_mib = s->rss_mib,
		                      .waited_s = now - s->since,
		                      .alone = s->alone };
}

static size_t read_units(struct fa_gate_table *t, struct fa_gate_unit *units, int *slots)
{
	double now = fa_gate_clock();
	size_t n = 0;

	for (int i = 0; i < FA_GATE_SLOTS; i++) {
		if (!is_taken(t, i))
			continue;
		if (i != t->mine)
			end_orphans(&t->map->slots[i]);
		slots[n] = i;
		units[n++] = unit_of(&t->map->slots[i], now);
	}
	return n;
}

static struct fa_gate_seen seen_of(const struct fa_gate_slot *s, int slot, double now)
{
	struct fa_gate_seen seen = { .unit = unit_of(s, now), .slot = slot, .cpu_s = s->cpu_s };

	snprintf(seen.name, sizeof(seen.name), "%.*s", (int)sizeof(s->unit) - 1, s->unit);
	return seen;
}

/* The table of another user: only read, and not mapped, whatever becomes of it meanwhile. What stands in it is his word: no figure of it
 * can be more than odd. */
static size_t read_stranger(const char *path, unsigned uid, struct fa_gate_seen *out, size_t max)
{
	static struct fa_gate_map map;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	double now = fa_gate_clock();
	struct stat st;
	size_t n = 0;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == uid && pread(fd, &map, sizeof(map), 0) == sizeof(map))
		for (int i = 0; i < FA_GATE_SLOTS && n < max; i++) {
			if ((map.slots[i].state != FA_GATE_WAITING && map.slots[i].state != FA_GATE_RUNNING) ||
			    !is_locked(fd, i))
				continue;
			out[n] = seen_of(&map.slots[i], -1, now);
			out[n].unit.build ^= (uint64_t)uid << 32 | 1;
			if (out[n].unit.expect_mib < 0 || out[n].unit.expect_mib > STRANGER_MIB)
				out[n].unit.expect_mib = STRANGER_MIB;
			if (!(out[n].unit.expect_s >= 0 && out[n].unit.expect_s < STRANGER_S))
				out[n].unit.expect_s = STRANGER_S;
			n++;
		}
	close(fd);
	return n;
}

enum { USERS_MAX = 64, USERS_EVERY_S = 5 /* a folder of temporary files may be long */ };

/* Numbers of the other users who have a folder there. */
static size_t find_users(const char *parent, unsigned *users)
{
	static unsigned known[USERS_MAX];
	static size_t n;
	static double looked = -USERS_EVERY_S;
	DIR *d = fa_gate_clock() - looked >= USERS_EVERY_S ? opendir(parent) : NULL;
	struct dirent *e;
	unsigned uid;
	char end;

	if (d) {
		n = 0;
		looked = fa_gate_clock();
	}
	while (d && n < USERS_MAX && (e = readdir(d)))
		if (sscanf(e->d_name, "fainstall-%u%c", &uid, &end) == 1 && uid != getuid())
			known[n++] = uid;
	if (d)
		closedir(d);
	memcpy(users, known, n * sizeof(*users));
	return n;
}

static void add_up(struct fa_gate_others *sum, const struct fa_gate_seen *seen, size_t n)
{
	bool waits = false;

	for (size_t i = 0; i < n; i++) {
		const struct fa_gate_unit *u = &seen[i].unit;

		if (u->state != FA_GATE_RUNNING) {
			waits = true;
			continue;
		}
		sum->running++;
		sum->held_mib += u->rss_mib > 0 ? u->rss_mib : 0;
		sum->growing_mib += u->expect_mib > u->rss_mib ? u->expect_mib - u->rss_mib : 0;
	}
	sum->users += n > 0;
	sum->waiting_users += waits;
}

/* Units of other users; others (NULL: not wanted): the sum of it. */
static size_t read_strangers(const struct fa_gate_table *t, struct fa_gate_seen *out, size_t max, struct fa_gate_others *others)
{
	unsigned users[USERS_MAX];
	size_t n = 0, known = t->beside ? find_users(t->beside, users) : 0;

	for (size_t i = 0; i < known; i++) {
		char *path = fa_strf("%s/fainstall-%u/gate-%zu", t->beside, users[i], sizeof(struct fa_gate_map));
		size_t found = read_stranger(path, users[i], out + n, max - n);

		if (others)
			add_up(others, out + n, found);
		n += found;
		free(path);
	}
	return n;
}

size_t fa_gate_table_list(const struct fa_gate_table *t, struct fa_gate_seen *out)
{
	double now = fa_gate_clock();
	size_t n = 0;

	for (int i = 0; t->map && i < FA_GATE_SLOTS; i++) {
		if (!is_taken(t, i))
			continue;
		out[n] = seen_of(&t->map->slots[i], i, now);
		n += out[n].unit.state != FA_GATE_FREE;
	}
	return n + read_strangers(t, out + n, FA_GATE_SLOTS - n, NULL);
}

void fa_gate_table_tell(struct fa_gate_table *t, const struct fa_gate_seen *seen, double expect_s)
{
	struct fa_gate_slot *s = &t->map->slots[seen->slot < 0 ? 0 : seen->slot];

	if (seen->slot >= 0 && s->build == seen->unit.build && !strncmp(s->unit, seen->name, sizeof(s->unit)))
		s->expect_s = expect_s;
}

void fa_gate_table_used(const struct fa_gate_table *t, int64_t *mib)
{
	*mib = 0;
	for (int i = 0; i < FA_GATE_SLOTS; i++)
		if (t->map->slots[i].state == FA_GATE_RUNNING && is_taken(t, i))
			*mib += t->map->slots[i].rss_mib;
}

void fa_gate_table_outgrown(struct fa_gate_table *t, int64_t mib)
{
	struct fa_gate_slot *me = fa_gate_table_mine(t);
	size_t kind = fa_gate_kind(me->unit);

	if (mib <= me->expect_mib)
		return;
	me->expect_mib = mib;
	for (int i = 0; i < FA_GATE_SLOTS && me->told_mib > 0; i++) {
		struct fa_gate_slot *s = &t->map->slots[i];
		int64_t grown = s->told_mib * mib / me->told_mib;

		if (i != t->mine && s->build == me->build && fa_gate_kind(s->unit) == kind &&
		    !strncmp(s->unit, me->unit, kind) && grown > s->expect_mib)
			s->expect_mib = grown;
	}
}

static void admit(struct fa_gate_slot *s)
{
	s->since = fa_gate_clock();
	__atomic_store_n(&s->state, FA_GATE_RUNNING, __ATOMIC_SEQ_CST);
	futex_wake(&s->state);
}

/* Everything stands still for memory although nothing new was started: the youngest gives its place up. */
static void relieve(struct fa_gate_table *t, const struct fa_gate_unit *units, const int *slots, size_t n, double pressure)
{
	int youngest = -1, running = 0;

	for (size_t i = 0; i < n; i++) {
		if (units[i].state != FA_GATE_RUNNING)
			continue;
		running++;
		if (t->map->slots[slots[i]].stop)
			return; /* one at a time */
		if (youngest < 0 || units[i].waited_s < units[youngest].waited_s)
			youngest = (int)i;
	}
	if (running > 1 && pressure >= 2 * FA_GATE_PRESSURE)
		t->map->slots[slots[youngest]].stop = 1;
}

static struct fa_gate_room our_share(const struct fa_gate_table *t, const struct fa_gate_room *room)
{
	struct fa_gate_seen *seen = fa_calloc(FA_GATE_SLOTS, sizeof(*seen));
	struct fa_gate_others others = { 0 };
	struct fa_gate_room ours = *room;
	int64_t held = 0;

	read_strangers(t, seen, FA_GATE_SLOTS, &others);
	fa_gate_table_used(t, &held);
	fa_gate_share(&ours, &others, held);
	free(seen);
	return ours;
}

static void lead(struct fa_gate_table *t, const struct fa_gate_room *room)
{
	static struct fa_gate_unit units[FA_GATE_SLOTS];
	static int slots[FA_GATE_SLOTS];
	struct fa_gate_room ours = t->beside ? our_share(t, room) : *room;
	size_t n = read_units(t, units, slots);
	int chosen;

	relieve(t, units, slots, n, room->pressure);
	while ((chosen = fa_gate_choose(units, n, &ours)) >= 0) {
		units[chosen].state = FA_GATE_RUNNING;
		units[chosen].waited_s = 0;
		admit(&t->map->slots[slots[chosen]]);
	}
}

bool fa_gate_table_wait(struct fa_gate_table *t, unsigned timeout_ms, const struct fa_gate_room *(*room)(void *ctx), void *ctx)
{
	struct fa_gate_slot *s = fa_gate_table_mine(t);
	uint32_t bell = __atomic_load_n(&t->map->bell, __ATOMIC_SEQ_CST);

	if (lock_byte(t->leader_fd, LEADER, F_WRLCK)) {
		lead(t, room(ctx));
		if (__atomic_load_n(&s->state, __ATOMIC_SEQ_CST) == FA_GATE_WAITING) {
			futex_wait(&t->map->bell, bell, timeout_ms); /* stays leader */
			return false;
		}
		lock_byte(t->leader_fd, LEADER, F_UNLCK);
		fa_gate_table_ring(t);
		return true;
	}
	futex_wait(&s->state, FA_GATE_WAITING, timeout_ms);
	return __atomic_load_n(&s->state, __ATOMIC_SEQ_CST) == FA_GATE_RUNNING;
}
