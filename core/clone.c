#include "clone.h"

#include "buf.h"
#include "file.h"
#include "url.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOK_MS = 50,
	TELL_MS = 100,
	TRIES = 3,
	DEFAULT_SILENCE_S = 60,
	LEAST_RATE = 1024,         /* bytes a second */
	LOCAL_PATIENCE = 10,       /* a slow disk may be silent for so many times longer */
	ID_HEX = GIT_OID_HEXSZ + 1 /* with the NUL */
};

enum kind { PROGRESS, FAILED, FINISHED };

/* What the child tells; small enough to pass the pipe in one piece. */
struct message {
	enum kind kind;
	bool local;    /* no byte of the network is expected now */
	bool retry;    /* FAILED: another try may help */
	char what[16]; /* PROGRESS */
	int64_t done, total;
	int64_t activity; /* bytes, and what stands for bytes, so far */
	char commit[ID_HEX];
	struct fa_err err;
};

_Static_assert(sizeof(struct message) <= 4096, "a message must pass a pipe in one piece (PIPE_BUF)");

/* ---- the child: libgit2 */

struct child {
	const struct fa_clone_opts *o;
	int pipe;
	struct message m;
	const char *top; /* the folder that is filled */
	const char *url; /* of the repository in hand */
	size_t received; /* of the fetch in hand */
	int64_t told_ms;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void send_message(struct child *c)
{
	char raw[sizeof(c->m)];
	ssize_t n;

	memcpy(raw, &c->m, sizeof(raw));
	do
		n = write(c->pipe, raw, sizeof(raw));
	while (n < 0 && errno == EINTR);
}

static void tell(struct child *c, const char *what, int64_t done, int64_t total)
{
	int64_t now = now_ms();

	if (now - c->told_ms < TELL_MS && done != total)
		return;
	c->told_ms = now;
	c->m.kind = PROGRESS;
	c->m.done = done;
	c->m.total = total;
	snprintf(c->m.what, sizeof(c->m.what), "%s", what);
	send_message(c);
}

static int on_transfer(const git_indexer_progress *p, void *ctx)
{
	struct child *c = ctx;

	c->m.activity += (int64_t)(p->received_bytes - c->received);
	c->received = p->received_bytes;
	c->m.local = p->received_objects == p->total_objects;
	if (p->total_deltas && c->m.local)
		tell(c, "deltas", p->indexed_deltas, p->total_deltas);
	else
		tell(c, "objects", p->received_objects, p->total_objects);
	return 0;
}

/* "Counting objects": the server is at work. */
static int on_sideband(const char *text, int len, void *ctx)
{
	struct child *c = ctx;

	(void)text;
	c->m.activity += len * 100;
	tell(c, "objects", 0, -1);
	return 0;
}

static void on_checkout(const char *path, size_t done, size_t total, void *ctx)
{
	(void)path;
	tell(ctx, "files", (int64_t)done, (int64_t)total);
}

static bool disk_is_full(const char *path)
{
	struct statvfs st;

	return statvfs(path, &st) == 0 && (st.f_bavail * st.f_frsize < 1 << 20 || (st.f_files && !st.f_favail));
}

/* What libgit2 says, told apart by its class: its texts change. */
static int say_git(struct child *c, int rc, bool network, struct fa_err *err)
{
	const git_error *e = git_error_last();
	int klass = e ? e->klass : 0;
	char *host = fa_url_host(c->url), *text = fa_url_redact(e && e->message ? e->message : "no reason given");

	if (disk_is_full(c->top)) {
		fa_err_set(err, FA_MACHINE, "%s: no space left for the clone of %s", c->o->path, host);
		fa_err_next(err, "free some space on that disk");
	} else if (klass == GIT_ERROR_SSL || rc == GIT_ECERTIFICATE) {
		fa_err_set(err, FA_NETWORK, "git repository on %s: %s", host, text);
		fa_err_next(err, "set SSL_CERT_FILE to a file with the certificates of your site; TLS 1.2 must be allowed");
	} else if (network) {
		/* Only a hint is taken from the text: "unexpected http status code: 404" will be the same in a second. */
		c->m.retry = rc != GIT_EAUTH && !strstr(text, "status code: 4") &&
		             (klass == GIT_ERROR_NET || klass == GIT_ERROR_HTTP || klass == GIT_ERROR_OS ||
		              klass == GIT_ERROR_ZLIB || klass == GIT_ERROR_INDEXER);
		fa_err_set(err, FA_NETWORK, "git repository on %s: %s", host, text);
		fa_err_next(
		        err,
		        "check the address, the network and https_proxy; or take the source package instead of the repository");
	} else {
		fa_err_set(err, klass == GIT_ERROR_OS || klass == GIT_ERROR_FILESYSTEM ? FA_MACHINE : FA_INTEGRITY,
		           "clone of %s: %s", host, text);
	}
	free(host);
	free(text);
	return -1;
}

/* Own certificates come in only this way: the library reads no environment. */
static void set_certificates(void)
{
	static const char *const files[] = { "GIT_SSL_CAINFO", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE" };
	const char *file = NULL, *dir = getenv("GIT_SSL_CAPATH");
	git_config *config = NULL;
	git_buf configured = { 0 };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !(file && file[0]); i++)
		file = getenv(files[i]);
	if (!(file && file[0]) && git_config_open_default(&config) == 0 &&
	    git_config_get_path(&configured, config, "http.sslcainfo") == 0)
		file = configured.ptr;
	if (!(dir && dir[0]))
		dir = getenv("SSL_CERT_DIR");
	if (file && file[0])
		git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, file, NULL);
	else if (dir && dir[0])
		git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, NULL, dir);
	git_buf_dispose(&configured);
	git_config_free(config);
}

