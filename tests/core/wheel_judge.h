/* Does a wheel fit a machine? Judged from its name and the tables alone, with comparisons of its own: the resolver's rules, indexes
 * and memory have no part in it. Used by the properties of generated hosts. */
#ifndef WHEEL_JUDGE_H
#define WHEEL_JUDGE_H

#include "facts.h"
#include "json.h"
#include "matrix.h"
#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct judged_wheel { /* what its row says */
	char torch[16], cuda[16], python[16], abi[8], glibc[16], driver[16], codes[128], os[16], machine[32];
	bool nightly, stable_abi, pure, found;
};

static char judge_text[256]; /* the last fault */

static const char *fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *fault(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(judge_text, sizeof(judge_text), format, ap);
	va_end(ap);
	return judge_text;
}

/* Numbers between dots; what follows a number that is no dot ends it. */
static int by_number(const char *a, const char *b)
{
	while (*a || *b) {
		long x = strtol(a, (char **)&a, 10), y = strtol(b, (char **)&b, 10);

		if (x != y)
			return x < y ? -1 : 1;
		a += strcspn(a, "0123456789");
		b += strcspn(b, "0123456789");
	}
	return 0;
}

static bool among(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; n && (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ' ' || p[-1] == ',') && (!p[n] || p[n] == ' ' || p[n] == ','))
			return true;
	return false;
}

static void put_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

#define PUT(member, text) put_text(w->member, sizeof(w->member), text)

/* Every file that a row of upstream's table stands for is named and compared. */
static void find_official(struct judged_wheel *w, struct fa_matrix *m, const char *name)
{
	fa_json_each (release, fa_json_get(fa_matrix_table(m, "wheels/official", NULL), "rows"))
		fa_json_each (b, fa_json_get(release, "builds")) {
			const char *torch = fa_json_string(fa_json_at(b, 0)), *cu = fa_json_string(fa_json_at(b, 1));
			const char *pythons = fa_json_string(fa_json_at(b, 2)), *letters = fa_json_string(fa_json_at(b, 3));
			const char *machine = fa_json_string(fa_json_at(b, 5)) ? fa_json_string(fa_json_at(b, 5)) : "x86_64";

			for (const char *l = letters; *l; l++) {
				char start[160], py[8];
				int n = snprintf(start, sizeof(start), "flash_attn-%s+%storch%scxx11abi%s-cp",
				                 fa_json_get_string(release, "version"), cu, torch,
				                 *l == 'T' ? "TRUE" : "FALSE");

				if (*l == 'n' || strncmp(name, start, (size_t)n) != 0)
					continue;
				snprintf(py, sizeof(py), "%.*s", (int)strspn(name + n, "0123456789t"), name + n);
				if (!among(pythons, py) || !strstr(name, machine))
					continue;
				w->found = true;
				PUT(torch, torch);
				snprintf(w->cuda, sizeof(w->cuda), "%.2s", cu + 2);
				PUT(python, py);
				PUT(abi, *l == 'F' ? "old" : "new");
				PUT(glibc, fa_json_get_string(release, "glibc"));
				PUT(driver, fa_json_get_string(release, "driver"));
				PUT(codes, fa_json_string(fa_json_at(b, 4)));
				PUT(os, "linux");
				PUT(machine, machine);
				w->nightly = strchr(letters, 'n') != NULL;
			}
		}
}

/* "314t" of "-cp314-cp314t-" */
static const char *abi_tag(const char *name, const char *py)
{
	static char tag[8];
	const char *abi = strstr(name, "-cp") ? strstr(strstr(name, "-cp") + 1, "-cp") : NULL;

	snprintf(tag, sizeof(tag), "%.*s", abi ? (int)strcspn(abi + 3, "-") : 0, abi ? abi + 3 : "");
	return *tag ? tag : py;
}

