#include "diagnose.h"

#include "json.h"
#include "matrix.h"
#include "rule.h"
#include "scan.h"
#include "version.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	HITS_KEPT = 3,     /* of one signal: the first ones are what matters, echoes follow */
	WINDOW = 1500,     /* bytes either side of a word that its pattern may look at */
	TRIES_MAX = 20000, /* patterns tried for one signal: a hostile log ends here */
	TEXT_MAX = 400,
	MATCHES = 2,
};

struct hit {
	size_t line;
	char *text;
	char *value; /* group 1 of the pattern; NULL: none */
};

struct signal {
	const char *id;
	const char *pattern; /* POSIX extended, "" for none */
	const char *kind;    /* error, echo, noise, context */
	const char *meaning; /* noise: why it is harmless */
	bool compiled;
	regex_t re;
	size_t tries;
	struct hit hits[HITS_KEPT];
	size_t n_hits;
};

struct reading {
	const struct fa_json *table;
	struct signal *signals;
	size_t n_signals;
	size_t *signal_of; /* [word] */
	struct fa_words *words;
	const struct fa_facts *facts;
	/* the line in hand */
	const char *line;
	size_t len, number;
	size_t n_unknown;
	struct fa_strv names; /* what rules may ask for */
	char **values;        /* [name]: NULL unknown */
};

/* ---- signals from the table */

static int load_signals(struct reading *r, struct fa_err *err)
{
	const struct fa_json *rows = fa_json_get(r->table, "signals");
	struct fa_strv words = FA_STRV_INIT;
	size_t n = 0, w = 0;

	r->n_signals = fa_json_len(rows);
	r->signals = fa_calloc(r->n_signals, sizeof(*r->signals));
	fa_json_each (row, rows) {
		struct signal *s = &r->signals[n++];

		if (fa_json_need_string(&s->id, row, "id", "matrix/causes.json", err) < 0)
			return -1;
		s->pattern = fa_json_get_string(row, "pattern");
		s->kind = fa_json_get_string(row, "kind");
		s->meaning = fa_json_get_string(row, "meaning");
		w += fa_json_len(fa_json_get(row, "text"));
	}
	r->signal_of = fa_calloc(w, sizeof(*r->signal_of));
	n = 0;
	fa_json_each (row, rows) {
		fa_json_each (text, fa_json_get(row, "text")) {
			r->signal_of[words.n] = n;
			fa_strv_push(&words, fa_json_string(text) ? fa_json_string(text) : "\n");
		}
		n++;
	}
	r->words = fa_words_new((const char *const *)words.v, words.n);
	fa_strv_release(&words);
	return 0;
}

static int compile(struct signal *s)
{
	if (!s->compiled && regcomp(&s->re, s->pattern, REG_EXTENDED | REG_ICASE) != 0)
		return -1;
	s->compiled = true;
	return 0;
}

/* The part of the line around the match, trimmed, without splitting what an editor shows needlessly. */
static char *excerpt(const struct reading *r, size_t at)
{
	size_t from = at > TEXT_MAX / 2 ? at - TEXT_MAX / 2 : 0, to;

	if (r->len <= TEXT_MAX)
		from = 0;
	to = from + TEXT_MAX < r->len ? from + TEXT_MAX : r->len;
	while (from < to && isspace((unsigned char)r->line[from]))
		from++;
	while (to > from && isspace((unsigned char)r->line[to - 1]))
		to--;
	return fa_strndup(r->line + from, to - from);
}

static void keep_hit(const struct reading *r, struct signal *s, size_t at, char *value)
{
	s->hits[s->n_hits++] = (struct hit){ .line = r->number, .text = excerpt(r, at), .value = value };
}

static void on_word(void *ctx, size_t word, size_t end)
{
	struct reading *r = ctx;
	struct signal *s = &r->signals[r->signal_of[word]];
	regmatch_t m[MATCHES];
	char window[2 * WINDOW + 1];
	size_t from, to;

	if (s->n_hits == HITS_KEPT || s->tries > TRIES_MAX || (s->n_hits && s->hits[s->n_hits - 1].line == r->number))
		return;
	if (!s->pattern) {
		keep_hit(r, s, end, NULL);
		return;
	}
	s->tries++;
	from = end > WINDOW ? end - WINDOW : 0;
	to = end + WINDOW < r->len ? end + WINDOW : r->len;
	memcpy(window, r->line + from, to - from);
	window[to - from] = '\0';
	if (compile(s) < 0 || regexec(&s->re, window, MATCHES, m, 0) != 0)
		return;
	keep_hit(r, s, end,
	         m[1].rm_eo <= m[1].rm_so ? NULL : fa_strndup(window + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so)));
}

