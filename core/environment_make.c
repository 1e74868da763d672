#include "environment_make.h"

#include "buf.h"
#include "file.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

/* A program in PATH; NULL: none. The caller's. */
static char *in_path(const char *program)
{
	const char *path = getenv("PATH");
	struct fa_strv dirs = FA_STRV_INIT;
	char *found = NULL;

	fa_strv_split(&dirs, path ? path : "/usr/local/bin:/usr/bin:/bin", ":");
	for (size_t i = 0; i < dirs.n && !found; i++) {
		found = fa_path_join(dirs.v[i], program);
		if (!fa_file_is_executable(found)) {
			free(found);
			found = NULL;
		}
	}
	fa_strv_release(&dirs);
	return found;
}

/* "3.11" of "3.11.7"; a free-threaded "3.13t" is another Python than 3.13. */
static bool same_minor(const char *a, const char *b)
{
	char *x = fa_version_head(a, 2), *y = fa_version_head(b, 2);
	bool same = !strcmp(x, y) && (a[strlen(a) - 1] == 't') == (b[strlen(b) - 1] == 't');

	free(x);
	free(y);
	return same;
}

/* The interpreter that makes it; NULL: none of that version. The caller's. */
static char *interpreter(const char *version, const struct fa_facts *facts)
{
	const char *path = fa_facts_text(facts, FA_FACT_PYTHON_PATH), *has = fa_facts_text(facts, FA_FACT_PYTHON);
	char *name, *found;

	if (path && fa_file_is_executable(path) && (!version || (has && *has && same_minor(has, version))))
		return fa_strdup(path);
	name = version ? fa_strf("python%s", version) : fa_strdup("python3");
	found = in_path(name);
	free(name);
	return found;
}

/* Does this Python have what venv needs? On Debian and Ubuntu ensurepip is a package of its own. */
static bool has_venv(const char *python, struct fa_child_context *c)
{
	const char *const argv[] = { python, "-I", "-c", "import venv, ensurepip", NULL };
	struct fa_child child = { .argv = argv, .quiet = true };

	return fa_child_run(c, &child, FA_MACHINE, NULL) == 0;
}

static int make_with_uv(const char *uv, const char *python, const char *path, struct fa_child_context *c, struct fa_err *err)
{
	const char *const argv[] = { uv, "venv", "--seed", "--allow-existing", "--python", python, path, NULL };
	struct fa_child child = { .argv = argv };

	return fa_child_run(c, &child, FA_MACHINE, err);
}

static int make_with_venv(const char *python, const char *path, struct fa_child_context *c, struct fa_err *err)
{
	const char *const argv[] = { python, "-I", "-m", "venv", path, NULL };
	struct fa_child child = { .argv = argv };

	return fa_child_run(c, &child, FA_MACHINE, err);
}

static int no_python(const char *version, struct fa_err *err)
{
	fa_err_set(err, FA_MACHINE, "no Python %s on this machine", version ? version : "3");
	if (version)
		return fa_err_next(err,
		                   "install it (Debian, Ubuntu: sudo apt-get install python%s python%s-venv; anywhere: "
		                   "uv python install %s), or choose another with --python",
		                   version, version, version);
	return fa_err_next(err, "install it: sudo apt-get install python3 python3-venv");
}

static int no_venv(const char *python, const char *version, const struct fa_facts *facts, struct fa_err *err)
{
	const char *has = fa_facts_text(facts, FA_FACT_PYTHON), *distro = fa_facts_text(facts, FA_FACT_DISTRO);
	char *minor = fa_version_head(version ? version : has && *has ? has : "3", 2);

	fa_err_set(err, FA_MACHINE, "%s has no venv module with pip (ensurepip)", python);
	if (distro && (!strcmp(distro, "debian") || !strcmp(distro, "ubuntu")))
		fa_err_next(err, "install it: sudo apt-get install python%s-venv", minor);
	else
		fa_err_next(err, "install it (Debian, Ubuntu: sudo apt-get install python%s-venv), or install uv", minor);
	free(minor);
	return -1;
}

int fa_environment_make(const char *path, const char *version, const struct fa_facts *facts, struct fa_child_context *c,
                        struct fa_err *err)
{
	char *python = interpreter(version, facts), *uv = in_path("uv");
	int rc;

	if (python && has_venv(python, c))
		rc = make_with_venv(python, path, c, err);
	else if (uv)
		rc = make_with_uv(uv, python ? python : version ? version : "3", path, c, err);
	else if (python)
		rc = no_venv(python, version, facts, err);
	else
		rc = no_python(version, err);
	free(python);
	free(uv);
	return rc;
}
