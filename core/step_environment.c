/* Steps that change the environment: environment, pin, pip, install. */
#include "run.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "pip.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

/* ---- environment */

int fa_step_environment(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct fa_environment *e = run->env;

	if (fa_environment_open(e, args, run->opts->facts, &run->child, err) < 0)
		return -1;
	if (e->fresh)
		fa_run_say(run, "Python %s in %s", e->version, e->path);
	else
		fa_run_skip(run, "adopted: %s, Python %s, %zu packages", e->path, e->version, e->n_dists);
	return 0;
}

/* ---- pin */

/* Is torch of this environment the one chosen? Then nothing may touch it. */
static bool keeps_torch(const struct fa_run *run, const struct fa_distribution *torch)
{
	char *has;
	bool same;

	if (!torch || !run->choice->torch)
		return torch != NULL;
	has = fa_version_public(torch->version);
	same = fa_version_matches(has, run->choice->torch);
	free(has);
	return same;
}

/* Every distribution that is there, with `changes` in place of those that change. */
static void constraints_after(struct fa_strv *out, const struct fa_run *run, const struct fa_lock *changes)
{
	for (size_t i = 0; i < run->env->n_dists; i++) {
		const struct fa_distribution *d = &run->env->dists[i];

		if (!fa_run_is_choice(run, d->name) && d->version && !fa_lock_package(changes, d->name))
			fa_strv_pushf(out, "%s==%s", d->name, d->version);
	}
	for (size_t i = 0; i < changes->n_packages; i++)
		if (!changes->packages[i].url)
			fa_strv_pushf(out, "%s==%s", changes->packages[i].name, changes->packages[i].version);
}

/* The fingerprint of an installed package: of the list of its files and their hashes. */
static int fingerprint(char *hex, const struct fa_distribution *d, struct fa_err *err)
{
	char *record = fa_path_join(d->info, "RECORD");
	int rc = fa_sha256_file(hex, record, err);

	free(record);
	return rc;
}

int fa_lock_base(struct fa_run *run, const struct fa_distribution *d, struct fa_err *err)
{
	char hex[FA_SHA256_HEX], *key = fa_strf("base.%s", d->name);
	int rc = fingerprint(hex, d, err);

	if (rc == 0)
		fa_lock_set(run->lock, key, "%s sha256:%s", d->version, hex);
	free(key);
	return rc;
}

/* Requirements that do not name what the base brings. */
static void without_base(struct fa_strv *out, const struct fa_run *run, const struct fa_strv *requirements)
{
	for (size_t i = 0; i < requirements->n; i++) {
		char *name = fa_strndup(requirements->v[i], strcspn(requirements->v[i], "=<>!~ ;[@"));
		const struct fa_distribution *d = fa_environment_find(run->env, name);

		if (strcmp(name, "torch") != 0 && (!d || strncmp(name, "torch", 5) != 0))
			fa_strv_push(out, requirements->v[i]);
		free(name);
	}
}

static int pin_on_base(struct fa_run *run, const struct fa_pip_wish *whole, const struct fa_distribution *torch,
                       struct fa_err *err)
{
	struct fa_strv rest = FA_STRV_INIT;
	struct fa_pip_wish wish = *whole;
	int rc;

	fa_emit_text(run->sink, FA_EVENT_NOTE, "base", "torch %s is on no index that pip knows: the lock names it as its base",
	             torch->version);
	without_base(&rest, run, whole->requirements);
	wish.requirements = &rest;
	wish.alone = true;
	for (size_t i = 0; i < run->changes.n_packages; i++)
		fa_lock_copy_package(run->lock, &run->changes.packages[i]);
	rc = fa_pip_resolve(run->lock, &run->files, &wish, &run->child, err);
	fa_strv_release(&rest);
	return rc < 0 ? -1 : fa_lock_base(run, torch, err);
}

/* The whole closure as it will be, asked of pip, which may download all of it for that. */
static int resolve_closure(struct fa_run *run, struct fa_pip_wish *wish, bool torch_held, bool *base, struct fa_err *err)
{
	struct fa_strv after = FA_STRV_INIT;
	struct fa_err first = FA_ERR_INIT;
	int rc;

	constraints_after(&after, run, &run->changes);
	wish->constraints = &after;
	wish->afresh = true;
	rc = fa_pip_resolve(run->lock, &run->files, wish, &run->child, &first);
	*base = rc < 0 && first.status == FA_IMPOSSIBLE && torch_held;
	if (rc < 0 && err)
		*err = first;
	fa_strv_release(&after);
	wish->constraints = NULL;
	return *base ? 0 : rc;
}

