#include "memory.h"

#include "buf.h"
#include "file.h"
#include "strv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Above this it is "no limit": version 1 writes 9223372036854771712, whatever the page size made of it. */
static const int64_t no_limit = INT64_C(1) << 60;

static bool read_real(void *ctx, const char *path, struct fa_buf *out)
{
	(void)ctx;
	return fa_file_read(out, path, 1 << 20, NULL) == 0;
}

static const struct fa_memory_reader real = { .read = read_real };

/* The whole file as one number; -1: not there, "max", no number. */
static int64_t read_number(const struct fa_memory_reader *r, const char *dir, const char *name)
{
	struct fa_buf text = FA_BUF_INIT;
	char *path = fa_path_join(dir, name), *end;
	int64_t v = -1;

	if (r->read(r->ctx, path, &text)) {
		v = strtoll(fa_buf_str(&text), &end, 10);
		if (end == fa_buf_str(&text) || v < 0)
			v = -1;
	}
	fa_buf_release(&text);
	free(path);
	return v;
}

/* The second number of a file: "200000 100000". */
static int64_t read_second(const struct fa_memory_reader *r, const char *dir, const char *name)
{
	struct fa_buf text = FA_BUF_INIT;
	char *path = fa_path_join(dir, name);
	const char *blank;
	int64_t v = -1;

	if (r->read(r->ctx, path, &text) && (blank = strchr(fa_buf_str(&text), ' ')))
		v = strtoll(blank, NULL, 10);
	fa_buf_release(&text);
	free(path);
	return v;
}

/* The number after `key` and blanks at the start of a line; -1: none. */
static int64_t find_number(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, key, len) && (p[len] == ' ' || p[len] == '\t'))
			return isdigit((unsigned char)p[len + strspn(p + len, " \t")]) ? strtoll(p + len, NULL, 10) : -1;
		if (!*p)
			break;
	}
	return -1;
}