/* Settings of the user's may have sent the URL elsewhere (insteadOf): the same rules hold there. */
static int open_remote(git_remote **out, struct child *c, git_repository *repo, struct fa_err *err)
{
	int rc = git_remote_create_anonymous(out, repo, c->url);

	if (rc < 0)
		return say_git(c, rc, true, err);
	return fa_url_check(git_remote_url(*out), err);
}

static int fetch_specs(struct child *c, git_remote *remote, char **specs, size_t n)
{
	git_strarray list = { specs, n };
	git_fetch_options o;

	git_fetch_options_init(&o, GIT_FETCH_OPTIONS_VERSION);
	o.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
	o.update_fetchhead = 0;
	o.proxy_opts.type = strncasecmp(git_remote_url(remote), "http:", 5) != 0 ? GIT_PROXY_AUTO : GIT_PROXY_NONE;
	o.callbacks.transfer_progress = on_transfer;
	o.callbacks.sideband_progress = on_sideband;
	o.callbacks.payload = c;
	c->received = 0;
	c->m.local = false;
	return git_remote_fetch(remote, &list, &o, NULL);
}

/* The commit that a name in the repository means; GIT_ENOTFOUND: there is none. */
static int find_commit(git_commit **out, git_repository *repo, const char *name)
{
	git_object *object = NULL;
	int rc = git_revparse_single(&object, repo, name);

	if (rc == 0)
		rc = git_object_peel((git_object **)out, object, GIT_OBJECT_COMMIT);
	git_object_free(object);
	return rc;
}

/* A server need not serve a bare id. Then everything that has a name is fetched, and the commit looked for in it. */
static int fetch_by_id(git_commit **out, struct child *c, git_repository *repo, git_remote *remote, const char *id,
                       struct fa_err *err)
{
	char all_heads[] = "+refs/heads/*:refs/remotes/origin/*", all_tags[] = "+refs/tags/*:refs/tags/*";
	char *one = fa_strf("+%s:refs/heads/pinned", id), *specs[] = { all_heads, all_tags };
	int rc = fetch_specs(c, remote, &one, 1);

