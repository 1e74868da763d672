#include "kb.h"

#include "buf.h"
#include "facts.h"
#include "json.h"
#include "matrix.h"
#include "policy.h"
#include "version.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names */

static const struct {
	const char *word, *meaning;
} NAMES[] = {
#define FACT(id, key, type, label) { key, label },
#include "fact.def"
#undef FACT
#define NAME(id, word, meaning) { word, meaning },
#include "name.def"
#undef NAME
};

int fa_name_find_word(void *unused, const char *name, size_t len)
{
	(void)unused;
	for (int i = 0; i < FA_NAME_COUNT; i++)
		if (strlen(NAMES[i].word) == len && !memcmp(NAMES[i].word, name, len))
			return i;
	return -1;
}

const char *fa_name_word(int name)
{
	return name >= 0 && name < FA_NAME_COUNT ? NAMES[name].word : "";
}

const char *fa_name_meaning(int name)
{
	return name >= 0 && name < FA_NAME_COUNT ? NAMES[name].meaning : "";
}

static const char *const ON_WORDS[] = { "torch",  "torch_card",  "release",      "release_card", "file", "file_card",
	                                "source", "toolkit",     "toolkit_card", "amd",          "ck",   "ck_card",
	                                "triton", "triton_card", "sdpa",         "plan" };

const char *fa_rule_on_word(enum fa_rule_on on)
{
	return ON_WORDS[on];
}

/* ---- helpers */

static const char *own(struct fa_kb *kb, char *text)
{
	return fa_texts_take(&kb->texts, text);
}

#define STR fa_json_get_string

/* Room for one more, zeroed. */
static void *add(void **items, size_t *n, size_t size)
{
	if ((*n & (*n - 1)) == 0)
		*items = fa_realloc(*items, *n ? 2 * *n : 1, size);
	memset((char *)*items + *n * size, 0, size);
	return (char *)*items + (*n)++ * size;
}

#define ADD(items, n) add((void **)&(items), &(n), sizeof(*(items)))

/* "12.8" -> "cu128" */
static const char *cu_word(struct fa_kb *kb, const char *prefix, const char *cuda)
{
	struct fa_buf b = FA_BUF_INIT;

	fa_buf_adds(&b, prefix);
	for (; *cuda; cuda++)
		if (*cuda != '.')
			fa_buf_addc(&b, *cuda);
	return own(kb, fa_buf_detach(&b));
}

static const char *major_of(struct fa_kb *kb, const char *version)
{
	return version ? own(kb, fa_version_head(version, 1)) : NULL;
}

const char *fa_kb_own(struct fa_kb *kb, char *text)
{
	return own(kb, text);
}

/* ---- rules */

struct fa_kb_rule *fa_kb_add_rule(struct fa_kb *kb, enum fa_rule_on on)
{
	return ADD(kb->rules[on], kb->n_rules[on]);
}

static int find_on(const char *word)
{
	for (int i = 0; word && i < FA_ON_COUNT; i++)
		if (!strcmp(ON_WORDS[i], word))
			return i;
	return -1;
}

/* The file that a row stands in, for errors. The caller's. */
static char *place_of(const struct fa_json *row, const char *table)
{
	const char *file = STR(row, FA_ROW_FILE);

	return file ? fa_strdup(file) : fa_strf("matrix/%s.json", table);
}

static int say_row(struct fa_err *err, const struct fa_json *row, const char *table, const char *why)
{
	char *place = place_of(row, table);

	fa_err_set(err, FA_USAGE, "%s: row \"%s\": %s", place, STR(row, "id") ? STR(row, "id") : "", why);
	if (STR(row, FA_ROW_FILE))
		fa_err_next(err, "Repair or remove that row; the rows that come with fainstall are whole");
	free(place);
	return -1;
}

bool fa_rule_on_known(const char *word)
{
	return find_on(word) >= 0;
}

static int make_rule(struct fa_kb *kb, const struct fa_json *row, struct fa_err *err)
{
	struct fa_err why = FA_ERR_INIT;
	const char *id = STR(row, "id");
	int on = find_on(STR(row, "on"));
	struct fa_kb_rule *r;

	if (!id || on < 0) {
		snprintf(why.text, sizeof(why.text), "unknown \"on\": \"%s\"", STR(row, "on") ? STR(row, "on") : "");
		return say_row(err, row, "rules", why.text);
	}
	r = ADD(kb->rules[on], kb->n_rules[on]);
	*r = (struct fa_kb_rule){ .id = id, .text = STR(row, "text"), .action = STR(row, "action") };
	r->replace = fa_json_get_bool(row, "replace");
	if (fa_rule_compile(&r->when, STR(row, "when"), fa_name_find_word, NULL, &why) < 0 ||
	    fa_rule_compile(&r->need, STR(row, "need"), fa_name_find_word, NULL, &why) < 0)
		return say_row(err, row, "rules", why.text);
	return 0;
}

