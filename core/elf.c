#include "elf.h"

#include "buf.h"
#include "file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct fa_elf {
	const unsigned char *data;
	size_t size;
	bool mapped;
	char *path;
	Elf64_Ehdr head;
	uint64_t phnum, shnum;
	uint64_t dynamic, n_dynamic; /* file offset, entries */
	uint64_t strings, strings_size;
	uint64_t symbols, n_symbols;
	uint64_t hash; /* DT_GNU_HASH; 0: none */
	bool has_table;
	uint64_t versym; /* 0: none */
	uint64_t verneed, n_verneed;
	uint64_t verdef, n_verdef;
};

/* Everything is read through here: unaligned, out of bounds and lying offsets end as false. */
static bool get(const struct fa_elf *e, uint64_t offset, void *out, size_t len)
{
	if (offset > e->size || len > e->size - offset)
		return false;
	memcpy(out, e->data + offset, len);
	return true;
}

static bool inside(const struct fa_elf *e, uint64_t offset, uint64_t len)
{
	return offset <= e->size && len <= e->size - offset;
}

/* A string of the dynamic string table, NULL when it is not inside or does not end there. */
static const char *string(const struct fa_elf *e, uint64_t index)
{
	const char *s;

	if (index >= e->strings_size)
		return NULL;
	s = (const char *)e->data + e->strings + index;
	return memchr(s, '\0', e->strings_size - index) ? s : NULL;
}

static int cut_short(const struct fa_elf *e, const char *what, uint64_t end, struct fa_err *err)
{
	fa_err_set(err, FA_USAGE, "%s: cut short or damaged: %s should end at byte %llu, the file has %zu", e->path, what,
	           (unsigned long long)end, e->size);
	return fa_err_next(err, "fetch or build the file again");
}

static int read_head(struct fa_elf *e, struct fa_err *err)
{
	Elf64_Shdr first;

	if (!get(e, 0, &e->head, sizeof(e->head)) || memcmp(e->head.e_ident, ELFMAG, SELFMAG))
		return fa_err_set(err, FA_USAGE, "%s: not an ELF file", e->path);
	if (e->head.e_ident[EI_CLASS] != ELFCLASS64 || e->head.e_ident[EI_DATA] != ELFDATA2LSB)
		return fa_err_set(err, FA_USAGE, "%s: not a 64-bit little-endian ELF file", e->path);
	e->phnum = e->head.e_phnum;
	e->shnum = e->head.e_shoff ? e->head.e_shnum : 0;
	if (e->phnum && e->head.e_phentsize != sizeof(Elf64_Phdr))
		return fa_err_set(err, FA_USAGE, "%s: damaged: program headers of %u bytes", e->path, e->head.e_phentsize);
	if (!inside(e, e->head.e_phoff, e->phnum * sizeof(Elf64_Phdr)))
		return cut_short(e, "the program header table", e->head.e_phoff + e->phnum * sizeof(Elf64_Phdr), err);
	if (e->head.e_shoff && !e->shnum && get(e, e->head.e_shoff, &first, sizeof(first)))
		e->shnum = first.sh_size; /* more than 65,279 sections */
	if (e->shnum > e->size / sizeof(Elf64_Shdr) || !inside(e, e->head.e_shoff, e->shnum * sizeof(Elf64_Shdr)))
		return cut_short(e, "the section table", e->head.e_shoff + e->shnum * sizeof(Elf64_Shdr), err);
	if (e->shnum && e->head.e_shentsize != sizeof(Elf64_Shdr))
		return fa_err_set(err, FA_USAGE, "%s: damaged: section headers of %u bytes", e->path, e->head.e_shentsize);
	return 0;
}

static Elf64_Phdr segment(const struct fa_elf *e, uint64_t i)
{
	Elf64_Phdr p;

	memcpy(&p, e->data + e->head.e_phoff + i * sizeof(p), sizeof(p));
	return p;
}

static int read_segments(struct fa_elf *e, struct fa_err *err)
{
	for (uint64_t i = 0; i < e->phnum; i++) {
		Elf64_Phdr p = segment(e, i);

		if (p.p_type != PT_LOAD && p.p_type != PT_DYNAMIC)
			continue;
		if (!inside(e, p.p_offset, p.p_filesz))
			return cut_short(e, p.p_type == PT_LOAD ? "a segment" : "the dynamic segment", p.p_offset + p.p_filesz,
			                 err);
		if (p.p_type == PT_DYNAMIC) {
			e->dynamic = p.p_offset;
			e->n_dynamic = p.p_filesz / sizeof(Elf64_Dyn);
		}
	}
	return 0;
}

