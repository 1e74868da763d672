#include "lock.h"

#include "buf.h"
#include "lock_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char preamble[] = "# Made by fainstall; pip and uv install it unaided, from any folder:\n"
                               "#     pip install --require-hashes -r requirements.lock\n";

/* ---- packages */

char *fa_lock_normal_name(const char *name)
{
	struct fa_buf b = FA_BUF_INIT;
	bool dash = false;

	for (const char *p = name; *p; p++) {
		if (*p == '-' || *p == '_' || *p == '.') {
			dash = true;
			continue;
		}
		if (dash)
			fa_buf_addc(&b, '-');
		dash = false;
		fa_buf_addc(&b, (char)tolower((unsigned char)*p));
	}
	fa_buf_adds(&b, "");
	return fa_buf_detach(&b);
}

/* Where `name` (normal) is, or would be put. */
static size_t place_of(const struct fa_lock *l, const char *name, bool *there)
{
	size_t i = 0;
	int order = -1;

	while (i < l->n_packages && (order = strcmp(l->packages[i].name, name)) < 0)
		i++;
	*there = i < l->n_packages && order == 0;
	return i;
}

static void release_package(struct fa_lock_package *p)
{
	free(p->name);
	free(p->version);
	free(p->url);
	fa_strv_release(&p->hashes);
	memset(p, 0, sizeof(*p));
}

struct fa_lock_package *fa_lock_add_package(struct fa_lock *l, const char *name, const char *version)
{
	char *normal = fa_lock_normal_name(name);
	bool there;
	size_t i = place_of(l, normal, &there);
	struct fa_lock_package *p;

	if (there) {
		release_package(&l->packages[i]);
	} else {
		l->packages = fa_realloc(l->packages, l->n_packages + 1, sizeof(*l->packages));
		memmove(&l->packages[i + 1], &l->packages[i], (l->n_packages - i) * sizeof(*l->packages));
		l->n_packages++;
	}
	p = &l->packages[i];
	*p = (struct fa_lock_package){ .name = normal, .version = fa_strdup(version) };
	return p;
}

struct fa_lock_package *fa_lock_package(const struct fa_lock *l, const char *name)
{
	char *normal = fa_lock_normal_name(name);
	bool there;
	size_t i = place_of(l, normal, &there);

	free(normal);
	return there ? &l->packages[i] : NULL;
}

void fa_lock_copy_package(struct fa_lock *l, const struct fa_lock_package *from)
{
	struct fa_lock_package *p = fa_lock_add_package(l, from->name, from->version);

	p->url = fa_strdup(from->url);
	fa_strv_append(&p->hashes, &from->hashes);
	p->built = from->built;
}

void fa_lock_drop_package(struct fa_lock *l, const char *name)
{
	char *normal = fa_lock_normal_name(name);
	bool there;
	size_t i = place_of(l, normal, &there);

	free(normal);
	if (!there)
		return;
	release_package(&l->packages[i]);
	l->n_packages--;
	memmove(&l->packages[i], &l->packages[i + 1], (l->n_packages - i) * sizeof(*l->packages));
}

/* ---- entries */

static struct fa_lock_entry *entry_at(struct fa_lock *l, const char *key)
{
	size_t i = 0;
	int order = -1;

	while (i < l->n_entries && (order = strcmp(l->entries[i].key, key)) < 0)
		i++;
	if (i < l->n_entries && order == 0)
		return &l->entries[i];
	l->entries = fa_realloc(l->entries, l->n_entries + 1, sizeof(*l->entries));
	memmove(&l->entries[i + 1], &l->entries[i], (l->n_entries - i) * sizeof(*l->entries));
	l->n_entries++;
	l->entries[i] = (struct fa_lock_entry){ .key = fa_strdup(key) };
	return &l->entries[i];
}

/* A value is one line: what would end it becomes a blank. */
static void one_line(char *text)
{
	size_t len = strlen(text);

	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	while (len && text[len - 1] == ' ')
		text[--len] = '\0';
}

void fa_lock_set(struct fa_lock *l, const char *key, const char *fmt, ...)
{
	struct fa_lock_entry *e = entry_at(l, key);
	struct fa_buf b = FA_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	fa_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	fa_buf_adds(&b, "");
	free(e->value);
	e->value = fa_buf_detach(&b);
	one_line(e->value);
}

const char *fa_lock_get(const struct fa_lock *l, const char *key)
{
	for (size_t i = 0; i < l->n_entries; i++)
		if (!strcmp(l->entries[i].key, key))
			return l->entries[i].value;
	return NULL;
}

/* ---- text */

static void print_entry(struct fa_buf *out, const char *key, const char *value)
{
	fa_buf_addf(out, "%s%s = %s\n", FA_LOCK_COMMENT, key, value);
}

static void print_package(struct fa_buf *out, const struct fa_lock_package *p)
{
	struct fa_strv hashes = FA_STRV_INIT;

	if (p->url)
		fa_buf_addf(out, "%s @ %s", p->name, p->url);
	else
		fa_buf_addf(out, "%s==%s", p->name, p->version);
	fa_strv_append(&hashes, &p->hashes);
	fa_strv_sort(&hashes);
	for (size_t i = 0; i < hashes.n; i++)
		fa_buf_addf(out, " \\\n    --hash=%s", hashes.v[i]);
	fa_buf_addc(out, '\n');
	fa_strv_release(&hashes);
}

void fa_lock_print(struct fa_buf *out, const struct fa_lock *l)
{
	bool built = false;

	fa_buf_adds(out, preamble);
	print_entry(out, "schema", FA_LOCK_SCHEMA);
	fa_buf_addf(out, "%spackages = %zu\n", FA_LOCK_COMMENT, l->n_packages);
	for (size_t i = 0; i < l->n_entries; i++)
		print_entry(out, l->entries[i].key, l->entries[i].value);
	for (size_t i = 0; i < l->n_packages; i++)
		if (l->packages[i].built) {
			print_entry(out, "built", l->packages[i].name);
			built = true;
		}
	if (built)
		fa_buf_adds(out, FA_LOCK_FIND_LINKS "\n");
	for (size_t i = 0; i < l->n_packages; i++)
		print_package(out, &l->packages[i]);
}

void fa_lock_print_requirement(struct fa_buf *out, const struct fa_lock_package *p)
{
	print_package(out, p);
}

void fa_lock_release(struct fa_lock *l)
{
	for (size_t i = 0; i < l->n_packages; i++)
		release_package(&l->packages[i]);
	for (size_t i = 0; i < l->n_entries; i++) {
		free(l->entries[i].key);
		free(l->entries[i].value);
	}
	free(l->packages);
	free(l->entries);
	memset(l, 0, sizeof(*l));
}
