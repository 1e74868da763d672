#include "inspect.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "proc.h"
#include "verify.h"
#include "version.h"
#include "xray.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_row(struct fa_inspect *i, const char *key, char *needs, char *found, enum fa_inspect_verdict verdict)
{
	i->rows = fa_realloc(i->rows, i->n_rows + 1, sizeof(*i->rows));
	i->rows[i->n_rows++] = (struct fa_inspect_row){ key, needs, found, verdict };
}

static enum fa_inspect_verdict judged(bool fits)
{
	return fits ? FA_INSPECT_FITS : FA_INSPECT_REFUSED;
}

/* ---- one binary */

/* The folder that holds torch: its version file was what detection read. NULL: no torch of this machine. The caller's. */
static char *site_of(const struct fa_facts *f)
{
	const char *origin = f->v[FA_FACT_TORCH].origin;
	char *torch, *site;

	if (!origin || origin[0] != '/' || !fa_file_exists(origin))
		return NULL;
	torch = fa_path_dir(origin);
	site = fa_path_dir(torch);
	free(torch);
	return site;
}

static void judge_symbols(struct fa_inspect *i, const struct fa_xray *x, const struct fa_facts *f, bool have_torch)
{
	const char *torch = fa_facts_text(f, FA_FACT_TORCH);
	char *lacks;

	if (!have_torch) {
		add_row(i, "Symbols", fa_strf("%d", x->n_symbols), fa_strdup("not judged: torch is not here"),
		        FA_INSPECT_UNKNOWN);
		return;
	}
	lacks = fa_xray_fits(x) ? fa_strf("all in torch %s", torch ? torch : "of this environment") : fa_xray_sentence(x);
	add_row(i, "Symbols", fa_strf("%d", x->n_symbols), lacks, judged(fa_xray_fits(x)));
}

static void judge_archs(struct fa_inspect *i, const struct fa_xray *x, const struct fa_facts *f)
{
	char *archs = fa_strv_join(&x->archs, " ");
	struct fa_buf cards = FA_BUF_INIT;
	bool all = true;

	if (!x->archs.n) {
		free(archs);
		return;
	}
	for (size_t k = 0; k < f->n_gpus; k++) {
		const char *arch = f->gpus[k].arch;

		fa_buf_addf(&cards, "%s%s (%s)", k ? ", " : "", f->gpus[k].name ? f->gpus[k].name : "card",
		            arch ? arch : "unknown");
		all &= arch && fa_verify_serves(&x->archs, arch);
	}
	if (!f->n_gpus)
		fa_buf_adds(&cards, "no card here; --set gpus.0.arch=90 names one");
	add_row(i, "GPU code", fa_strf("%d images: %s", x->n_images, archs), fa_buf_detach(&cards),
	        f->n_gpus ? judged(all) : FA_INSPECT_UNKNOWN);
	free(archs);
}

static void judge_glibc(struct fa_inspect *i, const char *key, const char *needs, const char *found)
{
	if (!needs)
		return;
	add_row(i, key, fa_strf("%s or newer", needs), fa_strdup(found ? found : "unknown"),
	        found ? judged(fa_version_compare(found, needs) >= 0) : FA_INSPECT_UNKNOWN);
}

/* libcudart.so.13 runs with the CUDA 13 of torch. */
static void judge_cuda(struct fa_inspect *i, const struct fa_xray *x, const struct fa_facts *f)
{
	const char *cuda = fa_facts_text(f, FA_FACT_TORCH_CUDA);

	for (size_t k = 0; k < x->needed.n; k++) {
		const char *name = x->needed.v[k];

		if (strncmp(name, "libcudart.so.", 13) != 0)
			continue;
		add_row(i, "CUDA runtime", fa_strdup(name), cuda ? fa_strf("CUDA %s of torch", cuda) : fa_strdup("unknown"),
		        cuda ? judged(atoi(cuda) == atoi(name + 13)) : FA_INSPECT_UNKNOWN);
	}
}

/* An extension module of torch, whatever it is called. */
static bool extends_torch(const struct fa_xray *x)
{
	for (size_t k = 0; k < x->needed.n; k++)
		if (!strncmp(x->needed.v[k], "libtorch", 8) || !strncmp(x->needed.v[k], "libc10", 6))
			return true;
	return x->n_images > 0;
}

/* A binary that is something else altogether is refused, however well it runs. */
static void judge_kind(struct fa_inspect *i)
{
	if (fa_json_len(i->binaries) && !i->extends_torch)
		add_row(i, "Kind", fa_strdup("an extension module of Flash-Attention"),
		        fa_strdup("something else: no library of torch is needed, no GPU code is in it"), FA_INSPECT_REFUSED);
}

