#include "report_show.h"

#include "buf.h"
#include "json.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One page, nothing fetched: colours for light and dark by the reader's setting, told apart by everybody (blue and vermilion, and
 * a mark beside each), bars are plain boxes, printable. */
static const char style[] =
        "<style>\n"
        ":root{--ink:#1c2330;--dim:#5c6675;--paper:#fff;--card:#f5f7fa;--line:#d7dce3;--own:#0062b8;--other:#9aa3b0;"
        "--good:#00674f;--bad:#b3400a;--mark:#b3400a}\n"
        "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#a3adba;--paper:#12161c;--card:#1a2029;"
        "--line:#2f3844;--own:#5aaeff;--other:#66717f;--good:#5fd0ae;--bad:#ff9a5c;--mark:#ff9a5c}}\n"
        "*{box-sizing:border-box}body{margin:2rem auto;max-width:64rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;"
        "color:var(--ink);background:var(--paper);overflow-wrap:break-word}\n"
        "h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.3rem;margin:2.5rem 0 .3rem}h3{font-size:1.05rem;margin:2rem 0 "
        ".4rem}"
        "h4{font-size:.95rem;margin:1.1rem 0 .2rem}\n"
        "table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;padding:.3rem .6rem;"
        "border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--dim);font-weight:600}\n"
        ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.dim{color:var(--dim)}\n"
        ".ok{color:var(--good)}.failed,.slower{color:var(--bad);font-weight:600}.faster{color:var(--good);font-weight:600}\n"
        ".lead{font-size:1.15rem;margin:.4rem 0}.wide{overflow-x:auto}.wide table{min-width:40rem}\n"
        ".answers{display:grid;grid-template-columns:repeat(3,1fr);gap:.8rem;margin:1rem 0}"
        ".answers>div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem}"
        ".answers b{display:block;font-size:1.15rem}.answers "
        "p,td:last-child{overflow-wrap:anywhere}th{white-space:nowrap}.answers p{margin:.2rem 0 "
        "0;font-size:.88rem;color:var(--dim)}\n"
        ".bars{display:grid;grid-template-columns:10.5rem 1fr 4.5rem 5rem 5rem;gap:0 .8rem;align-items:center;"
        "font-size:.88rem}.bars.many{grid-template-columns:10.5rem 1fr 4.5rem 5rem 5rem 6rem}\n"
        ".head{color:var(--dim);font-size:.78rem}.scale{display:flex;justify-content:space-between;color:var(--dim);"
        "font-size:.72rem;margin:0 -1.2rem;font-variant-numeric:tabular-nums}.scale "
        "i{font-style:normal;width:2.4rem;text-align:center;white-space:nowrap}\n"
        ".cell{padding:.22rem 0;align-self:stretch;display:flex;align-items:center;border-right:1px solid var(--line);"
        "background:linear-gradient(var(--mark),var(--mark)) var(--m,200%) 0/2px 100% no-repeat,"
        "repeating-linear-gradient(to right,var(--line) 0 1px,transparent 1px 25%)}\n"
        ".bar{height:.95rem;background:var(--other);border-radius:0 2px 2px 0;min-width:2px}.bar.own{background:var(--own)}\n"
        "@media (max-width:46rem){.answers{grid-template-columns:1fr}.bars,.bars.many{grid-template-columns:7rem 1fr 4rem}"
        ".more{display:none}}\n"
        "@media "
        "print{@page{margin:14mm}body{margin:0;max-width:none;font-size:10pt}.bars{break-inside:avoid}h3,h4{break-after:avoid}"
        "tr,.answers>div{break-inside:avoid}.bar,.cell,.answers>div{print-color-adjust:exact;-webkit-print-color-adjust:exact}}"
        "\n"
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

