/* The compiler gate: what PYTORCH_NVCC (and CXX) point at. `fainstall-worker` called under the name "nvcc", "hipcc" or "c++" runs
 * fa_gate_main. It waits until the unit may start, runs the real compiler, and records time and peak memory of each.
 *
 * There is no server. Every waiting gate has a slot in one table (a small file, mapped by all gates of this user on this machine,
 * whatever build they belong to; the tables of other users are read) and holds a lock on its slot's byte; the compiler and all its children inherit that lock, so a
 * slot is taken until the last of them is gone, however they end. One of those that wait holds the leader's lock and decides
 * for all (fa_gate_choose); when it goes, the kernel gives the lock to the next. Nothing needs cleaning up after a kill -9.
 *
 * Environment, set by build.c:
 *   FAINSTALL_GATE_DIR     folder of this build: `units` (a line each: name, seconds, MiB, priority), `events` (JSON lines, written
 *                          here), `stop` (exists: everything ends now), `drain` (exists: nothing new starts), `made` (a line
 *                          each: hash and path of an object, written here; the last line of a path counts)
 *   FAINSTALL_GATE_NVCC, FAINSTALL_GATE_CXX   the real compilers
 *   FAINSTALL_GATE_DEVICE  program and script, a line each, that call nvcc for a part for the device (recipes/device_part.py)
 *   FAINSTALL_GATE_OBJECTS where objects are kept by content (objects.h); FAINSTALL_GATE_IDENTITY, FAINSTALL_GATE_ROOTS alike
 *   FAINSTALL_GATE_JOBS    at most so many units of this build at a time; 0 or unset: cores
 *   FAINSTALL_GATE_TABLE   the table's file instead of the user's; FAINSTALL_GATE_CORES, FAINSTALL_GATE_MEMORY_MIB (all that may
 *                          be used), FAINSTALL_GATE_RESERVE_MIB, FAINSTALL_GATE_NICE, FAINSTALL_GATE_HANG_S (a compiler that uses no CPU for so
 *                          long has failed; 600) instead of what is found or usual */
#ifndef FA_GATE_H
#define FA_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int fa_gate_main(int argc, char **argv);

/* ---- the decision, pure */

enum fa_gate_state { FA_GATE_FREE, FA_GATE_WAITING, FA_GATE_RUNNING };

struct fa_gate_unit {
	enum fa_gate_state state;
	uint64_t build;     /* whose unit; jobs are counted for each build */
	int jobs;           /* most units of this build at a time; 0: no limit but the cores */
	double expect_s;    /* seconds */
	double priority;    /* highest first; the seconds, or what fa_gate_order makes of them */
	int64_t expect_mib; /* its peak */
	int64_t rss_mib;    /* of its processes now */
	double waited_s;
	bool alone; /* was killed for memory: only with nothing else running, after the others of its build */
};

struct fa_gate_room {
	int64_t available_mib; /* may be used now; -1 unknown: memory does not count */
	int64_t reserve_mib;   /* stays free for whoever sits there */
	int cores;
	double pressure; /* share of the last 10 s in which everything stood still for memory, percent */
};

/* What builds of other users do on this machine. */
struct fa_gate_others {
	int users, waiting_users; /* with units; of these with some that wait */
	int running;
	int64_t growing_mib, held_mib; /* what their running units will still take, and hold */
};

/* What is ours of the room, where other users build too: what they leave, at least an even share of the cores as long as they want more;
 * of the memory no more than an even share then. held_mib: by our units. */
void fa_gate_share(struct fa_gate_room *room, const struct fa_gate_others *others, int64_t held_mib);

struct fa_memory_reader;

/* The room there is now. used_mib: what units hold already; it counts against FAINSTALL_GATE_MEMORY_MIB, which is a limit for all of
 * them together. reader NULL: this machine. Cores are those of this process's affinity and of its control groups' quota. */
void fa_gate_room_read(struct fa_gate_room *out, int64_t used_mib, const struct fa_memory_reader *reader);

/* A whole number, 0 or more, of the environment; `otherwise` when there is none. */
int64_t fa_gate_setting(const char *name, int64_t otherwise);

/* Length of what names a unit's kind: "flash_fwd_split_hdim64_bf16_sm80.2" is of the kind "flash_fwd_split"; what is not a kernel is a kind of
 * its own. Units of one kind are late, or grow, together. */
size_t fa_gate_kind(const char *unit);

enum { FA_GATE_PATIENCE_S = 20, FA_GATE_PRESSURE = 10 };

/* Which waiting unit starts now; -1 none. One that must be alone waits for the others of its build; then nothing else starts until it
 * has had its turn. A unit that fits nowhere starts when nothing else runs and it has waited
 * FA_GATE_PATIENCE_S: waiting longer would not make the machine larger. */
int fa_gate_choose(const struct fa_gate_unit *units, size_t n, const struct fa_gate_room *room);

/* The first line of a compiler's output that says what is wrong, without its indent; NULL: none. Borrowed; len in *len. */
const char *fa_gate_first_error(const char *text, size_t *len);

/* Does this output speak of a process that the kernel killed, or of memory that ran out? */
bool fa_gate_speaks_of_memory(const char *text);

#endif
