/* A plan that keeps what is installed has no steps: what a lock says is compared with it, a lock that is asked for is made of it. */
#include "run.h"

#include "buf.h"
#include "file.h"
#include "wheelhouse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only looked at: nothing is held, nothing can be undone. */
static int look(struct fa_run *run, struct fa_err *err)
{
	const char *python = fa_facts_text(run->opts->facts, FA_FACT_PYTHON_PATH);
	struct fa_environment *e = run->env;
	char *bin;

	if (!python || !*python)
		return fa_err_set(err, FA_MACHINE, "no Python is known whose packages are to be kept");
	bin = fa_path_dir(python);
	e->python = fa_strdup(python);
	e->path = fa_path_dir(bin);
	free(bin);
	return fa_environment_look(e, &run->child, err);
}

static const struct fa_distribution *kept_package(const struct fa_run *run)
{
	return fa_environment_find(run->env, run->choice->package ? run->choice->package : "flash-attn");
}

/* ---- against a lock */

static int differs(const struct fa_run *run, const char *name, const char *here, const char *locked, struct fa_err *err)
{
	fa_err_set(err, run->opts->frozen ? FA_INTEGRITY : FA_MACHINE, "%s: %s %s is installed, the lock says %s",
	           run->env->path, name, here, locked);
	return fa_err_next(err,
	                   "make it again: fainstall install --rebuild --lock FILE, or choose a new environment: --env NAME");
}

/* The bits of the package itself: the environment's own lock says which file it came from. */
static int check_file(struct fa_run *run, const struct fa_lock_package *p, const struct fa_lock *notes, struct fa_err *err)
{
	const struct fa_lock_package *known = fa_lock_package(notes, p->name);

	if (known && known->hashes.n && !strcmp(known->version, p->version) && fa_strv_has(&p->hashes, known->hashes.v[0]))
		return 0;
	if (!run->opts->frozen && !known) {
		fa_emit_text(run->sink, FA_EVENT_WARNING, "unproved",
		             "%s %s is installed; which file it came from is not recorded", p->name, p->version);
		return 0;
	}
	return differs(run, p->name, known ? "of another file" : "of an unknown file", p->hashes.v[0], err);
}

static int check_against_lock(struct fa_run *run, const struct fa_lock *notes, struct fa_err *err)
{
	const struct fa_lock *l = run->opts->lock;

	for (size_t i = 0; i < l->n_packages; i++) {
		const struct fa_lock_package *p = &l->packages[i];
		const struct fa_distribution *d = fa_environment_find(run->env, p->name);
		bool same = d && d->version && !strcmp(d->version, p->version);

		if (!same && (run->opts->frozen || fa_run_is_choice(run, p->name)))
			return differs(run, p->name, d && d->version ? d->version : "not", p->version, err);
		if (!same)
			fa_emit_text(run->sink, FA_EVENT_WARNING, "differs", "%s %s is kept, the lock says %s", p->name,
			             d && d->version ? d->version : "(none)", p->version);
		else
			fa_lock_copy_package(run->lock, p);
		if (fa_run_is_choice(run, p->name) && check_file(run, p, notes, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- a new lock */

/* The environment's own lock, when it still tells of what is there. */
static bool take_notes(struct fa_run *run, const struct fa_lock *notes, const struct fa_distribution *d)
{
	const struct fa_lock_package *p = d ? fa_lock_package(notes, d->name) : NULL;
	char *folder, *wheels;

	if (!p || !d->version || strcmp(p->version, d->version) != 0 || !p->hashes.n)
		return false;
	for (size_t i = 0; i < notes->n_packages; i++)
		fa_lock_copy_package(run->lock, &notes->packages[i]);
	for (size_t i = 0; i < notes->n_entries; i++)
		if (strncmp(notes->entries[i].key, "fact.", 5) != 0)
			fa_lock_set(run->lock, notes->entries[i].key, "%s", notes->entries[i].value);
	if (p->built) {
		folder = fa_environment_notes(run->env);
		wheels = fa_path_join(folder, "wheels");
		run->wheel = fa_wheel_in(wheels, p->hashes.v[0] + strlen("sha256:"));
		run->built = run->wheel != NULL;
		snprintf(run->wheel_sha256, sizeof(run->wheel_sha256), "%s", p->hashes.v[0] + strlen("sha256:"));
		free(folder);
		free(wheels);
	}
	return true;
}

/* Somebody else installed it: pinned by the index where that has it, else named as a base. */
static int pin_what_is_there(struct fa_run *run, const struct fa_distribution *d, struct fa_err *err)
{
	const struct fa_distribution *torch = fa_environment_find(run->env, "torch");
	struct fa_strv requirements = FA_STRV_INIT, indexes = FA_STRV_INIT;
	bool base = false;
	int rc = 1;

	if (torch && torch->version)
		fa_strv_pushf(&requirements, "torch==%s", torch->version);
	if (d && d->version)
		fa_strv_pushf(&requirements, "%s==%s", d->name, d->version);
	if (requirements.n)
		rc = fa_pin_installed(run, &requirements, &indexes, &base, err);
	if (rc == 0 && torch)
		rc = fa_lock_base(run, torch, err);
	if (rc >= 0 && d)
		rc = fa_pin_distribution(run, d, err);
	fa_strv_release(&requirements);
	fa_strv_release(&indexes);
	return rc < 0 ? -1 : 0;
}

int fa_run_keep(struct fa_run *run, struct fa_err *err)
{
	struct fa_lock notes = FA_LOCK_INIT;
	const struct fa_distribution *d;
	char *folder, *path;
	int rc;

	if (look(run, err) < 0)
		return -1;
	d = kept_package(run);
	folder = fa_environment_notes(run->env);
	path = fa_path_join(folder, "requirements.lock");
	fa_lock_read(&notes, path, NULL);
	if (run->opts->lock)
		rc = check_against_lock(run, &notes, err);
	else if (run->opts->wants_lock && !take_notes(run, &notes, d))
		rc = pin_what_is_there(run, d, err);
	else
		rc = 0;
	fa_lock_release(&notes);
	free(folder);
	free(path);
	return rc;
}
