#include "part.h"

#include "buf.h"
#include "file.h"
#include "strv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int fa_part_say(const struct fa_part *p, int why, struct fa_err *err)
{
	fa_err_set(err, FA_MACHINE, "%s: cannot be written: %s", p->path, strerror(why));
	if (why == ENOSPC || why == EDQUOT)
		fa_err_next(err, "free some space on that disk%s", p->got ? "; the next run goes on from here" : "");
	return -1;
}

static int say_cancelled(const struct fa_part *p, struct fa_err *err)
{
	return fa_err_set(err, FA_INTERRUPTED, "%s: download stopped as asked; what is here already is kept",
	                  fa_path_base(p->target));
}

static int wait_for_lock(const struct fa_part *p, const volatile int *cancel, struct fa_err *err)
{
	struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };

	while (flock(p->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		if (cancel && *cancel)
			return say_cancelled(p, err);
		nanosleep(&pause, NULL);
	}
	return 0; /* a disk that knows no locks: then nobody waits */
}

int fa_part_open(struct fa_part *p, const char *target, const char *url, const volatile int *cancel, struct fa_err *err)
{
	struct stat ours, there;

	*p = (struct fa_part){ .target = fa_strdup(target),
		               .path = fa_strf("%s.part", target),
		               .meta = fa_strf("%s.part.meta", target),
		               .fd = -1 };
	fa_sha256_init(&p->sha);
	fa_sha256_add(&p->sha, url, strlen(url)); /* the URL may hold a password: only its hash is kept */
	fa_sha256_hex(&p->sha, p->url_hash);
	fa_sha256_init(&p->sha);
	for (;;) {
		p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (p->fd < 0)
			return fa_part_say(p, errno, err);
		if (wait_for_lock(p, cancel, err) < 0) {
			close(p->fd); /* not ours: left as it is */
			p->fd = -1;
			return -1;
		}
		if (fstat(p->fd, &ours) == 0 && stat(p->path, &there) == 0 && ours.st_ino == there.st_ino)
			return 0;
		close(p->fd); /* its owner renamed or removed it meanwhile */
	}
}

static void set_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", strcmp(text, "-") != 0 && strlen(text) < size ? text : "");
}

static void read_meta(struct fa_part *p)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_strv lines = FA_STRV_INIT;

	p->etag[0] = p->modified[0] = '\0';
	if (fa_file_read(&text, p->meta, 4096, NULL) == 0)
		fa_strv_split(&lines, fa_buf_str(&text), "\n");
	if (lines.n == 3 && !strcmp(lines.v[0], p->url_hash)) {
		set_text(p->etag, sizeof(p->etag), lines.v[1]);
		set_text(p->modified, sizeof(p->modified), lines.v[2]);
	}
	fa_strv_release(&lines);
	fa_buf_release(&text);
}

void fa_part_remember(struct fa_part *p, const char *etag, const char *modified)
{
	char *text;

	set_text(p->etag, sizeof(p->etag), etag);
	set_text(p->modified, sizeof(p->modified), modified);
	text = fa_strf("%s\n%s\n%s\n", p->url_hash, p->etag[0] ? p->etag : "-", p->modified[0] ? p->modified : "-");
	if (fa_file_write(p->meta, text, strlen(text), NULL) < 0) /* then the next run begins anew, or trusts the hash */
		unlink(p->meta);
	free(text);
}

int fa_part_restart(struct fa_part *p)
{
	p->got = 0;
	p->from_before = false;
	fa_sha256_init(&p->sha);
	return ftruncate(p->fd, 0);
}

int fa_part_take_up(struct fa_part *p, int64_t size, bool hash_known, const volatile int *cancel, struct fa_err *err)
{
	char buf[65536];
	ssize_t n;

	read_meta(p);
	while ((n = pread(p->fd, buf, sizeof(buf), p->got)) > 0 || (n < 0 && errno == EINTR)) {
		if (cancel && *cancel)
			return say_cancelled(p, err);
		if (n > 0) {
			fa_sha256_add(&p->sha, buf, (size_t)n);
			p->got += n;
		}
	}
	if (n < 0)
		return fa_part_say(p, errno, err);
	p->from_before = p->got > 0;
	if (((size >= 0 && p->got > size) || (!hash_known && !p->etag[0] && !p->modified[0])) && fa_part_restart(p) < 0)
		return fa_part_say(p, errno, err);
	return 0;
}

int fa_part_add(struct fa_part *p, const void *data, size_t len)
{
	const char *bytes = data;

	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(p->fd, bytes + done, len - done, p->got + (int64_t)done);

		if (n < 0 && errno != EINTR)
			return -1;
		done += n > 0 ? (size_t)n : 0;
	}
	fa_sha256_add(&p->sha, data, len);
	p->got += (int64_t)len;
	return 0;
}

void fa_part_hex(const struct fa_part *p, char out[FA_SHA256_HEX])
{
	struct fa_sha256 copy = p->sha;

	fa_sha256_hex(&copy, out);
}

int fa_part_commit(struct fa_part *p, struct fa_err *err)
{
	char *dir;
	int fd;

	if (fsync(p->fd) < 0 || rename(p->path, p->target) < 0)
		return fa_part_say(p, errno, err);
	dir = fa_path_dir(p->target);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(dir);
	unlink(p->meta);
	close(p->fd);
	p->fd = -1;
	return 0;
}

void fa_part_discard(struct fa_part *p)
{
	unlink(p->path);
	unlink(p->meta);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

void fa_part_close(struct fa_part *p)
{
	struct stat st;

	if (p->fd >= 0 && fstat(p->fd, &st) == 0 && !st.st_size)
		fa_part_discard(p);
	if (p->fd >= 0)
		close(p->fd);
	free(p->target);
	free(p->path);
	free(p->meta);
	*p = (struct fa_part){ .fd = -1 };
}