static int make_rules(struct fa_kb *kb, const struct fa_json *table, struct fa_err *err)
{
	fa_json_each (row, fa_json_get(table, "rows"))
		if (make_rule(kb, row, err) < 0)
			return -1;
	return 0;
}

/* ---- torch */

static const char *pythons_of(struct fa_kb *kb, const struct fa_json *row)
{
	const struct fa_json *span = fa_json_get(row, "python");
	const char *from = fa_json_string(fa_json_at(span, 0)), *to = fa_json_string(fa_json_at(span, 1));
	struct fa_buf b = FA_BUF_INIT;
	int a = from && strchr(from, '.') ? atoi(strchr(from, '.') + 1) : 0;
	int z = to && strchr(to, '.') ? atoi(strchr(to, '.') + 1) : -1;

	for (int minor = a; minor <= z && minor < 100; minor++)
		fa_buf_addf(&b, "%s3%d", b.len ? " " : "", minor);
	fa_json_each (free_threaded, fa_json_get(row, "free_threaded"))
		if (fa_json_string(free_threaded) && strchr(fa_json_string(free_threaded), '.'))
			fa_buf_addf(&b, " 3%st", strchr(fa_json_string(free_threaded), '.') + 1);
	return own(kb, fa_buf_detach(&b));
}

static void make_cuda_build(struct fa_kb *kb, struct fa_kb_torch *t, const struct fa_json *row, const char *aarch64_pypi)
{
	struct fa_kb_build *b = ADD(t->builds, t->n_builds);
	const struct fa_json *abi = fa_json_get(row, "abi");
	bool everywhere = !fa_json_get_bool(row, "linux_only");

	b->cuda = STR(row, "cuda");
	b->build = cu_word(kb, "cu", b->cuda);
	b->major = major_of(kb, b->cuda);
	b->vendor = "nvidia";
	b->abi = !abi ? NULL : fa_json_bool(abi) ? "new" : "old";
	b->glibc = STR(row, "glibc");
	b->codes = STR(row, "sm");
	b->codes_aarch64 = STR(row, "sm_aarch64");
	b->file = STR(row, "file");
	b->pypi = fa_json_get_bool(row, "pypi");
	b->pypi_aarch64 = aarch64_pypi && !strcmp(aarch64_pypi, b->cuda);
	b->platforms = b->codes_aarch64
	                       ? everywhere ? "linux-x86_64 windows-x86_64 linux-aarch64" : "linux-x86_64 linux-aarch64"
	               : everywhere ? "linux-x86_64 windows-x86_64"
	                            : "linux-x86_64";
}

static void make_other_builds(struct fa_kb *kb, struct fa_kb_torch *t, const struct fa_json *row)
{
	struct fa_kb_build *b;

	fa_json_each (rocm, fa_json_get(row, "rocm")) {
		b = ADD(t->builds, t->n_builds);
		b->rocm = fa_json_string(rocm);
		b->build = own(kb, fa_strf("rocm%s", b->rocm));
		b->vendor = "amd";
		b->platforms = "linux-x86_64";
	}
	b = ADD(t->builds, t->n_builds);
	b->build = "cpu";
	b->vendor = "none";
	b->platforms = "linux-x86_64 linux-aarch64 windows-x86_64 windows-aarch64 darwin-aarch64 darwin-x86_64";
}

static void make_torch(struct fa_kb *kb, const struct fa_json *table)
{
	kb->torch_index = STR(table, "index");
	fa_json_each (row, fa_json_get(table, "rows")) {
		struct fa_kb_torch *t;

		if (!STR(row, "torch"))
			continue;
		t = ADD(kb->torch, kb->n_torch);
		t->version = STR(row, "torch");
		t->minor = own(kb, fa_version_head(t->version, 2));
		t->pythons = pythons_of(kb, row);
		t->cxx = own(kb, fa_strf("%d", (int)fa_json_get_number(row, "cxx", 17)));
		t->triton = STR(row, "triton");
		t->torchvision = STR(row, "torchvision");
		t->torchaudio = STR(row, "torchaudio");
		t->bytes = (int64_t)fa_json_get_number(row, "bytes", -1);
		fa_json_each (build, fa_json_get(row, "builds"))
			if (STR(build, "cuda"))
				make_cuda_build(kb, t, build, STR(row, "aarch64_pypi"));
		make_other_builds(kb, t, row);
	}
}

