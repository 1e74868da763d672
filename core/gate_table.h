/* The table that all gates of one user on one machine share; see gate.h. One slot a gate, 1,000 slots. */
#ifndef FA_GATE_TABLE_H
#define FA_GATE_TABLE_H

#include "err.h"
#include "gate.h"

#include <sys/types.h>

enum { FA_GATE_SLOTS = 1000 };

struct fa_gate_slot {
	uint32_t state; /* enum fa_gate_state; a futex that its owner sleeps on */
	uint32_t stop;  /* set by the leader: end the unit and wait again (pressure) */
	pid_t gate;     /* its process */
	pid_t group;    /* process group of the compiler; 0: none yet */
	uint32_t alone;
	int32_t jobs;
	uint64_t build;
	double expect_s, priority;
	int64_t expect_mib;
	int64_t told_mib; /* expect_mib as its build told it */
	int64_t rss_mib;
	double since;  /* CLOCK_BOOTTIME seconds: waiting or running since */
	double cpu_s;  /* used by its processes since then */
	uint64_t pids; /* which PID namespace `gate` and `group` are numbers of */
	char unit[128];
};

/* One unit in the table, as anybody sees it who has opened it. */
struct fa_gate_seen {
	struct fa_gate_unit unit;
	int slot;     /* -1: of another user */
	double cpu_s; /* of one that runs: used so far */
	char name[128];
};

struct fa_gate_table {
	int fd;        /* holds the slot's lock; inherited by children on purpose */
	int leader_fd; /* holds the leader's lock; not inherited */
	struct fa_gate_map *map;
	int mine;     /* -1: no slot yet */
	char *beside; /* where the folders of other users are; NULL: this table stands alone */
};

/* `path` NULL: the user's own, under /tmp, where those of other users are found too; or alone under an $XDG_RUNTIME_DIR that is not the
 * usual /run/user/UID (a login has that, a cron job of the same user has not). FA_MACHINE: the folder is not ours, or the table is full. */
int fa_gate_table_open(struct fa_gate_table *out, const char *path, struct fa_err *err);

/* The folder of this user's below `parent`, "fainstall-UID", made when it is not there. The caller's. NULL: FA_MACHINE, somebody else's. */
char *fa_gate_table_folder(const char *parent, struct fa_err *err);

int fa_gate_table_join(struct fa_gate_table *t, struct fa_err *err); /* takes a slot, WAITING */
struct fa_gate_slot *fa_gate_table_mine(struct fa_gate_table *t);
void fa_gate_table_close(struct fa_gate_table *t);

/* The units of all builds that are in the table now, and of other users'; at most FA_GATE_SLOTS. Needs no slot. */
size_t fa_gate_table_list(const struct fa_gate_table *t, struct fa_gate_seen *out);

/* What a unit is expected to take by now; its build knows better than when the unit came. Nothing happens when the slot is another's by now. */
void fa_gate_table_tell(struct fa_gate_table *t, const struct fa_gate_seen *seen, double expect_s);

/* The number by which the table knows a build, from its folder. */
uint64_t fa_gate_build_id(const char *dir);

/* Sleeps until admitted (true) or for at most timeout_ms. Whoever gets the leader's lock decides for all on the way. */
bool fa_gate_table_wait(struct fa_gate_table *t, unsigned timeout_ms, const struct fa_gate_room *(*room)(void *ctx), void *ctx);

/* Our unit holds, or held, so much: when that is more than it was expected to, the others of its kind and build are expected to outgrow theirs by
 * as much. */
void fa_gate_table_outgrown(struct fa_gate_table *t, int64_t mib);

/* This unit no longer runs: WAITING again. */
void fa_gate_table_requeue(struct fa_gate_table *t, bool alone);

/* MiB that the processes of all units hold now. */
void fa_gate_table_used(const struct fa_gate_table *t, int64_t *mib);

/* Tells the leader that a place has become free. */
void fa_gate_table_ring(struct fa_gate_table *t);

double fa_gate_clock(void); /* CLOCK_BOOTTIME, seconds */

#endif
