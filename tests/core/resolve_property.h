/* Generated hosts and wishes, and what must hold for every plan: used by the quick test and by the proof. */
#ifndef RESOLVE_PROPERTY_H
#define RESOLVE_PROPERTY_H

#include "buf.h"
#include "json.h"
#include "matrix.h"
#include "plan.h"
#include "version.h"
#include "wheel_judge.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t property_state = 1;

static uint32_t roll(uint32_t n)
{
	property_state ^= property_state << 13;
	property_state ^= property_state >> 7;
	property_state ^= property_state << 17;
	return (uint32_t)(property_state >> 11) % n;
}

#define PICK(list) (list)[roll(sizeof(list) / sizeof((list)[0]))]

static void text(struct fa_facts *f, enum fa_fact id, const char *value)
{
	if (value)
		fa_facts_set_text(f, id, value, NULL);
}

static void random_cards(struct fa_facts *f, const char *vendor)
{
	static const char *const NVIDIA[] = { "61", "70", "75",  "80",  "86",  "86",  "87",  "89", "89",
		                              "90", "90", "100", "103", "110", "120", "121", "107" };
	static const char *const AMD[] = { "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201" };
	uint32_t n = roll(12) ? 1 + (roll(6) == 0) + (roll(12) == 0) : 0;

	f->gpus_known = roll(40) != 0;
	if (!f->gpus_known && roll(2))
		fa_facts_add_problem(f, "driver_library_mismatch", "nvidia-smi", "mismatch", "reboot");
	for (uint32_t i = 0; f->gpus_known && i < n; i++) {
		bool other = roll(15) == 0;
		bool amd = !strcmp(vendor, "amd") != other;
		struct fa_gpu *g = fa_facts_add_gpu(f);

		g->vendor = fa_strdup(amd ? "amd" : "nvidia");
		g->arch = fa_strdup(amd ? PICK(AMD) : PICK(NVIDIA));
		g->name = fa_strdup(amd ? "AMD Instinct" : "NVIDIA card");
	}
}

static void random_python(struct fa_facts *f)
{
	static const char *const PYTHONS[] = { "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.12", "3.13", "3.14", "3.15" };
	const char *python = PICK(PYTHONS);
	char *full = fa_strf("%s.%u", python, roll(15)), *abi = fa_strf("cp3%s%s", python + 2, roll(15) ? "" : "t");

	text(f, FA_FACT_PYTHON, full);
	text(f, FA_FACT_PYTHON_ABI, abi);
	if (roll(5))
		fa_facts_set_bool(f, FA_FACT_PYTHON_HEADERS, roll(6) != 0, NULL);
	free(full);
	free(abi);
}

static void random_torch(struct fa_facts *f)
{
	static const char *const TORCH[] = { "1.13.1+cu117",  "2.0.1+cu118",     "2.1.2+cu121",  "2.2.2+cu121",
		                             "2.3.1+cu118",   "2.4.1+cu121",     "2.5.1+cu124",  "2.6.0+cu124",
		                             "2.6.0+cu126",   "2.7.1+cu128",     "2.8.0+cu128",  "2.8.0+cu126",
		                             "2.8.0+cpu",     "2.9.1+cu130",     "2.10.0+cu128", "2.11.0+cu130",
		                             "2.12.0+cu130",  "2.14.0+cu132",    "2.15.0+cu132", "2.6.0a0+df5bbc0.nv24.12",
		                             "2.8.0+rocm6.4", "2.6.0+rocm6.2.4", "2.5.1",        "2.9.0.dev20250901+cu128" };
	const char *torch, *cu;

	if (roll(3) == 0) {
		text(f, FA_FACT_TORCH, "");
		return;
	}
	torch = PICK(TORCH);
	cu = strstr(torch, "+cu");
	text(f, FA_FACT_TORCH, torch);
	text(f, FA_FACT_TORCH_HIP, strstr(torch, "rocm") ? "6.4" : "");
	if (cu) {
		char *cuda = fa_strf("%.2s.%s", cu + 3, cu + 5);

		text(f, FA_FACT_TORCH_CUDA, cuda);
		free(cuda);
	} else {
		text(f, FA_FACT_TORCH_CUDA, strstr(torch, "rocm") || strstr(torch, "cpu") ? "" : "12.6");
	}
	if (roll(3))
		fa_facts_set_bool(f, FA_FACT_TORCH_CXX11ABI, fa_version_compare(torch, "2.7") >= 0 || roll(4) == 0, NULL);
}

