/* Memory and cores that may be used: least of the machine's and of every control group this process is in. */
#include "probe.h"
#include "read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hierarchy { /* where one kind of control groups is mounted, and our place in it */
	char *mount;
	char *root; /* the part of the hierarchy that the mount shows */
	char *path; /* ours, from /proc/self/cgroup */
	bool v2;
};

static void hierarchy_release(struct hierarchy *h)
{
	free(h->mount);
	free(h->root);
	free(h->path);
}

static bool has_word(const char *list, const char *word)
{
	struct fa_strv words = FA_STRV_INIT;
	bool has;

	fa_strv_split(&words, list, ",");
	has = fa_strv_has(&words, word);
	fa_strv_release(&words);
	return has;
}

/* "25 30 0:23 / /sys/fs/cgroup/memory rw,… shared:9 - cgroup cgroup rw,memory" */
static bool mount_line(struct hierarchy *h, const char *line, const char *controller)
{
	struct fa_strv words = FA_STRV_INIT;
	size_t dash = 0;
	bool is;

	fa_strv_split(&words, line, " ");
	while (dash < words.n && strcmp(words.v[dash], "-") != 0)
		dash++;
	is = dash >= 6 && dash + 3 < words.n &&
	     (h->v2 ? !strcmp(words.v[dash + 1], "cgroup2")
	            : !strcmp(words.v[dash + 1], "cgroup") && has_word(words.v[dash + 3], controller));
	if (is) {
		h->root = fa_strdup(words.v[3]);
		h->mount = fa_strdup(words.v[4]);
	}
	fa_strv_release(&words);
	return is;
}

/* "4:memory:/user.slice", "0::/user.slice" */
static bool path_line(struct hierarchy *h, const char *line, const char *controller)
{
	const char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	char *controllers;
	bool is;

	if (!second)
		return false;
	controllers = fa_strndup(first + 1, (size_t)(second - first - 1));
	is = h->v2 ? !*controllers : has_word(controllers, controller);
	if (is)
		h->path = fa_strdup(second + 1);
	free(controllers);
	return is;
}

static bool find_hierarchy(struct hierarchy *h, const char *mounts, const char *paths, const char *controller, bool v2)
{
	struct fa_strv lines = FA_STRV_INIT;

	*h = (struct hierarchy){ .v2 = v2 };
	fa_strv_split(&lines, mounts, "\n");
	for (size_t i = 0; i < lines.n && !h->mount; i++)
		mount_line(h, lines.v[i], controller);
	fa_strv_release(&lines);
	fa_strv_split(&lines, paths, "\n");
	for (size_t i = 0; i < lines.n && !h->path; i++)
		path_line(h, lines.v[i], controller);
	fa_strv_release(&lines);
	return h->mount && h->path;
}

/* Our place below the mount. In a container the mount often shows only our part, and the path is that of the host. */
static char *place(const struct hierarchy *h)
{
	size_t len = strlen(h->root);

	if (!strcmp(h->root, "/"))
		return fa_strdup(strcmp(h->path, "/") ? h->path : "");
	if (!strncmp(h->path, h->root, len) && (h->path[len] == '/' || !h->path[len]))
		return fa_strdup(h->path + len);
	return fa_strdup("");
}

static int64_t read_bytes(struct fa_probe *p, const char *dir, const char *name)
{
	char *path = fa_strf("%s/%s", dir, name), *text = fa_probe_read(p, path), *end;
	long long v = text ? strtoll(text, &end, 10) : -1;

	if (text && end == text) /* "max" */
		v = -1;
	free(text);
	free(path);
	return v;
}

static int64_t read_stat(struct fa_probe *p, const char *dir, const char *key)
{
	char *path = fa_strf("%s/memory.stat", dir), *text = fa_probe_read(p, path), *line = text;
	size_t len = strlen(key);
	int64_t v = 0;

	while (line && *line) {
		if (!strncmp(line, key, len) && line[len] == ' ')
			v = strtoll(line + len, NULL, 10);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	free(text);
	free(path);
	return v > 0 ? v : 0;
}

/* What a group lets us take: its limit less what is in use and cannot be dropped. -1: no limit. */
static int64_t group_left(struct fa_probe *p, const char *dir, bool v2)
{
	int64_t limit = read_bytes(p, dir, v2 ? "memory.max" : "memory.limit_in_bytes"), used;

	if (limit < 0 || limit > (1LL << 60)) /* "no limit" of v1 is close to 2^63 */
		return -1;
	used = read_bytes(p, dir, v2 ? "memory.current" : "memory.usage_in_bytes");
	if (used < 0)
		return limit;
	used -= read_stat(p, dir, v2 ? "inactive_file" : "total_inactive_file");
	used = used > 0 ? used : 0;
	return limit > used ? limit - used : 0;
}

static void limit_memory(struct fa_probe *p, const char *dir, bool v2)
{
	int64_t left = group_left(p, dir, v2);

	if (left >= 0 && left >> 20 < fa_facts_number(p->out, FA_FACT_RAM_AVAILABLE_MIB, INT64_MAX))
		fa_facts_set_number(p->out, FA_FACT_RAM_AVAILABLE_MIB, left >> 20, dir);
}

/* "400000 100000" of v2, two files of v1: time per period, so 4 cores. */
static void limit_cores(struct fa_probe *p, const char *dir, bool v2)
{
	char *path = fa_strf("%s/cpu.max", dir), *text = v2 ? fa_probe_read(p, path) : NULL;
	long long quota = -1, period = -1;
	int64_t cores;

	if (text && sscanf(text, "%lld %lld", &quota, &period) != 2)
		quota = -1;
	if (!v2) {
		quota = read_bytes(p, dir, "cpu.cfs_quota_us");
		period = quota > 0 ? read_bytes(p, dir, "cpu.cfs_period_us") : -1;
	}
	if (quota > 0 && period > 0) {
		cores = (quota + period - 1) / period;
		if (cores < fa_facts_number(p->out, FA_FACT_CORES, 1 << 20))
			fa_facts_set_number(p->out, FA_FACT_CORES, cores, dir);
	}
	free(text);
	free(path);
}

/* From our group up to the mount: each ancestor may have a limit of its own. */
static void each_ancestor(struct fa_probe *p, const struct hierarchy *h,
                          void (*limit)(struct fa_probe *p, const char *dir, bool v2))
{
	char *below = place(h), *slash;

	for (;;) {
		char *dir = fa_strf("%s%s", h->mount, below);

		limit(p, dir, h->v2);
		free(dir);
		slash = strrchr(below, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	free(below);
}

static void limit_by(struct fa_probe *p, const char *controller, void (*limit)(struct fa_probe *p, const char *dir, bool v2))
{
	char *mounts = fa_probe_read(p, "/proc/self/mountinfo"), *paths = fa_probe_read(p, "/proc/self/cgroup");

	for (int v2 = 0; mounts && paths && v2 < 2; v2++) {
		struct hierarchy h;

		if (find_hierarchy(&h, mounts, paths, controller, v2))
			each_ancestor(p, &h, limit);
		hierarchy_release(&h);
	}
	free(mounts);
	free(paths);
}

void fa_detect_memory(struct fa_probe *p)
{
	static const char path[] = "/proc/meminfo";
	char *text = fa_probe_read(p, path);

	if (text)
		fa_read(p->out, "meminfo", path, text, strlen(text));
	free(text);
	limit_by(p, "memory", limit_memory);
	limit_by(p, "cpu", limit_cores);
}