static bool file_offset(const struct fa_elf *e, uint64_t address, uint64_t *out)
{
	for (uint64_t i = 0; i < e->phnum; i++) {
		Elf64_Phdr p = segment(e, i);

		if (p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz) {
			*out = p.p_offset + (address - p.p_vaddr);
			return true;
		}
	}
	return false;
}

/* The entry of the dynamic segment, false at its end. */
static bool dynamic(const struct fa_elf *e, uint64_t i, Elf64_Dyn *d)
{
	return i < e->n_dynamic && get(e, e->dynamic + i * sizeof(*d), d, sizeof(*d)) && d->d_tag != DT_NULL;
}

/* Tables that lie outside the file are an error; tables that are not there stay 0. */
static int read_dynamic(struct fa_elf *e, struct fa_err *err)
{
	Elf64_Dyn d;

	for (uint64_t i = 0; dynamic(e, i, &d); i++) {
		uint64_t *to = NULL;

		switch (d.d_tag) {
		case DT_STRTAB: to = &e->strings; break;
		case DT_SYMTAB: to = &e->symbols; break;
		case DT_GNU_HASH: to = &e->hash; break;
		case DT_VERSYM: to = &e->versym; break;
		case DT_VERNEED: to = &e->verneed; break;
		case DT_VERDEF: to = &e->verdef; break;
		case DT_STRSZ: e->strings_size = d.d_un.d_val; break;
		case DT_VERNEEDNUM: e->n_verneed = d.d_un.d_val; break;
		case DT_VERDEFNUM: e->n_verdef = d.d_un.d_val; break;
		}
		if (to && !file_offset(e, d.d_un.d_ptr, to))
			return fa_err_set(err, FA_USAGE, "%s: damaged: dynamic entry %lld points outside the file", e->path,
			                  (long long)d.d_tag);
	}
	if (!inside(e, e->strings, e->strings_size))
		return cut_short(e, "the dynamic string table", e->strings + e->strings_size, err);
	return 0;
}

static Elf64_Shdr section(const struct fa_elf *e, uint64_t i)
{
	Elf64_Shdr s;

	memcpy(&s, e->data + e->head.e_shoff + i * sizeof(s), sizeof(s));
	return s;
}

static int read_sections(struct fa_elf *e, struct fa_err *err)
{
	for (uint64_t i = 0; i < e->shnum; i++) {
		Elf64_Shdr s = section(e, i);

		if (s.sh_type == SHT_NULL || s.sh_type == SHT_NOBITS)
			continue;
		if (!inside(e, s.sh_offset, s.sh_size))
			return cut_short(e, "a section", s.sh_offset + s.sh_size, err);
		if (s.sh_type == SHT_DYNSYM && s.sh_offset == e->symbols)
			e->n_symbols = s.sh_size / sizeof(Elf64_Sym);
	}
	return 0;
}

struct hash_table { /* DT_GNU_HASH, file offsets */
	uint32_t n_buckets, first, n_bloom, shift;
	uint64_t bloom, buckets, chains;
};

static bool hash_table(const struct fa_elf *e, struct hash_table *t)
{
	uint32_t head[4];

	if (!e->hash || !get(e, e->hash, head, sizeof(head)))
		return false;
	t->n_buckets = head[0];
	t->first = head[1];
	t->n_bloom = head[2];
	t->shift = head[3];
	t->bloom = e->hash + sizeof(head);
	t->buckets = t->bloom + (uint64_t)t->n_bloom * 8;
	t->chains = t->buckets + (uint64_t)t->n_buckets * 4;
	return t->n_buckets && t->n_bloom && t->shift < 64 && inside(e, t->bloom, t->chains - t->bloom);
}

/* Without section headers the number of symbols follows from the hash table: the end of its last chain. */
static uint64_t count_symbols(const struct fa_elf *e)
{
	struct hash_table t;
	uint32_t last = 0, bucket, link;

	if (!hash_table(e, &t))
		return 0;
	for (uint32_t i = 0; i < t.n_buckets; i++)
		if (get(e, t.buckets + 4ULL * i, &bucket, 4) && bucket > last)
			last = bucket;
	if (last < t.first)
		return t.first;
	while (get(e, t.chains + 4ULL * (last - t.first), &link, 4) && !(link & 1))
		last++;
	return (uint64_t)last + 1;
}