static int inspect_binary(struct fa_inspect *i, const char *so, const struct fa_facts *f, struct fa_err *err)
{
	const char *home = fa_facts_text(f, FA_FACT_CUDA_HOME);
	char *site = site_of(f);
	struct fa_xray x;
	struct fa_json *j;
	int rc = fa_xray(&x, so, site, home && *home ? home : NULL, err);

	if (rc == 0) {
		judge_symbols(i, &x, f, site != NULL);
		judge_archs(i, &x, f);
		judge_cuda(i, &x, f);
		judge_glibc(i, "glibc", x.glibc, fa_facts_text(f, FA_FACT_GLIBC));
		judge_glibc(i, "libstdc++", x.glibcxx, fa_facts_text(f, FA_FACT_GLIBCXX));
		i->extends_torch |= extends_torch(&x);
		j = fa_xray_to_json(&x);
		fa_json_set_string(j, "name", fa_path_base(so));
		fa_json_push(i->binaries, j);
		fa_xray_release(&x);
	}
	free(site);
	return rc;
}

/* ---- a wheel */

/* cp39 with the stable ABI serves 3.9 and later; py3 serves every 3. */
static bool serves_python(const char *python, const char *tag, const char *abi)
{
	if (!strncmp(python, "py3", 3) || !strncmp(python, "py2.py3", 7))
		return true;
	if (!strcmp(tag, "abi3") && !strncmp(python, "cp3", 3) && !strncmp(abi, "cp3", 3))
		return atoi(python + 3) <= atoi(abi + 3);
	return !strcmp(python, abi);
}

/* The tags at the end of NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl. */
static void judge_name(struct fa_inspect *i, const char *wheel, const struct fa_facts *f)
{
	const char *abi = fa_facts_text(f, FA_FACT_PYTHON_ABI), *machine = fa_facts_text(f, FA_FACT_MACHINE);
	char *stem = fa_strndup(wheel, strlen(wheel) - 4);
	struct fa_strv parts = FA_STRV_INIT;

	fa_strv_split(&parts, stem, "-");
	if (parts.n >= 5) {
		const char *python = parts.v[parts.n - 3], *tag = parts.v[parts.n - 2], *platform = parts.v[parts.n - 1];
		bool here = !strcmp(platform, "any") || (machine && strstr(platform, machine));

		add_row(i, "Python", fa_strdup(python), fa_strdup(abi ? abi : "unknown"),
		        abi ? judged(serves_python(python, tag, abi)) : FA_INSPECT_UNKNOWN);
		add_row(i, "Platform", fa_strdup(platform), fa_strdup(machine ? machine : "unknown"),
		        here || machine ? judged(here) : FA_INSPECT_UNKNOWN);
	} else {
		add_row(i, "Name", fa_strdup("NAME-VERSION-PYTHON-ABI-PLATFORM.whl"), fa_strdup(wheel), FA_INSPECT_REFUSED);
	}
	fa_strv_release(&parts);
	free(stem);
}

static bool is_binary(const char *name)
{
	const char *so = strstr(name, ".so");

	return so && (so[3] == '\0' || so[3] == '.');
}

static int inspect_folder(struct fa_inspect *i, const char *folder, const struct fa_facts *f, int depth, struct fa_err *err)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	while (d && rc == 0 && (entry = readdir(d))) {
		char *path;

		if (entry->d_name[0] == '.')
			continue;
		path = fa_path_join(folder, entry->d_name);
		if (fa_file_is_dir(path))
			rc = depth < 16 ? inspect_folder(i, path, f, depth + 1, err) : 0;
		else if (is_binary(entry->d_name))
			rc = inspect_binary(i, path, f, err);
		free(path);
	}
	if (d)
		closedir(d);
	return rc;
}

struct complaint {
	char text[1024];
};

static void first_complaint(void *ctx, const char *line, bool is_err)
{
	struct complaint *c = ctx;

	if (is_err && !c->text[0])
		snprintf(c->text, sizeof(c->text), "%s", line);
}

/* A hostile archive is opened in a process of its own: fainstall-worker unpack WHEEL FOLDER. */
static int unpack(const char *wheel, const char *folder, struct fa_err *err)
{
	char *worker = fa_dir_own("fainstall-worker", err);
	const char *argv[] = { worker, "unpack", wheel, folder, NULL };
	struct complaint c = { "" };
	struct fa_proc_opts p = { .argv = argv, .timeout_ms = 600 * 1000, .line = first_complaint, .ctx = &c };
	int rc = worker ? fa_proc_run(NULL, &p, FA_INTEGRITY, err) : -1;

	if (rc < 0 && c.text[0])
		fa_err_set(err, FA_INTEGRITY, "%s", c.text);
	free(worker);
	return rc;
}

