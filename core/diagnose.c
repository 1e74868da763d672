#include "diagnose.h"

#include "causes.h"
#include "json.h"
#include "matrix.h"
#include "scan.h"
#include "version.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	QUOTE_HEAD = 256, /* bytes of a line that tell whether it only quotes */
	HITS_KEPT = 3,    /* of one signal: the first ones are what matters, echoes follow */
	WINDOW = 1500,    /* bytes either side of a word that its pattern may look at */
	TRIES_MAX = 8000, /* patterns tried for one signal: a hostile log ends here */
	TRIES_LINE = 200, /* in one line */
	TRY_STEP = 1000,  /* a word so close to the last one of its line was in that one's window */
	TEXT_MAX = 400,
};

struct fa_diagnoser {
	struct fa_causes causes;
	void *cxx; /* libstdc++, once a symbol was met */
	bool no_cxx;
	char *(*translate)(const char *, char *, size_t *, int *);
};

struct hit {
	size_t line;
	char *text;
	char *value; /* group 1 of the pattern; NULL: none */
};

struct seen {      /* of one signal */
	bool over; /* enough hits, or too many tries: its words are looked for no more */
	size_t tries, n;
	size_t line, line_tries, last_end; /* where its pattern was tried last */
	struct hit hits[HITS_KEPT];
};

struct reading {
	struct fa_diagnoser *diagnoser;
	struct fa_causes *causes; /* its own */
	const struct fa_facts *facts;
	struct seen *seen; /* [signal] */
	struct fa_search search;
	char **values; /* [name]: NULL unknown */
	/* the line in hand */
	const char *line;
	size_t len, number;
	size_t quote_line; /* the last line that was asked for, and the answer */
	bool quoted;
	iconv_t chinese; /* (iconv_t)-1: this system cannot read it */
	char *decoded;   /* room for a line, once it was needed */
};

/* ---- one pass over the log */

static bool is_ascii(const unsigned char *p, size_t len)
{
	uint64_t high = 0, eight;

	for (; len >= sizeof(eight); p += sizeof(eight), len -= sizeof(eight)) {
		memcpy(&eight, p, sizeof(eight));
		high |= eight;
	}
	for (; len; len--)
		high |= (uint64_t)*p++;
	return !(high & 0x8080808080808080u);
}

