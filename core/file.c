#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int fa_file_read(struct fa_buf *out, const char *path, size_t max, struct fa_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;
	int rc = -1;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		goto done;
	}
	if (S_ISDIR(st.st_mode)) {
		fa_err_set(err, FA_USAGE, "%s: is a folder, not a file", path);
		goto done;
	}
	for (;;) {
		fa_buf_reserve(out, 65536);
		n = read(fd, out->data + out->len, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		out->len += (size_t)n;
		out->data[out->len] = '\0';
		if (out->len > max) {
			fa_err_set(err, FA_USAGE, "%s: larger than %zu MiB", path, max >> 20);
			goto done;
		}
	}
	if (n < 0) {
		fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		goto done;
	}
	out->data[out->len] = '\0';
	rc = 0;
done:
	if (fd >= 0)
		close(fd);
	return rc;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int fa_file_write(const char *path, const void *data, size_t len, struct fa_err *err)
{
	char *tmp = fa_strf("%s.tmp.%ld", path, (long)getpid());
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int rc = -1, saved;

	if (fd >= 0 && write_all(fd, data, len) == 0 && fsync(fd) == 0)
		rc = 0;
	saved = errno;
	if (fd >= 0 && close(fd) < 0 && rc == 0) {
		saved = errno;
		rc = -1;
	}
	if (rc == 0 && rename(tmp, path) < 0) {
		saved = errno;
		rc = -1;
	}
	if (rc < 0) {
		unlink(tmp);
		fa_err_set(err, FA_MACHINE, "%s: cannot be written: %s", path, strerror(saved));
	}
	free(tmp);
	return rc;
}

bool fa_file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

bool fa_file_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool fa_file_is_executable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* 0 or the system's reason. */
static int make_folder(const char *path)
{
	int why = mkdir(path, 0777) < 0 ? errno : 0;

	return why && fa_file_is_dir(path) ? 0 : why;
}

/* Of our own folders each can be put elsewhere. */
static void say_other_place(const char *path, int why, struct fa_err *err)
{
	static const char *const names[] = { "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME" };
	char *dirs[] = { fa_dir_cache(), fa_dir_data(), fa_dir_state() };

	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(dirs[i]);

		if ((why == EROFS || why == EACCES || why == EPERM) && !strncmp(path, dirs[i], len) &&
		    (!path[len] || path[len] == '/'))
			fa_err_next(err, "make %s writable, or set %s to a folder that is", dirs[i], names[i]);
		free(dirs[i]);
	}
}

int fa_file_mkdirs(const char *path, struct fa_err *err)
{
	char *p = fa_strdup(path);
	int why = 0;

	for (char *slash = p + (*p == '/'); !why && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		why = make_folder(p);
		*slash = '/';
	}
	why = why ? why : make_folder(p);
	if (why) {
		fa_err_set(err, FA_MACHINE, "%s: the folder cannot be made: %s", path, strerror(why));
		say_other_place(path, why, err);
	}
	free(p);
	return why ? -1 : 0;
}

static int remove_at(int parent, const char *name)
{
	struct stat st;
	struct dirent *e;
	DIR *d;
	int fd, rc = 0;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(parent, name, 0) < 0 && errno != ENOENT ? -1 : 0;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -1;
	}
	while (rc == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = remove_at(fd, e->d_name);
	closedir(d);
	return rc < 0 ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}

int fa_file_remove_tree(const char *path, struct fa_err *err)
{
	if (remove_at(AT_FDCWD, path) < 0)
		return fa_err_set(err, FA_MACHINE, "%s: cannot be removed: %s", path, strerror(errno));
	return 0;
}

static bool is_stale(const char *path, const char *pid_text)
{
	struct stat st;
	char *end;
	long pid = strtol(pid_text, &end, 10);

	/* The hour: on a shared disk the number may live on another machine. */
	return *pid_text && !*end && pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH && lstat(path, &st) == 0 &&
	       time(NULL) - st.st_mtime > 3600;
}