static void on_line(void *ctx, size_t number, const char *text, size_t len)
{
	struct reading *r = ctx;

	r->number = number;
	r->line = text;
	r->len = len;
	fa_words_find(r->words, text, len, on_word, r);
}

/* ---- what the rules may ask for: facts, the signals, and a few values worked out of both. One table of names, one of values. */

static struct signal *find_signal(const struct reading *r, const char *id)
{
	for (size_t i = 0; i < r->n_signals; i++)
		if (!strcmp(r->signals[i].id, id))
			return &r->signals[i];
	return NULL;
}

/* NULL and "" are both "unknown" here: a rule asks whether there is something to compare. */
static void define(struct reading *r, const char *name, char *value)
{
	if (value && !value[0]) {
		free(value);
		value = NULL;
	}
	fa_strv_push(&r->names, name);
	r->values = fa_realloc(r->values, r->names.n, sizeof(*r->values));
	r->values[r->names.n - 1] = value;
}

static int find_name(void *ctx, const char *name, size_t len)
{
	const struct reading *r = ctx;

	for (size_t i = 0; i < r->names.n; i++)
		if (strlen(r->names.v[i]) == len && !memcmp(r->names.v[i], name, len))
			return (int)i;
	return -1;
}

static const char *value_of(const struct reading *r, const char *name, size_t len)
{
	int i = find_name((void *)(uintptr_t)r, name, len);

	return i < 0 ? NULL : r->values[i];
}

static const char *value(const struct reading *r, const char *name)
{
	return value_of(r, name, strlen(name));
}

static char *fact_value(const struct fa_facts *f, enum fa_fact id)
{
	if (!f || !f->v[id].known)
		return NULL;
	switch (fa_fact_type(id)) {
	case FA_FACT_TEXT: return fa_strdup(fa_facts_text(f, id));
	case FA_FACT_BOOL: return fa_strdup(fa_facts_is(f, id) ? "true" : "false");
	case FA_FACT_LIST: return fa_strv_join(&f->v[id].list, ",");
	case FA_FACT_NUMBER: break;
	}
	return fa_strf("%lld", (long long)f->v[id].number);
}

static char *gpu_values(const struct fa_facts *f, bool arch)
{
	struct fa_strv all = FA_STRV_INIT;
	char *joined;

	for (size_t i = 0; f && i < f->n_gpus; i++)
		if (arch ? f->gpus[i].arch : f->gpus[i].vendor)
			fa_strv_push(&all, arch ? f->gpus[i].arch : f->gpus[i].vendor);
	joined = fa_strv_join(&all, ",");
	fa_strv_release(&all);
	return joined;
}

static const char *cuda_toolkit(const struct fa_facts *f)
{
	for (size_t i = 0; f && i < f->n_toolkits; i++)
		if (f->toolkits[i].kind && !strcmp(f->toolkits[i].kind, "cuda"))
			return f->toolkits[i].version;
	return NULL;
}

/* "yes" when both are known and differ in their first `parts` numbers. */
static char *differ(const char *a, const char *b, int parts)
{
	char *x = a ? fa_version_head(a, parts) : NULL, *y = b ? fa_version_head(b, parts) : NULL;
	char *answer = x && y && strcmp(x, y) != 0 ? fa_strdup("yes") : NULL;

	free(x);
	free(y);
	return answer;
}

static char *real_error(const struct reading *r)
{
	for (size_t i = 0; i < r->n_signals; i++)
		if (r->signals[i].n_hits && r->signals[i].kind && !strcmp(r->signals[i].kind, "error"))
			return fa_strdup("yes");
	return NULL;
}