/* In an environment that exists: first what would change, torch held; then the closure, for the lock. */
static int pin_adopted(struct fa_run *run, struct fa_pip_wish *wish, struct fa_err *err)
{
	const struct fa_distribution *torch = fa_environment_find(run->env, "torch");
	struct fa_strv held = FA_STRV_INIT;
	bool base = false;
	int rc, pinned = 0;

	if (keeps_torch(run, torch))
		fa_strv_pushf(&held, "torch==%s", torch->version);
	wish->constraints = &held;
	rc = fa_pip_resolve(&run->changes, &run->files, wish, &run->child, err);
	if (rc == 0)
		rc = pinned = fa_pin_installed(run, wish->requirements, wish->indexes, &base, err);
	if (rc == 0 && !pinned && !base)
		rc = resolve_closure(run, wish, held.n > 0, &base, err);
	if (rc >= 0 && base)
		rc = pin_on_base(run, wish, torch, err);
	fa_strv_release(&held);
	return rc < 0 ? -1 : 0;
}

static int pin_fresh(struct fa_run *run, struct fa_pip_wish *wish, struct fa_err *err)
{
	wish->afresh = true;
	if (fa_pip_resolve(run->lock, &run->files, wish, &run->child, err) < 0)
		return -1;
	for (size_t i = 0; i < run->lock->n_packages; i++)
		fa_lock_copy_package(&run->changes, &run->lock->packages[i]);
	return 0;
}

/* ---- pin from a lock */

static int differs(struct fa_run *run, const struct fa_lock_package *p, const struct fa_distribution *d, struct fa_err *err)
{
	fa_err_set(err, run->opts->frozen ? FA_INTEGRITY : FA_MACHINE, "%s %s is installed in %s, the lock says %s", p->name,
	           d->version, run->env->path, p->version);
	return fa_err_next(err, "choose a new environment: --env NAME");
}

static bool same_public(const char *a, const char *b)
{
	char *x = fa_version_public(a), *y = fa_version_public(b);
	bool same = !strcmp(x, y);

	free(x);
	free(y);
	return same;
}

static int check_base(struct fa_run *run, const char *name, const char *base, struct fa_err *err)
{
	const struct fa_distribution *d = fa_environment_find(run->env, name);
	size_t len = strcspn(base, " ");
	char hex[FA_SHA256_HEX];

	if (!d || strlen(d->version) != len || strncmp(d->version, base, len) != 0) {
		fa_err_set(err, run->opts->frozen ? FA_INTEGRITY : FA_MACHINE, "the lock stands on %s %.*s, here is %s", name,
		           (int)len, base, d ? d->version : "none");
		return fa_err_next(err, "use the container or environment that the lock was made in");
	}
	if (fingerprint(hex, d, err) < 0)
		return -1;
	if (strstr(base, hex))
		return 0;
	if (run->opts->frozen)
		return fa_err_set(err, FA_INTEGRITY, "%s %s is not the build that the lock stands on (fingerprint)", name,
		                  d->version);
	fa_emit_text(run->sink, FA_EVENT_WARNING, "base_differs",
	             "%s %s is not the build that the lock stands on (fingerprint)", name, d->version);
	return 0;
}

static int check_bases(struct fa_run *run, const struct fa_lock *l, struct fa_err *err)
{
	for (size_t i = 0; i < l->n_entries; i++) {
		const struct fa_lock_entry *e = &l->entries[i];

		if (strncmp(e->key, "base.", 5) != 0)
			continue;
		if (check_base(run, e->key + 5, e->value, err) < 0)
			return -1;
		fa_lock_set(run->lock, e->key, "%s", e->value);
	}
	return 0;
}

