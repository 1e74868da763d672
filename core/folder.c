#include "folder.h"

#include "buf.h"
#include "file.h"
#include "strv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 200000, DEPTH_MAX = 64 };

static bool left_out(const char *name)
{
	static const char *const names[] = { ".", "..", ".git", "build", "dist", "__pycache__" };
	static const char egg[] = ".egg-info";
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return len >= sizeof(egg) && !strcmp(name + len - (sizeof(egg) - 1), egg);
}

/* Paths within the folder of all files and links below `within` ("" the top). */
static int list(struct fa_strv *out, const char *folder, const char *within, int depth, struct fa_err *err)
{
	char *path = *within ? fa_path_join(folder, within) : fa_strdup(folder);
	DIR *d = opendir(path);
	int rc = d ? 0 : fa_err_set(err, FA_MACHINE, "%s: %s", path, strerror(errno));
	struct dirent *e;

	while (rc == 0 && (e = readdir(d))) {
		char *inner = *within ? fa_path_join(within, e->d_name) : fa_strdup(e->d_name);
		char *whole = fa_path_join(folder, inner);
		struct stat st;

		if (left_out(e->d_name)) {
			/* nothing of the source */
		} else if (lstat(whole, &st) < 0) {
			rc = fa_err_set(err, FA_MACHINE, "%s: %s", whole, strerror(errno));
		} else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			rc = list(out, folder, inner, depth + 1, err);
		} else if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
			rc = fa_err_set(err, FA_INTEGRITY, "%s: is neither a file nor a folder nor a link", whole);
		} else if (out->n == FILES_MAX) {
			rc = fa_err_set(err, FA_INTEGRITY, "%s: more than %d files", folder, FILES_MAX);
		} else {
			fa_strv_push(out, inner);
		}
		free(inner);
		free(whole);
	}
	if (d)
		closedir(d);
	free(path);
	return rc;
}

/* Where the link at path leads, or NULL: it is none. The caller's. */
static char *link_at(const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	return n < 0 ? NULL : fa_strndup(target, (size_t)n);
}

static int check_link(const char *folder, const char *name, const char *target, struct fa_err *err)
{
	if (fa_path_link_stays_inside(name, target))
		return 0;
	return fa_err_set(err, FA_INTEGRITY, "%s/%s: leads out of the folder, to %s", folder, name, target);
}

static int add_one(struct fa_sha256 *s, const char *folder, const char *name, struct fa_err *err)
{
	char *path = fa_path_join(folder, name), *target = link_at(path), hex[FA_SHA256_HEX] = "", *line = NULL;
	int rc = target ? check_link(folder, name, target, err) : fa_sha256_file(hex, path, err);

	if (rc == 0) {
		line = fa_strf("%s %s %s\n",
		               target                        ? "link"
		               : fa_file_is_executable(path) ? "program"
		                                             : "file",
		               name, target ? target : hex);
		fa_sha256_add(s, line, strlen(line));
	}
	free(line);
	free(target);
	free(path);
	return rc;
}

int fa_folder_digest(char out[FA_SHA256_HEX], const char *folder, struct fa_err *err)
{
	struct fa_strv names = FA_STRV_INIT;
	struct fa_sha256 s;
	int rc = list(&names, folder, "", 0, err);

	fa_strv_sort(&names);
	fa_sha256_init(&s);
	for (size_t i = 0; i < names.n && rc == 0; i++)
		rc = add_one(&s, folder, names.v[i], err);
	fa_sha256_hex(&s, out);
	fa_strv_release(&names);
	return rc;
}

/* ---- copying */

static int copy_bytes(int from, int to)
{
	char chunk[65536];
	ssize_t n;

	while ((n = read(from, chunk, sizeof(chunk))) > 0)
		for (ssize_t done = 0, w; done < n; done += w)
			if ((w = write(to, chunk + done, (size_t)(n - done))) < 0)
				return -1;
	return n < 0 ? -1 : 0;
}

static int copy_file(const char *to, const char *from, struct fa_err *err)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out = -1, rc = -1;
	mode_t mode = fa_file_is_executable(from) ? 0777 : 0666;

	if (in >= 0)
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (in < 0)
		fa_err_set(err, FA_MACHINE, "%s: %s", from, strerror(errno));
	else if (out < 0 || copy_bytes(in, out) < 0)
		fa_err_set(err, FA_MACHINE, "%s: %s", to, strerror(errno));
	else
		rc = 0;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return rc;
}

static int copy_one(const char *to, const char *folder, const char *name, struct fa_err *err)
{
	char *from = fa_path_join(folder, name), *place = fa_path_join(to, name), *dir = fa_path_dir(place);
	char *target = link_at(from);
	int rc = fa_file_mkdirs(dir, err);

	if (rc == 0 && !target)
		rc = copy_file(place, from, err);
	else if (rc == 0 && check_link(folder, name, target, err) < 0)
		rc = -1;
	else if (rc == 0 && symlink(target, place) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: %s", place, strerror(errno));
	free(target);
	free(from);
	free(place);
	free(dir);
	return rc;
}

int fa_folder_copy(const char *to, const char *folder, const volatile int *cancel, struct fa_err *err)
{
	struct fa_strv names = FA_STRV_INIT;
	char *tmp = fa_strf("%s.tmp.%ld", to, (long)getpid());
	int rc = list(&names, folder, "", 0, err);

	fa_file_remove_stale(to);
	if (rc == 0)
		rc = fa_file_mkdirs(tmp, err);
	for (size_t i = 0; i < names.n && rc == 0; i++)
		rc = cancel && *cancel ? fa_err_set(err, FA_INTERRUPTED, "interrupted")
		                       : copy_one(tmp, folder, names.v[i], err);
	if (rc == 0 && rename(tmp, to) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: %s", to, strerror(errno));
	if (rc < 0)
		fa_file_remove_tree(tmp, NULL);
	fa_strv_release(&names);
	free(tmp);
	return rc;
}
