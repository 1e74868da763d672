/* A process and all that descends from it, as /proc shows them. */
#ifndef FA_TREE_H
#define FA_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fa_tree_member {
	pid_t pid;
	int pidfd; /* -1: the kernel has none for us; the number alone is used then */
};

/* Members stay known after their parents are gone and somebody else adopted them. */
struct fa_tree {
	pid_t root; /* itself no member */
	struct fa_tree_member *v;
	size_t n, cap;
};

void fa_tree_init(struct fa_tree *t, pid_t root);
void fa_tree_release(struct fa_tree *t);

/* Drops members that ended, adds descendants not yet known. Returns how many are running. */
size_t fa_tree_gather(struct fa_tree *t);
void fa_tree_signal(const struct fa_tree *t, int sig);

/* Sum of the resident memory of all descendants now, KiB. Pages they share count once for each. */
int64_t fa_tree_resident_kib(pid_t root);

struct fa_tree_use {
	int64_t resident_kib;
	uint64_t
	        ticks; /* of CPU, used by all of them and by children that have ended; changes as long as any of them computes */
	bool waits;    /* one is stopped, or waits for a disk */
};

/* The same and more, of all descendants now. */
void fa_tree_use(struct fa_tree_use *out, pid_t root);

#endif