/* One package of the lock against what is there. */
static int need_locked(struct fa_run *run, const struct fa_lock_package *p, struct fa_err *err)
{
	const struct fa_distribution *d = fa_environment_find(run->env, p->name);

	if (d && d->version && !strcmp(d->version, p->version) && !run->env->fresh)
		return 0;
	if (d && d->version && !strcmp(p->name, "torch") && !run->env->fresh) {
		if (run->opts->frozen || !same_public(d->version, p->version))
			return differs(run, p, d, err);
		fa_emit_text(run->sink, FA_EVENT_WARNING, "torch_build", "torch %s is kept, the lock says %s", d->version,
		             p->version);
		return 0;
	}
	fa_lock_copy_package(&run->changes, p);
	return 0;
}

static int pin_from_lock(struct fa_run *run, const struct fa_lock *l, struct fa_err *err)
{
	if (check_bases(run, l, err) < 0)
		return -1;
	if (fa_lock_get(l, "need.glibc"))
		fa_run_need_glibc(run, fa_lock_get(l, "need.glibc"));
	for (size_t i = 0; i < l->n_packages; i++) {
		const struct fa_lock_package *p = &l->packages[i];

		fa_lock_copy_package(run->lock, p);
		if (!fa_run_is_choice(run, p->name) && need_locked(run, p, err) < 0)
			return -1;
	}
	fa_run_say(run, "%zu packages as locked, %zu to install", l->n_packages, run->changes.n_packages);
	return 0;
}

/* What only the build needs is pinned now as well: nothing may turn out to be missing after the environment has changed. */
static int pin_tools(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct fa_strv tools = FA_STRV_INIT;
	bool fresh;
	int rc = 0;

	fa_json_get_strv(args, "tools", &tools);
	if (tools.n && run->choice->build.wanted && !run->wheel_ready)
		rc = fa_run_folder_of(&run->tools, run, "tools", "tool", &tools, false, &fresh, err);
	fa_strv_release(&tools);
	return rc;
}

/* The public versions that count: said by the choice, or by the pins. */
static int check_pins(const struct fa_run *run, struct fa_err *err)
{
	const struct fa_lock_package *torch = fa_lock_package(run->lock, "torch");
	const struct fa_distribution *has = fa_environment_find(run->env, "torch");
	const struct fa_lock_package *change = fa_lock_package(&run->changes, "torch");

	if (!run->env->fresh && keeps_torch(run, has) && change) {
		fa_err_set(err, FA_IMPOSSIBLE, "pip would replace torch %s by %s, which was to be kept", has->version,
		           change->version);
		return fa_err_next(err, "choose a new environment: --env NAME");
	}
	if (torch && run->choice->torch && !fa_version_matches(torch->version, run->choice->torch))
		return fa_err_set(err, FA_INTEGRITY, "pip pinned torch %s, the plan says %s", torch->version,
		                  run->choice->torch);
	return 0;
}

int fa_step_pin(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	struct fa_strv requirements = FA_STRV_INIT, indexes = FA_STRV_INIT;
	struct fa_pip_wish wish = { .env = run->env,
		                    .requirements = &requirements,
		                    .indexes = &indexes,
		                    .offline = fa_wish_get(&run->plan->wish, FA_WISH_OFFLINE) != NULL };
	int rc;

	fa_json_get_strv(args, "requirements", &requirements);
	fa_json_get_strv(args, "indexes", &indexes);
	if (run->opts->lock) {
		rc = pin_from_lock(run, run->opts->lock, err);
	} else {
		rc = run->env->fresh ? pin_fresh(run, &wish, err) : pin_adopted(run, &wish, err);
		if (rc == 0)
			rc = check_pins(run, err);
		for (size_t i = 0; i < run->files.n && rc == 0; i++)
			fa_run_need_of_file(run, run->files.v[i]);
		if (rc == 0)
			fa_run_say(run, "%zu packages pinned, %zu to install", run->lock->n_packages, run->changes.n_packages);
	}
	if (rc == 0)
		rc = fa_bring_added(run, err);
	if (rc == 0)
		rc = fa_run_find_wheel(run, err);
	if (rc == 0)
		rc = pin_tools(run, args, err);
	fa_strv_release(&requirements);
	fa_strv_release(&indexes);
	return rc;
}

/* ---- pip */

