#include "report_show.h"

#include "buf.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct fa_json *j, const char *key)
{
	const char *s = fa_json_get_string(j, key);

	return s ? s : "";
}

/* Text from a file: what Markdown would obey is escaped. */
static void esc(struct fa_buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		if (*p == '|' || *p == '\\' || *p == '`' || *p == '<')
			fa_buf_addc(out, '\\');
		fa_buf_addc(out, *p == '\n' || *p == '\r' ? ' ' : *p);
	}
}

static void cell(struct fa_buf *out, const char *text)
{
	fa_buf_adds(out, "| ");
	esc(out, text);
	fa_buf_addc(out, ' ');
}

static void add_figure_row(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v,
                           const struct fa_json *r)
{
	char *title = fa_report_row_title(r), *mib = fa_report_thousands(fa_json_get_number(r, "mib", -1));
	int counts = 0;
	double ratio = v == first ? 0 : fa_report_ratio(first, r, &counts);

	cell(out, title);
	cell(out, text_of(r, "what"));
	fa_buf_addf(out, "| %.3f | %.3f–%.3f ", fa_json_get_number(r, "ms", 0), fa_json_get_number(r, "low", 0),
	            fa_json_get_number(r, "high", 0));
	if (fa_json_get(r, "tflops"))
		fa_buf_addf(out, "| %.0f TFLOP/s | %s ", fa_json_get_number(r, "tflops", 0), mib);
	else
		fa_buf_addf(out, "| %.0f GB/s | - ", fa_json_get_number(r, "gbs", 0));
	if (v != first && ratio > 0)
		fa_buf_addf(out, "| %.2f x%s ", ratio, !counts ? "" : ratio < 1 ? " **slower**" : " faster");
	else if (v != first)
		fa_buf_adds(out, "| - ");
	fa_buf_adds(out, "|\n");
	free(title);
	free(mib);
}

static void add_figures(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v)
{
	const struct fa_json *rows = fa_json_get(fa_json_get(v->json, "figures"), "rows");

	if (!fa_json_len(rows))
		return;
	fa_buf_addf(out, "\n| measured | by | ms | 95 %% interval | reaches | MiB %s|\n|---|---|---|---|---|---|%s\n",
	            v == first ? "" : "| against the first ", v == first ? "" : "---|");
	fa_json_each (r, rows)
		add_figure_row(out, first, v, r);
}

static void add_stages(struct fa_buf *out, const struct fa_report_view *v)
{
	if (!fa_json_len(fa_json_get(v->json, "stages")))
		return;
	fa_buf_adds(out, "\n| stage | | s | found |\n|---|---|---|---|\n");
	fa_json_each (s, fa_json_get(v->json, "stages")) {
		cell(out, text_of(s, "id"));
		cell(out, text_of(s, "status"));
		fa_buf_addf(out, "| %.1f ", fa_json_get_number(s, "seconds", 0));
		cell(out, text_of(s, "text"));
		fa_buf_adds(out, "|\n");
	}
}

static void add_failed(struct fa_buf *out, const struct fa_report_view *v)
{
	fa_json_each (c, fa_json_get(v->json, "checks")) {
		if (strcmp(text_of(c, "status"), "failed") != 0)
			continue;
		fa_buf_addf(out, "\n- **failed** ");
		esc(out, text_of(c, "stage"));
		fa_buf_adds(out, ", ");
		esc(out, text_of(c, "id"));
		fa_buf_adds(out, ": ");
		esc(out, text_of(c, "text"));
		fa_buf_addc(out, '\n');
	}
}

static void add_overview(struct fa_buf *out, const struct fa_report_view *v, size_t n)
{
	fa_buf_adds(out, "| report | card | torch | Flash-Attention | result | speed |\n|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < n; i++) {
		const char *cells[] = { v[i].name, v[i].card, v[i].torch, v[i].version, v[i].status, v[i].sentence };

		for (size_t k = 0; k < sizeof(cells) / sizeof(*cells); k++)
			cell(out, *cells[k] ? cells[k] : "-");
		fa_buf_adds(out, "|\n");
	}
}

void fa_report_markdown(struct fa_buf *out, const struct fa_report_view *v, size_t n)
{
	fa_buf_adds(out, "# Flash-Attention, verified\n\n");
	add_overview(out, v, n);
	for (size_t i = 0; i < n; i++) {
		fa_buf_addf(out, "\n## %s\n", v[i].name);
		if (*v[i].text)
			fa_buf_addf(out, "\n%s\n", v[i].text);
		add_failed(out, &v[i]);
		add_stages(out, &v[i]);
		add_figures(out, &v[0], &v[i]);
	}
}