/* How many figures differ from the first report's: by more than chance, and more than 3 %. */
static void add_changes(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v)
{
	int slower = 0, faster = 0, same = 0, counts = 0;

	fa_json_each (r, fa_json_get(fa_json_get(v->json, "figures"), "rows")) {
		double ratio = v == first ? 0 : fa_report_ratio(first, r, &counts);

		if (ratio > 0)
			*(!counts ? &same : ratio < 1 ? &slower : &faster) += 1;
	}
	fa_buf_adds(out, "<td>");
	if (slower)
		fa_buf_addf(out, "<span class=\"slower\">✗ %d slower</span> ", slower);
	if (faster)
		fa_buf_addf(out, "<span class=\"faster\">✓ %d faster</span> ", faster);
	if (slower + faster + same > 0)
		fa_buf_addf(out, "<span class=\"dim\">%d alike</span>", same);
	else
		fa_buf_adds(out, v == first ? "first" : "no figure in common");
	fa_buf_adds(out, "</td>");
}

static void add_overview(struct fa_buf *out, const struct fa_report_view *v, size_t n)
{
	fa_buf_adds(out, "<div class=\"wide\"><table><tr><th>Report</th><th>Card</th><th>PyTorch</th><th>Flash-Attention</th>"
	                 "<th>Result</th><th>Against first</th><th>Speed</th></tr>\n");
	for (size_t i = 0; i < n; i++) {
		fa_buf_adds(out, "<tr>");
		cell(out, "", v[i].name);
		cell(out, "", v[i].card);
		cell(out, "", v[i].torch);
		cell(out, "", v[i].version);
		cell(out, class_of(v[i].status), v[i].status);
		add_changes(out, &v[0], &v[i]);
		cell(out, "", v[i].sentence);
		fa_buf_adds(out, "</tr>\n");
	}
	fa_buf_adds(out, "</table></div>\n");
}

static const struct fa_json *stage_of(const struct fa_report_view *v, const char *id)
{
	fa_json_each (s, fa_json_get(v->json, "stages"))
		if (!strcmp(text_of(s, "id"), id))
			return s;
	return NULL;
}

static bool has_failed(const struct fa_report_view *v, const char *stage)
{
	fa_json_each (c, fa_json_get(v->json, "checks"))
		if (!strcmp(text_of(c, "stage"), stage) && !strcmp(text_of(c, "status"), "failed"))
			return true;
	return false;
}

/* Is there a source for what this card should reach, and was it held against it? */
static bool expectation_known(const struct fa_report_view *v)
{
	fa_json_each (c, fa_json_get(v->json, "checks"))
		if (!strcmp(text_of(c, "stage"), "speed") && !strncmp(text_of(c, "id"), "expected ", 9))
			return true;
	return false;
}

/* The three questions, answered in words before any figure. */
static void add_answers(struct fa_buf *out, const struct fa_report_view *v)
{
	const struct {
		const char *stage, *question, *yes, *no;
	} asked[] = {
		{ "numbers", "Are the numbers right?", "Yes", "No" },
		{ "used", "Is it what really runs?", "Yes", "No" },
		{ "speed", "Is it as fast as it should be?",
		  expectation_known(v) ? "Yes, as cards of this kind are" : "No fault found", "No" },
	};

	fa_buf_adds(out, "<div class=\"answers\">\n");
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		const struct fa_json *s = stage_of(v, asked[i].stage);
		const char *status = has_failed(v, asked[i].stage) ? "failed" : s ? text_of(s, "status") : "not_run";
		bool ok = !strcmp(status, "ok"), bad = !strcmp(status, "failed");

		fa_buf_addf(out, "<div><span class=\"dim\">%s</span><b class=\"%s\">%s %s</b><p>", asked[i].question,
		            class_of(status), mark_of(status),
		            ok    ? asked[i].yes
		            : bad ? asked[i].no
		                  : "Not measured");
		esc(out, s ? text_of(s, "text") : "the run did not come to it");
		fa_buf_adds(out, "</p></div>\n");
	}
	fa_buf_adds(out, "</div>\n");
}