static void find_community(struct judged_wheel *w, struct fa_matrix *m, const char *name)
{
	const struct fa_json *table = fa_matrix_table(m, "wheels/community", NULL);

	fa_json_each (row, fa_json_get(table, "rows")) {
		const char *line = fa_json_string(fa_json_at(row, 0)), *cuda = fa_json_string(fa_json_at(row, 4));
		const struct fa_json *platform =
		        fa_json_at(fa_json_get(table, "platforms"), (size_t)fa_json_number(fa_json_at(row, 5)));
		const char *pythons = fa_json_string(fa_json_at(row, 9)), *tag = fa_json_string(fa_json_at(platform, 0));
		const char *git = fa_json_string(fa_json_at(row, 2));
		char start[160], digits[8] = "", py[8], end[160];
		int n;

		for (const char *p = cuda; *p; p++)
			if (*p != '.')
				strncat(digits, p, 1);
		n = snprintf(start, sizeof(start), "flash_attn%s-%s+cu%storch%s%s%s-cp", !strcmp(line, "fa3") ? "_3" : "",
		             fa_json_string(fa_json_at(row, 1)), digits, fa_json_string(fa_json_at(row, 3)),
		             git && *git ? "git" : "", git ? git : "");
		if (strncmp(name, start, (size_t)n) != 0)
			continue;
		snprintf(py, sizeof(py), "%.*s", (int)strspn(name + n, "0123456789t"), name + n);
		snprintf(end, sizeof(end), "-%s.whl", tag);
		if (strlen(name) < strlen(end) || strcmp(name + strlen(name) - strlen(end), end) != 0)
			continue;
		w->stable_abi = strchr(pythons, '+') != NULL;
		if (w->stable_abi != (strstr(name, "-abi3-") != NULL) || (!w->stable_abi && !among(pythons, abi_tag(name, py))))
			continue;
		w->found = true;
		PUT(torch, fa_json_string(fa_json_at(row, 3)));
		snprintf(w->cuda, sizeof(w->cuda), "%.2s", cuda);
		PUT(python, py);
		PUT(os, fa_json_string(fa_json_at(platform, 1)));
		PUT(machine, fa_json_string(fa_json_at(platform, 2)));
		PUT(glibc, fa_json_string(fa_json_at(platform, 3)));
		PUT(abi, strcmp(w->os, "linux") != 0 ? "" : *fa_json_string(fa_json_at(row, 7)) == 'T' ? "new" : "old");
		PUT(codes, fa_json_string(fa_json_at(row, 8)));
		return;
	}
}

static void find_pypi(struct judged_wheel *w, struct fa_matrix *m, const char *name)
{
	fa_json_each (row, fa_json_get(fa_matrix_table(m, "wheels/pypi", NULL), "rows"))
		if (fa_json_get_string(row, "file") && !strcmp(fa_json_get_string(row, "file"), name)) {
			w->found = true;
			w->pure = !fa_json_get_bool(row, "abi3");
			w->stable_abi = true;
			PUT(python, fa_json_get_string(row, "python"));
			PUT(os, fa_json_get_string(row, "os"));
			PUT(machine, fa_json_get_string(row, "machine"));
			PUT(glibc, fa_json_get_string(row, "glibc"));
			PUT(codes, fa_json_get_string(row, "codes"));
			PUT(cuda, fa_json_get_string(row, "cuda_major"));
		}
}

static const struct fa_json *row_of(struct fa_matrix *m, const char *table, const char *key, const char *value)
{
	fa_json_each (row, fa_json_get(fa_matrix_table(m, table, NULL), "rows"))
		if (value && fa_json_get_string(row, key) && !strcmp(fa_json_get_string(row, key), value))
			return row;
	return NULL;
}

static const struct fa_json *build_row(struct fa_matrix *m, const struct fa_choice *c)
{
	fa_json_each (b, fa_json_get(row_of(m, "torch", "torch", c->torch), "builds"))
		if (c->cuda && fa_json_get_string(b, "cuda") && !strcmp(fa_json_get_string(b, "cuda"), c->cuda))
			return b;
	return NULL;
}

static bool keeps(const struct fa_choice *c, const struct fa_facts *f)
{
	const char *torch = fa_facts_text(f, FA_FACT_TORCH), *label;
	size_t n = torch ? strcspn(torch, "+") : 0;
	bool build;

	if (!n || strlen(c->torch) != n || strncmp(c->torch, torch, n) != 0)
		return false;
	label = torch[n] ? torch + n + 1 : "";
	build = !strncmp(label, "cu", 2) || !strncmp(label, "rocm", 4) || !strcmp(label, "cpu");
	return !build || !c->torch_build || !strcmp(label, c->torch_build);
}

/* The C++ ABI of the torch of the choice: what the machine says, else what its table says; "" unknown. */
static const char *abi_of(struct fa_matrix *m, const struct fa_choice *c, const struct fa_facts *f)
{
	const struct fa_fact_value *fact = &f->v[FA_FACT_TORCH_CXX11ABI];
	const struct fa_json *b = build_row(m, c);

	if (keeps(c, f))
		return fact->known ? fact->number ? "new" : "old" : "";
	return b && fa_json_get(b, "abi") ? fa_json_get_bool(b, "abi") ? "new" : "old" : "";
}

static const char *judge_interpreter(const struct judged_wheel *w, const struct fa_choice *c)
{
	bool threads = c->python[strlen(c->python) - 1] == 't';
	char tag[16], *to = tag;

	for (const char *p = c->python; *p && to < tag + sizeof(tag) - 1; p++)
		if (*p != '.')
			*to++ = *p;
	*to = '\0';
	if (w->pure || !w->stable_abi)
		return w->pure || strstr(c->wheel.name, tag) ? NULL : fault("for Python %s, here is %s", w->python, tag);
	if (threads)
		return fault("an abi3 file in a free-threaded interpreter");
	return NULL;
}