static int read_all(struct fa_elf *e, struct fa_err *err)
{
	if (read_head(e, err) < 0 || read_segments(e, err) < 0 || read_dynamic(e, err) < 0 || read_sections(e, err) < 0)
		return -1;
	if (e->symbols && !e->n_symbols)
		e->n_symbols = count_symbols(e);
	if (e->symbols &&
	    (e->n_symbols > e->size / sizeof(Elf64_Sym) || !inside(e, e->symbols, e->n_symbols * sizeof(Elf64_Sym))))
		return cut_short(e, "the symbol table", e->symbols + e->n_symbols * sizeof(Elf64_Sym), err);
	return 0;
}

int fa_elf_open_memory(struct fa_elf **out, const void *data, size_t size, const char *name, struct fa_err *err)
{
	struct fa_elf *e = fa_calloc(1, sizeof(*e));

	e->data = data;
	e->size = size;
	e->path = fa_strdup(name);
	if (read_all(e, err) < 0) {
		fa_elf_close(e);
		return -1;
	}
	*out = e;
	return 0;
}

int fa_elf_open(struct fa_elf **out, const char *path, struct fa_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *data = MAP_FAILED;
	struct stat st;
	int rc = -1;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		goto done;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		fa_err_set(err, FA_USAGE, "%s: not an ELF file", path);
		goto done;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) {
		fa_err_set(err, FA_MACHINE, "%s: cannot be mapped: %s", path, strerror(errno));
		goto done;
	}
	rc = fa_elf_open_memory(out, data, (size_t)st.st_size, path, err);
	if (rc == 0)
		(*out)->mapped = true;
	else
		munmap(data, (size_t)st.st_size);
done:
	if (fd >= 0)
		close(fd);
	return rc;
}

void fa_elf_close(struct fa_elf *e)
{
	if (!e)
		return;
	if (e->mapped)
		munmap((void *)(uintptr_t)e->data, e->size);
	free(e->path);
	free(e);
}

const char *fa_elf_path(const struct fa_elf *e)
{
	return e->path;
}

int fa_elf_machine(const struct fa_elf *e)
{
	return e->head.e_machine;
}

void fa_elf_needed(const struct fa_elf *e, struct fa_strv *out)
{
	Elf64_Dyn d;

	for (uint64_t i = 0; dynamic(e, i, &d); i++) {
		const char *name = d.d_tag == DT_NEEDED ? string(e, d.d_un.d_val) : NULL;

		if (name)
			fa_strv_push(out, name);
	}
}

/* $ORIGIN and ${ORIGIN} stand for the folder of the file itself. */
static void push_path(struct fa_strv *out, const char *piece, const char *origin)
{
	static const char *const names[] = { "$ORIGIN", "${ORIGIN}" };

	for (size_t i = 0; i < 2; i++) {
		const char *at = strstr(piece, names[i]);

		if (at) {
			fa_strv_pushf(out, "%.*s%s%s", (int)(at - piece), piece, origin, at + strlen(names[i]));
			return;
		}
	}
	fa_strv_push(out, piece);
}

void fa_elf_runpath(const struct fa_elf *e, struct fa_strv *out)
{
	char *origin = fa_path_dir(e->path);
	Elf64_Dyn d;

	for (uint64_t i = 0; dynamic(e, i, &d); i++) {
		struct fa_strv pieces = FA_STRV_INIT;
		const char *text = d.d_tag == DT_RPATH || d.d_tag == DT_RUNPATH ? string(e, d.d_un.d_val) : NULL;

		if (text)
			fa_strv_split(&pieces, text, ":");
		for (size_t k = 0; k < pieces.n; k++)
			push_path(out, pieces.v[k], origin);
		fa_strv_release(&pieces);
	}
	free(origin);
}

const char *fa_elf_soname(const struct fa_elf *e)
{
	Elf64_Dyn d;

	for (uint64_t i = 0; dynamic(e, i, &d); i++)
		if (d.d_tag == DT_SONAME)
			return string(e, d.d_un.d_val);
	return NULL;
}