/* Rows of "values": a name for what a pattern finds in another value ("torch_is_cpu" in "2.9.1+cpu"). */
static int define_by_pattern(struct reading *r, const struct fa_json *row, struct fa_err *err)
{
	const char *name = fa_json_get_string(row, "name"), *of = fa_json_get_string(row, "of");
	const char *pattern = fa_json_get_string(row, "pattern"), *text;
	regmatch_t m[MATCHES];
	char *found = NULL;
	regex_t re;

	if (!name || !of || !pattern || regcomp(&re, pattern, REG_EXTENDED | REG_ICASE) != 0)
		return fa_err_set(err, FA_INTERNAL, "matrix/causes.json: a value without name, of or a good pattern");
	text = value(r, of);
	if (text && regexec(&re, text, MATCHES, m, 0) == 0 && m[1].rm_so >= 0)
		found = fa_strndup(text + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so));
	regfree(&re);
	define(r, name, found);
	return 0;
}

static int define_all(struct reading *r, struct fa_err *err)
{
	const char *torch;

	for (int i = 0; i < FA_FACT_COUNT; i++)
		define(r, fa_fact_key((enum fa_fact)i), fact_value(r->facts, (enum fa_fact)i));
	for (size_t i = 0; i < r->n_signals; i++) {
		const struct signal *s = &r->signals[i];

		define(r, s->id, !s->n_hits ? NULL : fa_strdup(s->hits[0].value ? s->hits[0].value : s->hits[0].text));
	}
	torch = value(r, "log_torch") ? value(r, "log_torch") : value(r, "torch");
	define(r, "any_torch", fa_strdup(torch));
	define(r, "log_torch_differs", differ(value(r, "log_torch"), value(r, "torch"), 3));
	define(r, "cuda_toolkit", fa_strdup(cuda_toolkit(r->facts)));
	define(r, "toolkit_major_differs", differ(cuda_toolkit(r->facts), value(r, "torch_cuda"), 1));
	define(r, "gpu_arch", gpu_values(r->facts, true));
	define(r, "gpu_vendor", gpu_values(r->facts, false));
	define(r, "gpu_sm", r->facts && r->facts->n_gpus ? fa_strdup(r->facts->gpus[0].arch) : NULL);
	define(r, "real_error", real_error(r));
	fa_json_each (row, fa_json_get(r->table, "values"))
		if (define_by_pattern(r, row, err) < 0)
			return -1;
	return 0;
}

/* ---- causes */

/* "${name}" replaced by the value of that name; NULL when a value is not known. */
static char *fill(const struct reading *r, const char *template)
{
	struct fa_buf b = FA_BUF_INIT;

	for (const char *p = template; *p; p++) {
		const char *close = p[0] == '$' && p[1] == '{' ? strchr(p, '}') : NULL, *text;

		if (!close) {
			fa_buf_addc(&b, *p);
			continue;
		}
		text = value_of(r, p + 2, (size_t)(close - p - 2));
		if (!text) {
			fa_buf_release(&b);
			return NULL;
		}
		fa_buf_adds(&b, text);
		p = close;
	}
	return fa_buf_detach(&b);
}

static int holds(const struct reading *r, const char *rule, bool *yes, struct fa_err *err)
{
	struct fa_rule compiled;

	if (fa_rule_compile(&compiled, rule, find_name, (void *)(uintptr_t)r, err) < 0)
		return -1;
	*yes = fa_rule_test(&compiled, (const char *const *)r->values, NULL) == FA_TRUE;
	fa_rule_release(&compiled);
	return 0;
}

static int add_repairs(struct fa_cause *c, const struct reading *r, const struct fa_json *rows, struct fa_err *err)
{
	fa_json_each (row, rows) {
		const char *text = fa_json_string(row), *when = fa_json_get_string(row, "when");
		bool yes = true;
		char *filled;

		if (!text)
			text = fa_json_get_string(row, "do");
		if (!text || (when && holds(r, when, &yes, err) < 0))
			return -1;
		filled = yes ? fill(r, text) : NULL;
		if (filled)
			fa_strv_take(&c->repair, filled);
	}
	return 0;
}

