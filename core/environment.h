/* The target environment: a managed one ($XDG_DATA_HOME/fainstall/envs/NAME/gen-N with `current` pointing to the generation in
 * use), a plain venv made in a folder, or one that exists and is adopted. What is done to it counts only once
 * fa_environment_commit() was called; otherwise fa_environment_undo() leaves things as they were. */
#ifndef FA_ENVIRONMENT_H
#define FA_ENVIRONMENT_H

#include "child.h"
#include "err.h"
#include "facts.h"
#include "strv.h"

#include <stdbool.h>
#include <stddef.h>

struct fa_json;

enum fa_environment_kind { FA_ENVIRONMENT_MANAGED, FA_ENVIRONMENT_VENV, FA_ENVIRONMENT_ADOPTED };

struct fa_distribution {
	char *name; /* normal: "flash-attn" */
	char *version;
	char *info; /* its .dist-info folder */
};

struct fa_environment {
	enum fa_environment_kind kind;
	char *root;    /* MANAGED: envs/NAME */
	char *path;    /* its folder: envs/NAME/gen-N or the one named */
	char *python;  /* its interpreter */
	char *version; /* "3.11.7" */
	char *site;    /* where packages go */
	bool fresh;    /* made by this run: undo removes it */
	int lock_fd;   /* held while it is changed; -1 none */
	struct fa_distribution *dists;
	size_t n_dists;
	struct fa_strv added; /* MANAGED: "name==version" that the user put into the generation in use, beyond its lock */
	struct fa_strv made;  /* adopted: names that this run installed */
	char *pip_settings;   /* what `pip config list` says; NULL: not asked yet */
	bool open;
};

#define FA_ENVIRONMENT_INIT \
	{ \
		.lock_fd = -1 \
	}

/* args: those of the step (execute.h). Makes it or looks into it; a half-done change of an earlier run is undone first. Errors:
 * FA_MACHINE (no Python of that version, no venv module, not writable, in use), FA_USAGE (the folder is no environment). */
int fa_environment_open(struct fa_environment *e, const struct fa_json *args, const struct fa_facts *facts,
                        struct fa_child_context *c, struct fa_err *err);

/* Reads the distributions again. */
int fa_environment_look(struct fa_environment *e, struct fa_child_context *c, struct fa_err *err);
const struct fa_distribution *fa_environment_find(const struct fa_environment *e, const char *name); /* NULL: not there */

/* {"closure": [names], "missing": [names], "tags": {name: [of its wheel]}}: what these requirements need here, by the metadata
 * of what is installed; without "closure" when nothing there can read requirements. The caller's. */
int fa_environment_closure(struct fa_json **out, const struct fa_environment *e, const struct fa_strv *requirements,
                           struct fa_child_context *c, struct fa_err *err);

/* The folder that holds torch: where the libraries are that a binary is checked against. Borrowed or `site`; the caller's. */
char *fa_environment_torch_site(const struct fa_environment *e);

/* To be called before `name` is installed, upgraded or removed: keeps what is there now. */
int fa_environment_will_change(struct fa_environment *e, const char *name, struct fa_err *err);

/* The folder for what belongs to it: lock, report, wheels. The caller's. */
char *fa_environment_notes(const struct fa_environment *e);

/* MANAGED: `current` is switched by rename. */
int fa_environment_commit(struct fa_environment *e, struct fa_err *err);

/* As before this run. What cannot be put back is told as a WARNING. */
void fa_environment_undo(struct fa_environment *e, struct fa_child_context *c);
/* What runs before this one could not finish removing. */
void fa_environment_empty_trash(void);
void fa_environment_release(struct fa_environment *e);

#endif