void fa_file_remove_stale(const char *path)
{
	char *dir = fa_path_dir(path), *prefix = fa_strf("%s.tmp.", fa_path_base(path)), *full;
	size_t len = strlen(prefix);
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, prefix, len) != 0)
			continue;
		full = fa_path_join(dir, e->d_name);
		if (is_stale(full, e->d_name + len))
			fa_file_remove_tree(full, NULL);
		free(full);
	}
	if (d)
		closedir(d);
	free(prefix);
	free(dir);
}

char *fa_path_join(const char *a, const char *b)
{
	size_t len = strlen(a);

	if (b[0] == '/' || !len)
		return fa_strdup(b);
	while (len > 1 && a[len - 1] == '/')
		len--;
	return fa_strf("%.*s%s%s", (int)len, a, len == 1 && a[0] == '/' ? "" : "/", b);
}

const char *fa_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *fa_path_dir(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return fa_strdup(".");
	return fa_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

char *fa_path_absolute(const char *path)
{
	char cwd[PATH_MAX];

	if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		return fa_strdup(path);
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	return !strcmp(path, ".") ? fa_strdup(cwd) : fa_path_join(cwd, path);
}

/* A target may begin with "..", as far up as the link lies deep; a ".." behind a name could go through another link. */
bool fa_path_link_stays_inside(const char *name, const char *target)
{
	int depth = 0;
	bool went_down = false;

	for (const char *p = name; *p; p++)
		depth += *p == '/';
	if (!target[0] || target[0] == '/' || strlen(target) > 1024)
		return false;
	for (const char *p = target; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 2 && !strncmp(p, "..", 2)) {
			if (went_down || --depth < 0)
				return false;
		} else if (len && !(len == 1 && *p == '.')) {
			went_down = true;
		}
		p += len + (p[len] == '/');
	}
	return true;
}

/* A relative value of an XDG variable must be ignored (XDG base directory specification 0.8). */
static char *xdg_dir(const char *variable, const char *under_home)
{
	const char *base = getenv(variable), *home = getenv("HOME");

	if (base && base[0] == '/')
		return fa_path_join(base, "fainstall");
	return fa_strf("%s/%s/fainstall", home && home[0] == '/' ? home : "", under_home);
}

char *fa_dir_data(void)
{
	return xdg_dir("XDG_DATA_HOME", ".local/share");
}

char *fa_dir_cache(void)
{
	return xdg_dir("XDG_CACHE_HOME", ".cache");
}

char *fa_dir_state(void)
{
	return xdg_dir("XDG_STATE_HOME", ".local/state");
}

char *fa_dir_config(void)
{
	return xdg_dir("XDG_CONFIG_HOME", ".config");
}

char *fa_dir_own(const char *name, struct fa_err *err)
{
	static const char *const forced[] = { "FAINSTALL_LIBEXEC", "FAINSTALL_DATA" };
	char exe[PATH_MAX], *dir, *path;
	static const char *const places[] = { ".", "../share/fainstall", "../libexec/fainstall", "../../share/fainstall" };
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < sizeof(forced) / sizeof(*forced); i++) {
		if (!getenv(forced[i]))
			continue;
		dir = fa_path_absolute(getenv(forced[i]));
		path = fa_path_join(dir, name);
		free(dir);
		if (fa_file_exists(path))
			return path;
		free(path);
	}
	dir = fa_path_dir(exe);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		path = fa_strf("%s/%s%s%s", dir, i ? places[i] : "", i ? "/" : "", name);
		if (fa_file_exists(path)) {
			free(dir);
			return path;
		}
		free(path);
	}
	fa_err_set(err, FA_INTERNAL, "%s is not beside the program in %s", name, dir);
	fa_err_next(err, "install fainstall again, or set FAINSTALL_DATA to the folder that holds it");
	free(dir);
	return NULL;
}
