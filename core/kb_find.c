/* Looking things up in the knowledge, and wheels of sources that the user names. */
#include "buf.h"
#include "file.h"
#include "json.h"
#include "kb.h"
#include "policy.h"
#include "version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct fa_kb_arch *fa_kb_arch(const struct fa_kb *kb, const char *arch)
{
	for (size_t i = 0; arch && i < kb->n_archs; i++)
		if (!strcmp(kb->archs[i].arch, arch))
			return &kb->archs[i];
	return NULL;
}

const struct fa_kb_torch *fa_kb_torch(const struct fa_kb *kb, const char *version)
{
	for (size_t i = 0; i < kb->n_torch; i++)
		if (!fa_version_compare(kb->torch[i].version, version))
			return &kb->torch[i];
	return NULL;
}

/* ---- torch in order of preference */

static int by_preference(const void *a, const void *b)
{
	const struct fa_kb_offer *x = a, *y = b;
	int c = fa_version_compare(y->row->version, x->row->version);

	if (!c)
		c = (int)y->pypi - (int)x->pypi;
	if (!c)
		c = fa_version_compare(y->build->cuda ? y->build->cuda : "0", x->build->cuda ? x->build->cuda : "0");
	if (!c)
		c = fa_version_compare(y->build->rocm ? y->build->rocm : "0", x->build->rocm ? x->build->rocm : "0");
	return c ? c : strcmp(x->build->build, y->build->build);
}

static bool is_on_index(const struct fa_kb_build *b, enum fa_kb_buyer buyer)
{
	switch (buyer) {
	case FA_BUYER_LINUX: return b->pypi;
	case FA_BUYER_LINUX_AARCH64: return b->pypi_aarch64;
	default: return !strcmp(b->build, "cpu");
	}
}

const struct fa_kb_offer *fa_kb_offers(struct fa_kb *kb, enum fa_kb_buyer buyer)
{
	size_t n = 0;

	if (kb->offers[buyer])
		return kb->offers[buyer];
	for (size_t i = 0; i < kb->n_torch; i++)
		n += kb->torch[i].n_builds;
	kb->offers[buyer] = fa_calloc(n + 1, sizeof(**kb->offers));
	kb->n_offers = 0;
	for (size_t i = 0; i < kb->n_torch; i++)
		for (size_t b = 0; b < kb->torch[i].n_builds; b++)
			kb->offers[buyer][kb->n_offers++] = (struct fa_kb_offer){ &kb->torch[i], &kb->torch[i].builds[b],
				                                                  is_on_index(&kb->torch[i].builds[b], buyer) };
	qsort(kb->offers[buyer], n, sizeof(**kb->offers), by_preference);
	return kb->offers[buyer];
}

const struct fa_kb_cuda *fa_kb_cuda(const struct fa_kb *kb, const char *cuda)
{
	char *minor = fa_version_head(cuda, 2), *major = fa_version_head(cuda, 1);
	const struct fa_kb_cuda *best = NULL, *lowest = NULL;

	for (size_t i = 0; i < kb->n_cuda; i++) {
		if (strcmp(kb->cuda[i].major, major) != 0)
			continue;
		if (!best && fa_version_compare(kb->cuda[i].cuda, minor) <= 0)
			best = &kb->cuda[i];
		lowest = &kb->cuda[i];
	}
	free(minor);
	free(major);
	return best ? best : lowest;
}

const struct fa_kb_release *fa_kb_release(const struct fa_kb *kb, const char *line, const char *version)
{
	for (size_t i = 0; version && i < kb->n_releases; i++)
		if (!strcmp(kb->releases[i].line, line) && !strcmp(kb->releases[i].version, version))
			return &kb->releases[i];
	return NULL;
}

const struct fa_kb_line *fa_kb_line(const struct fa_kb *kb, const char *line)
{
	for (size_t i = 0; line && i < kb->n_lines; i++)
		if (!strcmp(kb->lines[i].line, line))
			return &kb->lines[i];
	return NULL;
}

const struct fa_json *fa_kb_id(const struct fa_kb *kb, const char *id)
{
	fa_json_each (row, kb->ids)
		if (fa_json_get_string(row, "id") && !strcmp(fa_json_get_string(row, "id"), id))
			return row;
	return NULL;
}