static void add_stages(struct fa_buf *out, const struct fa_report_view *v)
{
	fa_buf_adds(out, "<h3>Stages</h3>\n<table><tr><th></th><th>Stage</th><th class=\"n\">Time</th><th>Found</th></tr>\n");
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

/* A quarter of the scale: a round number, so that four of them hold the longest bar and leave little empty. */
static double tick_of(double most)
{
	static const double steps[] = { 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10 };
	double power = 1;

	while (4 * 10 * power < most)
		power *= 10;
	while (power > 1e-6 && 4 * power / 10 >= most)
		power /= 10;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (4 * steps[i] * power >= most)
			return steps[i] * power;
	return 10 * power;
}

static double share(double value, double tick)
{
	return value > 0 && tick > 0 ? 100 * value / (4 * tick) : 0;
}

/* The head of a chart: what the columns are, and the scale of the bars. */
static void begin_bars(struct fa_buf *out, const struct fa_report_view *v, double tick, bool many)
{
	fa_buf_addf(out, "<div class=\"bars%s\"", many ? " many" : "");
	if (v->matmul_tflops > 0)
		fa_buf_addf(out, " style=\"--m:%.1f%%\"", share(v->matmul_tflops, tick));
	fa_buf_adds(out, "><span></span><span class=\"scale\">");
	for (int i = 0; i <= 4; i++)
		fa_buf_addf(out, "<i>%g</i>", i * tick);
	fa_buf_addf(out,
	            "</span><span class=\"n head\">TFLOP/s</span><span class=\"n head more\">time, ms</span>"
	            "<span class=\"n head more\">extra MiB</span>%s\n",
	            many ? "<span class=\"n head\">against first</span>" : "");
}

static void add_change(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v,
                       const struct fa_json *r)
{
	int counts = 0;
	double ratio = v == first ? 0 : fa_report_ratio(first, r, &counts);
	bool slower = ratio < 1;

	fa_buf_adds(out, "<span class=\"n\">");
	if (v != first && ratio > 0)
		fa_buf_addf(out, "<span class=\"%s\">%.2f x%s</span>",
		            !counts  ? "dim"
		            : slower ? "slower"
		                     : "faster",
		            ratio,
		            !counts  ? ""
		            : slower ? " slower"
		                     : " faster");
	fa_buf_adds(out, "</span>");
}

static void add_row(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v,
                    const struct fa_json *r, double tick, bool many)
{
	const char *what = text_of(r, "what");
	char *mib = fa_report_thousands(fa_json_get_number(r, "mib", -1));
	bool own = strncmp(what, "SDPA", 4) != 0 && strcmp(what, "standard") != 0;
	double tflops = fa_json_get_number(r, "tflops", 0), ms = fa_json_get_number(r, "ms", 0);

	fa_buf_addf(out, "<span>%s", own ? "<strong>" : "");
	esc(out, what);
	fa_buf_addf(out, "%s</span><span class=\"cell\"><span class=\"bar%s\" style=\"width:%.1f%%\"></span></span>",
	            own ? "</strong>" : "", own ? " own" : "", share(tflops, tick));
	fa_buf_addf(out,
	            "<span class=\"n\">%.*f</span><span class=\"n more\" title=\"95 %% interval %.3f to %.3f ms\">%.3f</span>"
	            "<span class=\"n more\">%s</span>",
	            tflops < 10 ? 2 : 0, tflops, fa_json_get_number(r, "low", ms), fa_json_get_number(r, "high", ms), ms, mib);
	if (many)
		add_change(out, first, v, r);
	fa_buf_addc(out, '\n');
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

static void add_figures(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v, bool many)
{
	double tick = tick_of(longest(v));
	char *last = NULL;

	if (!fa_json_len(fa_json_get(fa_json_get(v->json, "figures"), "rows")))
		return;
	fa_buf_adds(out, "<h3>Speed and memory</h3>\n<p class=\"dim\">Longer bars are faster. Medians; extra memory is what "
	                 "the call needs "
	                 "beyond its inputs; backward counts as 2.5 times the work of forward.");
	if (v->matmul_tflops > 0)
		fa_buf_addf(out, " The upright line is what a bf16 matmul reaches on this card: %.0f TFLOP/s.",
		            v->matmul_tflops);
	fa_buf_adds(out, "</p>\n");
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
			fa_buf_adds(out, last ? "</div>\n<h4>" : "<h4>");
			esc(out, title);
			fa_buf_adds(out, "</h4>");
			begin_bars(out, v, tick, many);
		}
		add_row(out, first, v, r, tick, many);
		free(last);
		last = title;
	}
	if (last)
		fa_buf_adds(out, "</div>\n");
	free(last);
}

/* ---- upstream's own tests and benchmark */

