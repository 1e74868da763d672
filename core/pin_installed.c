/* The lock of an environment that exists, from what is installed and the lists of the index: no file is downloaded. */
#include "run.h"

#include "buf.h"
#include "index.h"
#include "json.h"
#include "pip.h"
#include "url.h"

#include <stdlib.h>
#include <string.h>

/* Does one of `tags` ("cp311-cp311-manylinux_2_28_x86_64") stand in a wheel's name, whose parts may each list several with dots? */
static bool name_has_tag(const char *name, const char *tag)
{
	struct fa_strv parts = FA_STRV_INIT, want = FA_STRV_INIT;
	char *stem = fa_strndup(name, strlen(name) - strlen(".whl"));
	bool same = true;

	fa_strv_split(&parts, stem, "-");
	fa_strv_split(&want, tag, "-");
	same = parts.n > 3 && want.n == 3;
	for (size_t i = 0; i < 3 && same; i++) {
		struct fa_strv any = FA_STRV_INIT;

		fa_strv_split(&any, parts.v[parts.n - 3 + i], ".");
		same = fa_strv_has(&any, want.v[i]);
		fa_strv_release(&any);
	}
	free(stem);
	fa_strv_release(&parts);
	fa_strv_release(&want);
	return same;
}

static bool name_has_any(const char *name, const struct fa_strv *tags)
{
	for (size_t i = 0; i < tags->n; i++)
		if (name_has_tag(name, tags->v[i]))
			return true;
	return false;
}

/* wheels: "SHA256 NAME URL". The one whose tags are those of what is installed; else all of them. `by_url`: they are of an index
 * that pip does not ask by itself. */
static bool keep(struct fa_run *run, const struct fa_distribution *d, const struct fa_strv *wheels, const struct fa_strv *tags,
                 bool by_url)
{
	struct fa_lock_package *p = fa_lock_add_package(run->lock, d->name, d->version);
	bool one = false;

	for (size_t i = 0; i < wheels->n && !one; i++) {
		struct fa_strv w = FA_STRV_INIT;

		fa_strv_split(&w, wheels->v[i], " ");
		if (w.n == 3 && name_has_any(w.v[1], tags)) {
			fa_strv_pushf(&p->hashes, "sha256:%s", w.v[0]);
			fa_run_need_of_file(run, w.v[1]);
			p->url = by_url ? fa_url_plain(w.v[2]) : NULL;
			one = true;
		}
		fa_strv_release(&w);
	}
	for (size_t i = 0; i < wheels->n && !one && !by_url; i++)
		fa_strv_pushf(&p->hashes, "sha256:%.64s", wheels->v[i]);
	return p->hashes.n > 0;
}

/* 1: pinned, 0: no index has that version, -1. */
static int pin_one(struct fa_run *run, const struct fa_distribution *d, const struct fa_strv *tags,
                   const struct fa_strv *indexes, struct fa_err *err)
{
	struct fa_strv wheels = FA_STRV_INIT;
	struct fa_err none = FA_ERR_INIT;
	bool by_url = false;
	int rc;

	if (fa_wish_get(&run->plan->wish, FA_WISH_OFFLINE))
		return fa_lock_base(run, d, err) < 0 ? -1 : 1;
	rc = fa_index_wheels(&wheels, d->name, d->version, NULL, run->env, &run->child, &none);

	if (rc < 0 && none.status == FA_IMPOSSIBLE && indexes->n) {
		by_url = true;
		rc = fa_index_wheels(&wheels, d->name, d->version, indexes, run->env, &run->child, &none);
	}
	if (rc == 0)
		rc = keep(run, d, &wheels, tags, by_url);
	else if (none.status == FA_IMPOSSIBLE)
		rc = 0;
	else if (err)
		*err = none;
	if (rc == 0)
		fa_lock_drop_package(run->lock, d->name);
	fa_strv_release(&wheels);
	return rc;
}

int fa_pin_distribution(struct fa_run *run, const struct fa_distribution *d, struct fa_err *err)
{
	struct fa_strv none = FA_STRV_INIT;
	int rc = pin_one(run, d, &none, &none, err);

	return rc == 0 ? fa_lock_base(run, d, err) : rc < 0 ? -1 : 0;
}

/* Everything that is needed and missing must be about to be installed. */
static bool complete(const struct fa_run *run, const struct fa_strv *missing)
{
	for (size_t i = 0; i < missing->n; i++)
		if (!fa_lock_package(&run->changes, missing->v[i]))
			return false;
	return true;
}

static int pin_all(struct fa_run *run, const struct fa_json *told, const struct fa_strv *indexes, bool *base,
                   struct fa_err *err)
{
	struct fa_strv names = FA_STRV_INIT;
	int rc = 1;

	fa_json_get_strv(told, "closure", &names);
	for (size_t i = 0; i < names.n && rc == 1; i++) {
		const struct fa_distribution *d = fa_environment_find(run->env, names.v[i]);
		struct fa_strv tags = FA_STRV_INIT;

		fa_run_progress(run, (int64_t)i, (int64_t)names.n, "packages");
		if (!d || !d->version || fa_lock_package(&run->changes, d->name) || fa_run_is_choice(run, d->name))
			continue;
		fa_json_get_strv(fa_json_get(told, "tags"), d->name, &tags);
		rc = fa_run_cancelled(run) ? -1 : pin_one(run, d, &tags, indexes, err);
		*base = rc == 0 && !strcmp(d->name, "torch");
		fa_strv_release(&tags);
	}
	for (size_t i = 0; i < run->changes.n_packages && rc == 1; i++)
		fa_lock_copy_package(run->lock, &run->changes.packages[i]);
	fa_strv_release(&names);
	return rc;
}

static void forget_pins(struct fa_run *run)
{
	while (run->lock->n_packages)
		fa_lock_drop_package(run->lock, run->lock->packages[0].name);
}

int fa_pin_installed(struct fa_run *run, const struct fa_strv *requirements, const struct fa_strv *indexes, bool *base,
                     struct fa_err *err)
{
	struct fa_strv missing = FA_STRV_INIT;
	struct fa_json *told = NULL;
	int rc = fa_environment_closure(&told, run->env, requirements, &run->child, err);

	if (rc == 0 && fa_json_get(told, "closure")) {
		fa_json_get_strv(told, "missing", &missing);
		if (complete(run, &missing))
			rc = pin_all(run, told, indexes, base, err);
	}
	if (rc != 1)
		forget_pins(run);
	fa_json_free(told);
	fa_strv_release(&missing);
	return rc;
}
