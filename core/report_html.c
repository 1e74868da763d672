#include "report_show.h"

#include "buf.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

/* One page, nothing fetched: colours for light and dark by the reader's setting, bars are plain boxes, printable. */
static const char style[] =
        "<style>\n"
        ":root{--ink:#1c2330;--dim:#5c6675;--paper:#fff;--line:#d7dce3;--own:#1f6feb;--other:#8a94a3;--good:#1a7f37;--bad:#"
        "c62828}\n"
        "@media (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#9aa4b2;--paper:#12161c;--line:#2c343f;--own:#58a6ff;"
        "--other:#6b7685;--good:#4ac26b;--bad:#ff7b72}}\n"
        "*{box-sizing:border-box}body{margin:2rem auto;max-width:62rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;"
        "color:var(--ink);background:var(--paper)}\n"
        "h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem}h3{font-size:1rem;margin:1.4rem 0 .3rem}\n"
        "table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;padding:.3rem .6rem;"
        "border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--dim);font-weight:600}\n"
        ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.dim{color:var(--dim)}\n"
        ".ok{color:var(--good)}.failed,.slower{color:var(--bad);font-weight:600}.faster{color:var(--good)}\n"
        ".bars{display:grid;grid-template-columns:12rem 1fr 8rem 8rem 9rem;gap:.25rem "
        ".7rem;align-items:center;font-size:.88rem}\n"
        ".bar{height:.9rem;background:var(--other);border-radius:2px;min-width:2px}.bar.own{background:var(--own)}\n"
        ".lead{font-size:1.1rem}.wide{overflow-x:auto}\n"
        "@media (max-width:46rem){.bars{grid-template-columns:8rem 1fr 5rem}.bars .more{display:none}}\n"
        "@media "
        "print{body{margin:0;max-width:none}.bar{print-color-adjust:exact;-webkit-print-color-adjust:exact}h3{break-after:"
        "avoid}}\n"
        "</style>\n";

static const char *text_of(const struct fa_json *j, const char *key)
{
	const char *s = fa_json_get_string(j, key);

	return s ? s : "";
}

/* Text from a file: shown, never obeyed. */
static void esc(struct fa_buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		switch (*p) {
		case '<': fa_buf_adds(out, "&lt;"); break;
		case '>': fa_buf_adds(out, "&gt;"); break;
		case '&': fa_buf_adds(out, "&amp;"); break;
		case '"': fa_buf_adds(out, "&quot;"); break;
		case '\'': fa_buf_adds(out, "&#39;"); break;
		default: fa_buf_addc(out, *p);
		}
	}
}

static const char *class_of(const char *status)
{
	return !strcmp(status, "ok") ? "ok" : !strcmp(status, "failed") ? "failed" : "dim";
}

static const char *mark_of(const char *status)
{
	return !strcmp(status, "ok") ? "✓" : !strcmp(status, "failed") ? "✗" : "–";
}

static void cell(struct fa_buf *out, const char *class, const char *text)
{
	fa_buf_addf(out, "<td class=\"%s\">", class);
	esc(out, *text ? text : "-");
	fa_buf_adds(out, "</td>");
}

static void add_overview(struct fa_buf *out, const struct fa_report_view *v, size_t n)
{
	fa_buf_adds(out, "<div class=\"wide\"><table><tr><th>Report</th><th>Card</th><th>PyTorch</th><th>Flash-Attention</th>"
	                 "<th>Result</th><th>Speed</th></tr>\n");
	for (size_t i = 0; i < n; i++) {
		fa_buf_adds(out, "<tr>");
		cell(out, "", v[i].name);
		cell(out, "", v[i].card);
		cell(out, "", v[i].torch);
		cell(out, "", v[i].version);
		cell(out, class_of(v[i].status), v[i].status);
		cell(out, "", v[i].sentence);
		fa_buf_adds(out, "</tr>\n");
	}
	fa_buf_adds(out, "</table></div>\n");
}

static void add_stages(struct fa_buf *out, const struct fa_report_view *v)
{
	fa_buf_adds(out, "<table><tr><th></th><th>Stage</th><th class=\"n\">Time</th><th>Found</th></tr>\n");
	fa_json_each (s, fa_json_get(v->json, "stages")) {
		const char *status = text_of(s, "status");

		fa_buf_adds(out, "<tr>");
		cell(out, class_of(status), mark_of(status));
		cell(out, "", text_of(s, "id"));
		fa_buf_addf(out, "<td class=\"n\">%.1f s</td>", fa_json_get_number(s, "seconds", 0));
		cell(out, "", text_of(s, "text"));
		fa_buf_adds(out, "</tr>\n");
	}
	fa_buf_adds(out, "</table>\n");
}

static void add_failed(struct fa_buf *out, const struct fa_report_view *v)
{
	fa_json_each (c, fa_json_get(v->json, "checks")) {
		const struct fa_json *shrunk = fa_json_get(fa_json_get(c, "data"), "shrunk");
		char *simplest = shrunk ? fa_json_print(shrunk, false) : NULL;

		if (!strcmp(text_of(c, "status"), "failed")) {
			fa_buf_adds(out, "<p class=\"failed\">✗ ");
			esc(out, text_of(c, "stage"));
			fa_buf_adds(out, ", ");
			esc(out, text_of(c, "id"));
			fa_buf_adds(out, ": ");
			esc(out, text_of(c, "text"));
			if (simplest) {
				fa_buf_adds(out, "<br><code>");
				esc(out, simplest);
				fa_buf_adds(out, "</code>");
			}
			fa_buf_adds(out, "</p>\n");
		}
		free(simplest);
	}
}