static int64_t read_field(const struct fa_memory_reader *r, const char *dir, const char *name, const char *key)
{
	struct fa_buf text = FA_BUF_INIT;
	char *path = fa_path_join(dir, name);
	int64_t v = r->read(r->ctx, path, &text) ? find_number(fa_buf_str(&text), key) : -1;

	fa_buf_release(&text);
	free(path);
	return v;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* ---- control groups */

/* What each group says of one thing: bytes or cores; the least counts. */
struct limit {
	int64_t (*of)(const struct fa_memory_reader *r, const char *dir, bool v2); /* -1: it limits nothing */
	int64_t value;                                                             /* -1: none yet */
	char *origin;
};

static void take(struct limit *l, int64_t value, const char *origin)
{
	if (value < 0 || (l->value >= 0 && l->value <= value))
		return;
	l->value = value;
	free(l->origin);
	l->origin = fa_strdup(origin);
}

static int64_t limit_bytes(const struct fa_memory_reader *r, const char *dir, bool v2)
{
	int64_t limit = read_number(r, dir, v2 ? "memory.max" : "memory.limit_in_bytes");
	int64_t high = v2 ? read_number(r, dir, "memory.high") : -1;

	limit = least(limit, high); /* above `high` everything slows to a crawl: as good as full */
	return limit < 0 || limit >= no_limit ? -1 : limit;
}

static int64_t left_bytes(const struct fa_memory_reader *r, const char *dir, bool v2)
{
	int64_t limit = limit_bytes(r, dir, v2), use, cache;

	if (limit < 0)
		return -1;
	use = read_number(r, dir, v2 ? "memory.current" : "memory.usage_in_bytes");
	cache = read_field(r, dir, "memory.stat", v2 ? "inactive_file" : "total_inactive_file");
	if (use < 0)
		return limit;
	use -= cache > 0 && cache < use ? cache : 0;
	return use < limit ? limit - use : 0;
}

/* "400000 100000" in version 2, two files in version 1: time in each period. */
static int64_t quota_cores(const struct fa_memory_reader *r, const char *dir, bool v2)
{
	int64_t quota = read_number(r, dir, v2 ? "cpu.max" : "cpu.cfs_quota_us");
	int64_t period = v2 ? read_second(r, dir, "cpu.max") : read_number(r, dir, "cpu.cfs_period_us");

	return quota > 0 && period > 0 ? (quota + period - 1) / period : -1;
}

/* `dir` and every folder above it down to `top`. */
static void each_group(struct limit *l, const struct fa_memory_reader *r, const char *top, const char *below, bool v2)
{
	char *dir = strcmp(below, "/") != 0 ? fa_strf("%s%s", top, below) : fa_strdup(top), *slash;

	for (;;) {
		take(l, l->of(r, dir, v2), dir);
		slash = strrchr(dir, '/');
		if (strlen(dir) <= strlen(top) || !slash)
			break;
		*slash = '\0';
	}
	free(dir);
}

/* The path of this process's group: "0::/a" for version 2, "5:cpu,memory:/a" for version 1. NULL: none. */
static char *group_path(const char *cgroup, const char *controller, bool v2)
{
	struct fa_strv lines = FA_STRV_INIT;
	char *path = NULL;

	fa_strv_split(&lines, cgroup, "\n");
	for (size_t i = 0; i < lines.n && !path; i++) {
		struct fa_strv controllers = FA_STRV_INIT;
		char *first = strchr(lines.v[i], ':'), *second = first ? strchr(first + 1, ':') : NULL;

		if (!second)
			continue;
		*second = '\0';
		fa_strv_split(&controllers, first + 1, ",");
		if (v2 ? !strcmp(first, ":") : fa_strv_has(&controllers, controller))
			path = fa_strdup(second + 1);
		fa_strv_release(&controllers);
	}
	fa_strv_release(&lines);
	return path;
}

/* Where a hierarchy is mounted and which group its top shows (in a container not "/"). Fields of /proc/self/mountinfo:
 * id parent device ROOT POINT options… - TYPE source SUPER_OPTIONS. */
static bool group_mount(const char *mountinfo, const char *controller, bool v2, char **root, char **point)
{
	struct fa_strv lines = FA_STRV_INIT;
	bool found = false;

	fa_strv_split(&lines, mountinfo, "\n");
	for (size_t i = 0; i < lines.n && !found; i++) {
		struct fa_strv f = FA_STRV_INIT, options = FA_STRV_INIT;
		size_t dash = 6;

		fa_strv_split(&f, lines.v[i], " ");
		while (dash < f.n && strcmp(f.v[dash], "-") != 0)
			dash++;
		if (dash + 3 < f.n)
			fa_strv_split(&options, f.v[dash + 3], ",");
		if (dash + 1 < f.n && !strcmp(f.v[dash + 1], v2 ? "cgroup2" : "cgroup") &&
		    (v2 || fa_strv_has(&options, controller))) {
			*root = fa_strdup(f.v[3]);
			*point = fa_strdup(f.v[4]);
			found = true;
		}
		fa_strv_release(&f);
		fa_strv_release(&options);
	}
	fa_strv_release(&lines);
	return found;
}

static void each_hierarchy(struct limit *l, const struct fa_memory_reader *r, const char *controller)
{
	struct fa_buf cgroup = FA_BUF_INIT, mounts = FA_BUF_INIT;
	bool told = r->read(r->ctx, "/proc/self/cgroup", &cgroup) && r->read(r->ctx, "/proc/self/mountinfo", &mounts);

	for (int v2 = 0; told && v2 < 2; v2++) {
		char *path = group_path(fa_buf_str(&cgroup), controller, v2), *root = NULL, *point = NULL;

		if (path && group_mount(fa_buf_str(&mounts), controller, v2, &root, &point)) {
			size_t len = strcmp(root, "/") != 0 ? strlen(root) : 0;
			bool inside = !strncmp(path, root, len) && (path[len] == '/' || !path[len]);

			/* A group that the mount does not show (a foreign namespace): its top is the nearest we can see. */
			each_group(l, r, point, inside && path[len] && !strstr(path, "/..") ? path + len : "/", v2);
		}
		free(path);
		free(root);
		free(point);
	}
	fa_buf_release(&cgroup);
	fa_buf_release(&mounts);
}

static int64_t give(struct limit *l, char **origin)
{
	if (origin)
		*origin = l->origin;
	else
		free(l->origin);
	return l->value;
}

static int64_t memory_mib(const struct fa_memory_reader *r, bool total, char **origin)
{
	struct limit l = { .of = total ? limit_bytes : left_bytes, .value = -1 };
	int64_t kib;

	r = r ? r : &real;
	kib = read_field(r, "/proc", "meminfo", total ? "MemTotal:" : "MemAvailable:");
	take(&l, kib < 0 ? -1 : kib * 1024, "/proc/meminfo");
	each_hierarchy(&l, r, "memory");
	return give(&l, origin) < 0 ? -1 : l.value >> 20;
}

int64_t fa_memory_available_mib(const struct fa_memory_reader *reader, char **origin)
{
	return memory_mib(reader, false, origin);
}

int64_t fa_memory_total_mib(const struct fa_memory_reader *reader)
{
	return memory_mib(reader, true, NULL);
}

int fa_memory_cores(const struct fa_memory_reader *reader, char **origin)
{
	struct limit l = { .of = quota_cores, .value = -1 };

	each_hierarchy(&l, reader ? reader : &real, "cpu");
	return (int)give(&l, origin);
}

double fa_memory_pressure(const struct fa_memory_reader *reader)
{
	const struct fa_memory_reader *r = reader ? reader : &real;
	struct fa_buf text = FA_BUF_INIT;
	const char *full;
	double percent = 0;

	if (r->read(r->ctx, "/proc/pressure/memory", &text) && (full = strstr(fa_buf_str(&text), "full avg10=")))
		percent = strtod(full + strlen("full avg10="), NULL);
	fa_buf_release(&text);
	return percent;
}