	free(one);
	if (rc < 0 || find_commit(out, repo, id) < 0) {
		rc = fetch_specs(c, remote, specs, 2);
		if (rc < 0)
			return say_git(c, rc, true, err);
		rc = find_commit(out, repo, id);
	}
	if (rc < 0) {
		char *host = fa_url_host(c->url);

		fa_err_set(err, FA_NETWORK, "the repository on %s does not hold commit %s", host, id);
		fa_err_next(err, "a mirror may be out of date, or the address is that of another repository");
		free(host);
	}
	return rc < 0 ? -1 : 0;
}

/* A ref that the server lacks is no error to libgit2: nothing is fetched then. */
static int fetch_by_ref(git_commit **out, struct child *c, git_repository *repo, git_remote *remote, const char *ref,
                        const char *id, struct fa_err *err)
{
	char *spec = fa_strf("+%s:%s", ref, ref), *host;
	int rc = fetch_specs(c, remote, &spec, 1);

	free(spec);
	if (rc < 0)
		return say_git(c, rc, true, err);
	if (find_commit(out, repo, ref) == 0)
		return 0;
	if (id)
		return fetch_by_id(out, c, repo, remote, id, err);
	host = fa_url_host(c->url);
	fa_err_set(err, FA_NETWORK, "the repository on %s has no %s", host, ref);
	fa_err_next(err, "check the version, or use another source");
	free(host);
	return -1;
}

static int check_commit(const struct child *c, const git_commit *commit, const char *wanted, struct fa_err *err)
{
	char found[ID_HEX], *host;

	git_oid_tostr(found, sizeof(found), git_commit_id(commit));
	if (!wanted || !strcasecmp(wanted, found))
		return 0;
	host = fa_url_host(c->url);
	fa_err_set(err, FA_INTEGRITY, "the repository on %s gives commit %s where %s is needed", host, found, wanted);
	fa_err_next(err, "the tag was moved, or this is another repository: do not use it before you know why");
	free(host);
	return -1;
}

/* ---- from the commit to files */

struct links { /* looked at before anything is written */
	git_repository *repo;
	char *bad;
};

static int look_at_link(const char *root, const git_tree_entry *entry, void *ctx)
{
	struct links *l = ctx;
	git_blob *blob = NULL;
	char *name, *target;

	if (git_tree_entry_filemode(entry) != GIT_FILEMODE_LINK)
		return 0;
	if (git_blob_lookup(&blob, l->repo, git_tree_entry_id(entry)) < 0)
		return -1;
	name = fa_strf("%s%s", root, git_tree_entry_name(entry));
	target = fa_strndup(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob));
	if (!fa_path_link_stays_inside(name, target))
		l->bad = fa_strdup(name);
	free(name);
	free(target);
	git_blob_free(blob);
	return l->bad ? -1 : 0;
}

static int check_links(struct child *c, git_repository *repo, const git_tree *tree, struct fa_err *err)
{
	struct links l = { .repo = repo };
	int rc = git_tree_walk(tree, GIT_TREEWALK_PRE, look_at_link, &l);

	if (l.bad) {
		fa_err_set(err, FA_INTEGRITY, "the repository holds a link that leads out of it: %.200s", l.bad);
		fa_err_next(err, "do not use this commit");
		rc = -1;
	} else if (rc < 0) {
		say_git(c, rc, false, err);
	}
	free(l.bad);
	return rc < 0 ? -1 : 0;
}

/* Byte for byte what was committed: no line ends changed, no filter of the user's settings run. */
static int check_out(struct child *c, git_repository *repo, const git_tree *tree, struct fa_err *err)
{
	git_checkout_options o;
	int rc;

	if (check_links(c, repo, tree, err) < 0)
		return -1;
	git_checkout_options_init(&o, GIT_CHECKOUT_OPTIONS_VERSION);
	o.checkout_strategy = GIT_CHECKOUT_FORCE;
	o.disable_filters = 1;
	o.progress_cb = on_checkout;
	o.progress_payload = c;
	c->m.local = true;
	rc = git_checkout_tree(repo, (const git_object *)tree, &o);
	return rc < 0 ? say_git(c, rc, false, err) : 0;
}