/* Calls fn for every version needed; stops when it returns true. The list is walked forwards only, so it ends. */
static void each_verneed(const struct fa_elf *e, bool (*fn)(void *ctx, const char *file, const Elf64_Vernaux *aux), void *ctx)
{
	uint64_t at = e->verneed;
	Elf64_Verneed need;

	for (uint64_t i = 0; e->verneed && i < e->n_verneed && get(e, at, &need, sizeof(need)); i++) {
		const char *file = string(e, need.vn_file);
		uint64_t aux_at = at + need.vn_aux;
		Elf64_Vernaux aux;

		for (unsigned k = 0; k < need.vn_cnt && get(e, aux_at, &aux, sizeof(aux)); k++) {
			if (file && fn(ctx, file, &aux))
				return;
			if (!aux.vna_next)
				break;
			aux_at += aux.vna_next;
		}
		if (!need.vn_next)
			break;
		at += need.vn_next;
	}
}

struct name_by_index {
	const struct fa_elf *e;
	unsigned index;
	const char *name;
};

static bool match_index(void *ctx, const char *file, const Elf64_Vernaux *aux)
{
	struct name_by_index *n = ctx;

	(void)file;
	if (aux->vna_other != n->index)
		return false;
	n->name = string(n->e, aux->vna_name);
	return true;
}

static const char *symbol_version(const struct fa_elf *e, uint64_t i)
{
	struct name_by_index n = { e, 0, NULL };
	uint16_t index;

	if (!e->versym || !get(e, e->versym + 2 * i, &index, sizeof(index)) || (index & 0x7fff) < 2)
		return NULL;
	n.index = index & 0x7fff;
	each_verneed(e, match_index, &n);
	return n.name;
}

static Elf64_Sym symbol(const struct fa_elf *e, uint64_t i)
{
	Elf64_Sym s;

	memcpy(&s, e->data + e->symbols + i * sizeof(s), sizeof(s));
	return s;
}

void fa_elf_undefined(const struct fa_elf *e, struct fa_strv *out)
{
	for (uint64_t i = 1; i < e->n_symbols; i++) {
		Elf64_Sym s = symbol(e, i);
		unsigned bind = ELF64_ST_BIND(s.st_info);
		const char *name, *version;

		if (s.st_shndx != SHN_UNDEF || (bind != STB_GLOBAL && bind != STB_GNU_UNIQUE))
			continue;
		name = string(e, s.st_name);
		if (!name || !*name)
			continue;
		version = symbol_version(e, i);
		fa_strv_pushf(out, "%s%s%s", name, version ? "@" : "", version ? version : "");
	}
}