/* ---- CUDA, cards */

static const char *pair(const struct fa_json *row, const char *key, size_t i)
{
	return fa_json_string(fa_json_at(fa_json_get(row, key), i));
}

static void make_cuda(struct fa_kb *kb, const struct fa_json *table)
{
	const struct fa_json *layouts = fa_json_get(table, "device_prop");

	fa_json_each (row, fa_json_get(table, "rows")) {
		struct fa_kb_cuda *c;

		if (!STR(row, "cuda"))
			continue;
		c = ADD(kb->cuda, kb->n_cuda);
		*c = (struct fa_kb_cuda){
			.cuda = STR(row, "cuda"),
			.major = major_of(kb, STR(row, "cuda")),
			.driver = STR(row, "driver"),
			.driver_windows = STR(row, "driver_windows"),
			.codes = STR(row, "sm"),
			.gcc_min = pair(row, "gcc", 0),
			.gcc_max = pair(row, "gcc", 1),
			.clang_min = pair(row, "clang", 0),
			.clang_max = pair(row, "clang", 1),
			.msvc_min = pair(row, "msvc", 0),
			.msvc_below = pair(row, "msvc", 1),
			.pip = fa_json_get(row, "pip"),
		};
		c->device_prop = fa_json_get(layouts, c->major);
	}
}

static void make_archs(struct fa_kb *kb, const struct fa_json *table)
{
	fa_json_each (row, fa_json_get(table, "rows")) {
		struct fa_kb_arch *a;

		if (!STR(row, "arch"))
			continue;
		a = ADD(kb->archs, kb->n_archs);
		*a = (struct fa_kb_arch){ STR(row, "arch"),  STR(row, "vendor"),  STR(row, "family"),
			                  STR(row, "codes"), STR(row, "compile"), fa_json_get_bool(row, "triton") };
	}
}

/* ---- Flash-Attention releases */

static const struct fa_kb_profile *profile_of(const struct fa_kb *kb, const char *name)
{
	for (size_t i = 0; name && i < kb->n_profiles; i++)
		if (!strcmp(kb->profiles[i].name, name))
			return &kb->profiles[i];
	return NULL;
}

static void make_profiles(struct fa_kb *kb, const struct fa_json *table)
{
	fa_json_each (row, fa_json_get(table, "profiles")) {
		struct fa_kb_profile *p;

		if (!STR(row, "profile"))
			continue;
		p = ADD(kb->profiles, kb->n_profiles);
		p->name = STR(row, "profile");
		p->cxx = own(kb, fa_strf("%d", (int)fa_json_get_number(row, "cxx", 17)));
		p->env = STR(row, "env");
		p->units = (int)fa_json_get_number(row, "units", 0);
		p->archs_read = fa_json_get_bool(row, "archs_read");
		p->gencode = fa_json_get(row, "gencode");
	}
}

static const char *features_of(struct fa_kb *kb, const char *line, const char *version)
{
	const struct fa_kb_line *l = fa_kb_line(kb, line);
	struct fa_buf b = FA_BUF_INIT;

	if (l && l->features)
		return l->features;
	fa_buf_adds(&b, kb->features_always ? kb->features_always : "");
	fa_json_each (f, kb->features) {
		const char *first = fa_json_string(f);

		if (first && fa_version_compare(version, *first == 'v' ? first + 1 : first) >= 0)
			fa_buf_addf(&b, " %s", fa_json_key(f));
	}
	return own(kb, fa_buf_detach(&b));
}

