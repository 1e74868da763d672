#include "dist.h"

#include "buf.h"
#include "file.h"
#include "strv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_MAX = 64 * 1024 * 1024 };

/* First field of a line of CSV. The caller's. */
static char *first_field(const char *line)
{
	struct fa_buf b = FA_BUF_INIT;

	if (*line != '"')
		return fa_strndup(line, strcspn(line, ",\r\n"));
	for (line++; *line; line++) {
		if (*line == '"' && *++line != '"')
			break;
		fa_buf_addc(&b, *line);
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

/* Paths of RECORD, relative to the folder that holds `info`, as they stand ("../../../bin/x" among them). */
static int read_record(struct fa_strv *out, const char *info, struct fa_err *err)
{
	char *path = fa_path_join(info, "RECORD");
	struct fa_buf text = FA_BUF_INIT;
	int rc = -1;

	if (!fa_file_exists(path)) {
		fa_err_set(err, FA_MACHINE, "%s: there is no RECORD, so it cannot be put back if the new one fails", info);
		fa_err_next(err, "remove that package with the tool that installed it, or name another environment with --env");
		goto done;
	}
	if (fa_file_read(&text, path, RECORD_MAX, err) < 0)
		goto done;
	for (const char *p = fa_buf_str(&text); *p; p += strcspn(p, "\n"), p += *p == '\n') {
		char *name = first_field(p);

		if (*name && *name != '/')
			fa_strv_take(out, name);
		else
			free(name);
	}
	rc = 0;
done:
	fa_buf_release(&text);
	free(path);
	return rc;
}

static int copy_file(const char *from, const char *to, mode_t mode)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777);
	char block[65536];
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, block, sizeof(block))) > 0)
		if (write(out, block, (size_t)n) != n) {
			n = -1;
			break;
		}
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) < 0)
		n = -1;
	return n == 0 ? 0 : -1;
}

/* A second name for a file, or a copy where that cannot be. What is there already is replaced. */
static int duplicate(const char *from, const char *to, struct fa_err *err)
{
	char *dir = fa_path_dir(to);
	struct stat st;
	int rc = -1;

	if (lstat(from, &st) < 0) {
		rc = errno == ENOENT ? 0 : fa_err_set(err, FA_MACHINE, "%s: %s", from, strerror(errno));
		goto done;
	}
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		rc = 0;
		goto done;
	}
	if (fa_file_mkdirs(dir, err) < 0)
		goto done;
	unlink(to);
	if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) == 0 || copy_file(from, to, st.st_mode) == 0)
		rc = 0;
	else
		fa_err_set(err, FA_MACHINE, "%s: %s", to, strerror(errno));
done:
	free(dir);
	return rc;
}

/* A path of RECORD that leads up keeps its meaning inside `keep`: ".." becomes "%up". */
static char *kept_name(const char *name)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; !strncmp(name, "../", 3); name += 3)
		fa_buf_adds(&b, "%up/");
	fa_buf_adds(&b, name);
	return fa_buf_detach(&b);
}

static char *real_name(const char *kept)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; !strncmp(kept, "%up/", 4); kept += 4)
		fa_buf_adds(&b, "../");
	fa_buf_adds(&b, kept);
	return fa_buf_detach(&b);
}

int fa_dist_save(const char *info, const char *keep, struct fa_err *err)
{
	struct fa_strv names = FA_STRV_INIT;
	char *site = fa_path_dir(info);
	int rc = read_record(&names, info, err);

	if (rc == 0)
		rc = fa_file_mkdirs(keep, err);
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		char *from = fa_path_join(site, names.v[i]), *kept = kept_name(names.v[i]), *to = fa_path_join(keep, kept);

		rc = duplicate(from, to, err);
		free(from);
		free(kept);
		free(to);
	}
	free(site);
	fa_strv_release(&names);
	return rc;
}

/* Every file under keep/below goes to site/below. */
static int restore_folder(const char *keep, const char *below, const char *site, struct fa_err *err)
{
	char *folder = *below ? fa_path_join(keep, below) : fa_strdup(keep);
	DIR *d = opendir(folder);
	struct dirent *e;
	int rc = d ? 0 : fa_err_set(err, FA_MACHINE, "%s: %s", folder, strerror(errno));

	while (rc == 0 && (e = readdir(d))) {
		char *name, *from, *to, *real;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		name = *below ? fa_path_join(below, e->d_name) : fa_strdup(e->d_name);
		from = fa_path_join(keep, name);
		real = real_name(name);
		to = fa_path_join(site, real);
		rc = fa_file_is_dir(from) ? restore_folder(keep, name, site, err) : duplicate(from, to, err);
		free(name);
		free(from);
		free(real);
		free(to);
	}
	if (d)
		closedir(d);
	free(folder);
	return rc;
}

int fa_dist_restore(const char *keep, const char *site, struct fa_err *err)
{
	return restore_folder(keep, "", site, err);
}

/* "pkg/a.py": pkg/__pycache__/a.*.pyc is of it. */
static void remove_compiled(const char *path)
{
	const char *base = fa_path_base(path);
	size_t len = strlen(base);
	char *dir, *cache;
	struct dirent *e;
	DIR *d;

	if (len < 4 || strcmp(base + len - 3, ".py") != 0)
		return;
	dir = fa_path_dir(path);
	cache = fa_path_join(dir, "__pycache__");
	d = opendir(cache);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, base, len - 2) && strstr(e->d_name, ".pyc"))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(cache);
	free(cache);
	free(dir);
}

/* Folders of `path` that are empty now, up to but not including `top`. */
static void remove_empty(const char *path, const char *top)
{
	char *dir = fa_path_dir(path);

	while (strlen(dir) > strlen(top) && !strncmp(dir, top, strlen(top)) && rmdir(dir) == 0) {
		char *up = fa_path_dir(dir);

		free(dir);
		dir = up;
	}
	free(dir);
}

int fa_dist_remove(const char *info, struct fa_err *err)
{
	struct fa_strv names = FA_STRV_INIT;
	char *site = fa_path_dir(info);

	read_record(&names, info, NULL);
	for (size_t i = 0; i < names.n; i++) {
		char *path = fa_path_join(site, names.v[i]);

		unlink(path);
		remove_compiled(path);
		free(path);
	}
	for (size_t i = 0; i < names.n; i++) {
		char *path = fa_path_join(site, names.v[i]);

		if (!strstr(names.v[i], "../"))
			remove_empty(path, site);
		free(path);
	}
	free(site);
	fa_strv_release(&names);
	return fa_file_remove_tree(info, err);
}