static bool is_definition(const struct fa_elf *e, uint64_t i, const char *name)
{
	Elf64_Sym s;
	const char *found;

	if (i >= e->n_symbols)
		return false;
	s = symbol(e, i);
	if (s.st_shndx == SHN_UNDEF || ELF64_ST_BIND(s.st_info) == STB_LOCAL)
		return false;
	found = string(e, s.st_name);
	return found && !strcmp(found, name);
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static bool defines_by_hash(const struct fa_elf *e, const struct hash_table *t, const char *name)
{
	uint32_t h = gnu_hash(name), i, link;
	uint64_t word = 0;

	get(e, t->bloom + 8ULL * (h / 64 % t->n_bloom), &word, sizeof(word));
	if (!((word >> (h % 64)) & (t->shift < 32 ? word >> ((h >> t->shift) % 64) : word) & 1))
		return false;
	if (!get(e, t->buckets + 4ULL * (h % t->n_buckets), &i, 4) || i < t->first)
		return false;
	for (; get(e, t->chains + 4ULL * (i - t->first), &link, 4); i++) {
		if ((link | 1) == (h | 1) && is_definition(e, i, name))
			return true;
		if (link & 1)
			return false;
	}
	return false;
}

bool fa_elf_defines(const struct fa_elf *e, const char *name)
{
	struct hash_table t;

	if (hash_table(e, &t))
		return defines_by_hash(e, &t, name);
	for (uint64_t i = 1; i < e->n_symbols; i++)
		if (is_definition(e, i, name))
			return true;
	return false;
}

struct versions {
	const struct fa_elf *e;
	struct fa_strv *out;
};

static bool push_version(void *ctx, const char *file, const Elf64_Vernaux *aux)
{
	struct versions *v = ctx;
	const char *name = string(v->e, aux->vna_name);

	if (name && !(aux->vna_flags & VER_FLG_WEAK))
		fa_strv_pushf(v->out, "%s:%s", file, name);
	return false;
}

void fa_elf_versions_needed(const struct fa_elf *e, struct fa_strv *out)
{
	struct versions v = { e, out };

	each_verneed(e, push_version, &v);
}

bool fa_elf_defines_version(const struct fa_elf *e, const char *version)
{
	uint64_t at = e->verdef;
	Elf64_Verdef def;
	Elf64_Verdaux aux;

	if (!e->verdef || !e->n_verdef)
		return true;
	for (uint64_t i = 0; i < e->n_verdef && get(e, at, &def, sizeof(def)); i++) {
		const char *name = get(e, at + def.vd_aux, &aux, sizeof(aux)) ? string(e, aux.vda_name) : NULL;

		if (name && !strcmp(name, version))
			return true;
		if (!def.vd_next)
			break;
		at += def.vd_next;
	}
	return false;
}

/* ---- GPU code */

struct gpu_list {
	struct fa_elf_gpu *v;
	size_t n;
};

/* 80 < 90 < 90a < 100, then gfx…, then ptx80 < ptx90. */
static int compare_arch(const void *a, const void *b)
{
	const char *x = ((const struct fa_elf_gpu *)a)->arch, *y = ((const struct fa_elf_gpu *)b)->arch;
	size_t px = strcspn(x, "0123456789"), py = strcspn(y, "0123456789");
	long nx = strtol(x + px, NULL, 10), ny = strtol(y + py, NULL, 10);

	if (px != py || strncmp(x, y, px))
		return strcmp(px ? x : "", py ? y : "");
	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x, y);
}

static void count_arch(struct gpu_list *l, const char *arch)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!strcmp(l->v[i].arch, arch)) {
			l->v[i].count++;
			return;
		}
	}
	l->v = fa_realloc(l->v, l->n + 1, sizeof(*l->v));
	l->v[l->n] = (struct fa_elf_gpu){ .count = 1 };
	strncpy(l->v[l->n].arch, arch, sizeof(l->v[l->n].arch) - 1);
	l->n++;
}

/* NVIDIA's container: 16 bytes of head (magic, u16 version, u16 head size, u64 size), then entries with heads of their own. */
enum { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_ARCH_SPECIFIC = 0x100000, FATBIN_FAMILY = 0x200000 };

static const uint32_t fatbin_magic = 0xBA55ED50;

struct fatbin_head {
	uint32_t magic;
	uint16_t version, head_size;
	uint64_t size; /* after the head */
};

struct fatbin_entry {
	uint16_t kind, unused;
	uint32_t head_size;
	uint64_t payload; /* with its padding */
	uint32_t compressed_size, unknown;
	uint16_t minor, major;
	uint32_t arch, name, name_len;
	uint64_t flags;
};

static void count_entry(struct gpu_list *l, const struct fatbin_entry *entry)
{
	char *arch;

	if (entry->kind != FATBIN_PTX && entry->kind != FATBIN_ELF)
		return;
	arch = fa_strf("%s%u%s", entry->kind == FATBIN_PTX ? "ptx" : "", entry->arch,
	               entry->flags & FATBIN_ARCH_SPECIFIC ? "a"
	               : entry->flags & FATBIN_FAMILY      ? "f"
	                                                   : "");
	count_arch(l, arch);
	free(arch);
}

/* Entries between at and stop; every step goes forwards by at least the entry's head. */
static void read_container(const struct fa_elf *e, struct gpu_list *l, uint64_t at, uint64_t stop)
{
	struct fatbin_entry entry;

	while (at < stop && stop - at >= sizeof(entry) && get(e, at, &entry, sizeof(entry))) {
		if (entry.head_size < sizeof(entry))
			return;
		count_entry(l, &entry);
		if (entry.payload > stop - at || entry.head_size > stop - at - entry.payload)
			return;
		at += entry.head_size + entry.payload;
	}
}

