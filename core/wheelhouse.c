#include "wheelhouse.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "sha256.h"
#include "strv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *fa_wheelhouse(void)
{
	char *data = fa_dir_data(), *dir = fa_path_join(data, "wheels");

	free(data);
	return dir;
}

static bool ends_in(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a > b && !strcmp(text + a - b, end);
}

/* Names in a folder that end so, sorted. */
static void list(struct fa_strv *out, const char *dir, const char *end)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (ends_in(e->d_name, end))
			fa_strv_push(out, e->d_name);
	if (d)
		closedir(d);
	fa_strv_sort(out);
}

static bool has_hash(const char *path, const char *sha256)
{
	char hex[FA_SHA256_HEX];

	return fa_sha256_file(hex, path, NULL) == 0 && !strcmp(hex, sha256);
}

/* ---- finding */

char *fa_wheel_in(const char *dir, const char *sha256)
{
	struct fa_strv names = FA_STRV_INIT;
	char *found = NULL;

	list(&names, dir, ".whl");
	for (size_t i = 0; i < names.n && !found; i++) {
		found = fa_path_join(dir, names.v[i]);
		if (!has_hash(found, sha256)) {
			free(found);
			found = NULL;
		}
	}
	fa_strv_release(&names);
	return found;
}

char *fa_wheelhouse_by_hash(const char *sha256)
{
	char *house = fa_wheelhouse(), *older = fa_strf("%s/older/%s", house, sha256);
	char *found = fa_wheel_in(house, sha256);

	if (!found)
		found = fa_wheel_in(older, sha256);
	free(house);
	free(older);
	return found;
}

/* The wheel of a record, when the key is right and the file is what the record says. */
static char *wheel_of_record(const char *house, const char *name, const char *key)
{
	char *path = fa_path_join(house, name), *wheel = NULL;
	struct fa_json *j = NULL;
	const char *has, *sha256;

	if (fa_json_read_file(&j, path, NULL) == 0) {
		has = fa_json_get_string(j, "key");
		sha256 = fa_json_get_string(j, "sha256");
		if (has && sha256 && !strcmp(has, key))
			wheel = fa_strndup(path, strlen(path) - strlen(".json"));
		if (wheel && !has_hash(wheel, sha256)) {
			free(wheel);
			wheel = NULL;
		}
	}
	fa_json_free(j);
	free(path);
	return wheel;
}

char *fa_wheelhouse_by_key(const char *key)
{
	char *house = fa_wheelhouse(), *found = NULL;
	struct fa_strv names = FA_STRV_INIT;

	list(&names, house, ".whl.json");
	for (size_t i = 0; i < names.n && !found; i++)
		found = wheel_of_record(house, names.v[i], key);
	fa_strv_release(&names);
	free(house);
	return found;
}

/* ---- keeping */

static int copy(const char *from, const char *to, struct fa_err *err)
{
	char *tmp = fa_strf("%s.tmp.%ld", to, (long)getpid()), block[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), rc = -1;
	ssize_t n = -1;

	if (in < 0 || out < 0)
		goto done;
	while ((n = read(in, block, sizeof(block))) > 0)
		if (write(out, block, (size_t)n) != n) {
			n = -1;
			break;
		}
	if (n == 0 && fsync(out) == 0)
		rc = 0;
done:
	if (rc < 0)
		fa_err_set(err, FA_MACHINE, "%s: %s", to, strerror(errno));
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	if (rc == 0 && rename(tmp, to) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: %s", to, strerror(errno));
	if (rc < 0)
		unlink(tmp);
	free(tmp);
	return rc;
}

int fa_wheel_place(const char *wheel, const char *sha256, const char *dir, struct fa_err *err)
{
	char *to = fa_path_join(dir, fa_path_base(wheel)), *tmp = fa_strf("%s.tmp.%ld", to, (long)getpid());
	int rc = fa_file_mkdirs(dir, err);

	if (rc == 0 && !has_hash(to, sha256)) {
		unlink(tmp);
		if (link(wheel, tmp) == 0) {
			if (rename(tmp, to) < 0)
				rc = fa_err_set(err, FA_MACHINE, "%s: %s", to, strerror(errno));
		} else {
			rc = copy(wheel, to, err);
		}
	}
	free(tmp);
	free(to);
	return rc;
}

/* What lies under that name and is another file moves to older/. */
static int make_room(const char *house, const char *path, const char *sha256, struct fa_err *err)
{
	char hex[FA_SHA256_HEX], *older, *to;
	int rc = 0;

	if (!fa_file_exists(path) || fa_sha256_file(hex, path, NULL) < 0 || !strcmp(hex, sha256))
		return 0;
	older = fa_strf("%s/older/%s", house, hex);
	to = fa_path_join(older, fa_path_base(path));
	rc = fa_file_mkdirs(older, err);
	if (rc == 0 && rename(path, to) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: %s", to, strerror(errno));
	free(older);
	free(to);
	return rc;
}

static int write_beside(const char *path, const char *sha256, const struct fa_json *record, struct fa_err *err)
{
	struct fa_json *j = fa_json_copy(record);
	char *sum = fa_strf("%s.sha256", path), *json = fa_strf("%s.json", path), *line, *text;
	int rc;

	line = fa_strf("%s  %s\n", sha256, fa_path_base(path));
	fa_json_set_string(j, "sha256", sha256);
	text = fa_json_print(j, true);
	rc = fa_file_write(sum, line, strlen(line), err);
	if (rc == 0)
		rc = fa_file_write(json, text, strlen(text), err);
	fa_json_free(j);
	free(sum);
	free(json);
	free(line);
	free(text);
	return rc;
}

int fa_wheelhouse_add(char **out, const char *wheel, const char *sha256, const struct fa_json *record, struct fa_err *err)
{
	char *house = fa_wheelhouse(), *path = fa_path_join(house, fa_path_base(wheel));
	int rc = fa_file_mkdirs(house, err);

	*out = NULL;
	if (rc == 0)
		rc = make_room(house, path, sha256, err);
	if (rc == 0 && rename(wheel, path) < 0)
		rc = copy(wheel, path, err);
	if (rc == 0)
		rc = write_beside(path, sha256, record, err);
	if (rc == 0) {
		*out = path;
		path = NULL;
	}
	free(path);
	free(house);
	return rc;
}