/* The files of one commit in `dir`, which is there and empty. `tree` and `repo` are the caller's. */
static int take_commit(git_repository **repo, git_tree **tree, struct child *c, const char *url, const char *ref,
                       const char *id, const char *dir, char found[ID_HEX], struct fa_err *err)
{
	git_repository_init_options o;
	git_remote *remote = NULL;
	git_commit *commit = NULL;
	int rc;

	c->url = url;
	git_repository_init_options_init(&o, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
	o.flags = GIT_REPOSITORY_INIT_NO_REINIT; /* no template: no hooks */
	rc = git_repository_init_ext(repo, dir, &o);
	if (rc < 0)
		return say_git(c, rc, false, err);
	rc = open_remote(&remote, c, *repo, err);
	if (rc == 0)
		rc = ref ? fetch_by_ref(&commit, c, *repo, remote, ref, id, err)
		         : fetch_by_id(&commit, c, *repo, remote, id, err);
	if (rc == 0)
		rc = check_commit(c, commit, id, err);
	if (rc == 0 && git_commit_tree(tree, commit) < 0)
		rc = say_git(c, rc, false, err);
	if (rc == 0)
		rc = check_out(c, *repo, *tree, err);
	if (rc == 0 && found)
		git_oid_tostr(found, ID_HEX, git_commit_id(commit));
	git_commit_free(commit);
	git_remote_free(remote);
	return rc;
}

/* ---- submodules */

/* The URL given, or that of .gitmodules in the commit itself (not of a file on the disk), made absolute as git does. */
static int submodule_url(char **out, struct child *c, git_repository *repo, const git_tree *tree,
                         const struct fa_clone_submodule *s, struct fa_err *err)
{
	git_tree_entry *entry = NULL;
	git_blob *blob = NULL;
	char *text = NULL, *written = NULL, *base = NULL;

	*out = fa_strdup(s->url);
	if (!s->url && git_tree_entry_bypath(&entry, tree, ".gitmodules") == 0 &&
	    git_tree_entry_filemode(entry) != GIT_FILEMODE_LINK &&
	    git_blob_lookup(&blob, repo, git_tree_entry_id(entry)) == 0) {
		text = fa_strndup(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob));
		written = fa_clone_submodule_url(text, s->path);
	}
	if (written && (!strncmp(written, "./", 2) || !strncmp(written, "../", 3))) {
		base = fa_strf("%s/", c->o->url);
		*out = fa_url_join(base, written);
	} else if (written) {
		*out = fa_strdup(written);
	}
	git_blob_free(blob);
	git_tree_entry_free(entry);
	free(text);
	free(written);
	free(base);
	if (!*out)
		return fa_err_set(err, FA_INTEGRITY, "the commit names no address for its submodule %s", s->path);
	return fa_url_check(*out, err);
}

static int take_submodule(struct child *c, git_repository *repo, const git_tree *tree, const char *top,
                          const struct fa_clone_submodule *s, struct fa_err *err)
{
	git_tree_entry *entry = NULL;
	git_repository *sub = NULL;
	git_tree *sub_tree = NULL;
	char id[ID_HEX], *dir = fa_path_join(top, s->path), *url = NULL, *own = fa_path_join(dir, ".git");
	int rc = -1;

	if (git_tree_entry_bypath(&entry, tree, s->path) < 0 || git_tree_entry_type(entry) != GIT_OBJECT_COMMIT) {
		fa_err_set(err, FA_INTEGRITY, "the commit has no submodule %s", s->path);
		goto done;
	}
	git_oid_tostr(id, sizeof(id), git_tree_entry_id(entry));
	if (submodule_url(&url, c, repo, tree, s, err) < 0 || fa_file_mkdirs(dir, err) < 0 ||
	    take_commit(&sub, &sub_tree, c, url, NULL, id, dir, NULL, err) < 0)
		goto done;
	git_repository_free(sub);
	sub = NULL;
	rc = fa_file_remove_tree(own, err);
done:
	git_tree_free(sub_tree);
	git_repository_free(sub);
	git_tree_entry_free(entry);
	free(dir);
	free(own);
	free(url);
	return rc;
}