static void make_release(struct fa_kb *kb, const struct fa_json *row)
{
	struct fa_kb_release *r = ADD(kb->releases, kb->n_releases);
	const struct fa_json *sdist = fa_json_get(row, "sdist"), *limit = fa_json_get(row, "backward");

	r->line = STR(row, "line");
	r->version = STR(row, "version");
	r->tag = STR(row, "tag");
	r->commit = STR(row, "commit");
	r->python = STR(row, "python");
	r->torch = STR(row, "torch");
	r->nvcc = STR(row, "nvcc");
	r->rocm = STR(row, "rocm");
	r->ck = STR(row, "ck");
	r->head_dims = STR(row, "head_dims");
	r->without = STR(row, "without");
	r->stays = STR(row, "stays");
	r->reads = STR(row, "reads");
	r->apart = STR(row, "apart");
	r->cutlass = STR(row, "cutlass");
	r->composable_kernel = STR(row, "composable_kernel");
	r->sdist_file = STR(sdist, "file");
	r->sdist_sha256 = STR(sdist, "sha256");
	r->sdist_bytes = (int64_t)fa_json_get_number(sdist, "bytes", -1);
	r->triton = fa_json_get_bool(row, "triton_amd");
	r->published = fa_json_get_bool(row, "published");
	r->profile = profile_of(kb, STR(row, "profile"));
	r->features = features_of(kb, r->line, r->version);
	if (limit && !fa_json_get_bool(limit, "dropout_only"))
		r->backward = own(kb, fa_strf("%d", (int)fa_json_get_number(limit, "above", 256)));
}

static void make_releases(struct fa_kb *kb, const struct fa_json *table)
{
	kb->repository = STR(table, "repository");
	kb->submodules = fa_json_get(table, "submodules");
	kb->features = fa_json_get(table, "features");
	kb->features_always = STR(table, "features_always");
	make_profiles(kb, table);
	fa_json_each (row, fa_json_get(table, "rows"))
		if (STR(row, "line") && STR(row, "version"))
			make_release(kb, row);
}

/* "3.0.0.b1" of a setup.py is 3.0.0b1 in the name of its wheel (PEP 440). */
static const char *normal_version(struct fa_kb *kb, const char *version)
{
	const char *pre = strpbrk(version, "abr");

	if (pre && pre > version && pre[-1] == '.')
		return own(kb, fa_strf("%.*s%s", (int)(pre - version) - 1, version, pre));
	return version;
}

/* Folder hopper/ of upstream's repository: of the commits with one version the newest stands for it. What was called otherwise, or is in
 * no repository, is not built. */
static void make_hopper_release(struct fa_kb *kb, const struct fa_json *row)
{
	const char *version = STR(row, "version") ? normal_version(kb, STR(row, "version")) : NULL;
	const struct fa_kb_line *l = fa_kb_line(kb, "fa3");
	struct fa_kb_release *r;

	if (!version || !STR(row, "commit") || !STR(row, "package") || strcmp(STR(row, "package"), l ? l->package : "") != 0 ||
	    fa_kb_release(kb, "fa3", version))
		return;
	r = ADD(kb->releases, kb->n_releases);
	*r = (struct fa_kb_release){ .line = "fa3",
		                     .version = version,
		                     .tag = STR(row, "tag"),
		                     .commit = STR(row, "commit"),
		                     .python = STR(row, "python"),
		                     .torch = STR(row, "torch"),
		                     .nvcc = STR(row, "nvcc"),
		                     .cutlass = STR(row, "cutlass"),
		                     .sdist_bytes = -1 };
}

static void make_hopper_releases(struct fa_kb *kb, const struct fa_json *table)
{
	fa_json_each (row, fa_json_get(table, "rows"))
		make_hopper_release(kb, row);
}

/* ---- units, lines, sources */

static void add_unit(struct fa_kb *kb, const char *line, const struct fa_json *row, const char *variant, double factor)
{
	struct fa_kb_unit *u = ADD(kb->units, kb->n_units);

	u->line = line;
	u->kind = STR(row, "kind");
	u->dtype = STR(row, "dtype");
	u->variant = variant;
	u->head_dim = (int)fa_json_get_number(row, "head_dim", 0);
	u->units = (int)fa_json_get_number(row, "units", 1);
	u->peak_mib = (int)fa_json_get_number(row, "peak_mib", 0);
	fa_json_each (s, fa_json_get(row, "seconds")) {
		u->seconds += fa_json_number(s) * factor;
		if (fa_json_number(s) * factor > u->longest)
			u->longest = fa_json_number(s) * factor;
	}
}

/* "64_512" is head dim 64 with a V of another. */
static const char *variant_of(struct fa_kb *kb, const struct fa_json *row, const char *variant)
{
	const char *dims = STR(row, "dims");

	return dims && strchr(dims, '_') ? own(kb, fa_strf("_diffv%s", variant ? variant : "")) : variant ? variant : "";
}

