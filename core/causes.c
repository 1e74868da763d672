#include "causes.h"

#include "buf.h"
#include "json.h"
#include "scan.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 2 };

static const char table_name[] = "matrix/causes.json";

static const char *const own_names[] = {
#define NAME(id, word, meaning) word,
#include "diagnose.def"
#undef NAME
};

/* Compiled for single bytes: what the user's locale makes of UTF-8 costs a multiple and finds nothing more in these patterns. */
static bool compile_once(struct fa_pattern *p)
{
	static locale_t plain;
	locale_t before;

	if (p->compiled)
		return true;
	if (!plain)
		plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	before = uselocale(plain);
	p->compiled = regcomp(&p->re, p->text, REG_EXTENDED | (p->exact ? 0 : REG_ICASE)) == 0;
	uselocale(before);
	return p->compiled;
}

bool fa_pattern_find(struct fa_pattern *p, const char *text, char **value_out)
{
	regmatch_t m[GROUPS];

	*value_out = NULL;
	if (!p->text)
		return true;
	if (!compile_once(p) || regexec(&p->re, text, GROUPS, m, 0) != 0)
		return false;
	if (m[1].rm_so >= 0 && m[1].rm_eo > m[1].rm_so)
		*value_out = fa_strndup(text + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so));
	return true;
}

int fa_causes_name(const struct fa_causes *c, const char *name, size_t len)
{
	for (size_t i = 0; i < c->names.n; i++)
		if (c->names.v[i][0] == name[0] && !strncmp(c->names.v[i], name, len) && !c->names.v[i][len])
			return (int)i;
	return -1;
}

int fa_causes_signal(const struct fa_causes *c, const char *id)
{
	for (size_t i = 0; id && i < c->n_signals; i++)
		if (!strcmp(c->signals[i].id, id))
			return (int)i;
	return -1;
}

static int find_name(void *ctx, const char *name, size_t len)
{
	return fa_causes_name(ctx, name, len);
}

/* ---- signals */

static enum fa_signal_kind signal_kind(const char *word)
{
	if (!word)
		return FA_SIGNAL_CONTEXT;
	return !strcmp(word, "error")   ? FA_SIGNAL_ERROR
	       : !strcmp(word, "echo")  ? FA_SIGNAL_ECHO
	       : !strcmp(word, "noise") ? FA_SIGNAL_NOISE
	                                : FA_SIGNAL_CONTEXT;
}

static int load_signal(struct fa_causes *c, const struct fa_json *row, struct fa_strv *words, struct fa_err *err)
{
	struct fa_signal *s = &c->signals[c->n_signals];

	if (fa_json_need_string(&s->id, row, "id", table_name, err) < 0)
		return -1;
	s->kind = signal_kind(fa_json_get_string(row, "kind"));
	s->meaning = fa_json_get_string(row, "meaning");
	s->pattern.text = fa_json_get_string(row, "pattern");
	s->pattern.exact = fa_json_get_bool(row, "exact");
	if (!fa_json_len(fa_json_get(row, "text")))
		return fa_err_set(err, FA_INTERNAL, "%s: signal \"%s\" has no text to look for", table_name, s->id);
	s->first_word = words->n;
	fa_json_each (text, fa_json_get(row, "text")) {
		if (!fa_json_string(text) || strlen(fa_json_string(text)) < 3)
			return fa_err_set(err, FA_INTERNAL, "%s: signal \"%s\" has a text shorter than three bytes", table_name,
			                  s->id);
		c->signal_of = fa_realloc(c->signal_of, words->n + 1, sizeof(*c->signal_of));
		c->signal_of[words->n] = c->n_signals;
		fa_strv_push(words, fa_json_string(text));
		s->n_words++;
	}
	c->n_signals++;
	return 0;
}

static int load_signals(struct fa_causes *c, struct fa_err *err)
{
	const struct fa_json *rows = fa_json_get(c->table, "signals");
	struct fa_strv words = FA_STRV_INIT;
	int rc = -1;

	c->signals = fa_calloc(fa_json_len(rows), sizeof(*c->signals));
	fa_json_each (row, rows)
		if (load_signal(c, row, &words, err) < 0)
			goto done;
	c->words = fa_words_new((const char *const *)words.v, words.n);
	rc = 0;
done:
	fa_strv_release(&words);
	return rc;
}

/* ---- names */

static int load_names(struct fa_causes *c, struct fa_err *err)
{
	const struct fa_json *rows = fa_json_get(c->table, "values");

	for (int i = 0; i < FA_FACT_COUNT; i++)
		fa_strv_push(&c->names, fa_fact_key((enum fa_fact)i));
	c->first_signal = c->names.n;
	for (size_t i = 0; i < c->n_signals; i++) {
		if (fa_causes_name(c, c->signals[i].id, strlen(c->signals[i].id)) >= 0)
			return fa_err_set(err, FA_INTERNAL, "%s: signal \"%s\" has the name of a fact or of another",
			                  table_name, c->signals[i].id);
		fa_strv_push(&c->names, c->signals[i].id);
	}
	c->first_own = c->names.n;
	for (int i = 0; i < FA_DIAGNOSE_COUNT; i++)
		fa_strv_push(&c->names, own_names[i]);
	c->derived = fa_calloc(fa_json_len(rows), sizeof(*c->derived));
	fa_json_each (row, rows) {
		struct fa_derived *d = &c->derived[c->n_derived++];
		const char *name = fa_json_get_string(row, "name"), *of = fa_json_get_string(row, "of");
		int place = of ? fa_causes_name(c, of, strlen(of)) : -1;

		d->pattern.text = fa_json_get_string(row, "pattern");
		if (!name || place < 0 || !d->pattern.text)
			return fa_err_set(err, FA_INTERNAL, "%s: value \"%s\" needs name, of (a name before it) and pattern",
			                  table_name, name ? name : "?");
		d->of = (size_t)place;
		d->name = c->names.n;
		fa_strv_push(&c->names, name);
	}
	return 0;
}