/* The itanium name in words, by the C++ library's own demangler, loaded only when there is something to demangle. */
static char *demangle(const char *symbol)
{
	void *lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	char *(*translate)(const char *, char *, size_t *, int *) = NULL;
	char *name = NULL, *copy;
	int status = 0;

	if (lib)
		*(void **)&translate = dlsym(lib, "__cxa_demangle");
	if (translate)
		name = translate(symbol, NULL, NULL, &status);
	copy = fa_strdup(name);
	free(name);
	if (lib)
		dlclose(lib);
	return copy;
}

/* matrix/causes.json "symbols": parts of mangled names and the torch releases that export them. */
static const char *symbol_era(const struct reading *r, const char *symbol)
{
	fa_json_each (row, fa_json_get(r->table, "symbols")) {
		const char *part = fa_json_get_string(row, "part"), *end = fa_json_get_string(row, "end");

		if (part && !strstr(symbol, part))
			continue;
		if (end && (strlen(symbol) < strlen(end) || strcmp(symbol + strlen(symbol) - strlen(end), end) != 0))
			continue;
		return fa_json_get_string(row, "torch");
	}
	return NULL;
}

static char *explain(const struct reading *r, const struct fa_json *row, const struct signal *evidence)
{
	const char *text = fa_json_get_string(row, "because");
	const char *symbol = !strcmp(evidence->id, "undefined_symbol") ? evidence->hits[0].value : NULL;
	struct fa_buf b = FA_BUF_INIT;
	char *filled = text ? fill(r, text) : NULL, *name;

	fa_buf_adds(&b, filled ? filled : "");
	free(filled);
	if (!symbol)
		return fa_buf_detach(&b);
	name = demangle(symbol);
	if (name)
		fa_buf_addf(&b, "%sThe symbol is %s.", b.len ? " " : "", name);
	if (symbol_era(r, symbol))
		fa_buf_addf(&b, "%sIt is in %s.", b.len ? " " : "", symbol_era(r, symbol));
	free(name);
	return fa_buf_detach(&b);
}

static void add_evidence(struct fa_cause *c, const struct signal *s)
{
	c->evidence = fa_calloc(s->n_hits, sizeof(*c->evidence));
	for (size_t i = 0; i < s->n_hits; i++)
		c->evidence[c->n_evidence++] = (struct fa_evidence){ s->hits[i].line, fa_strdup(s->hits[i].text) };
}

/* The first rule of a cause that holds makes it a cause; rules stand best first. */
static int try_cause(struct fa_diagnosis *out, const struct reading *r, const struct fa_json *row, struct fa_err *err)
{
	fa_json_each (rule, fa_json_get(row, "rules")) {
		const char *when = fa_json_get_string(rule, "when"), *shown = fa_json_get_string(rule, "evidence");
		const struct signal *s = shown ? find_signal(r, shown) : NULL;
		struct fa_cause *c;
		bool yes;

		if (!when || !s)
			return fa_err_set(err, FA_INTERNAL,
			                  "matrix/causes.json: %s: a rule without \"when\" or a known \"evidence\"",
			                  fa_json_get_string(row, "id"));
		if (holds(r, when, &yes, err) < 0)
			return -1;
		if (!yes || !s->n_hits)
			continue;
		out->causes = fa_realloc(out->causes, out->n_causes + 1, sizeof(*out->causes));
		c = &out->causes[out->n_causes++];
		*c = (struct fa_cause){ .confidence = fa_json_get_number(rule, "confidence", 0.5) };
		c->id = fa_strdup(fa_json_get_string(row, "id"));
		c->title = fa_strdup(fa_json_get_string(row, "title"));
		c->source = fa_strdup(fa_json_get_string(row, "source"));
		c->because = explain(r, row, s);
		add_evidence(c, s);
		return add_repairs(c, r, fa_json_get(row, "repair"), err);
	}
	return 0;
}

static int by_confidence(const void *a, const void *b)
{
	const struct fa_cause *x = a, *y = b;

	if (x->confidence != y->confidence)
		return x->confidence > y->confidence ? -1 : 1;
	if (x->evidence[0].line != y->evidence[0].line)
		return x->evidence[0].line < y->evidence[0].line ? -1 : 1;
	return strcmp(x->id, y->id);
}