/* A kernel of FA3 comes in variants, each a unit of its own. */
static void make_hopper_units(struct fa_kb *kb, const struct fa_json *table)
{
	kb->units_table_fa3 = table;
	fa_json_each (row, fa_json_get(table, "rows"))
		fa_json_each (v, fa_json_get(fa_json_get(table, "variants"), STR(row, "kind") ? STR(row, "kind") : ""))
			add_unit(kb, "fa3", row, variant_of(kb, row, fa_json_string(fa_json_at(v, 0))),
			         fa_json_number(fa_json_at(v, 1)));
}

static void make_units(struct fa_kb *kb, const struct fa_json *table)
{
	kb->units_table = table;
	kb->disk_mib = fa_json_get(table, "disk_mib");
	kb->narrow = fa_json_get(table, "narrow");
	fa_json_each (row, fa_json_get(table, "rows"))
		add_unit(kb, "fa2", row, "", 1);
}

static void make_lines(struct fa_kb *kb, const struct fa_json *table)
{
	fa_json_each (row, fa_json_get(table, "rows")) {
		struct fa_kb_line *l;

		if (!STR(row, "line"))
			continue;
		l = ADD(kb->lines, kb->n_lines);
		*l = (struct fa_kb_line){ STR(row, "line"),     STR(row, "name"),
			                  STR(row, "package"),  STR(row, "dtypes"),
			                  STR(row, "head_dim"), STR(row, "features"),
			                  STR(row, "serves"),   STR(row, "switches"),
			                  STR(row, "folder"),   (int)fa_json_get_number(row, "order", 9) };
	}
}

enum { SOURCES_MAX = 64 }; /* so that pointers to them stay valid */

static void make_sources(struct fa_kb *kb, const struct fa_json *table)
{
	kb->sources = fa_calloc(SOURCES_MAX, sizeof(*kb->sources));
	fa_json_each (row, fa_json_get(table, "rows"))
		if (STR(row, "name") && kb->n_sources < SOURCES_MAX)
			kb->sources[kb->n_sources++] =
			        (struct fa_kb_source){ STR(row, "name"), STR(row, "name"), STR(row, "text"), STR(row, "trust"),
				                       (int)fa_json_get_number(row, "order", 9) };
}

static const struct fa_kb_source *source_of(const struct fa_kb *kb, const char *name)
{
	for (size_t i = 0; i < kb->n_sources; i++)
		if (!strcmp(kb->sources[i].name, name))
			return &kb->sources[i];
	return NULL;
}

/* ---- files */

static void add_official(struct fa_kb *kb, const struct fa_json *release, const struct fa_json *build, char abi, bool nightly)
{
	struct fa_kb_file *f = ADD(kb->files, kb->n_files);
	const char *machine = fa_json_string(fa_json_at(build, 5));

	f->line = "fa2";
	f->package = "flash_attn";
	f->version = STR(release, "version");
	f->tag = STR(release, "tag");
	f->source = source_of(kb, "official");
	f->torch = fa_json_string(fa_json_at(build, 0));
	f->cuda = fa_json_string(fa_json_at(build, 1));
	f->major = own(kb, fa_strndup(f->cuda + 2, 2));
	f->pythons = fa_json_string(fa_json_at(build, 2));
	f->codes = fa_json_string(fa_json_at(build, 4));
	f->abi = abi == 'F' ? "old" : "new";
	f->abi_word = abi == 'T' ? "TRUE" : "FALSE";
	f->glibc = STR(release, "glibc");
	f->driver = STR(release, "driver");
	f->os = "linux";
	f->machine = machine ? machine : "x86_64";
	f->nightly = nightly;
	f->backward = true;
	f->dtypes = "fp16 bf16";
	f->bytes = -1;
}

static void make_official(struct fa_kb *kb, const struct fa_json *table)
{
	kb->official_url = STR(table, "url");
	kb->official_name = STR(table, "name");
	fa_json_each (release, fa_json_get(table, "rows"))
		fa_json_each (build, fa_json_get(release, "builds")) {
			const char *letters = fa_json_string(fa_json_at(build, 3));
			const char *cu = fa_json_string(fa_json_at(build, 1));

			if (!letters || !cu || strlen(cu) < 4 || !STR(release, "version"))
				continue;
			for (const char *p = letters; *p; p++)
				if (strchr("FTf", *p))
					add_official(kb, release, build, *p, strchr(letters, 'n') != NULL);
		}
}