int fa_step_pip(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	int rc = 0;

	(void)args;
	if (run->choice->package)
		fa_lock_drop_package(&run->changes, run->choice->package); /* comes with `install` */
	if (!run->changes.n_packages) {
		fa_run_skip(run, "everything needed is there");
		return 0;
	}
	for (size_t i = 0; i < run->changes.n_packages && rc == 0; i++)
		rc = fa_environment_will_change(run->env, run->changes.packages[i].name, err);
	if (rc == 0)
		rc = fa_pip_install(run->env, &run->changes, NULL, NULL, false, &run->child, err);
	if (rc == 0)
		rc = fa_environment_look(run->env, &run->child, err);
	if (rc == 0)
		fa_run_say(run, "%zu packages installed, each by its hash", run->changes.n_packages);
	return rc;
}

/* ---- install */

/* Is this very file installed already? What is installed is remembered in the lock that lies in the environment. */
static bool installed_already(const struct fa_run *run, const char *name, const char *version)
{
	const struct fa_distribution *d = fa_environment_find(run->env, name);
	char *notes = fa_environment_notes(run->env), *path = fa_path_join(notes, "requirements.lock");
	struct fa_lock l = FA_LOCK_INIT;
	const struct fa_lock_package *p = NULL;
	char *hash = fa_strf("sha256:%s", run->wheel_sha256);
	bool same = false;

	if (d && d->version && !strcmp(d->version, version) && !run->opts->rebuild && fa_lock_read(&l, path, NULL) == 0)
		p = fa_lock_package(&l, name);
	if (p && !strcmp(p->version, version))
		same = fa_strv_has(&p->hashes, hash);
	fa_lock_release(&l);
	free(hash);
	free(path);
	free(notes);
	return same;
}

static void wheel_name(char **name, char **version, const char *wheel)
{
	const char *base = fa_path_base(wheel);
	char *first = fa_strndup(base, strcspn(base, "-"));

	*name = fa_lock_normal_name(first);
	*version = fa_lock_url_version(base);
	free(first);
}

static void lock_wheel(struct fa_run *run, struct fa_lock *to, const char *name, const char *version)
{
	const struct fa_lock_package *locked = fa_run_locked(run);
	struct fa_lock_package *p;
	struct fa_strv hashes = FA_STRV_INIT;
	char *hash = fa_strf("sha256:%s", run->wheel_sha256), *url = fa_strdup(run->wheel_url);

	if (locked && fa_strv_has(&locked->hashes, hash)) {
		fa_strv_append(&hashes, &locked->hashes);
		free(url);
		url = fa_strdup(locked->url);
	} else {
		fa_strv_push(&hashes, hash);
	}
	p = fa_lock_add_package(to, name, version);
	p->url = url;
	p->hashes = hashes;
	p->built = run->built;
	free(hash);
}

static int put_in(struct fa_run *run, const char *name, const char *version, struct fa_err *err)
{
	struct fa_lock one = FA_LOCK_INIT;
	struct fa_lock_package *p = fa_lock_add_package(&one, name, version);
	char *dir = fa_path_dir(run->wheel);
	const struct fa_distribution *d = fa_environment_find(run->env, name);
	bool again = d && d->version && !strcmp(d->version, version);
	int rc = fa_environment_will_change(run->env, name, err);

	fa_strv_pushf(&p->hashes, "sha256:%s", run->wheel_sha256);
	if (rc == 0)
		rc = fa_pip_install(run->env, &one, dir, NULL, again, &run->child, err);
	if (rc == 0)
		rc = fa_environment_look(run->env, &run->child, err);
	fa_lock_release(&one);
	free(dir);
	return rc;
}

int fa_step_install(struct fa_run *run, const struct fa_json *args, struct fa_err *err)
{
	char *name = NULL, *version = NULL;
	int rc = -1;

	(void)args;
	if (!run->wheel)
		return fa_err_set(err, FA_INTERNAL, "the plan installs a wheel that no step before brings");
	wheel_name(&name, &version, run->wheel);
	if (!version) {
		fa_err_set(err, FA_INTEGRITY, "%s is not named as a wheel is", fa_path_base(run->wheel));
		goto done;
	}
	lock_wheel(run, run->lock, name, version);
	if (installed_already(run, name, version)) {
		fa_run_skip(run, "%s %s is installed already", name, version);
		rc = 0;
		goto done;
	}
	rc = put_in(run, name, version, err);
	if (rc == 0)
		fa_run_say(run, "%s %s", name, version);
done:
	free(name);
	free(version);
	return rc;
}
