#include "build_kept.h"

#include "buf.h"
#include "event.h"
#include "file.h"
#include "json.h"
#include "sha256.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_damaged(const char *object, const char *hash)
{
	char now[FA_SHA256_HEX];

	return fa_file_exists(object) && (fa_sha256_file(now, object, NULL) < 0 || strncmp(now, hash, FA_SHA256_HEX - 1) != 0);
}

/* The last line of each path, of "HASH PATH" lines. */
static struct fa_json *read_made(const char *path)
{
	struct fa_json *made = fa_json_new_object();
	struct fa_buf text = FA_BUF_INIT;

	fa_file_read(&text, path, 16 << 20, NULL);
	for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (end - line > FA_SHA256_HEX && line[FA_SHA256_HEX - 1] == ' ') {
			line[FA_SHA256_HEX - 1] = '\0';
			fa_json_set_string(made, line + FA_SHA256_HEX, line);
		}
	}
	fa_buf_release(&text);
	return made;
}

static void remove_damaged(const char *gate_dir, const struct fa_sink *sink)
{
	char *path = fa_path_join(gate_dir, "made");
	struct fa_json *made = read_made(path);
	struct fa_buf left = FA_BUF_INIT;

	fa_json_each (row, made) {
		const char *object = fa_json_key(row), *hash = fa_json_string(row);

		if (is_damaged(object, hash) && unlink(object) == 0)
			fa_emit_text(sink, FA_EVENT_WARNING, "damaged_object", "%s is not as it was compiled; it is made again",
			             object);
		else if (fa_file_exists(object))
			fa_buf_addf(&left, "%s %s\n", hash, object);
	}
	fa_file_write(path, fa_buf_str(&left), left.len, NULL);
	fa_buf_release(&left);
	fa_json_free(made);
	free(path);
}

enum { AHEAD_S = 60, DEEP = 40 };

static bool is_object(const char *name)
{
	size_t len = strlen(name);

	return len > 2 && !strcmp(name + len - 2, ".o");
}

/* Returns how many files lay ahead. */
static int settle_times(int parent, const char *name, time_t now, int deep)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), n = 0;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	struct stat st;

	if (!d && fd >= 0)
		close(fd);
	while (d && deep < DEEP && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			n += settle_times(fd, e->d_name, now, deep + 1);
		else if (S_ISREG(st.st_mode) && st.st_mtime > now + AHEAD_S)
			n += (is_object(e->d_name) ? unlinkat(fd, e->d_name, 0) : utimensat(fd, e->d_name, NULL, 0)) == 0;
	}
	if (d)
		closedir(d);
	return n;
}

void fa_build_check_kept(const char *source, const char *gate_dir, const struct fa_sink *sink)
{
	int ahead = settle_times(AT_FDCWD, source, time(NULL), 0);

	if (ahead)
		fa_emit_text(
		        sink, FA_EVENT_NOTE, "clock",
		        "%d files were dated ahead of the clock; they count as new now, and what depends on them is made again",
		        ahead);
	remove_damaged(gate_dir, sink);
}
