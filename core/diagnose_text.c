#include "diagnose.h"

#include "json.h"

#include <stdlib.h>

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
		fa_buf_addf(out, "The cause is not known. %zu line%s read.\n", d->n_lines, d->n_lines == 1 ? " was" : "s were");
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
