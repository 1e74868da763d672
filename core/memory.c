#include "memory.h"

#include "buf.h"
#include "file.h"
#include "proc.h"
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

/* One control group: bytes it leaves (or its limit). -1: it limits nothing. */
static int64_t group_bytes(const struct fa_memory_reader *r, const char *dir, bool v2, bool total)
{
	int64_t limit = read_number(r, dir, v2 ? "memory.max" : "memory.limit_in_bytes");
	int64_t high = v2 ? read_number(r, dir, "memory.high") : -1, use, cache;

	limit = least(limit, high); /* above `high` everything slows to a crawl: as good as full */
	if (limit < 0 || limit >= no_limit || total)
		return limit >= no_limit ? -1 : limit;
	use = read_number(r, dir, v2 ? "memory.current" : "memory.usage_in_bytes");
	cache = read_field(r, dir, "memory.stat", v2 ? "inactive_file" : "total_inactive_file");
	if (use < 0)
		return limit;
	use -= cache > 0 && cache < use ? cache : 0;
	return use < limit ? limit - use : 0;
}

/* `dir` and every folder above it down to `top`. */
static int64_t groups_bytes(const struct fa_memory_reader *r, const char *top, const char *below, bool v2, bool total)
{
	char *dir = strcmp(below, "/") != 0 ? fa_strf("%s%s", top, below) : fa_strdup(top), *slash;
	int64_t bytes = -1;

	for (;;) {
		bytes = least(bytes, group_bytes(r, dir, v2, total));
		slash = strrchr(dir, '/');
		if (strlen(dir) <= strlen(top) || !slash)
			break;
		*slash = '\0';
	}
	free(dir);
	return bytes;
}

/* The path of this process's group: "0::/a" for version 2, "5:cpu,memory:/a" for version 1. NULL: none. */
static char *group_path(const char *cgroup, bool v2)
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
		if (v2 ? !strcmp(first, ":") : fa_strv_has(&controllers, "memory"))
			path = fa_strdup(second + 1);
		fa_strv_release(&controllers);
	}
	fa_strv_release(&lines);
	return path;
}

/* Where a hierarchy is mounted and which group its top shows (in a container not "/"). Fields of /proc/self/mountinfo:
 * id parent device ROOT POINT options… - TYPE source SUPER_OPTIONS. */
static bool group_mount(const char *mountinfo, bool v2, char **root, char **point)
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
		    (v2 || fa_strv_has(&options, "memory"))) {
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

static int64_t hierarchy_bytes(const struct fa_memory_reader *r, const char *cgroup, const char *mountinfo, bool v2, bool total)
{
	char *path = group_path(cgroup, v2), *root = NULL, *point = NULL;
	int64_t bytes = -1;

	if (path && group_mount(mountinfo, v2, &root, &point)) {
		size_t len = strcmp(root, "/") != 0 ? strlen(root) : 0;
		bool inside = !strncmp(path, root, len) && (path[len] == '/' || !path[len]);

		/* A group that the mount does not show (a foreign namespace): its top is the nearest we can see. */
		bytes = groups_bytes(r, point, inside && path[len] && !strstr(path, "/..") ? path + len : "/", v2, total);
	}
	free(path);
	free(root);
	free(point);
	return bytes;
}

static int64_t memory_mib(const struct fa_memory_reader *r, bool total)
{
	struct fa_buf meminfo = FA_BUF_INIT, cgroup = FA_BUF_INIT, mounts = FA_BUF_INIT;
	int64_t bytes = -1;

	r = r ? r : &real;
	if (r->read(r->ctx, "/proc/meminfo", &meminfo)) {
		bytes = find_number(fa_buf_str(&meminfo), total ? "MemTotal:" : "MemAvailable:");
		bytes = bytes < 0 ? -1 : bytes * 1024;
	}
	if (r->read(r->ctx, "/proc/self/cgroup", &cgroup) && r->read(r->ctx, "/proc/self/mountinfo", &mounts))
		for (int v2 = 0; v2 < 2; v2++)
			bytes = least(bytes, hierarchy_bytes(r, fa_buf_str(&cgroup), fa_buf_str(&mounts), v2, total));
	fa_buf_release(&meminfo);
	fa_buf_release(&cgroup);
	fa_buf_release(&mounts);
	return bytes < 0 ? -1 : bytes >> 20;
}

int64_t fa_memory_available_mib(const struct fa_memory_reader *reader)
{
	return memory_mib(reader, false);
}

int64_t fa_memory_total_mib(const struct fa_memory_reader *reader)
{
	return memory_mib(reader, true);
}

int64_t fa_proc_memory_available_mib(void)
{
	return fa_memory_available_mib(NULL);
}