static void add_tests(struct fa_buf *out, const struct fa_json *tests)
{
	static const char *const keys[] = { "passed", "failed", "skipped", "refused", "chosen", "of" };

	if (!fa_json_len(tests))
		return;
	fa_buf_adds(
	        out,
	        "<div class=\"wide\"><table><tr><th>Tests</th><th class=\"n\">passed</th><th class=\"n\">failed</th><th "
	        "class=\"n\">"
	        "skipped</th><th class=\"n\">refused in words</th><th class=\"n\">chosen</th><th class=\"n\">of</th></tr>\n");
	fa_json_each (t, tests) {
		fa_buf_adds(out, "<tr>");
		cell(out, "", text_of(t, "file"));
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
			char *n = fa_report_thousands(fa_json_get_number(t, keys[i], 0));

			cell(out, "n", n);
			free(n);
		}
		fa_buf_adds(out, "</tr>\n");
	}
	fa_buf_adds(out, "</table></div>\n");
}

static void add_agreement_cells(struct fa_buf *out, const struct fa_json *r)
{
	static const char *const directions[] = { "forward", "backward", "both" };

	for (size_t i = 0; i < sizeof(directions) / sizeof(*directions); i++) {
		const struct fa_json *d = fa_json_get(r, directions[i]);
		double ratio = fa_json_get_number(d, "ratio", 0);

		if (d)
			fa_buf_addf(out, "<td class=\"n\">%.0f</td><td class=\"n\">%.0f</td><td class=\"n %s\">%+.1f %%</td>",
			            fa_json_get_number(d, "upstream", 0), fa_json_get_number(d, "here", 0),
			            ratio > 1.05 || ratio < 0.95 ? "slower" : "dim", 100 * (ratio - 1));
		else
			fa_buf_adds(out, "<td></td><td></td><td></td>");
	}
}

static void add_agreement(struct fa_buf *out, const struct fa_json *rows)
{
	if (!fa_json_len(rows))
		return;
	fa_buf_adds(out, "<h4>Its benchmark beside ours, fp16, TFLOP/s</h4><div class=\"wide\"><table><tr><th>Shape</th>");
	for (int i = 0; i < 3; i++)
		fa_buf_addf(out, "<th class=\"n\">%s: upstream</th><th class=\"n\">ours</th><th class=\"n\"></th>",
		            i == 0   ? "forward"
		            : i == 1 ? "backward"
		                     : "both");
	fa_buf_adds(out, "</tr>\n");
	fa_json_each (r, rows) {
		char *tokens = fa_report_thousands(fa_json_get_number(r, "s", 0));

		fa_buf_addf(out, "<tr><td>d%.0f, %.0f x %s%s</td>", fa_json_get_number(r, "d", 0),
		            fa_json_get_number(r, "b", 0), tokens, fa_json_get_bool(r, "causal") ? ", causal" : "");
		add_agreement_cells(out, r);
		fa_buf_adds(out, "</tr>\n");
		free(tokens);
	}
	fa_buf_adds(out, "</table></div>\n");
}

static void add_upstream(struct fa_buf *out, const struct fa_report_view *v)
{
	const struct fa_json *u = fa_json_get(fa_json_get(v->json, "figures"), "upstream");

	if (!u)
		return;
	fa_buf_adds(out, "<h3>Upstream's own tests and benchmark, unmodified</h3>\n");
	add_tests(out, fa_json_get(u, "tests"));
	add_agreement(out, fa_json_get(u, "agreement"));
}

static void add_report(struct fa_buf *out, const struct fa_report_view *first, const struct fa_report_view *v, bool many)
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
	add_answers(out, v);
	add_failed(out, v);
	add_figures(out, first, v, many);
	add_upstream(out, v);
	add_stages(out, v);
}

void fa_report_html(struct fa_buf *out, const struct fa_report_view *v, size_t n)
{
	fa_buf_adds(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	                 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	                 "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Flash-Attention, verified</title>\n");
	fa_buf_adds(out, style);
	fa_buf_addf(out, "</head><body>\n<h1>Flash-Attention, %s</h1>\n", n > 1 ? "compared" : "verified");
	if (n > 1)
		add_overview(out, v, n);
	for (size_t i = 0; i < n; i++)
		add_report(out, &v[0], &v[i], n > 1);
	fa_buf_adds(out, "</body></html>\n");
}