static bool is_utf8(const unsigned char *p, size_t len)
{
	if (is_ascii(p, len))
		return true;
	for (size_t i = 0; i < len; i++) {
		size_t more = p[i] < 0x80                   ? 0
		              : p[i] >= 0xc2 && p[i] < 0xe0 ? 1
		              : p[i] >= 0xe0 && p[i] < 0xf0 ? 2
		              : p[i] >= 0xf0 && p[i] < 0xf5 ? 3
		                                            : len;

		if (more >= len - i)
			return false;
		if ((p[i] == 0xe0 && p[i + 1] < 0xa0) || (p[i] == 0xed && p[i + 1] > 0x9f) ||
		    (p[i] == 0xf0 && p[i + 1] < 0x90) || (p[i] == 0xf4 && p[i + 1] > 0x8f))
			return false;
		for (; more; more--)
			if ((p[++i] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

static bool from_chinese(struct reading *r, const char *text, size_t *len)
{
	char *in = (char *)text, *out = r->decoded;
	size_t left = *len, room = 2 * FA_LINES_MAX;

	if (r->chinese == (iconv_t)-1)
		return false;
	iconv(r->chinese, NULL, NULL, NULL, NULL);
	if (iconv(r->chinese, &in, &left, &out, &room) == (size_t)-1)
		return false;
	*len = (size_t)(out - r->decoded);
	return true;
}

/* Bytes that are no UTF-8 are read as GB 18030 (Windows in China); in what is neither, the letters still count. */
static const char *as_utf8(struct reading *r, const char *text, size_t *len)
{
	if (is_utf8((const unsigned char *)text, *len))
		return text;
	if (!r->decoded) {
		r->decoded = fa_calloc(2, FA_LINES_MAX);
		r->chinese = iconv_open("UTF-8", "GB18030");
	}
	if (from_chinese(r, text, len))
		return r->decoded;
	for (size_t i = 0; i < *len; i++)
		r->decoded[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
	return r->decoded;
}

static bool inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The part of the line around the match, trimmed. */
static char *excerpt(const struct reading *r, size_t at)
{
	size_t from = r->len > TEXT_MAX && at > TEXT_MAX / 2 ? at - TEXT_MAX / 2 : 0;
	size_t to = from + TEXT_MAX < r->len ? from + TEXT_MAX : r->len;

	while (from < to && (isspace((unsigned char)r->line[from]) || inside_character(r->line[from])))
		from++;
	while (to > from && to < r->len && inside_character(r->line[to]))
		to--;
	while (to > from && isspace((unsigned char)r->line[to - 1]))
		to--;
	return fa_strndup(r->line + from, to - from);
}

static bool worth_a_try(struct seen *s, const struct reading *r, size_t end)
{
	bool same_line = s->line == r->number && s->line_tries;
	size_t step = end > s->last_end ? end - s->last_end : s->last_end - end;

	if (s->over || (s->n && s->hits[s->n - 1].line == r->number))
		return false;
	if (same_line && (s->line_tries == TRIES_LINE || step < TRY_STEP))
		return false;
	s->line_tries = same_line ? s->line_tries + 1 : 1;
	s->line = r->number;
	s->last_end = end;
	s->tries++;
	return true;
}

static void end_search(struct reading *r, size_t signal)
{
	const struct fa_signal *s = &r->causes->signals[signal];

	r->seen[signal].over = true;
	for (size_t i = 0; i < s->n_words; i++)
		fa_search_give_up(&r->search, s->first_word + i);
}

/* A line that shows a message without being one: the reason of a skipped test, the source line under a warning. */
static bool only_quotes(struct reading *r)
{
	char head[QUOTE_HEAD + 1], *found = NULL;
	size_t n = r->len < QUOTE_HEAD ? r->len : QUOTE_HEAD;

	if (r->quote_line == r->number)
		return r->quoted;
	memcpy(head, r->line, n);
	head[n] = '\0';
	r->quote_line = r->number;
	r->quoted = false;
	for (size_t i = 0; i < r->causes->n_quotes && !r->quoted; i++)
		r->quoted = fa_pattern_find(&r->causes->quotes[i], head, &found);
	free(found);
	return r->quoted;
}

static void on_word(void *ctx, size_t word, size_t end)
{
	struct reading *r = ctx;
	size_t place = r->causes->signal_of[word];
	struct fa_signal *signal = &r->causes->signals[place];
	struct seen *s = &r->seen[place];
	char window[2 * WINDOW + 1], *found;
	size_t from, to;

	if (!worth_a_try(s, r, end) || (signal->kind == FA_SIGNAL_ERROR && only_quotes(r)))
		return;
	from = end > WINDOW ? end - WINDOW : 0;
	to = end + WINDOW < r->len ? end + WINDOW : r->len;
	memcpy(window, r->line + from, to - from);
	window[to - from] = '\0';
	if (fa_pattern_find(&signal->pattern, window, &found))
		s->hits[s->n++] = (struct hit){ r->number, excerpt(r, end), found };
	if (s->n == HITS_KEPT || s->tries > TRIES_MAX)
		end_search(r, place);
}

static void on_line(void *ctx, size_t number, const char *text, size_t len)
{
	struct reading *r = ctx;

	r->number = number;
	r->line = as_utf8(r, text, &len);
	r->len = len;
	fa_search_text(&r->search, r->line, len, on_word, r);
}

/* "raise OSError('...')" in a traceback quotes the source; the message itself follows and is the better evidence. */
static void prefer_messages(struct seen *s)
{
	static const char quote[] = "raise ";

	while (s->n > 1 && !strncmp(s->hits[0].text, quote, sizeof(quote) - 1)) {
		free(s->hits[0].text);
		free(s->hits[0].value);
		memmove(&s->hits[0], &s->hits[1], --s->n * sizeof(s->hits[0]));
	}
}

/* ---- values for the rules */

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

static char *capable_gpu(const struct fa_facts *f)
{
	for (size_t i = 0; f && i < f->n_gpus; i++)
		if (f->gpus[i].arch && f->gpus[i].vendor && !strcmp(f->gpus[i].vendor, "nvidia") && atoi(f->gpus[i].arch) >= 80)
			return fa_strf("%zu", i);
	return NULL;
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

static const char *value(const struct reading *r, const char *name)
{
	int place = fa_causes_name(r->causes, name, strlen(name));

	return place < 0 ? NULL : r->values[place];
}

static char *own_value(const struct reading *r, enum fa_diagnose_name name)
{
	const char *log_torch = value(r, "log_torch"), *torch = value(r, "torch");

	switch (name) {
	case FA_DIAGNOSE_ANY_TORCH: return fa_strdup(log_torch ? log_torch : torch);
	case FA_DIAGNOSE_TORCH_DIFFERS: return differ(log_torch, torch, 3);
	case FA_DIAGNOSE_TOOLKIT: return fa_strdup(cuda_toolkit(r->facts));
	case FA_DIAGNOSE_TOOLKIT_DIFFERS: return differ(cuda_toolkit(r->facts), value(r, "torch_cuda"), 1);
	case FA_DIAGNOSE_GPU_ARCH: return gpu_values(r->facts, true);
	case FA_DIAGNOSE_GPU_VENDOR: return gpu_values(r->facts, false);
	case FA_DIAGNOSE_GPU_SM: return r->facts && r->facts->n_gpus ? fa_strdup(r->facts->gpus[0].arch) : NULL;
	case FA_DIAGNOSE_GPU_CAPABLE: return capable_gpu(r->facts);
	case FA_DIAGNOSE_REAL_ERROR:
		for (size_t i = 0; i < r->causes->n_signals; i++)
			if (r->seen[i].n && r->causes->signals[i].kind == FA_SIGNAL_ERROR)
				return fa_strdup("yes");
		return NULL;
	case FA_DIAGNOSE_COUNT: break;
	}
	return NULL;
}

/* "" counts as unknown here: a rule asks whether there is something to compare. */
static void set_value(struct reading *r, size_t place, char *text)
{
	if (text && !text[0]) {
		free(text);
		text = NULL;
	}
	r->values[place] = text;
}

static void work_out_values(struct reading *r)
{
	struct fa_causes *c = r->causes;

	for (int i = 0; i < FA_FACT_COUNT; i++)
		set_value(r, (size_t)i, fact_value(r->facts, (enum fa_fact)i));
	for (size_t i = 0; i < c->n_signals; i++) {
		const struct hit *h = r->seen[i].n ? &r->seen[i].hits[0] : NULL;

		set_value(r, c->first_signal + i, h ? fa_strdup(h->value ? h->value : h->text) : NULL);
	}
	for (int i = 0; i < FA_DIAGNOSE_COUNT; i++)
		set_value(r, c->first_own + (size_t)i, own_value(r, (enum fa_diagnose_name)i));
	for (size_t i = 0; i < c->n_derived; i++) {
		struct fa_derived *d = &c->derived[i];
		char *found = NULL;

		if (r->values[d->of])
			fa_pattern_find(&d->pattern, r->values[d->of], &found);
		set_value(r, d->name, found);
	}
}

/* ---- causes */

/* "${name}" replaced by the value of that name; NULL when a value is not known. */
static char *fill(const struct reading *r, const char *template)
{
	struct fa_buf b = FA_BUF_INIT;

	for (const char *p = template; *p; p++) {
		const char *close = p[0] == '$' && p[1] == '{' ? strchr(p, '}') : NULL;
		int place;

		if (!close) {
			fa_buf_addc(&b, *p);
			continue;
		}
		place = fa_causes_name(r->causes, p + 2, (size_t)(close - p - 2));
		if (place < 0 || !r->values[place]) {
			fa_buf_release(&b);
			return NULL;
		}
		fa_buf_adds(&b, r->values[place]);
		p = close;
	}
	return fa_buf_detach(&b);
}

static bool holds(const struct reading *r, const struct fa_rule *rule)
{
	return fa_rule_test(rule, (const char *const *)r->values, NULL) == FA_TRUE;
}

/* The itanium name in words, by the C++ library's own demangler, loaded once there is something to demangle. */
static char *demangle(struct fa_diagnoser *d, const char *symbol)
{
	char *name = NULL, *copy;
	int status = 0;

	if (!d->cxx && !d->no_cxx)
		d->cxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	d->no_cxx = !d->cxx;
	if (d->cxx && !d->translate)
		*(void **)&d->translate = dlsym(d->cxx, "__cxa_demangle");
	if (d->translate)
		name = d->translate(symbol, NULL, NULL, &status);
	copy = fa_strdup(name);
	free(name);
	return copy;
}

/* matrix/causes.json "symbols": parts of mangled names and the torch releases that export them. */
static const char *symbol_era(const struct fa_causes *c, const char *symbol)
{
	size_t len = strlen(symbol);

	fa_json_each (row, fa_json_get(c->table, "symbols")) {
		const char *part = fa_json_get_string(row, "part"), *end = fa_json_get_string(row, "end");

		if (part && !strstr(symbol, part))
			continue;
		if (end && (len < strlen(end) || strcmp(symbol + len - strlen(end), end) != 0))
			continue;
		return fa_json_get_string(row, "torch");
	}
	return NULL;
}

static char *explain(const struct reading *r, const struct fa_cause_row *row, size_t evidence)
{
	const char *symbol =
	        !strcmp(r->causes->signals[evidence].id, "undefined_symbol") ? r->seen[evidence].hits[0].value : NULL;
	char *filled = row->because ? fill(r, row->because) : NULL, *name;
	struct fa_buf b = FA_BUF_INIT;

	fa_buf_adds(&b, filled ? filled : "");
	free(filled);
	if (!symbol)
		return fa_buf_detach(&b);
	name = demangle(r->diagnoser, symbol);
	if (name)
		fa_buf_addf(&b, "%sThe symbol is %s.", b.len ? " " : "", name);
	if (symbol_era(r->causes, symbol))
		fa_buf_addf(&b, "%sIt is in %s.", b.len ? " " : "", symbol_era(r->causes, symbol));
	free(name);
	return fa_buf_detach(&b);
}

static struct fa_evidence *evidence_of(const struct seen *s)
{
	struct fa_evidence *e = fa_calloc(s->n, sizeof(*e));

	for (size_t i = 0; i < s->n; i++)
		e[i] = (struct fa_evidence){ s->hits[i].line, fa_strdup(s->hits[i].text) };
	return e;
}

static void add_cause(struct fa_diagnosis *out, const struct reading *r, const struct fa_cause_row *row,
                      const struct fa_cause_rule *rule)
{
	struct fa_cause *c;

	out->causes = fa_realloc(out->causes, out->n_causes + 1, sizeof(*out->causes));
	c = &out->causes[out->n_causes++];
	*c = (struct fa_cause){ .confidence = rule->confidence };
	c->id = fa_strdup(row->id);
	c->title = row->title ? fill(r, row->title) : NULL;
	c->source = fa_strdup(row->source);
	c->because = explain(r, row, rule->evidence);
	c->evidence = evidence_of(&r->seen[rule->evidence]);
	c->n_evidence = r->seen[rule->evidence].n;
	for (size_t i = 0; i < row->n_repairs; i++) {
		char *text = holds(r, &row->repairs[i].when) ? fill(r, row->repairs[i].text) : NULL;

		if (text)
			fa_strv_take(&c->repair, text);
	}
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
	for (size_t i = 0; i < r->causes->n_signals; i++) {
		const struct fa_signal *s = &r->causes->signals[i];

		if (s->kind != FA_SIGNAL_NOISE || !r->seen[i].n)
			continue;
		out->noise = fa_realloc(out->noise, out->n_noise + 1, sizeof(*out->noise));
		out->noise[out->n_noise++] =
		        (struct fa_noise){ fa_strdup(s->id), r->seen[i].hits[0].line, fa_strdup(s->meaning ? s->meaning : "") };
	}
}

/* The first rule of a row that holds makes it a cause; what nothing explains is shown as it stands. */
static void name_causes(struct fa_diagnosis *out, struct reading *r)
{
	const struct fa_causes *c = r->causes;
	int error = fa_causes_signal(c, "any_error");

	for (size_t i = 0; i < c->n_signals; i++)
		prefer_messages(&r->seen[i]);
	work_out_values(r);
	for (size_t i = 0; i < c->n_rows; i++)
		for (size_t k = 0; k < c->rows[i].n_rules; k++)
			if (r->seen[c->rows[i].rules[k].evidence].n && holds(r, &c->rows[i].rules[k].when)) {
				add_cause(out, r, &c->rows[i], &c->rows[i].rules[k]);
				break;
			}
	if (out->n_causes > 1)
		qsort(out->causes, out->n_causes, sizeof(*out->causes), by_confidence);
	add_noise(out, r);
	if (out->n_causes || error < 0)
		return;
	out->unknown = evidence_of(&r->seen[error]);
	out->n_unknown = r->seen[error].n;
}

/* ---- reading */

int fa_diagnoser_new(struct fa_diagnoser **out, struct fa_matrix *matrix, struct fa_err *err)
{
	const struct fa_json *table = fa_matrix_table(matrix, "causes", err);
	struct fa_diagnoser *d;

	*out = NULL;
	if (!table)
		return -1;
	d = fa_calloc(1, sizeof(*d));
	if (fa_causes_load(&d->causes, table, err) < 0) {
		free(d);
		return -1;
	}
	*out = d;
	return 0;
}

void fa_diagnoser_free(struct fa_diagnoser *d)
{
	if (!d)
		return;
	fa_causes_release(&d->causes);
	if (d->cxx)
		dlclose(d->cxx);
	free(d);
}

static void reading_release(struct reading *r)
{
	for (size_t i = 0; i < r->causes->n_signals; i++)
		for (size_t k = 0; k < r->seen[i].n; k++) {
			free(r->seen[i].hits[k].text);
			free(r->seen[i].hits[k].value);
		}
	for (size_t i = 0; i < r->causes->names.n; i++)
		free(r->values[i]);
	if (r->decoded && r->chinese != (iconv_t)-1)
		iconv_close(r->chinese);
	free(r->decoded);
	fa_search_release(&r->search);
	free(r->seen);
	free(r->values);
}

/* fd < 0: the text. */
static int diagnose(struct fa_diagnosis *out, struct fa_diagnoser *d, int fd, const char *path, const char *text, size_t len,
                    const struct fa_facts *facts, struct fa_err *err)
{
	struct reading r = { .diagnoser = d, .causes = &d->causes, .facts = facts };
	struct fa_lines lines;
	int rc = 0;

	*out = (struct fa_diagnosis)FA_DIAGNOSIS_INIT;
	r.seen = fa_calloc(d->causes.n_signals, sizeof(*r.seen));
	r.values = fa_calloc(d->causes.names.n, sizeof(*r.values));
	fa_search_init(&r.search, d->causes.words);
	fa_lines_init(&lines, on_line, &r);
	if (fd >= 0)
		rc = fa_lines_read(&lines, fd, path, err);
	else
		fa_lines_add(&lines, text, len);
	out->n_lines = lines.number - (lines.len == 0);
	fa_lines_end(&lines);
	if (rc == 0)
		name_causes(out, &r);
	reading_release(&r);
	return rc;
}

int fa_diagnose_text(struct fa_diagnosis *out, struct fa_diagnoser *d, const char *text, size_t len,
                     const struct fa_facts *facts, struct fa_err *err)
{
	return diagnose(out, d, -1, NULL, text, len, facts, err);
}

int fa_diagnose_file(struct fa_diagnosis *out, struct fa_diagnoser *d, const char *path, const struct fa_facts *facts,
                     struct fa_err *err)
{
	bool standard = !strcmp(path, "-");
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;

	*out = (struct fa_diagnosis)FA_DIAGNOSIS_INIT;
	if (fd < 0) {
		fa_err_set(err, FA_USAGE, "%s: %s", path, strerror(errno));
		return fa_err_next(err, "name the file that holds the output, or - and pipe it in");
	}
	rc = diagnose(out, d, fd, path, NULL, 0, facts, err);
	if (!standard)
		close(fd);
	return rc;
}