/* ---- causes */

static int load_rule(struct fa_causes *c, struct fa_cause_row *cause, const struct fa_json *row, struct fa_err *err)
{
	struct fa_cause_rule *r = &cause->rules[cause->n_rules];
	const char *when = fa_json_get_string(row, "when");
	int evidence = fa_causes_signal(c, fa_json_get_string(row, "evidence"));

	if (!when || !when[0] || evidence < 0)
		return fa_err_set(err, FA_INTERNAL, "%s: cause \"%s\": a rule needs \"when\" and a signal as \"evidence\"",
		                  table_name, cause->id);
	if (fa_rule_compile(&r->when, when, find_name, c, err) < 0)
		return -1;
	cause->n_rules++;
	r->confidence = fa_json_get_number(row, "confidence", 0.5);
	r->evidence = (size_t)evidence;
	return 0;
}

static int load_repair(struct fa_causes *c, struct fa_cause_row *cause, const struct fa_json *row, struct fa_err *err)
{
	struct fa_repair *r = &cause->repairs[cause->n_repairs];

	r->text = fa_json_string(row) ? fa_json_string(row) : fa_json_get_string(row, "do");
	if (!r->text)
		return fa_err_set(err, FA_INTERNAL, "%s: cause \"%s\": a repair is a text or {when, do}", table_name,
		                  cause->id);
	if (fa_rule_compile(&r->when, fa_json_get_string(row, "when"), find_name, c, err) < 0)
		return -1;
	cause->n_repairs++;
	return 0;
}

static int load_cause(struct fa_causes *c, const struct fa_json *row, struct fa_err *err)
{
	const struct fa_json *rules = fa_json_get(row, "rules"), *repairs = fa_json_get(row, "repair");
	struct fa_cause_row *cause = &c->rows[c->n_rows];

	if (fa_json_need_string(&cause->id, row, "id", table_name, err) < 0)
		return -1;
	c->n_rows++;
	cause->title = fa_json_get_string(row, "title");
	cause->because = fa_json_get_string(row, "because");
	cause->source = fa_json_get_string(row, "source");
	cause->rules = fa_calloc(fa_json_len(rules), sizeof(*cause->rules));
	cause->repairs = fa_calloc(fa_json_len(repairs), sizeof(*cause->repairs));
	fa_json_each (rule, rules)
		if (load_rule(c, cause, rule, err) < 0)
			return -1;
	fa_json_each (repair, repairs)
		if (load_repair(c, cause, repair, err) < 0)
			return -1;
	return 0;
}

static int load_quotes(struct fa_causes *c, struct fa_err *err)
{
	const struct fa_json *rows = fa_json_get(c->table, "quotes");

	c->quotes = fa_calloc(fa_json_len(rows) + 1, sizeof(*c->quotes));
	fa_json_each (row, rows) {
		c->quotes[c->n_quotes].text = fa_json_string(row);
		if (!c->quotes[c->n_quotes++].text)
			return fa_err_set(err, FA_INTERNAL, "%s: a quote is a pattern", table_name);
	}
	return 0;
}

int fa_causes_load(struct fa_causes *out, const struct fa_json *table, struct fa_err *err)
{
	const struct fa_json *rows = fa_json_get(table, "causes");

	*out = (struct fa_causes){ .table = table };
	if (load_signals(out, err) < 0 || load_names(out, err) < 0 || load_quotes(out, err) < 0)
		goto failed;
	out->rows = fa_calloc(fa_json_len(rows), sizeof(*out->rows));
	fa_json_each (row, rows)
		if (load_cause(out, row, err) < 0)
			goto failed;
	return 0;
failed:
	fa_causes_release(out);
	return -1;
}

static void release_pattern(struct fa_pattern *p)
{
	if (p->compiled)
		regfree(&p->re);
}

void fa_causes_release(struct fa_causes *c)
{
	for (size_t i = 0; i < c->n_signals; i++)
		release_pattern(&c->signals[i].pattern);
	for (size_t i = 0; i < c->n_derived; i++)
		release_pattern(&c->derived[i].pattern);
	for (size_t i = 0; i < c->n_quotes; i++)
		release_pattern(&c->quotes[i]);
	for (size_t i = 0; i < c->n_rows; i++) {
		struct fa_cause_row *row = &c->rows[i];

		for (size_t k = 0; k < row->n_rules; k++)
			fa_rule_release(&row->rules[k].when);
		for (size_t k = 0; k < row->n_repairs; k++)
			fa_rule_release(&row->repairs[k].when);
		free(row->rules);
		free(row->repairs);
	}
	free(c->rows);
	free(c->signals);
	free(c->derived);
	free(c->quotes);
	free(c->signal_of);
	fa_words_free(c->words);
	fa_strv_release(&c->names);
	*c = (struct fa_causes){ 0 };
}
