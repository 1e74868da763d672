#include "archive.h"

#include "buf.h"
#include "file.h"
#include "strv.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ENTRIES = 500000, MAX_NAME = 1024, MAX_DEPTH = 64 };

/* ---- names that were unpacked already, and what they are */

enum kind { NONE, FOLDER, FILE_, LINK };

struct names {
	char **v; /* open addressing; NULL: free */
	unsigned char *kinds;
	size_t n, cap;
};

static size_t slot_of(const struct names *s, const char *name)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */
	size_t i;

	for (const char *p = name; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	for (i = (size_t)h & (s->cap - 1); s->v[i] && strcmp(s->v[i], name) != 0; i = (i + 1) & (s->cap - 1))
		;
	return i;
}

static void names_grow(struct names *s)
{
	struct names bigger = { .cap = s->cap ? 2 * s->cap : 1024, .n = s->n };
	size_t slot;

	bigger.v = fa_calloc(bigger.cap, sizeof(*bigger.v));
	bigger.kinds = fa_calloc(bigger.cap, 1);
	for (size_t i = 0; i < s->cap; i++)
		if (s->v[i]) {
			slot = slot_of(&bigger, s->v[i]);
			bigger.v[slot] = s->v[i];
			bigger.kinds[slot] = s->kinds[i];
		}
	free(s->v);
	free(s->kinds);
	*s = bigger;
}

static enum kind names_get(const struct names *s, const char *name)
{
	return s->cap && s->v[slot_of(s, name)] ? (enum kind)s->kinds[slot_of(s, name)] : NONE;
}

static void names_add(struct names *s, const char *name, enum kind kind)
{
	size_t slot;

	if (2 * s->n >= s->cap)
		names_grow(s);
	slot = slot_of(s, name);
	s->v[slot] = fa_strdup(name);
	s->kinds[slot] = (unsigned char)kind;
	s->n++;
}

static void names_release(struct names *s)
{
	for (size_t i = 0; i < s->cap; i++)
		free(s->v[i]);
	free(s->v);
	free(s->kinds);
}

/* ---- reading */

/* libarchive turns names into the locale's encoding and spoils what that lacks: here it is always UTF-8. */
static locale_t enter_utf8(locale_t *utf8)
{
	*utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return *utf8 ? uselocale(*utf8) : (locale_t)0;
}

static void leave_utf8(locale_t utf8, locale_t before)
{
	if (utf8) {
		uselocale(before);
		freelocale(utf8);
	}
}

/* What libarchive says, in one line. */
static int damaged(struct archive *a, const char *path, struct fa_err *err)
{
	const char *text = archive_error_string(a);

	fa_err_set(err, FA_INTEGRITY, "%s: damaged: %s", path, text ? text : "ends too early");
	return fa_err_next(err, "remove it and fetch it again");
}

static struct archive *open_archive(const char *path, struct fa_err *err)
{
	struct archive *a;
	struct stat st;

	if (stat(path, &st) < 0) {
		fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		fa_err_set(err, FA_USAGE, "%s: not a file", path);
		return NULL;
	}
	a = archive_read_new();
	if (!a) {
		fa_err_set(err, FA_INTERNAL, "%s: no memory for an archive", path);
		return NULL;
	}
	/* Only what sdists, wheels and bundles are: fewer parsers, fewer surprises. */
	archive_read_support_filter_gzip(a);
	archive_read_support_format_tar(a);
	archive_read_support_format_zip_seekable(a);
	if (archive_read_open_filename(a, path, 128 * 1024) != ARCHIVE_OK) {
		fa_err_set(err, FA_INTEGRITY, "%s: cannot be read as a .tar.gz, .whl or .zip: %s", path,
		           archive_error_string(a));
		fa_err_next(err, "remove it and fetch it again");
		archive_read_free(a);
		return NULL;
	}
	return a;
}

/* 1: an entry, 0: the end, -1. A warning is libarchive's about a name it could not translate; names are ours to judge. */
static int next_entry(struct archive *a, struct archive_entry **e, const char *path, struct fa_err *err)
{
	int rc = archive_read_next_header(a, e);

	if (rc == ARCHIVE_EOF)
		return 0;
	return rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? 1 : damaged(a, path, err);
}

/* Borrowed; NULL when it is in no encoding known. The raw bytes first: they do not depend on the locale. */
static const char *entry_name(struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);

	return name ? name : archive_entry_pathname_utf8(e);
}