static void read_fatbin(const struct fa_elf *e, struct gpu_list *l, const Elf64_Shdr *s)
{
	uint64_t at = s->sh_offset, end = s->sh_offset + s->sh_size;
	struct fatbin_head head;

	while (at < end && end - at >= sizeof(head) && get(e, at, &head, sizeof(head))) {
		uint64_t rest = end - at;

		if (head.magic != fatbin_magic || head.head_size < sizeof(head) || head.size > rest ||
		    head.head_size > rest - head.size) {
			at += 8; /* padding between two containers */
			continue;
		}
		read_container(e, l, at + head.head_size, at + head.head_size + head.size);
		at += head.head_size + head.size;
	}
}

/* clang's offload bundle: magic, u64 count, then u64 offset, u64 size, u64 length of the name, the name
 * ("hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+"). Bundles start on page boundaries, one for each translation unit. */
static const char hip_magic[] = "__CLANG_OFFLOAD_BUNDLE__";

static void count_hip_entry(struct gpu_list *l, const char *id, size_t len)
{
	const char *features = memchr(id, ':', len);
	char name[24];
	size_t from;

	if (features)
		len = (size_t)(features - id);
	from = len;
	while (from && id[from - 1] != '-')
		from--;
	if (len < 3 || strncmp(id, "hip", 3) || len - from < 4 || strncmp(id + from, "gfx", 3))
		return; /* the host's entry */
	len = len - from < sizeof(name) ? len - from : sizeof(name) - 1;
	memcpy(name, id + from, len);
	name[len] = '\0';
	count_arch(l, name);
}

static void read_hip_bundle(const struct fa_elf *e, struct gpu_list *l, uint64_t at, uint64_t end)
{
	uint64_t n, head[3];

	at += sizeof(hip_magic) - 1;
	if (!get(e, at, &n, sizeof(n)))
		return;
	at += sizeof(n);
	for (uint64_t i = 0; i < n && at < end && get(e, at, head, sizeof(head)); i++) {
		at += sizeof(head);
		if (head[2] > 256 || !inside(e, at, head[2]))
			return;
		count_hip_entry(l, (const char *)e->data + at, head[2]);
		at += head[2];
	}
}

static void read_hip(const struct fa_elf *e, struct gpu_list *l, const Elf64_Shdr *s)
{
	const unsigned char *from = e->data + s->sh_offset, *end = from + s->sh_size;
	const unsigned char *p = from;

	if (s->sh_size >= 4 && !memcmp(from, "CCOB", 4)) {
		count_arch(l, "gfx?");
		return;
	}
	while ((p = memmem(p, (size_t)(end - p), hip_magic, sizeof(hip_magic) - 1))) {
		read_hip_bundle(e, l, (uint64_t)(p - e->data), s->sh_offset + s->sh_size);
		p += sizeof(hip_magic) - 1;
	}
}

static bool section_named(const struct fa_elf *e, const Elf64_Shdr *names, const Elf64_Shdr *s, const char *name)
{
	size_t len = strlen(name) + 1;

	return s->sh_name < names->sh_size && names->sh_size - s->sh_name >= len &&
	       !memcmp(e->data + names->sh_offset + s->sh_name, name, len);
}

size_t fa_elf_gpu_code(const struct fa_elf *e, struct fa_elf_gpu **out)
{
	struct gpu_list l = { NULL, 0 };
	uint64_t index = e->head.e_shstrndx;
	Elf64_Shdr names;

	*out = NULL;
	if (!e->shnum)
		return 0;
	if (index == SHN_XINDEX)
		index = section(e, 0).sh_link;
	if (index >= e->shnum)
		return 0;
	names = section(e, index);
	if (names.sh_type != SHT_STRTAB)
		return 0;
	for (uint64_t i = 0; i < e->shnum; i++) {
		Elf64_Shdr s = section(e, i);

		if (s.sh_type == SHT_NULL || s.sh_type == SHT_NOBITS)
			continue;
		if (section_named(e, &names, &s, ".nv_fatbin") || section_named(e, &names, &s, "__nv_relfatbin"))
			read_fatbin(e, &l, &s);
		else if (section_named(e, &names, &s, ".hip_fatbin"))
			read_hip(e, &l, &s);
	}
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), compare_arch);
	*out = l.v;
	return l.n;
}

void fa_elf_gpu_archs(const struct fa_elf *e, struct fa_strv *out)
{
	struct fa_elf_gpu *v;
	size_t n = fa_elf_gpu_code(e, &v);

	for (size_t i = 0; i < n; i++)
		fa_strv_push(out, v[i].arch);
	free(v);
}
