#include "report_show.h"

#include "buf.h"
#include "file.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct fa_json *j, const char *key)
{
	const char *s = fa_json_get_string(j, key);

	return s ? s : "";
}

/* The text of a check by stage and id, "" when it is not there. */
static const char *check_text(const struct fa_json *report, const char *stage, const char *id)
{
	fa_json_each (c, fa_json_get(report, "checks"))
		if (!strcmp(text_of(c, "stage"), stage) && (!id || !strcmp(text_of(c, "id"), id)))
			return text_of(c, "text");
	return "";
}

static const char *version_of_line(const struct fa_json *report)
{
	fa_json_each (c, fa_json_get(report, "checks"))
		if (!strcmp(text_of(c, "stage"), "environment") && !strcmp(text_of(c, "id"), "flash-attn"))
			return text_of(c, "text");
	return text_of(fa_json_get(report, "choice"), "flash_attn");
}

static void fill(struct fa_report_view *v)
{
	const struct fa_json *verification = fa_json_get(v->json, "verification"), *facts = fa_json_get(v->json, "facts");
	const struct fa_json *card = fa_json_get(fa_json_get(v->json, "figures"), "card");

	v->status = text_of(verification, "status");
	if (!*v->status)
		v->status = text_of(v->json, "verdict");
	v->sentence = text_of(verification, "verdict");
	v->text = text_of(verification, "text");
	v->mode = text_of(verification, "mode");
	v->card = text_of(card, "name");
	if (!*v->card)
		v->card = text_of(fa_json_at(fa_json_get(facts, "gpus"), 0), "name");
	v->torch = check_text(v->json, "import", "torch");
	if (!*v->torch)
		v->torch = text_of(facts, "torch");
	v->line = text_of(fa_json_get(v->json, "choice"), "line");
	v->version = version_of_line(v->json);
	v->driver = text_of(facts, "driver");
	v->matmul_tflops = fa_json_get_number(card, "matmul_tflops", 0);
}

int fa_report_view(struct fa_report_view *out, const char *path, struct fa_err *err)
{
	const char *schema;

	*out = (struct fa_report_view){ .name = fa_file_is_dir(path) ? fa_path_join(path, "report.json") : fa_strdup(path) };
	if (fa_json_read_file(&out->json, out->name, err) < 0)
		goto bad;
	schema = fa_json_get_string(out->json, "schema");
	if (!schema || strcmp(schema, "fainstall.report/1") != 0) {
		fa_err_set(err, FA_USAGE, "%s: not a report: its schema is %s, fainstall.report/1 is needed", out->name,
		           schema ? schema : "not said");
		fa_err_next(err, "give the report.json that `fainstall verify` or `install` wrote");
		goto bad;
	}
	fill(out);
	return 0;
bad:
	fa_report_view_release(out);
	return -1;
}

void fa_report_view_release(struct fa_report_view *v)
{
	fa_json_free(v->json);
	free(v->name);
	*v = (struct fa_report_view){ 0 };
}

char *fa_report_thousands(double value)
{
	char digits[40];
	struct fa_buf b = FA_BUF_INIT;
	size_t len;

	if (!(value >= 0 && value < 1e15))
		return fa_strdup("?");
	len = (size_t)snprintf(digits, sizeof(digits), "%.0f", value);
	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			fa_buf_addc(&b, ',');
		fa_buf_addc(&b, digits[i]);
	}
	return fa_buf_detach(&b);
}

char *fa_report_row_title(const struct fa_json *row)
{
	const struct fa_json *s = fa_json_get(row, "shape");
	char *tokens;
	char *title;

	if (!s)
		return fa_strf("%s", text_of(row, "direction"));
	tokens = fa_report_thousands(fa_json_get_number(s, "sq", 0));
	title = fa_strf("%s, %s, head dim %.0f, %.0f x %s tokens, %.0f heads%s", text_of(row, "direction"), text_of(s, "dtype"),
	                fa_json_get_number(s, "d", 0), fa_json_get_number(s, "b", 0), tokens, fa_json_get_number(s, "h", 0),
	                fa_json_get_bool(s, "causal") ? ", causal" : "");
	free(tokens);
	return title;
}

static bool same_row(const struct fa_json *a, const struct fa_json *b)
{
	char *x = fa_report_row_title(a), *y = fa_report_row_title(b);
	bool same = !strcmp(x, y) && !strcmp(text_of(a, "what"), text_of(b, "what"));

	free(x);
	free(y);
	return same;
}

double fa_report_ratio(const struct fa_report_view *first, const struct fa_json *row, int *counts)
{
	*counts = 0;
	fa_json_each (r, fa_json_get(fa_json_get(first->json, "figures"), "rows")) {
		double a = fa_json_get_number(r, "ms", 0), b = fa_json_get_number(row, "ms", 0);

		if (!same_row(r, row) || a <= 0 || b <= 0)
			continue;
		*counts = (fa_json_get_number(r, "high", a) < fa_json_get_number(row, "low", b) ||
		           fa_json_get_number(r, "low", a) > fa_json_get_number(row, "high", b)) &&
		          (a / b > 1.03 || a / b < 0.97);
		return a / b;
	}
	return 0;
}