/* ---- bars: one scale for the whole report, so that lengths may be compared */

static double longest(const struct fa_report_view *v)
{
	double most = v->matmul_tflops;

	fa_json_each (r, fa_json_get(fa_json_get(v->json, "figures"), "rows")) {
		double t = fa_json_get_number(r, "tflops", 0);

		most = t > most ? t : most;
	}
	return most;
}

static void add_bar(struct fa_buf *out, const char *name, double value, double most, bool own)
{
	fa_buf_adds(out, "<span>");
	esc(out, name);
	fa_buf_addf(out, "</span><span><div class=\"bar%s\" style=\"width:%.1f%%\"></div></span>", own ? " own" : "",
	            most > 0 && value > 0 ? 100 * value / most : 0.0);
}

static void add_row(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v,
                    const struct fa_json *r, double most)
{
	const char *what = text_of(r, "what");
	char *mib = fa_report_thousands(fa_json_get_number(r, "mib", -1));
	bool own = strncmp(what, "SDPA", 4) != 0 && strcmp(what, "standard") != 0;
	int counts = 0;
	double ratio = v == first ? 0 : fa_report_ratio(first, r, &counts);

	add_bar(out, what, fa_json_get_number(r, "tflops", 0), most, own);
	fa_buf_addf(out,
	            "<span class=\"n\">%.0f TFLOP/s</span><span class=\"n more\">%.3f ms</span><span class=\"n more\">%s MiB",
	            fa_json_get_number(r, "tflops", 0), fa_json_get_number(r, "ms", 0), mib);
	if (ratio > 0)
		fa_buf_addf(out, " <span class=\"%s\">%.2f x</span>", !counts ? "dim" : ratio < 1 ? "slower" : "faster", ratio);
	fa_buf_adds(out, "</span>\n");
	free(mib);
}

static void add_decode(struct fa_buf *out, const struct fa_json *r)
{
	const struct fa_json *share = fa_json_get(r, "share_of_copy");

	fa_buf_addf(out, "<p>Decode with KV cache: %.3f ms, %.0f GB/s", fa_json_get_number(r, "ms", 0),
	            fa_json_get_number(r, "gbs", 0));
	if (fa_json_type(share) == FA_JSON_NUMBER)
		fa_buf_addf(out, ", %.0f %% of what a copy reaches", fa_json_number(share));
	fa_buf_adds(out, ".</p>\n");
}

static void add_figures(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v)
{
	double most = longest(v);
	char *last = NULL;

	fa_json_each (r, fa_json_get(fa_json_get(v->json, "figures"), "rows")) {
		char *title = fa_report_row_title(r);

		if (!fa_json_get(r, "tflops")) {
			if (last)
				fa_buf_adds(out, "</div>\n");
			free(last);
			last = NULL;
			add_decode(out, r);
			free(title);
			continue;
		}
		if (!last || strcmp(last, title) != 0) {
			fa_buf_adds(out, last ? "</div>\n<h3>" : "<h3>");
			esc(out, title);
			fa_buf_adds(out, "</h3><div class=\"bars\">\n");
		}
		add_row(out, first, v, r, most);
		free(last);
		last = title;
	}
	if (last)
		fa_buf_adds(out, "</div>\n");
	free(last);
	if (v->matmul_tflops > 0)
		fa_buf_addf(out,
		            "<p class=\"dim\">A full bar is %.0f TFLOP/s; a bf16 matmul reaches %.0f on this card. Medians; "
		            "backward "
		            "counts as 2.5 times the work of forward.</p>\n",
		            most, v->matmul_tflops);
}

static void add_report(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v)
{
	fa_buf_adds(out, "<h2>");
	esc(out, *v->card ? v->card : v->name);
	fa_buf_adds(out, "</h2>\n<p class=\"lead\">");
	esc(out, *v->sentence ? v->sentence : v->text);
	fa_buf_adds(out, "</p>\n<p class=\"dim\">");
	esc(out, v->torch);
	fa_buf_adds(out, " · ");
	esc(out, v->version);
	if (*v->driver) {
		fa_buf_adds(out, " · driver ");
		esc(out, v->driver);
	}
	fa_buf_adds(out, " · ");
	esc(out, v->name);
	fa_buf_adds(out, "</p>\n");
	add_failed(out, v);
	add_stages(out, v);
	add_figures(out, first, v);
}

void fa_report_html(struct fa_buf *out, const struct fa_report_view *v, size_t n)
{
	fa_buf_adds(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	                 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	                 "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Flash-Attention, verified</title>\n");
	fa_buf_adds(out, style);
	fa_buf_adds(out, "</head><body>\n<h1>Flash-Attention, verified</h1>\n");
	if (n > 1)
		add_overview(out, v, n);
	for (size_t i = 0; i < n; i++)
		add_report(out, &v[0], &v[i]);
	fa_buf_adds(out, "</body></html>\n");
}