static int take_all(struct child *c, const char *top, struct fa_err *err)
{
	const struct fa_clone_opts *o = c->o;
	git_repository *repo = NULL;
	git_tree *tree = NULL;
	char *own = fa_path_join(top, ".git");
	int rc = take_commit(&repo, &tree, c, o->url, o->ref, o->commit, top, c->m.commit, err);

	for (size_t i = 0; rc == 0 && i < o->n_submodules; i++)
		rc = take_submodule(c, repo, tree, top, &o->submodules[i], err);
	git_tree_free(tree);
	git_repository_free(repo);
	if (rc == 0)
		rc = fa_file_remove_tree(own, err);
	free(own);
	return rc;
}

_Noreturn static void run_child(const struct fa_clone_opts *o, const char *top, int pipe_fd, pid_t parent)
{
	struct child c = { .o = o, .top = top, .pipe = pipe_fd, .m = { .total = -1 }, .url = o->url };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setpgid(0, 0); /* Ctrl-C is the parent's to hear */
	git_libgit2_init();
#if LIBGIT2_VER_MAJOR > 1 || LIBGIT2_VER_MINOR >= 5
	git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0); /* the folder was made by us a moment ago, closed to others */
#endif
	set_certificates();
	c.m.kind = take_all(&c, top, &c.m.err) == 0 ? FINISHED : FAILED;
	send_message(&c);
	_exit(0);
}

/* ---- the parent: watches, and can kill */

static pid_t fork_child(const struct fa_clone_opts *o, const char *top, int *out_fd, struct fa_err *err)
{
	sigset_t all, before;
	pid_t pid, self = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return fa_err_set(err, FA_MACHINE, "no pipe for the clone: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		struct sigaction dfl = { .sa_handler = SIG_DFL };

		for (int s = 1; s < NSIG; s++)
			if (s != SIGKILL && s != SIGSTOP)
				sigaction(s, &dfl, NULL);
		sigemptyset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		close(fds[0]);
		run_child(o, top, fds[1], self);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	*out_fd = fds[0];
	if (pid < 0) {
		close(fds[0]);
		fa_err_set(err, FA_MACHINE, "no process for the clone: %s", strerror(errno));
	}
	return pid;
}

/* A window of `silence` seconds in which too little came ends it. */
struct window {
	int64_t begin_ms, activity;
};

static bool too_quiet(struct window *w, const struct message *m, unsigned silence_s)
{
	int64_t now = now_ms(), limit = (int64_t)silence_s * 1000 * (m->local ? LOCAL_PATIENCE : 1);

	if (now - w->begin_ms < limit)
		return false;
	if (m->activity - w->activity < (int64_t)silence_s * LEAST_RATE)
		return true;
	w->begin_ms = now;
	w->activity = m->activity;
	return false;
}

static int say_quiet(const struct fa_clone_opts *o, unsigned silence_s, struct fa_err *err)
{
	char *host = fa_url_host(o->url);

	fa_err_set(err, FA_NETWORK, "git repository on %s: next to nothing came for %u s", host, silence_s);
	fa_err_next(err, "check the network and https_proxy; or take the source package instead of the repository");
	free(host);
	return -1;
}

/* Reads messages until the last; `m` is that one. -1: cancelled, quiet, or the child died. */
static int watch(struct message *m, const struct fa_clone_opts *o, int fd, struct fa_err *err)
{
	unsigned silence_s = o->silence_s ? o->silence_s : DEFAULT_SILENCE_S;
	struct window w = { now_ms(), 0 };
	struct message next;
	bool was_local = false;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (o->cancel && *o->cancel)
			return fa_err_set(err, FA_INTERRUPTED, "clone of %s: stopped as asked", fa_path_base(o->path));
		if (too_quiet(&w, m, silence_s))
			return say_quiet(o, silence_s, err);
		if (poll(&p, 1, LOOK_MS) <= 0)
			continue;
		n = read(fd, &next, sizeof(next));
		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(next))
			return fa_err_set(err, FA_INTERNAL, "the process that clones ended without a word");
		*m = next;
		if (m->kind != PROGRESS)
			return 0;
		if (m->local || was_local) /* work on this machine counts as it comes */
			w = (struct window){ now_ms(), m->activity };
		was_local = m->local;
		if (o->progress)
			o->progress(o->ctx, m->what, m->done, m->total);
	}
}