static void add_noise(struct fa_diagnosis *out, const struct reading *r)
{
	for (size_t i = 0; i < r->n_signals; i++) {
		const struct signal *s = &r->signals[i];

		if (!s->n_hits || !s->kind || strcmp(s->kind, "noise") != 0)
			continue;
		out->noise = fa_realloc(out->noise, out->n_noise + 1, sizeof(*out->noise));
		out->noise[out->n_noise++] =
		        (struct fa_noise){ fa_strdup(s->id), s->hits[0].line, fa_strdup(s->meaning ? s->meaning : "") };
	}
}

static int name_causes(struct fa_diagnosis *out, struct reading *r, struct fa_err *err)
{
	const struct signal *error = find_signal(r, "any_error");

	if (define_all(r, err) < 0)
		return -1;
	fa_json_each (row, fa_json_get(r->table, "causes"))
		if (try_cause(out, r, row, err) < 0)
			return -1;
	if (out->n_causes > 1)
		qsort(out->causes, out->n_causes, sizeof(*out->causes), by_confidence);
	add_noise(out, r);
	if (out->n_causes || !error || !error->n_hits)
		return 0;
	out->unknown = fa_calloc(error->n_hits, sizeof(*out->unknown));
	for (size_t i = 0; i < error->n_hits; i++)
		out->unknown[out->n_unknown++] = (struct fa_evidence){ error->hits[i].line, fa_strdup(error->hits[i].text) };
	return 0;
}

/* ---- reading */

static void reading_release(struct reading *r)
{
	for (size_t i = 0; i < r->n_signals; i++) {
		for (size_t k = 0; k < r->signals[i].n_hits; k++) {
			free(r->signals[i].hits[k].text);
			free(r->signals[i].hits[k].value);
		}
		if (r->signals[i].compiled)
			regfree(&r->signals[i].re);
	}
	free(r->signals);
	free(r->signal_of);
	fa_words_free(r->words);
	for (size_t i = 0; i < r->names.n; i++)
		free(r->values[i]);
	free(r->values);
	fa_strv_release(&r->names);
}

static int read_all(struct fa_lines *lines, int fd, const char *path, struct fa_err *err)
{
	static char block[256 * 1024];

	for (;;) {
		ssize_t n = read(fd, block, sizeof(block));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		if (n == 0)
			return 0;
		fa_lines_add(lines, block, (size_t)n);
	}
}

/* fd < 0: the text. */
static int diagnose(struct fa_diagnosis *out, int fd, const char *path, const char *text, size_t len,
                    const struct fa_facts *facts, struct fa_matrix *matrix, struct fa_err *err)
{
	struct reading r = { .facts = facts, .table = fa_matrix_table(matrix, "causes", err) };
	struct fa_lines lines;
	int rc = 0;

	*out = (struct fa_diagnosis)FA_DIAGNOSIS_INIT;
	if (!r.table)
		return -1;
	if (load_signals(&r, err) < 0) {
		reading_release(&r);
		return -1;
	}
	fa_lines_init(&lines, on_line, &r);
	if (fd >= 0)
		rc = read_all(&lines, fd, path, err);
	else
		fa_lines_add(&lines, text, len);
	out->n_lines = lines.number;
	fa_lines_end(&lines);
	if (rc == 0)
		rc = name_causes(out, &r, err);
	reading_release(&r);
	return rc;
}

int fa_diagnose_text(struct fa_diagnosis *out, const char *text, size_t len, const struct fa_facts *facts,
                     struct fa_matrix *matrix, struct fa_err *err)
{
	return diagnose(out, -1, NULL, text, len, facts, matrix, err);
}

int fa_diagnose_file(struct fa_diagnosis *out, const char *path, const struct fa_facts *facts, struct fa_matrix *matrix,
                     struct fa_err *err)
{
	bool standard = !strcmp(path, "-");
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;

	*out = (struct fa_diagnosis)FA_DIAGNOSIS_INIT;
	if (fd < 0) {
		fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		return fa_err_next(err, "name the file that holds the output, or - and pipe it in");
	}
	rc = diagnose(out, fd, path, NULL, 0, facts, matrix, err);
	if (!standard)
		close(fd);
	return rc;
}

/* ---- telling */

static struct fa_json *evidence_json(const struct fa_evidence *e, size_t n)
{
	struct fa_json *array = fa_json_new_array();