static int inspect_wheel(struct fa_inspect *i, const char *wheel, const struct fa_facts *f, struct fa_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = fa_strf("%s/fainstall-inspect-XXXXXX", tmp && *tmp ? tmp : "/tmp"), *folder = NULL;
	int rc = -1;

	if (!mkdtemp(dir)) {
		fa_err_set(err, FA_MACHINE, "%s: no folder can be made there", dir);
		free(dir);
		return -1;
	}
	folder = fa_path_join(dir, "wheel");
	judge_name(i, fa_path_base(wheel), f);
	if (unpack(wheel, folder, err) == 0)
		rc = inspect_folder(i, folder, f, 0, err);
	if (rc == 0 && !fa_json_len(i->binaries))
		add_row(i, "Binaries", fa_strdup("none"), fa_strdup("compiles at first use, or is plain Python"),
		        FA_INSPECT_FITS);
	fa_file_remove_tree(dir, NULL);
	free(folder);
	free(dir);
	return rc;
}

int fa_inspect(struct fa_inspect *out, const char *path, const struct fa_facts *facts, struct fa_err *err)
{
	size_t len = strlen(path);
	int rc;

	*out = (struct fa_inspect){ .path = fa_strdup(path), .binaries = fa_json_new_array() };
	if (!fa_file_exists(path)) {
		fa_err_set(err, FA_USAGE, "%s is not there", path);
		rc = fa_err_next(err, "give a .whl or a .so");
	} else if (len > 4 && !strcmp(path + len - 4, ".whl")) {
		rc = inspect_wheel(out, path, facts, err);
	} else {
		rc = inspect_binary(out, path, facts, err);
	}
	if (rc < 0)
		fa_inspect_release(out);
	else
		judge_kind(out);
	return rc;
}

/* ---- showing */

enum fa_inspect_verdict fa_inspect_verdict(const struct fa_inspect *i)
{
	enum fa_inspect_verdict all = FA_INSPECT_FITS;

	for (size_t k = 0; k < i->n_rows; k++) {
		if (i->rows[k].verdict == FA_INSPECT_REFUSED)
			return FA_INSPECT_REFUSED;
		if (i->rows[k].verdict == FA_INSPECT_UNKNOWN)
			all = FA_INSPECT_UNKNOWN;
	}
	return all;
}

static const char *word_of(enum fa_inspect_verdict v)
{
	return v == FA_INSPECT_FITS ? "fits" : v == FA_INSPECT_REFUSED ? "refused" : "unknown";
}

static void add_headline(struct fa_buf *out, const struct fa_inspect *i)
{
	enum fa_inspect_verdict all = fa_inspect_verdict(i);

	if (all == FA_INSPECT_FITS)
		fa_buf_adds(out, "Fits this machine and its torch.\n");
	else if (all == FA_INSPECT_UNKNOWN)
		fa_buf_adds(out, "Nothing speaks against it; not everything could be judged here.\n");
	for (size_t k = 0; all == FA_INSPECT_REFUSED && k < i->n_rows; k++) {
		if (!strcmp(i->rows[i->n_rows - 1].key, "Kind")) {
			fa_buf_adds(out, "This is no extension module of Flash-Attention.\n");
			return;
		}
		if (i->rows[k].verdict == FA_INSPECT_REFUSED) {
			fa_buf_addf(out, "Not for this machine: %s: needs %s, found %s.\n", i->rows[k].key, i->rows[k].needs,
			            i->rows[k].found);
			return;
		}
	}
}

void fa_inspect_print(struct fa_buf *out, const struct fa_inspect *i)
{
	static const enum fa_inspect_verdict order[] = { FA_INSPECT_REFUSED, FA_INSPECT_UNKNOWN, FA_INSPECT_FITS };

	add_headline(out, i);
	for (size_t o = 0; o < 3; o++)
		for (size_t k = 0; k < i->n_rows; k++)
			if (i->rows[k].verdict == order[o])
				fa_buf_addf(out, "  %-8s %-13s needs %s; found %s\n", word_of(order[o]), i->rows[k].key,
				            i->rows[k].needs, i->rows[k].found);
}

struct fa_json *fa_inspect_to_json(const struct fa_inspect *i)
{
	struct fa_json *j = fa_json_new_object(), *rows = fa_json_new_array();

	for (size_t k = 0; k < i->n_rows; k++) {
		struct fa_json *r = fa_json_new_object();

		fa_json_set_string(r, "key", i->rows[k].key);
		fa_json_set_string(r, "needs", i->rows[k].needs);
		fa_json_set_string(r, "found", i->rows[k].found);
		fa_json_set_string(r, "verdict", word_of(i->rows[k].verdict));
		fa_json_push(rows, r);
	}
	fa_json_set_string(j, "schema", "fainstall.inspection/1");
	fa_json_set_string(j, "path", i->path);
	fa_json_set_string(j, "verdict", word_of(fa_inspect_verdict(i)));
	fa_json_set(j, "rows", rows);
	fa_json_set(j, "binaries", fa_json_copy(i->binaries));
	return j;
}

void fa_inspect_release(struct fa_inspect *i)
{
	for (size_t k = 0; k < i->n_rows; k++) {
		free(i->rows[k].needs);
		free(i->rows[k].found);
	}
	free(i->rows);
	free(i->path);
	fa_json_free(i->binaries);
	*i = (struct fa_inspect)FA_INSPECT_INIT;
}
