/* A new generation of a managed environment brings what the user had added to the one in use. */
#include "run.h"

#include "buf.h"
#include "pip.h"

#include <stdlib.h>
#include <string.h>

/* Those that the new lock does not bring itself. */
static void wanted(struct fa_strv *out, const struct fa_run *run)
{
	for (size_t i = 0; i < run->env->added.n; i++) {
		char *name = fa_strndup(run->env->added.v[i], strcspn(run->env->added.v[i], "="));

		if (!fa_lock_package(run->lock, name) && !fa_run_is_choice(run, name))
			fa_strv_push(out, run->env->added.v[i]);
		free(name);
	}
}

static int resolve(struct fa_lock *out, struct fa_run *run, const struct fa_strv *list, struct fa_err *err)
{
	struct fa_pip_wish wish = { .env = run->env, .requirements = list, .afresh = true, .alone = true };

	return fa_pip_resolve(out, NULL, &wish, &run->child, err);
}

/* One by one: what no index has in that version stays behind, named. */
static int resolve_each(struct fa_lock *out, struct fa_run *run, const struct fa_strv *list, struct fa_err *err)
{
	struct fa_strv behind = FA_STRV_INIT;
	char *names;

	for (size_t i = 0; i < list->n && !fa_run_cancelled(run); i++) {
		struct fa_strv one = FA_STRV_INIT;

		fa_strv_push(&one, list->v[i]);
		if (resolve(out, run, &one, NULL) < 0)
			fa_strv_push(&behind, list->v[i]);
		fa_strv_release(&one);
	}
	if (fa_run_cancelled(run)) {
		fa_strv_release(&behind);
		return fa_err_set(err, FA_INTERRUPTED, "interrupted");
	}
	names = fa_strv_join(&behind, ", ");
	if (behind.n)
		fa_emit_text(run->sink, FA_EVENT_WARNING, "left_behind",
		             "not brought into the new generation, as no index has it: %.800s", names);
	free(names);
	fa_strv_release(&behind);
	return 0;
}

int fa_bring_added(struct fa_run *run, struct fa_err *err)
{
	struct fa_strv list = FA_STRV_INIT;
	struct fa_lock found = FA_LOCK_INIT;
	int rc = 0;

	wanted(&list, run);
	if (list.n && resolve(&found, run, &list, NULL) < 0) {
		fa_lock_release(&found);
		rc = resolve_each(&found, run, &list, err);
	}
	for (size_t i = 0; i < found.n_packages && rc == 0; i++)
		fa_lock_copy_package(&run->changes, &found.packages[i]);
	if (found.n_packages && rc == 0)
		fa_emit_text(run->sink, FA_EVENT_NOTE, "added", "%zu packages that you had added are brought along",
		             found.n_packages);
	fa_lock_release(&found);
	fa_strv_release(&list);
	return rc;
}