	for (size_t i = 0; i < n; i++) {
		struct fa_json *o = fa_json_new_object();

		fa_json_set_number(o, "line", (double)e[i].line);
		fa_json_set_string(o, "text", e[i].text);
		fa_json_push(array, o);
	}
	return array;
}

struct fa_json *fa_diagnosis_to_json(const struct fa_diagnosis *d)
{
	struct fa_json *j = fa_json_new_object(), *causes = fa_json_new_array(), *noise = fa_json_new_array();

	fa_json_set_string(j, "schema", "fainstall.diagnosis/1");
	for (size_t i = 0; i < d->n_causes; i++) {
		const struct fa_cause *c = &d->causes[i];
		struct fa_json *o = fa_json_new_object();

		fa_json_set_string(o, "id", c->id);
		fa_json_set_number(o, "confidence", c->confidence);
		fa_json_set_string(o, "title", c->title);
		fa_json_set(o, "evidence", evidence_json(c->evidence, c->n_evidence));
		fa_json_set_string(o, "because", c->because);
		fa_json_set(o, "repair", fa_json_new_strv(&c->repair));
		fa_json_set_string(o, "source", c->source);
		fa_json_push(causes, o);
	}
	for (size_t i = 0; i < d->n_noise; i++) {
		struct fa_json *o = fa_json_new_object();

		fa_json_set_string(o, "id", d->noise[i].id);
		fa_json_set_number(o, "line", (double)d->noise[i].line);
		fa_json_set_string(o, "text", d->noise[i].text);
		fa_json_push(noise, o);
	}
	fa_json_set(j, "causes", causes);
	fa_json_set(j, "noise", noise);
	if (!d->n_causes)
		fa_json_set(j, "unknown", evidence_json(d->unknown, d->n_unknown));
	fa_json_set_number(j, "lines", (double)d->n_lines);
	return j;
}

static void print_cause(struct fa_buf *out, const struct fa_cause *c)
{
	fa_buf_addf(out, "%s\n", c->title ? c->title : c->id);
	if (c->because && c->because[0])
		fa_buf_addf(out, "  why       %s\n", c->because);
	for (size_t i = 0; i < c->n_evidence; i++)
		fa_buf_addf(out, "  line %-5zu%s\n", c->evidence[i].line, c->evidence[i].text);
	for (size_t i = 0; i < c->repair.n; i++)
		fa_buf_addf(out, "  repair    %s\n", c->repair.v[i]);
	fa_buf_addf(out, "  id        %s, confidence %.0f %%\n", c->id, 100 * c->confidence);
}

void fa_diagnosis_print(struct fa_buf *out, const struct fa_diagnosis *d)
{
	if (!d->n_causes) {
		fa_buf_addf(out, "The cause is not known. %zu lines were read.\n", d->n_lines);
		for (size_t i = 0; i < d->n_unknown; i++)
			fa_buf_addf(out, "  line %-5zu%s\n", d->unknown[i].line, d->unknown[i].text);
		if (d->n_unknown)
			fa_buf_adds(out, "Report these lines with the whole log: fainstall diagnose --bundle\n");
	}
	for (size_t i = 0; i < d->n_causes; i++) {
		if (i)
			fa_buf_addc(out, '\n');
		print_cause(out, &d->causes[i]);
	}
	for (size_t i = 0; i < d->n_noise; i++)
		fa_buf_addf(out, "%sNoise, line %zu: %s\n", i ? "" : "\n", d->noise[i].line, d->noise[i].text);
}

static void release_evidence(struct fa_evidence *e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(e[i].text);
	free(e);
}

void fa_diagnosis_release(struct fa_diagnosis *d)
{
	for (size_t i = 0; i < d->n_causes; i++) {
		struct fa_cause *c = &d->causes[i];

		free(c->id);
		free(c->title);
		free(c->because);
		free(c->source);
		release_evidence(c->evidence, c->n_evidence);
		fa_strv_release(&c->repair);
	}
	free(d->causes);
	for (size_t i = 0; i < d->n_noise; i++) {
		free(d->noise[i].id);
		free(d->noise[i].text);
	}
	free(d->noise);
	release_evidence(d->unknown, d->n_unknown);
	*d = (struct fa_diagnosis)FA_DIAGNOSIS_INIT;
}