int fa_archive_list(struct fa_strv *out, const char *archive, struct fa_err *err)
{
	locale_t utf8, before = enter_utf8(&utf8);
	struct archive *a = open_archive(archive, err);
	struct archive_entry *e;
	const char *name;
	int got = a ? 1 : -1;

	for (int n = 0; got > 0 && (got = next_entry(a, &e, archive, err)) > 0; n++) {
		name = entry_name(e);
		if (name && n < MAX_ENTRIES)
			fa_strv_push(out, name);
		else
			got = fa_err_set(err, FA_INTEGRITY, "%s: %s", archive,
			                 name ? "more than 500000 entries" : "a name in no known encoding");
	}
	archive_read_free(a);
	leave_utf8(utf8, before);
	return got;
}

static int read_entry(struct fa_buf *out, struct archive *a, const char *archive, const char *name, int64_t max,
                      struct fa_err *err)
{
	la_ssize_t n;
	int64_t sum = 0;

	for (;;) {
		fa_buf_reserve(out, 65536);
		n = archive_read_data(a, out->data + out->len, 65536);
		if (n <= 0)
			break;
		out->len += (size_t)n;
		sum += n;
		if (sum > max)
			return fa_err_set(err, FA_INTEGRITY, "%s: %s is larger than %lld bytes", archive, name, (long long)max);
	}
	out->data[out->len] = '\0';
	return n < 0 ? damaged(a, archive, err) : 0;
}

int fa_archive_read(struct fa_buf *out, const char *archive, const char *name, int64_t max, struct fa_err *err)
{
	locale_t utf8, before = enter_utf8(&utf8);
	struct archive *a = open_archive(archive, err);
	struct archive_entry *e;
	const char *found;
	int got = a ? 1 : -1, rc = -1;

	while (got > 0 && (got = next_entry(a, &e, archive, err)) > 0) {
		found = entry_name(e);
		if (!found || strcmp(found, name) != 0)
			continue;
		rc = read_entry(out, a, archive, name, max, err);
		goto done;
	}
	if (got == 0)
		fa_err_set(err, FA_INTEGRITY, "%s: holds no %s", archive, name);
done:
	archive_read_free(a);
	leave_utf8(utf8, before);
	return rc;
}

/* ---- unpacking */

struct link { /* made when every file is written: nothing can be written through one */
	char *name, *target;
};

struct unpack {
	const char *archive;
	struct archive *a;
	int top;      /* the folder that is filled */
	int64_t left; /* bytes that may still come */
	int64_t now;
	const volatile int *cancel;
	struct names names;
	struct link *links;
	size_t n_links, cap_links;
};

static const char too_much[] = "more data than allowed in all (a decompression bomb)";

static int refuse(const struct unpack *u, const char *name, const char *why, struct fa_err *err)
{
	struct fa_buf shown = FA_BUF_INIT;

	for (const char *p = name; *p && shown.len < 200; p++)
		fa_buf_addc(&shown, (unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p);
	fa_err_set(err, FA_INTEGRITY, "%s: entry \"%s\": %s; nothing was unpacked", u->archive, fa_buf_str(&shown), why);
	fa_err_next(err, "do not use this file; fetch it from its publisher and compare its hash");
	fa_buf_release(&shown);
	return -1;
}

static int no_room(const struct unpack *u, const char *name, struct fa_err *err)
{
	int saved = errno;

	fa_err_set(err, FA_MACHINE, "%s: %.200s cannot be written: %s", u->archive, name, strerror(saved));
	if (saved == ENOSPC || saved == EDQUOT)
		fa_err_next(err, "free some space on that disk, or choose another folder");
	return -1;
}

/* The name with "." and empty parts left out and `strip` leading parts dropped. NULL with err: not to be trusted; "" when
 * nothing is left of it. The caller's. */
static char *clean_name(const struct unpack *u, const char *name, int strip, struct fa_err *err)
{
	struct fa_buf out = FA_BUF_INIT;
	int parts = 0;

	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f) {
			refuse(u, name, "a control character in the name", err);
			return NULL;
		}
	if (name[0] == '/' || !name[0] || strlen(name) > MAX_NAME) {
		refuse(u, name, !name[0] ? "no name" : name[0] == '/' ? "an absolute path" : "a name too long", err);
		return NULL;
	}
	for (const char *p = name; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 2 && !strncmp(p, "..", 2)) {
			refuse(u, name, "\"..\" in the path", err);
			fa_buf_release(&out);
			return NULL;
		}
		if (len && !(len == 1 && *p == '.') && parts++ >= strip) {
			if (out.len)
				fa_buf_addc(&out, '/');
			fa_buf_add(&out, p, len);
		}
		p += len + (p[len] == '/');
	}
	if (parts > MAX_DEPTH) {
		refuse(u, name, "folders nested too deep", err);
		fa_buf_release(&out);
		return NULL;
	}
	return fa_buf_detach(&out);
}