/* The next member of a short array and its successor: rows of the community table are read left to right. */
static const char *take(const struct fa_json **cell)
{
	const char *text = fa_json_string(*cell);

	*cell = fa_json_next(*cell);
	return text;
}

struct platform {
	const char *tag, *os, *machine, *glibc;
};

static size_t read_platforms(struct platform *out, size_t max, const struct fa_json *array)
{
	size_t n = 0;

	fa_json_each (row, array) {
		const struct fa_json *cell = fa_json_first(row);

		if (n == max)
			break;
		out[n].tag = take(&cell);
		out[n].os = take(&cell);
		out[n].machine = take(&cell);
		out[n++].glibc = take(&cell);
	}
	return n;
}

static size_t read_tags(const char **out, size_t max, const struct fa_json *array)
{
	size_t n = 0;

	fa_json_each (tag, array)
		if (n < max)
			out[n++] = fa_json_string(tag);
	return n;
}

static void add_community(struct fa_kb *kb, const struct fa_json *row, const struct platform *platforms, size_t n_platforms,
                          const char *const *tags, size_t n_tags)
{
	struct fa_kb_file f = { .source = source_of(kb, "community"), .bytes = -1, .backward = true };
	const struct fa_json *cell = fa_json_first(row);
	const char *abi;
	size_t p, r;

	f.line = take(&cell);
	f.version = take(&cell);
	f.git = take(&cell);
	f.torch = take(&cell);
	f.cuda = take(&cell);
	p = (size_t)fa_json_number(cell);
	cell = fa_json_next(cell);
	r = (size_t)fa_json_number(cell);
	cell = fa_json_next(cell);
	abi = take(&cell);
	f.codes = take(&cell);
	f.pythons = take(&cell);
	if (!f.line || !f.version || !f.cuda || !f.pythons || !abi || p >= n_platforms || r >= n_tags)
		return;
	f.package = !strcmp(f.line, "fa3") ? "flash_attn_3" : "flash_attn";
	f.dtypes = !strcmp(f.line, "fa3") ? "fp16 bf16 fp8" : "fp16 bf16";
	f.major = major_of(kb, f.cuda);
	f.tag = tags[r];
	f.platform = platforms[p].tag;
	f.os = platforms[p].os;
	f.machine = platforms[p].machine;
	f.glibc = platforms[p].glibc;
	if (f.os && !strcmp(f.os, "linux"))
		f.abi = *abi == 'T' ? "new" : "old";
	if (strchr(f.pythons, '+')) {
		f.abi3 = true;
		f.python_min = own(kb, fa_strf("3.%d", atoi(f.pythons + 1)));
		f.pythons = NULL;
	}
	*(struct fa_kb_file *)ADD(kb->files, kb->n_files) = f;
}

static void make_community(struct fa_kb *kb, const struct fa_json *table)
{
	struct platform platforms[32];
	const char *tags[256];
	size_t n_platforms = read_platforms(platforms, 32, fa_json_get(table, "platforms"));
	size_t n_tags = read_tags(tags, 256, fa_json_get(table, "releases"));

	kb->community_url = STR(table, "url");
	kb->community_name = STR(table, "name");
	fa_json_each (row, fa_json_get(table, "rows"))
		add_community(kb, row, platforms, n_platforms, tags, n_tags);
}

static void make_pypi(struct fa_kb *kb, const struct fa_json *table)
{
	fa_json_each (row, fa_json_get(table, "rows")) {
		struct fa_kb_file *f = ADD(kb->files, kb->n_files);

		f->line = STR(row, "line");
		f->package = STR(row, "package");
		f->version = STR(row, "version");
		f->source = source_of(kb, "pypi");
		f->name = STR(row, "file");
		f->sha256 = STR(row, "sha256");
		f->bytes = (int64_t)fa_json_get_number(row, "bytes", -1);
		f->os = STR(row, "os");
		f->machine = STR(row, "machine");
		f->python_min = STR(row, "python");
		f->abi3 = fa_json_get_bool(row, "abi3");
		f->glibc = STR(row, "glibc");
		f->major = STR(row, "cuda_major");
		f->codes = STR(row, "codes");
		f->backward = fa_json_get_bool(row, "backward");
		f->dtypes = STR(row, "dtypes");
		f->features = STR(row, "features");
		f->torch_min = STR(row, "torch_min");
		f->extra = fa_json_get(row, "extra");
	}
}