/* NULL, or why that file is no file for that machine. */
static const char *judge_wheel(struct fa_matrix *m, const struct fa_choice *c, const struct fa_facts *f, const char *name,
                               bool planned)
{
	struct judged_wheel w = { .found = false };
	const char *os = fa_facts_text(f, FA_FACT_OS), *machine = fa_facts_text(f, FA_FACT_MACHINE);
	const char *glibc = fa_facts_text(f, FA_FACT_GLIBC), *driver = fa_facts_text(f, FA_FACT_DRIVER), *why, *abi;

	find_official(&w, m, name);
	if (!w.found)
		find_community(&w, m, name);
	if (!w.found)
		find_pypi(&w, m, name);
	if (!w.found)
		return fault("%s is in no table", name);
	if (os && strcmp(os, w.os) != 0)
		return fault("for %s, here is %s", w.os, os);
	if (machine && !among(w.machine, machine))
		return fault("for %s, here is %s", w.machine, machine);
	if (*w.torch && (strncmp(c->torch, w.torch, strlen(w.torch)) != 0 || strchr("0123456789", c->torch[strlen(w.torch)])))
		return fault("for torch %s, here is %s", w.torch, c->torch);
	if (*w.torch && strpbrk(c->torch, "abcdefghijklmnoqruvwxyz"))
		return fault("for a release, torch %s is none", c->torch);
	if (*w.cuda && (!c->cuda || strncmp(w.cuda, c->cuda, 2) != 0))
		return fault("for CUDA %s, torch has %s", w.cuda, c->cuda ? c->cuda : "none");
	if (w.nightly)
		return fault("built on a nightly torch");
	abi = abi_of(m, c, f);
	if (*w.abi && *abi && strcmp(w.abi, abi) != 0)
		return fault("%s C++ ABI, torch has the %s one", w.abi, abi);
	if (!strcmp(w.os, "linux") && *w.glibc && glibc && *glibc && by_number(glibc, w.glibc) < 0)
		return fault("needs glibc %s, here is %s", w.glibc, glibc);
	if (*w.driver && driver && *driver && by_number(driver, w.driver) < 0)
		return fault("needs driver %s, here is %s", w.driver, driver);
	why = judge_interpreter(&w, c);
	if (why)
		return why;
	for (size_t i = 0; i < c->archs.n; i++) {
		const char *codes = fa_json_get_string(row_of(m, "archs", "arch", c->archs.v[i]), "codes");
		struct fa_strv runs = FA_STRV_INIT;
		bool good = !codes || !*w.codes;

		fa_strv_split(&runs, codes ? codes : "", " ");
		for (size_t k = 0; k < runs.n; k++)
			good = good || among(w.codes, runs.v[k]);
		fa_strv_release(&runs);
		if (!good)
			return fault("holds code for %s, the card is %s", w.codes, c->archs.v[i]);
	}
	(void)planned;
	return NULL;
}

/* The torch of a plan that is ready: driver, glibc, interpreter and cards. NULL: it runs. */
static const char *judge_torch(struct fa_matrix *m, const struct fa_choice *c, const struct fa_facts *f, bool planned)
{
	const char *driver = fa_facts_text(f, FA_FACT_DRIVER), *os = fa_facts_text(f, FA_FACT_OS);
	const struct fa_json *cuda = row_of(m, "cuda", "cuda", c->cuda), *b = build_row(m, c);
	const char *floor = fa_json_get_string(cuda, os && !strcmp(os, "windows") ? "driver_windows" : "driver");
	const char *machine = fa_facts_text(f, FA_FACT_MACHINE);
	const char *codes = fa_json_get_string(b, machine && !strcmp(machine, "aarch64") ? "sm_aarch64" : "sm");

	if (!planned && floor && driver && by_number(driver, floor) < 0 && !fa_facts_has(f, FA_FACT_DRIVER_CUDA))
		return fault("torch %s+%s needs driver %s, here is %s", c->torch, c->torch_build, floor, driver);
	if (keeps(c, f) || !b)
		return NULL;
	if (fa_facts_text(f, FA_FACT_GLIBC) && os && !strcmp(os, "linux") && fa_json_get_string(b, "glibc") &&
	    *fa_facts_text(f, FA_FACT_GLIBC) && by_number(fa_facts_text(f, FA_FACT_GLIBC), fa_json_get_string(b, "glibc")) < 0)
		return fault("torch %s+%s needs glibc %s", c->torch, c->torch_build, fa_json_get_string(b, "glibc"));
	for (size_t i = 0; codes && i < c->archs.n; i++) {
		const char *runs = fa_json_get_string(row_of(m, "archs", "arch", c->archs.v[i]), "codes");
		struct fa_strv words = FA_STRV_INIT;
		bool good = !runs;

		fa_strv_split(&words, runs ? runs : "", " ");
		for (size_t k = 0; k < words.n; k++)
			good = good || among(codes, words.v[k]);
		fa_strv_release(&words);
		if (!good)
			return fault("torch %s+%s holds code for %s, the card is %s", c->torch, c->torch_build, codes,
			             c->archs.v[i]);
	}
	return NULL;
}

#endif