/* "NVIDIA GeForce RTX 4090" -> "nvidia geforce rtx 4090" */
static char *words_of(const char *name)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; *name; name++)
		fa_buf_addc(&b, isalnum((unsigned char)*name) ? (char)tolower((unsigned char)*name) : ' ');
	return fa_buf_detach(&b);
}

const char *fa_kb_arch_of_name(const struct fa_kb *kb, const char *gpu_name)
{
	char *words = words_of(gpu_name);
	const char *arch = NULL;

	fa_json_each (row, kb->gpus) {
		const char *tokens = fa_json_get_string(row, "tokens");

		if (tokens && *tokens && fa_words_has(words, tokens)) {
			arch = fa_json_get_string(row, "arch");
			break;
		}
	}
	free(words);
	return arch;
}

/* ---- shelves */

static bool equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static struct fa_kb_shelf *shelf_for(struct fa_kb *kb, const struct fa_kb_file *f)
{
	struct fa_kb_shelf *s;

	for (size_t i = kb->n_shelves; i-- > 0;) {
		s = &kb->shelves[i];
		if (s->source == f->source && equal(s->torch, f->torch) && equal(s->line, f->line))
			return s;
	}
	kb->shelves = fa_realloc(kb->shelves, kb->n_shelves + 1, sizeof(*kb->shelves));
	s = &kb->shelves[kb->n_shelves++];
	*s = (struct fa_kb_shelf){ .source = f->source, .line = f->line, .torch = f->torch };
	return s;
}

const struct fa_kb_rack *fa_kb_rack(const struct fa_kb *kb, const struct fa_kb_source *source, const char *line)
{
	for (size_t i = 0; i < kb->n_racks; i++)
		if (kb->racks[i].source == source && equal(kb->racks[i].line, line))
			return &kb->racks[i];
	return NULL;
}

static void rack(struct fa_kb *kb, size_t place)
{
	const struct fa_kb_shelf *s = &kb->shelves[place];
	struct fa_kb_rack *r = (struct fa_kb_rack *)fa_kb_rack(kb, s->source, s->line);

	if (!r) {
		kb->racks = fa_realloc(kb->racks, kb->n_racks + 1, sizeof(*kb->racks));
		r = &kb->racks[kb->n_racks++];
		*r = (struct fa_kb_rack){ .source = s->source, .line = s->line };
	}
	r->shelves = fa_realloc(r->shelves, r->n + 1, sizeof(*r->shelves));
	r->shelves[r->n++] = place;
}

static void name_subjects(struct fa_kb *kb)
{
	const struct fa_kb_file *before = NULL;

	for (size_t i = 0; i < kb->n_files; i++) {
		struct fa_kb_file *f = &kb->files[i];

		if (before && before->source == f->source && before->line == f->line && before->version == f->version)
			f->subject = before->subject;
		else
			f->subject = fa_texts_take(&kb->texts, fa_strf("%s %s %s", f->source->name, f->line, f->version));
		before = f;
	}
}

void fa_kb_clear_shelves(struct fa_kb *kb)
{
	for (size_t i = 0; i < kb->n_shelves; i++)
		free(kb->shelves[i].files);
	for (size_t i = 0; i < kb->n_racks; i++)
		free(kb->racks[i].shelves);
	kb->n_shelves = kb->n_racks = 0;
}

void fa_kb_shelve(struct fa_kb *kb)
{
	fa_kb_hold_files(kb);
	name_subjects(kb);
	kb->own_texts = kb->texts.n;
	fa_kb_clear_shelves(kb);
	for (size_t i = 0; i < kb->n_files; i++) {
		struct fa_kb_shelf *s = shelf_for(kb, &kb->files[i]);

		if ((s->n & (s->n - 1)) == 0)
			s->files = fa_realloc(s->files, s->n ? 2 * s->n : 1, sizeof(*s->files));
		s->files[s->n++] = i;
		kb->files[i].release = fa_kb_release(kb, kb->files[i].line, kb->files[i].version);
	}
	for (size_t i = 0; i < kb->n_shelves; i++)
		rack(kb, i);
}