/* ---- all of it */

static int load(struct fa_kb *kb, struct fa_matrix *m, const char *name, void (*make)(struct fa_kb *, const struct fa_json *),
                struct fa_err *err)
{
	const struct fa_json *table = fa_matrix_table(m, name, err);

	if (!table)
		return -1;
	make(kb, table);
	return 0;
}

static void make_ids(struct fa_kb *kb, const struct fa_json *table)
{
	kb->ids = fa_json_get(table, "rows");
}

static void make_bad_settings(struct fa_kb *kb, const struct fa_json *table)
{
	kb->bad_settings = fa_json_get(table, "rows");
}

static int make_warnings(struct fa_kb *kb, struct fa_err *err)
{
	fa_json_each (row, kb->ids) {
		struct fa_err why = FA_ERR_INIT;
		struct fa_kb_rule *r;

		if (!STR(row, "id") || !STR(row, "when"))
			continue;
		r = ADD(kb->warnings, kb->n_warnings);
		r->id = STR(row, "id");
		if (fa_rule_compile(&r->when, STR(row, "when"), fa_name_find_word, NULL, &why) < 0)
			return say_row(err, row, "ids", why.text);
	}
	return 0;
}

static void make_gpus(struct fa_kb *kb, const struct fa_json *table)
{
	kb->gpus = fa_json_get(table, "rows");
}

/* ---- one address for each text, so that what was compared once is known again */

static void hold(struct fa_kb *kb, void *items, size_t n, size_t size, const size_t *fields, size_t n_fields)
{
	for (size_t i = 0; i < n; i++)
		for (size_t f = 0; f < n_fields; f++) {
			const char **text = (const char **)(void *)((char *)items + i * size + fields[f]);

			*text = fa_texts_keep(&kb->texts, *text);
		}
}

#define HOLD(items, n, ...) \
	do { \
		static const size_t fields[] = { __VA_ARGS__ }; \
\
		hold(kb, items, n, sizeof(*(items)), fields, sizeof(fields) / sizeof(fields[0])); \
	} while (0)

#define OF_FILE(field) offsetof(struct fa_kb_file, field)
#define OF_TORCH(field) offsetof(struct fa_kb_torch, field)
#define OF_BUILD(field) offsetof(struct fa_kb_build, field)
#define OF_CUDA(field) offsetof(struct fa_kb_cuda, field)
#define OF_ARCH(field) offsetof(struct fa_kb_arch, field)
#define OF_LINE(field) offsetof(struct fa_kb_line, field)
#define OF_PROFILE(field) offsetof(struct fa_kb_profile, field)
#define OF_RELEASE(field) offsetof(struct fa_kb_release, field)

void fa_kb_hold_files(struct fa_kb *kb)
{
	HOLD(kb->files, kb->n_files, OF_FILE(line), OF_FILE(package), OF_FILE(version), OF_FILE(torch), OF_FILE(cuda),
	     OF_FILE(major), OF_FILE(pythons), OF_FILE(python_min), OF_FILE(abi), OF_FILE(glibc), OF_FILE(codes), OF_FILE(os),
	     OF_FILE(machine), OF_FILE(driver), OF_FILE(dtypes), OF_FILE(features), OF_FILE(torch_min));
}

static void hold_once(struct fa_kb *kb)
{
	HOLD(kb->torch, kb->n_torch, OF_TORCH(version), OF_TORCH(minor), OF_TORCH(pythons), OF_TORCH(cxx));
	for (size_t i = 0; i < kb->n_torch; i++)
		HOLD(kb->torch[i].builds, kb->torch[i].n_builds, OF_BUILD(build), OF_BUILD(vendor), OF_BUILD(cuda),
		     OF_BUILD(major), OF_BUILD(rocm), OF_BUILD(abi), OF_BUILD(glibc), OF_BUILD(codes), OF_BUILD(codes_aarch64),
		     OF_BUILD(platforms));
	HOLD(kb->cuda, kb->n_cuda, OF_CUDA(cuda), OF_CUDA(major), OF_CUDA(driver), OF_CUDA(driver_windows), OF_CUDA(codes),
	     OF_CUDA(gcc_min), OF_CUDA(gcc_max), OF_CUDA(clang_min), OF_CUDA(clang_max), OF_CUDA(msvc_min),
	     OF_CUDA(msvc_below));
	HOLD(kb->archs, kb->n_archs, OF_ARCH(arch), OF_ARCH(family), OF_ARCH(codes), OF_ARCH(compile));
	HOLD(kb->lines, kb->n_lines, OF_LINE(line), OF_LINE(dtypes), OF_LINE(head_dim), OF_LINE(features), OF_LINE(switches));
	HOLD(kb->profiles, kb->n_profiles, OF_PROFILE(cxx));
	HOLD(kb->releases, kb->n_releases, OF_RELEASE(line), OF_RELEASE(version), OF_RELEASE(python), OF_RELEASE(torch),
	     OF_RELEASE(nvcc), OF_RELEASE(rocm), OF_RELEASE(ck), OF_RELEASE(head_dims), OF_RELEASE(backward),
	     OF_RELEASE(features), OF_RELEASE(reads));
}