static void random_tools(struct fa_facts *f)
{
	static const char *const NVCC[] = { "11.5.119", "11.8.89", "12.1.105", "12.4.131",
		                            "12.8.93",  "12.9.86", "13.0.88",  "13.2.51" };
	static const char *const CXX[] = { "",           "g++ 8.5.0",  "g++ 9.4.0",      "g++ 11.4.0", "g++ 12.2.0",
		                           "g++ 13.3.0", "g++ 16.1.1", "clang++ 17.0.6", "nvc++ 24.3" };

	f->toolkits_known = true;
	if (roll(2))
		fa_facts_add_toolkit(f, "cuda", PICK(NVCC), "/usr/local/cuda");
	if (roll(6) == 0)
		fa_facts_add_toolkit(f, "rocm", "6.4.1", "/opt/rocm");
	text(f, FA_FACT_CXX, PICK(CXX));
	text(f, FA_FACT_MSVC, roll(2) ? "" : "19.44");
	fa_facts_set_number(f, FA_FACT_CORES, 1 + roll(128), NULL);
	if (roll(10))
		fa_facts_set_number(f, FA_FACT_RAM_AVAILABLE_MIB, 1000 + roll(500000), NULL);
	if (roll(10))
		fa_facts_set_number(f, FA_FACT_DISK_FREE_MIB, roll(200000), NULL);
	if (roll(8) == 0)
		fa_facts_add_env(f, "MAX_JOBS", "64");
	if (roll(12) == 0)
		fa_facts_add_env(f, "CUDA_VISIBLE_DEVICES", "0");
}

static void random_host(struct fa_facts *f)
{
	static const char *const GLIBC[] = { "2.17", "2.28", "2.31", "2.34", "2.35", "2.39", NULL };
	static const char *const DRIVERS[] = { "",          "390.157",   "470.161.03", "525.60.13", "535.183.01",
		                               "550.54.15", "570.86.10", "580.65.06",  "595.45.04", NULL };
	static const char *const INSTALLED[] = { "", "", "", "", "2.8.3", "2.7.2.post1", "2.8.1", "2.0.4" };
	uint32_t os = roll(12);

	*f = (struct fa_facts)FA_FACTS_INIT;
	text(f, FA_FACT_OS, os == 0 ? "darwin" : os < 3 ? "windows" : "linux");
	text(f, FA_FACT_MACHINE, roll(6) ? "x86_64" : "aarch64");
	text(f, FA_FACT_GLIBC, os >= 3 ? PICK(GLIBC) : "");
	text(f, FA_FACT_DRIVER, PICK(DRIVERS));
	text(f, FA_FACT_ROCM, roll(4) ? "" : "6.4.1");
	text(f, FA_FACT_FLASH_ATTN, PICK(INSTALLED));
	random_cards(f, roll(6) ? "nvidia" : "amd");
	random_python(f);
	random_torch(f);
	random_tools(f);
}