/* ---- names and addresses of files */

struct filling {
	const char *name, *value;
};

static char *fill(const char *pattern, const struct filling *values)
{
	struct fa_buf b = FA_BUF_INIT;

	fa_buf_reserve(&b, 160);
	while (*pattern) {
		size_t plain = strcspn(pattern, "{"), n;

		fa_buf_add(&b, pattern, plain);
		pattern += plain;
		n = *pattern ? strcspn(pattern, "}") : 0;
		if (!*pattern || !pattern[n]) {
			fa_buf_adds(&b, pattern);
			break;
		}
		for (const struct filling *v = values; v->name; v++)
			if (*v->name == pattern[1] && !strncmp(v->name, pattern + 1, n - 1) && !v->name[n - 1] && v->value)
				fa_buf_adds(&b, v->value);
		pattern += n + 1;
	}
	return fa_buf_detach(&b);
}

/* Text in a small place: prefix, then those characters of text that are not a dot when `dots` is false; what is too long is cut. */
struct small {
	char text[64];
};

static struct small small(const char *prefix, const char *text, size_t len, bool dots)
{
	struct small s;
	size_t n = strlen(prefix);

	memcpy(s.text, prefix, n);
	for (size_t i = 0; i < len && n + 1 < sizeof(s.text); i++)
		if (dots || text[i] != '.')
			s.text[n++] = text[i];
	s.text[n] = '\0';
	return s;
}

char *fa_kb_file_name(const struct fa_kb *kb, const struct fa_kb_file *f, const char *tag)
{
	bool official = f->abi_word != NULL, stable = f->abi3 && f->python_min;
	bool nameless = !f->git || !*f->git;
	const char *from = stable ? f->python_min : tag;
	struct small python = small("cp", from, stable ? strlen(from) : strspn(from, "0123456789"), false);
	struct small abi = small("cp", tag, strlen(tag), true);
	struct small git = small(nameless ? "" : "git", f->git, nameless ? 0 : strlen(f->git), true);
	struct small cu = small("", f->cuda ? f->cuda : "", f->cuda ? strlen(f->cuda) : 0, false);
	const struct filling values[] = { { "package", f->package },
		                          { "version", f->version },
		                          { "cu", official ? f->cuda : cu.text },
		                          { "torch", f->torch },
		                          { "abi", official  ? f->abi_word
		                                   : f->abi3 ? "abi3"
		                                             : abi.text },
		                          { "python", python.text },
		                          { "machine", f->machine },
		                          { "git", git.text },
		                          { "platform", f->platform },
		                          { NULL, NULL } };

	if (f->name)
		return fa_strdup(f->name);
	return fill(official ? kb->official_name : kb->community_name, values);
}

char *fa_kb_file_url(const struct fa_kb *kb, const struct fa_kb_file *f, const char *name)
{
	struct fa_buf escaped = FA_BUF_INIT;
	char *url;

	if (f->url || f->name)
		return fa_strdup(f->url);
	for (const char *p = name; *p; p++)
		*p == '+' ? fa_buf_adds(&escaped, "%2B") : fa_buf_addc(&escaped, *p);
	const struct filling values[] = { { "tag", f->tag }, { "file", fa_buf_str(&escaped) }, { NULL, NULL } };

	url = fill(f->abi_word ? kb->official_url : kb->community_url, values);
	fa_buf_release(&escaped);
	return url;
}

/* ---- wheels of a source that was named */

/* Text between two marks, or up to the end when `to` is NULL; NULL when a mark is missing. */
static char *between(const char *text, const char *from, const char *to)
{
	const char *a = strstr(text, from), *z = a && to ? strstr(a + strlen(from), to) : NULL;

	if (!a || (to && !z))
		return NULL;
	a += strlen(from);
	return z ? fa_strndup(a, (size_t)(z - a)) : fa_strdup(a);
}

static const char *pool(struct fa_kb *kb, char *text)
{
	return fa_texts_take(&kb->texts, text);
}