enum { TEXTS_LEFT_MAX = 20000 };

void fa_kb_tidy(struct fa_kb *kb)
{
	if (kb->texts.n - kb->own_texts < TEXTS_LEFT_MAX)
		return;
	fa_texts_rewind(&kb->texts, kb->own_texts);
	fa_rule_memo_clear(kb->memo);
}

int fa_kb_make(struct fa_kb **out, struct fa_matrix *m, struct fa_err *err)
{
	static const struct {
		const char *table;
		void (*make)(struct fa_kb *, const struct fa_json *);
	} LOADS[] = {
		{ "torch", make_torch },
		{ "cuda", make_cuda },
		{ "archs", make_archs },
		{ "gpus", make_gpus },
		{ "lines", make_lines },
		{ "flash-attn", make_releases },
		{ "fa3", make_hopper_releases },
		{ "units", make_units },
		{ "units-fa3", make_hopper_units },
		{ "sources", make_sources },
		{ "wheels/official", make_official },
		{ "wheels/community", make_community },
		{ "wheels/pypi", make_pypi },
		{ "ids", make_ids },
		{ "settings", make_bad_settings },
	};
	struct fa_kb *kb = fa_calloc(1, sizeof(*kb));
	const struct fa_json *rules = fa_matrix_table(m, "rules", err);

	kb->memo = fa_rule_memo_new();
	if (!rules || make_rules(kb, rules, err) < 0 || fa_policy_load(kb, fa_matrix_policies(m), err) < 0)
		goto fail;
	for (size_t i = 0; i < sizeof(LOADS) / sizeof(LOADS[0]); i++)
		if (load(kb, m, LOADS[i].table, LOADS[i].make, err) < 0)
			goto fail;
	hold_once(kb);
	fa_kb_shelve(kb);
	for (size_t i = 0; i < kb->n_torch; i++)
		for (size_t b = 0; b < kb->torch[i].n_builds; b++)
			if (kb->torch[i].builds[b].cuda)
				kb->torch[i].builds[b].cuda_row = fa_kb_cuda(kb, kb->torch[i].builds[b].cuda);
	kb->settings = fa_matrix_recipe(m, "settings", err);
	if (!kb->settings || make_warnings(kb, err) < 0)
		goto fail;
	*out = kb;
	return 0;
fail:
	fa_kb_free(kb);
	return -1;
}

void fa_kb_free(struct fa_kb *kb)
{
	if (!kb)
		return;
	for (int on = 0; on < FA_ON_COUNT; on++) {
		for (size_t i = 0; i < kb->n_rules[on]; i++) {
			fa_rule_release(&kb->rules[on][i].when);
			fa_rule_release(&kb->rules[on][i].need);
		}
		free(kb->rules[on]);
	}
	for (size_t i = 0; i < kb->n_warnings; i++)
		fa_rule_release(&kb->warnings[i].when);
	free(kb->warnings);
	for (size_t i = 0; i < kb->n_torch; i++)
		free(kb->torch[i].builds);
	free(kb->torch);
	free(kb->cuda);
	free(kb->archs);
	free(kb->profiles);
	free(kb->releases);
	free(kb->sources);
	for (int buyer = 0; buyer < FA_BUYER_COUNT; buyer++)
		free(kb->offers[buyer]);
	fa_kb_clear_shelves(kb);
	free(kb->shelves);
	free(kb->racks);
	free(kb->files);
	free(kb->units);
	free(kb->lines);
	fa_strv_release(&kb->policies);
	fa_texts_release(&kb->texts);
	fa_rule_memo_free(kb->memo);
	free(kb);
}