static int try_once(struct message *m, const struct fa_clone_opts *o, const char *top, struct fa_err *err)
{
	int fd = -1, rc;
	pid_t pid;

	if (fa_file_remove_tree(top, err) < 0)
		return -1;
	if (mkdir(top, 0700) < 0)
		return fa_err_set(err, FA_MACHINE, "%s: the folder cannot be made: %s", top, strerror(errno));
	*m = (struct message){ .kind = PROGRESS };
	pid = fork_child(o, top, &fd, err);
	if (pid < 0)
		return -1;
	rc = watch(m, o, fd, err);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(fd);
	if (rc == 0 && m->kind == FAILED) {
		if (err)
			*err = m->err;
		rc = -1;
	} else if (rc < 0) {
		m->retry = false;
	}
	return rc;
}

static int try_often(struct message *m, const struct fa_clone_opts *o, const char *top, struct fa_err *err)
{
	struct timespec look = { .tv_nsec = LOOK_MS * 1000 * 1000 };

	for (int n = 1;; n++) {
		if (try_once(m, o, top, err) == 0)
			return 0;
		if (n == TRIES || !m->retry)
			return -1;
		for (int64_t end = now_ms() + n * 500; now_ms() < end && !(o->cancel && *o->cancel);)
			nanosleep(&look, NULL);
	}
}

/* The rename is the moment at which the folder exists: its content is on the disk by then. */
static int commit_folder(const char *top, const char *path, struct fa_err *err)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0 || fchmod(fd, 0755) < 0 || syncfs(fd) < 0 || rename(top, path) < 0)
		rc = fa_err_set(err, FA_MACHINE, "%s: cannot be written: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static bool is_id(const char *text)
{
	return strlen(text) == GIT_OID_HEXSZ && strspn(text, "0123456789abcdefABCDEF") == GIT_OID_HEXSZ;
}

static int check_options(const struct fa_clone_opts *o, struct fa_err *err)
{
	if (fa_url_check(o->url, err) < 0)
		return -1;
	if (!o->ref && !o->commit)
		return fa_err_set(err, FA_USAGE, "a clone needs a ref or a commit");
	if (o->commit && !is_id(o->commit))
		return fa_err_set(err, FA_USAGE, "%.80s: not the 40 hex digits of a commit", o->commit);
	if (o->ref && (strncmp(o->ref, "refs/", 5) != 0 || strpbrk(o->ref, " \t\n~^:?*[\\") || strstr(o->ref, "..")))
		return fa_err_set(err, FA_USAGE, "%.80s: not a ref as refs/tags/v1.0", o->ref);
	for (size_t i = 0; i < o->n_submodules; i++)
		if (!fa_path_link_stays_inside("x", o->submodules[i].path) || strstr(o->submodules[i].path, ".git"))
			return fa_err_set(err, FA_USAGE, "%.200s: not a place for a submodule", o->submodules[i].path);
	if (fa_file_exists(o->path))
		return fa_err_set(err, FA_MACHINE, "%s: is there already", o->path);
	return 0;
}

int fa_clone(char *commit_out, const struct fa_clone_opts *opts, struct fa_err *err)
{
	char *top = fa_strf("%s.tmp.%ld", opts->path, (long)getpid()), *parent = fa_path_dir(opts->path);
	struct message m = { .kind = PROGRESS };
	int rc = -1;

	if (check_options(opts, err) < 0 || fa_file_mkdirs(parent, err) < 0)
		goto done;
	fa_file_remove_stale(opts->path);
	rc = try_often(&m, opts, top, err);
	if (rc == 0)
		rc = commit_folder(top, opts->path, err);
	if (rc < 0)
		fa_file_remove_tree(top, NULL);
	if (rc == 0 && commit_out)
		memcpy(commit_out, m.commit, ID_HEX);
done:
	free(top);
	free(parent);
	return rc;
}