/* "%2B" of addresses is "+". */
static char *unescape(const char *text)
{
	struct fa_buf b = FA_BUF_INIT;

	while (*text) {
		if (!strncasecmp(text, "%2b", 3)) {
			fa_buf_addc(&b, '+');
			text += 3;
		} else {
			fa_buf_addc(&b, *text++);
		}
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

static const char *glibc_of(struct fa_kb *kb, const char *platform)
{
	const char *p = strstr(platform, "manylinux_2_");

	if (p)
		return pool(kb, fa_strf("2.%d", atoi(p + strlen("manylinux_2_"))));
	if (strstr(platform, "manylinux2014"))
		return "2.17";
	return NULL; /* nothing is promised: the X-ray decides */
}

static const char *codes_of(const struct fa_kb *kb, const char *line, const char *version, const char *cuda)
{
	const struct fa_kb_release *r = fa_kb_release(kb, line, version);
	const char *codes = NULL;

	if (!strcmp(line, "fa3"))
		return "90";
	if (r && r->profile && cuda)
		fa_json_each (row, r->profile->gencode)
			if (fa_json_string(fa_json_at(row, 0)) &&
			    fa_version_compare(fa_json_string(fa_json_at(row, 0)), cuda) <= 0)
				codes = fa_json_string(fa_json_at(row, 1));
	return codes;
}

/* "cu128torch2.8cxx11abiTRUE" of the local label. */
static void read_label(struct fa_kb *kb, struct fa_kb_file *f, const char *label)
{
	const char *torch = strstr(label, "torch");
	size_t cu = !strncmp(label, "cu", 2) ? strspn(label + 2, "0123456789") : 0, n;

	if (cu >= 2) {
		f->major = pool(kb, fa_strndup(label + 2, 2));
		f->cuda = cu > 2 ? pool(kb, fa_strf("%.2s.%.*s", label + 2, (int)(cu - 2), label + 4)) : f->major;
	}
	if (torch) {
		n = strspn(torch + 5, "0123456789.");
		while (n && torch[5 + n - 1] == '.')
			n--;
		f->torch = pool(kb, fa_strndup(torch + 5, n));
		f->torch = pool(kb, fa_version_head(f->torch, 2));
	}
	if (strstr(label, "abiTRUE"))
		f->abi = "new";
	else if (strstr(label, "abiFALSE"))
		f->abi = f->torch && fa_version_compare(f->torch, "2.7") >= 0 ? NULL : "old";
}

static void read_tags(struct fa_kb *kb, struct fa_kb_file *f, char *const *part)
{
	const char *python = part[0], *abi = part[1], *platform = part[2];

	f->platform = pool(kb, fa_strdup(platform));
	if (!strcmp(abi, "abi3") || !strcmp(abi, "none")) {
		f->abi3 = !strcmp(abi, "abi3");
		f->python_min = strlen(python) > 3 && isdigit((unsigned char)python[3])
		                        ? pool(kb, fa_strf("%c.%s", python[2], python + 3))
		                        : "3.0";
	} else {
		f->pythons = pool(kb, fa_strdup(!strncmp(abi, "cp", 2) ? abi + 2 : abi));
	}
	f->os = strstr(platform, "linux")   ? "linux"
	        : strstr(platform, "win")   ? "windows"
	        : strstr(platform, "macos") ? "darwin"
	                                    : NULL;
	f->machine = strstr(platform, "aarch64") || strstr(platform, "arm64") ? "aarch64"
	             : !strcmp(platform, "any")                               ? "x86_64 aarch64"
	                                                                      : "x86_64";
	f->glibc = glibc_of(kb, platform);
}

/* NAME-VERSION(+LABEL)-PYTHON-ABI-PLATFORM.whl of one of our packages. */
static bool read_name(struct fa_kb *kb, struct fa_kb_file *f, const char *name)
{
	struct fa_strv part = FA_STRV_INIT;
	char *stem = between(name, "", ".whl"), *label;
	bool ok = false;

	fa_strv_split(&part, stem ? stem : "", "-");
	if (part.n >= 5) {
		const char *package = part.v[0];

		f->line = !strcmp(package, "flash_attn")     ? "fa2"
		          : !strcmp(package, "flash_attn_3") ? "fa3"
		          : !strcmp(package, "flash_attn_4") ? "fa4"
		                                             : NULL;
		label = between(part.v[1], "+", NULL);
		f->package = pool(kb, fa_strdup(package));
		f->version = pool(kb, fa_version_public(part.v[1]));
		if (label)
			read_label(kb, f, label);
		read_tags(kb, f, part.v + part.n - 3);
		f->codes = f->line ? codes_of(kb, f->line, f->version, f->cuda) : NULL;
		ok = f->line && fa_version_valid(f->version);
		free(label);
	}
	free(stem);
	fa_strv_release(&part);
	return ok;
}

static bool is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* The same file by name in a source that we know: what is known of it holds for a copy. NULL: there is none. */
static const struct fa_kb_file *known_file(const struct fa_kb *kb, const struct fa_kb_file *f, const char *name)
{
	for (size_t i = 0; i < kb->n_files; i++) {
		const struct fa_kb_file *k = &kb->files[i];
		bool candidate =
		        k->release && equal(k->line, f->line) && equal(k->version, f->version) && equal(k->torch, f->torch);
		char *theirs = candidate ? fa_kb_file_name(kb, k, f->pythons ? f->pythons : "3") : NULL;
		bool same = theirs && !strcmp(theirs, name);

		free(theirs);
		if (same)
			return k;
	}
	return NULL;
}

static void copy_known(struct fa_kb *kb, struct fa_kb_file *f, const struct fa_kb_file *k)
{
	f->abi = k->abi;
	f->glibc = k->glibc;
	f->codes = k->codes;
	f->driver = k->driver;
	f->nightly = k->nightly;
	f->backward = k->backward;
	f->dtypes = k->dtypes;
	f->features = k->features;
	f->torch_min = k->torch_min;
	f->sha256 = f->sha256 ? f->sha256 : k->sha256;
	f->bytes = f->bytes >= 0 ? f->bytes : k->bytes;
	f->canonical = pool(kb, fa_kb_file_url(kb, k, f->name));
	f->copy_of = f->canonical ? k->source : NULL;
}

static bool add_file(struct fa_kb *kb, const struct fa_kb_source *source, const char *base, const struct fa_strv *words)
{
	struct fa_kb_file f = { .source = source, .bytes = -1, .backward = true, .dtypes = "fp16 bf16" };
	const char *where = words->v[0], *hash = words->n > 1 ? words->v[1] : NULL;
	char *name = unescape(fa_path_base(where));
	const struct fa_kb_file *known;

	if (!read_name(kb, &f, name)) {
		free(name);
		return false;
	}
	f.name = pool(kb, name);
	f.url = pool(kb, strstr(where, "://") ? fa_strdup(where) : fa_path_join(base ? base : "", where));
	f.sha256 = hash && is_hash(hash) ? pool(kb, fa_strdup(hash)) : NULL;
	f.bytes = words->n > 2 ? strtoll(words->v[2], NULL, 10) : -1;
	known = known_file(kb, &f, f.name);
	if (known)
		copy_known(kb, &f, known);
	if ((kb->n_files & (kb->n_files - 1)) == 0)
		kb->files = fa_realloc(kb->files, kb->n_files ? 2 * kb->n_files : 1, sizeof(*kb->files));
	kb->files[kb->n_files++] = f;
	return true;
}

int fa_kb_add_listing(struct fa_kb *kb, const char *name, const char *base, const char *listing)
{
	struct fa_strv lines = FA_STRV_INIT;
	struct fa_kb_source *source;
	int taken = 0;

	if (kb->n_sources >= 64) /* SOURCES_MAX of kb.c */
		return 0;
	source = &kb->sources[kb->n_sources++];
	*source = (struct fa_kb_source){ .name = pool(kb, fa_strdup(name)),
		                         .word = pool(kb, fa_policy_word(base && !strstr(name, "://") ? base : name)),
		                         .text = "a source that was named",
		                         .trust = "named" };
	fa_strv_split(&lines, listing, "\r\n");
	for (size_t i = 0; i < lines.n; i++) {
		struct fa_strv words = FA_STRV_INIT;

		fa_strv_split(&words, lines.v[i], " \t");
		if (words.n && add_file(kb, source, base, &words))
			taken++;
		fa_strv_release(&words);
	}
	fa_strv_release(&lines);
	fa_kb_shelve(kb);
	return taken;
}