static void random_wish(struct fa_wish *w)
{
	static const struct {
		enum fa_wish_id id;
		const char *values[8];
	} WISHES[] = {
		{ FA_WISH_LINE, { "fa2", "fa3", "fa4" } },
		{ FA_WISH_FLASH_ATTN, { "2.8.3", "2.7.4.post1", "2.6.3", "1.0.9", "2.8.1", "9.9.9" } },
		{ FA_WISH_ROUTE, { "wheel", "source", "sdpa", "ck", "triton" } },
		{ FA_WISH_TORCH, { "2.8.0", "2.11.0+cu130", "2.15.0", "2.4.0+cu118", "2.7.1+cu130" } },
		{ FA_WISH_PYTHON, { "3.10", "3.12", "3.13t" } },
		{ FA_WISH_CUDA, { "12.8", "13.0", "11.8", "12.3" } },
		{ FA_WISH_ARCH, { "80", "90", "120", "80,90", "gfx942" } },
		{ FA_WISH_PROFILE, { "training", "inference", "full" } },
		{ FA_WISH_HEAD_DIM, { "128", "256", "512" } },
		{ FA_WISH_SOURCE, { "official", "community", "pypi" } },
		{ FA_WISH_KEEP_TORCH, { "yes" } },
		{ FA_WISH_OFFLINE, { "yes" } },
		{ FA_WISH_RELAX, { "cuda-check" } },
	};
	uint32_t n = roll(3);

	*w = (struct fa_wish)FA_WISH_INIT;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = roll(sizeof(WISHES) / sizeof(WISHES[0])), many = 0;

		while (many < 8 && WISHES[k].values[many])
			many++;
		free(w->v[WISHES[k].id]);
		w->v[WISHES[k].id] = fa_strdup(WISHES[k].values[roll(many)]);
	}
}

/* ---- what must hold; each returns NULL or what does not */