/* The folders above `name`, or with `itself` also that one; each made once, by us, so never a link. */
static int make_folders(struct unpack *u, char *name, bool itself, struct fa_err *err)
{
	for (char *slash = name; (slash = strchr(slash, '/')) || itself; slash++) {
		enum kind kind;
		bool last = !slash;
		int rc = 0;

		if (slash)
			*slash = '\0';
		kind = names_get(&u->names, name);
		if (kind == NONE) {
			rc = mkdirat(u->top, name, 0755) < 0 || fchmodat(u->top, name, 0755, 0) < 0 ? no_room(u, name, err) : 0;
			names_add(&u->names, name, FOLDER);
		} else if (kind != FOLDER) {
			rc = refuse(u, name, "a folder and a file of the same name", err);
		}
		if (slash)
			*slash = '/';
		if (rc < 0 || last)
			return rc;
	}
	return 0;
}

static int copy_data(struct unpack *u, int fd, const char *name, struct fa_err *err)
{
	char buf[65536];
	la_ssize_t n;

	while ((n = archive_read_data(u->a, buf, sizeof(buf))) > 0) {
		if (u->cancel && *u->cancel)
			return fa_err_set(err, FA_INTERRUPTED, "%s: unpacking stopped as asked", u->archive);
		u->left -= n;
		if (u->left < 0)
			return refuse(u, name, too_much, err);
		for (la_ssize_t done = 0, w; done < n; done += w) {
			w = write(fd, buf + done, (size_t)(n - done));
			if (w < 0 && errno != EINTR)
				return no_room(u, name, err);
			w = w < 0 ? 0 : w;
		}
	}
	return n < 0 ? damaged(u->a, u->archive, err) : 0;
}

static int put_file(struct unpack *u, struct archive_entry *e, const char *name, struct fa_err *err)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = archive_entry_mtime(e) } };
	mode_t mode = archive_entry_perm(e) & 0111 ? 0755 : 0644;
	int fd, rc = -1;

	fd = openat(u->top, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return no_room(u, name, err);
	names_add(&u->names, name, FILE_);
	if (copy_data(u, fd, name, err) < 0)
		goto done;
	/* Times are kept, as wheels made of these files carry them; one of the future would make every build start anew. */
	if (times[1].tv_sec < 315532800 || times[1].tv_sec > u->now)
		times[1].tv_sec = u->now;
	rc = fchmod(fd, mode) < 0 || futimens(fd, times) < 0 ? no_room(u, name, err) : 0;
done:
	if (close(fd) < 0 && rc == 0)
		rc = no_room(u, name, err);
	return rc;
}

static int note_link(struct unpack *u, const char *name, const char *target, struct fa_err *err)
{
	if (!target || !fa_path_link_stays_inside(name, target))
		return refuse(u, name, "a link that leads out", err);
	if (u->n_links == u->cap_links) {
		u->cap_links = u->cap_links ? 2 * u->cap_links : 16;
		u->links = fa_realloc(u->links, u->cap_links, sizeof(*u->links));
	}
	u->links[u->n_links++] = (struct link){ fa_strdup(name), fa_strdup(target) };
	names_add(&u->names, name, LINK);
	return 0;
}

static int put_hard_link(struct unpack *u, const char *name, const char *target, int strip, struct fa_err *err)
{
	char *clean = clean_name(u, target, strip, err);
	int rc = -1;

	if (!clean)
		return -1;
	if (names_get(&u->names, clean) != FILE_)
		refuse(u, name, "a link to what this archive did not bring", err);
	else if (linkat(u->top, clean, u->top, name, 0) < 0)
		no_room(u, name, err);
	else
		rc = 0;
	names_add(&u->names, name, FILE_);
	free(clean);
	return rc;
}