static bool is(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* The name at the end of an address. */
static char *file_of(const char *url)
{
	const char *slash = strrchr(url, '/');
	struct fa_buf b = FA_BUF_INIT;

	for (const char *p = slash ? slash + 1 : url; *p; p++)
		if (!strncmp(p, "%2B", 3)) {
			fa_buf_addc(&b, '+');
			p += 2;
		} else {
			fa_buf_addc(&b, *p);
		}
	return fa_buf_detach(&b);
}

static const char *plan_fault(const struct fa_plan *p, const struct fa_facts *f, const struct fa_wish *w, struct fa_matrix *m)
{
	const struct fa_choice *c = &p->choice;
	bool planned = w->v[FA_WISH_ARCH] != NULL;
	const char *why = NULL;

	if (p->status == FA_PLAN_IMPOSSIBLE)
		return !p->n_rejected ? "impossible without a refusal" : !p->n_nearest ? "impossible without nearest" : NULL;
	if (p->status == FA_PLAN_ACTION && !p->n_actions)
		return "action without an action";
	if (!c->route || !c->line || !c->torch)
		return "no route, line or torch";
	if (w->v[FA_WISH_LINE] && !is(c->line, w->v[FA_WISH_LINE]))
		return "another line than asked for";
	if (w->v[FA_WISH_ROUTE] && !is(c->route, w->v[FA_WISH_ROUTE]) && !is(c->route, "keep"))
		return "another route than asked for";
	if (w->v[FA_WISH_SOURCE] && c->wheel.name && !is(c->wheel.source, w->v[FA_WISH_SOURCE]))
		return "a source that was not asked for";
	if (w->v[FA_WISH_FLASH_ATTN] && c->flash_attn && !fa_version_matches(c->flash_attn, w->v[FA_WISH_FLASH_ATTN]))
		return "another version than asked for";
	if (is(c->route, "sdpa") && p->status == FA_PLAN_READY && !p->n_warnings && !w->v[FA_WISH_ROUTE])
		return "torch's own attention without a warning";
	for (size_t i = 0; i < p->n_actions; i++)
		if (!p->actions[i].id || !p->actions[i].text || strchr(p->actions[i].text, '?'))
			return "an action with a gap in its text";
	for (size_t i = 0; i < p->n_warnings; i++)
		if (strstr(p->warnings[i].text, " ?") || strchr(p->warnings[i].text, '{'))
			return "a warning with a gap in its text";
	for (size_t i = 0; i < p->n_actions; i++)
		for (size_t k = 0; k < i; k++)
			if (is(p->actions[i].id, p->actions[k].id) || is(p->actions[i].text, p->actions[k].text))
				return "the same action twice";
	if (is(c->route, "wheel"))
		why = c->wheel.name ? judge_wheel(m, c, f, c->wheel.name, planned) : "route wheel without a name";
	for (size_t i = 0; i < p->fallbacks.n && !why; i++)
		if (is(c->route, "wheel")) {
			char *name = file_of(p->fallbacks.v[i]);

			why = judge_wheel(m, c, f, name, planned);
			free(name);
		}
	if (!why && p->status == FA_PLAN_READY)
		why = judge_torch(m, c, f, planned);
	return why;
}

static char *bytes_of(const struct fa_plan *p)
{
	struct fa_json *j = fa_plan_to_json(p);
	char *s = fa_json_print(j, false);

	fa_json_free(j);
	return s;
}

static const char *driver_fault(const struct fa_plan *p, const struct fa_facts *f, const struct fa_wish *w, struct fa_matrix *m)
{
	struct fa_facts newer = FA_FACTS_INIT;
	struct fa_plan q;
	const char *fault = NULL;

	if (p->status == FA_PLAN_IMPOSSIBLE || !fa_facts_has(f, FA_FACT_DRIVER))
		return NULL;
	fa_facts_merge(&newer, f);
	fa_facts_set_text(&newer, FA_FACT_DRIVER, "999.99", NULL);
	if (fa_resolve(&q, &newer, w, m, NULL) < 0 || q.status == FA_PLAN_IMPOSSIBLE)
		fault = "a newer driver makes it impossible";
	fa_plan_release(&q);
	fa_facts_release(&newer);
	return fault;
}

static const char *bytes_fault(const struct fa_plan *p, const struct fa_facts *f, const struct fa_wish *w, struct fa_matrix *m)
{
	struct fa_plan again, back;
	char *a = bytes_of(p), *b, *c = NULL;
	struct fa_json *j = NULL;
	const char *fault = NULL;

	fa_resolve(&again, f, w, m, NULL);
	if (p->status != FA_PLAN_IMPOSSIBLE)
		fa_plan_steps(&again, f, m, NULL);
	b = bytes_of(&again);
	if (strcmp(a, b) != 0)
		fault = "the same question gives other bytes";
	else if (fa_json_parse(&j, a, strlen(a), "plan", NULL) < 0 || fa_plan_from_json(&back, j, "plan", NULL) < 0)
		fault = "the plan cannot be read back";
	else {
		c = bytes_of(&back);
		if (strcmp(a, c) != 0)
			fault = "the plan read back is another";
		fa_plan_release(&back);
	}
	fa_plan_release(&again);
	fa_json_free(j);
	free(a);
	free(b);
	free(c);
	return fault;
}

/* A machine that needs something first whatever is asked: a fault that hides its cards, no card, no Python, a driver too old. */
static bool may_need_action(const struct fa_plan *q)
{
	return q->n_actions > 0;
}

/* Each wish that is said to be near works as it stands, and comes to what was said. */
static const char *nearest_fault(const struct fa_plan *p, const struct fa_facts *f, struct fa_matrix *m)
{
	const char *broken = NULL;

	for (size_t i = 0; i < p->n_nearest && !broken; i++) {
		const struct fa_nearest *n = &p->nearest[i];
		struct fa_wish w = FA_WISH_INIT;
		struct fa_plan q = FA_PLAN_INIT;

		for (size_t k = 0; k < n->wish.n && !broken; k++) {
			enum fa_wish_id id;
			bool flag = fa_wish_find(&id, n->wish.v[k] + 2) == 0 && fa_wish_row(id)->kind == FA_WISH_FLAG;

			if (fa_wish_find(&id, n->wish.v[k] + 2) < 0 ||
			    fa_wish_set(&w, id, flag ? "yes" : n->wish.v[++k], NULL) < 0)
				broken = "a near wish that is none";
		}
		if (!broken && (fa_resolve(&q, f, &w, m, NULL) < 0 || q.status == FA_PLAN_IMPOSSIBLE))
			broken = "a near wish is impossible";
		else if (!broken && (!is(q.choice.route, n->choice.route) || !is(q.choice.torch, n->choice.torch)))
			broken = "a near wish comes to something else";
		else if (!broken && q.status != FA_PLAN_READY && !may_need_action(&q))
			broken = "a near wish is not ready";
		fa_plan_release(&q);
		fa_wish_release(&w);
	}
	return broken;
}

/* What was taken is forbidden: it is not taken again, not as a fallback and not as what is near. */
struct forbidden {
	struct fa_matrix *m;
	char what; /* source, route, line */
};

static const char *forbidden_fault(const struct forbidden *no, const struct fa_facts *f, const struct fa_wish *w)
{
	struct fa_plan q;
	const char *broken = NULL;

	if (fa_resolve(&q, f, w, no->m, NULL) < 0)
		broken = "a policy makes it fail";
	for (size_t i = 0; i <= q.n_nearest && !broken; i++) {
		const struct fa_choice *c = i ? &q.nearest[i - 1].choice : &q.choice;

		if (!i && q.status == FA_PLAN_IMPOSSIBLE)
			continue;
		if (no->what == 's' && c->wheel.name && !is(c->wheel.source, "official"))
			broken = "a forbidden source comes back";
		if (no->what == 'r' && (is(c->route, "source") || is(c->route, "ck") || is(c->route, "triton")))
			broken = "a forbidden route comes back";
		if (no->what == 'l' && (is(c->line, "fa3") || is(c->line, "fa4")))
			broken = "a forbidden line comes back";
	}
	for (size_t i = 0; i < q.fallbacks.n && !broken; i++)
		if (no->what == 's' && strstr(q.fallbacks.v[i], "Dao-AILab") == NULL)
			broken = "a forbidden source comes back as a fallback";
	fa_plan_release(&q);
	return broken;
}

/* What is remembered from earlier questions changes no answer: the same from knowledge that has answered none. */
static const char *fresh_fault(const struct fa_plan *p, const struct fa_facts *f, const struct fa_wish *w)
{
	struct fa_matrix *fresh;
	struct fa_plan q;
	char *a = bytes_of(p), *b;
	const char *broken;

	if (fa_matrix_open(&fresh, NULL) < 0)
		return "no second knowledge";
	fa_resolve(&q, f, w, fresh, NULL);
	if (p->status != FA_PLAN_IMPOSSIBLE)
		fa_plan_steps(&q, f, fresh, NULL);
	b = bytes_of(&q);
	broken = strcmp(a, b) ? "fresh knowledge gives other bytes" : NULL;
	fa_plan_release(&q);
	fa_matrix_close(fresh);
	free(a);
	free(b);
	return broken;
}

enum { POLICIES = 3 };

static void open_policies(struct forbidden *no)
{
	static const struct {
		char what;
		const char *text;
	} TEXTS[POLICIES] = { { 's', "\"sources\": [\"official\"]" },
		              { 'r', "\"routes\": [\"wheel\", \"sdpa\", \"keep\"]" },
		              { 'l', "\"lines\": [\"fa2\"]" } };
	const char *data = getenv("FAINSTALL_DATA") ? getenv("FAINSTALL_DATA") : ".";

	for (int i = 0; i < POLICIES; i++) {
		char path[] = "/tmp/policy-XXXXXX", *matrix = fa_strf("%s/matrix", data),
		     *recipes = fa_strf("%s/recipes", data);
		int fd = mkstemp(path);
		struct fa_err err = FA_ERR_INIT;
		struct fa_kb *kb;

		no[i].what = TEXTS[i].what;
		if (fd < 0 || dprintf(fd, "{\"schema\": \"fainstall.policy/1\", %s}\n", TEXTS[i].text) < 0 ||
		    fa_matrix_open_at(&no[i].m, matrix, recipes, NULL, &err) < 0) {
			printf("no policy: %s\n", err.text);
			exit(1);
		}
		close(fd);
		fa_strv_push(fa_matrix_policies(no[i].m), path);
		if (fa_matrix_kb(&kb, no[i].m, &err) < 0) {
			printf("no policy: %s\n", err.text);
			exit(1);
		}
		unlink(path);
		free(matrix);
		free(recipes);
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct property_times { /* CPU seconds of one resolve */
	double mean, median, p99, most;
};

static void show_fault(unsigned host, const char *what, const struct fa_plan *p, const struct fa_facts *f,
                       const struct fa_wish *w)
{
	struct fa_json *j = fa_facts_to_json(f);
	struct fa_strv argv = FA_STRV_INIT;
	char *facts = fa_json_print(j, false), *wish, *plan = bytes_of(p);

	fa_wish_argv(w, &argv);
	wish = fa_strv_join(&argv, " ");
	printf("host %u: %s\n  wish: %s\n  facts: %s\n  plan: %.600s\n", host, what, wish, facts, plan);
	for (size_t k = 0; k < p->n_actions; k++)
		printf("  action: %s\n", p->actions[k].text);
	for (size_t k = 0; k < p->n_warnings; k++)
		printf("  warning: %s\n", p->warnings[k].text);
	for (size_t k = 0; k < p->n_nearest; k++) {
		char *near = fa_strv_join(&p->nearest[k].wish, " ");

		printf("  near: %s\n", near);
		free(near);
	}
	free(facts);
	free(wish);
	free(plan);
	fa_strv_release(&argv);
	fa_json_free(j);
}

static void make_host(struct fa_facts *f, struct fa_wish *w, unsigned i)
{
	property_state = i * 0x9e3779b97f4a7c15ULL + 1;
	for (int k = 0; k < 4; k++)
		roll(2);
	random_host(f);
	random_wish(w);
}

/* Returns the number of hosts that broke something; prints the first few with their seed. */
static int run_properties(struct fa_matrix *m, unsigned hosts, struct property_times *times)
{
	double *each = fa_calloc(hosts, sizeof(*each));
	struct forbidden no[POLICIES];
	int broken = 0;

	open_policies(no);
	*times = (struct property_times){ 0 };
	for (unsigned i = 1; i <= hosts; i++) {
		struct fa_facts f;
		struct fa_wish w;
		struct fa_plan p;
		struct timespec a, z;
		struct fa_err err = FA_ERR_INIT;
		const char *what;
		int rc;

		make_host(&f, &w, i);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		rc = fa_resolve(&p, &f, &w, m, &err);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &z);
		each[i - 1] = (double)(z.tv_sec - a.tv_sec) + (double)(z.tv_nsec - a.tv_nsec) / 1e9;
		times->mean += each[i - 1] / hosts;
		what = rc < 0 ? err.text : plan_fault(&p, &f, &w, m);
		if (!what && p.status != FA_PLAN_IMPOSSIBLE && fa_plan_steps(&p, &f, m, &err) < 0)
			what = err.text;
		if (!what && i % 4 == 0)
			what = driver_fault(&p, &f, &w, m);
		if (!what && i % 8 == 0)
			what = bytes_fault(&p, &f, &w, m);
		if (!what && i % 2 == 0)
			what = nearest_fault(&p, &f, m);
		if (!what && i % 2 == 1)
			what = forbidden_fault(&no[i / 2 % POLICIES], &f, &w);
		if (!what && i % 200 == 0)
			what = fresh_fault(&p, &f, &w);
		if (what && ++broken <= 5)
			show_fault(i, what, &p, &f, &w);
		fa_plan_release(&p);
		fa_wish_release(&w);
		fa_facts_release(&f);
	}
	for (int i = 0; i < POLICIES; i++)
		fa_matrix_close(no[i].m);
	qsort(each, hosts, sizeof(*each), by_size);
	times->median = each[hosts / 2];
	times->p99 = each[hosts - 1 - hosts / 100];
	times->most = each[hosts - 1];
	free(each);
	return broken;
}

#endif