static int put_entry(struct unpack *u, struct archive_entry *e, int strip, struct fa_err *err)
{
	const char *raw = entry_name(e);
	char *name = raw ? clean_name(u, raw, strip, err) : NULL;
	bool folder = archive_entry_filetype(e) == AE_IFDIR;
	int rc = -1;

	if (!raw)
		return refuse(u, "?", "a name in no known encoding", err);
	if (!name)
		return -1;
	if (archive_entry_size_is_set(e) && archive_entry_size(e) > u->left) {
		refuse(u, name, too_much, err);
		goto done;
	}
	if (!name[0]) { /* stripped away, or "./" */
		u->left -= archive_entry_size_is_set(e) ? archive_entry_size(e) : 0;
		rc = folder || strip ? 0 : refuse(u, raw, "a file without a name", err);
		goto done;
	}
	if (make_folders(u, name, folder, err) < 0)
		goto done;
	if (!folder && names_get(&u->names, name) != NONE)
		refuse(u, name, "the same name twice", err);
	else if (folder)
		rc = 0;
	else if (archive_entry_hardlink(e))
		rc = put_hard_link(u, name, archive_entry_hardlink(e), strip, err);
	else if (archive_entry_filetype(e) == AE_IFLNK)
		rc = note_link(u, name, archive_entry_symlink(e), err);
	else if (archive_entry_filetype(e) == AE_IFREG)
		rc = put_file(u, e, name, err);
	else
		refuse(u, name, "neither file, folder nor link", err);
done:
	free(name);
	return rc;
}

static int unpack_all(struct unpack *u, int strip, struct fa_err *err)
{
	struct archive_entry *e;
	int got, n = 0;

	while ((got = next_entry(u->a, &e, u->archive, err)) > 0) {
		if (u->cancel && *u->cancel)
			return fa_err_set(err, FA_INTERRUPTED, "%s: unpacking stopped as asked", u->archive);
		if (++n > MAX_ENTRIES)
			return refuse(u, "…", "more than 500000 entries", err);
		if (put_entry(u, e, strip, err) < 0)
			return -1;
	}
	if (got < 0)
		return -1;
	if (!u->names.n)
		return fa_err_set(err, FA_INTEGRITY, "%s: holds no file", u->archive);
	for (size_t i = 0; i < u->n_links; i++)
		if (symlinkat(u->links[i].target, u->top, u->links[i].name) < 0)
			return no_room(u, u->links[i].name, err);
	return 0;
}

/* The rename is the moment at which the folder exists: its content is on the disk by then. */
static int commit(struct unpack *u, const char *tmp, const char *dir, struct fa_err *err)
{
	if (fchmod(u->top, 0755) < 0 || syncfs(u->top) < 0 || rename(tmp, dir) < 0)
		return no_room(u, dir, err);
	return 0;
}

static void unpack_release(struct unpack *u)
{
	for (size_t i = 0; i < u->n_links; i++) {
		free(u->links[i].name);
		free(u->links[i].target);
	}
	free(u->links);
	names_release(&u->names);
	archive_read_free(u->a);
	if (u->top >= 0)
		close(u->top);
}

int fa_archive_unpack(const char *archive, const char *dir, int strip, int64_t max_bytes, const volatile int *cancel,
                      struct fa_err *err)
{
	struct unpack u = { .archive = archive, .top = -1, .left = max_bytes, .now = time(NULL), .cancel = cancel };
	locale_t utf8, before = enter_utf8(&utf8);
	char *tmp = fa_strf("%s.tmp.%ld", dir, (long)getpid()), *parent = fa_path_dir(dir);
	int rc = -1;

	if (fa_file_exists(dir)) {
		fa_err_set(err, FA_MACHINE, "%s: is there already", dir);
		goto done;
	}
	fa_file_remove_stale(dir);
	u.a = open_archive(archive, err);
	if (!u.a || fa_file_mkdirs(parent, err) < 0 || fa_file_remove_tree(tmp, err) < 0)
		goto done;
	if (mkdir(tmp, 0700) < 0 || (u.top = open(tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
		no_room(&u, tmp, err);
		goto done;
	}
	rc = unpack_all(&u, strip, err);
	if (rc == 0)
		rc = commit(&u, tmp, dir, err);
	if (rc < 0)
		fa_file_remove_tree(tmp, NULL);
done:
	unpack_release(&u);
	leave_utf8(utf8, before);
	free(parent);
	free(tmp);
	return rc;
}
