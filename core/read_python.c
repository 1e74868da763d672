/* Parsers: Python, its packages, torch. */
#include "buf.h"
#include "json.h"
#include "read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_text(struct fa_reading *r, enum fa_fact id, const char *text)
{
	fa_facts_set_text(r->out, id, text, r->origin);
}

/* ---- python -VV */

/* "cp311", "cp313t"; "pp310" for PyPy. The m of old ones is not needed by any torch that matters. */
char *fa_read_python_abi(const char *version, const char *text)
{
	int major = 0, minor = 0;
	bool pypy = strstr(text, "PyPy") != NULL;

	if (sscanf(version, "%d.%d", &major, &minor) != 2)
		return NULL;
	return fa_strf("%s%d%d%s", pypy ? "pp" : "cp", major, minor, fa_read_find(text, "free-threading") ? "t" : "");
}

/* "Python 3.12.10 (tags/v3.12.10:0cc8128, …) [MSC v.1943 64 bit (AMD64)]": only there is the system named. */
void fa_read_python_platform(struct fa_reading *r)
{
	if (!strstr(r->text, "[MSC v."))
		return;
	set_text(r, FA_FACT_OS, "windows");
	set_text(r, FA_FACT_MACHINE, strstr(r->text, "(ARM64)") ? "aarch64" : "x86_64");
}

static char *python_version_of(const char *line)
{
	bool bare = isdigit((unsigned char)line[0]) && line[strspn(line, "0123456789.")] == '\0';
	const char *p = !strncmp(line, "Python ", 7) ? line + 7 : bare ? line : NULL;
	char *version = p && isdigit((unsigned char)*p) ? fa_read_version(p, true) : NULL, *plus;

	plus = version ? strchr(version, '+') : NULL;
	if (plus)
		*plus = '\0';
	return version;
}

void fa_read_python(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		char *version = python_version_of(r->lines->v[i]);
		char *abi = version ? fa_read_python_abi(version, r->text) : NULL;

		if (abi) {
			set_text(r, FA_FACT_PYTHON, version);
			set_text(r, FA_FACT_PYTHON_ABI, abi);
			fa_read_python_platform(r);
			free(version);
			free(abi);
			return;
		}
		free(version);
	}
	fa_read_unusable(r, "version of Python");
}

/* ---- pip debug --verbose */

/* "manylinux_2_36_x86_64", "win_amd64", "macosx_14_0_arm64", "musllinux_1_2_aarch64", "linux_x86_64" */
static void tag_platform(struct fa_reading *r, const char *platform)
{
	int major = 0, minor = 0;
	bool windows = !strncmp(platform, "win", 3), mac = !strncmp(platform, "macosx", 6);
	char *version;

	set_text(r, FA_FACT_OS, windows ? "windows" : mac ? "darwin" : "linux");
	if (strstr(platform, "x86_64") || strstr(platform, "amd64"))
		set_text(r, FA_FACT_MACHINE, "x86_64");
	else if (strstr(platform, "aarch64") || strstr(platform, "arm64"))
		set_text(r, FA_FACT_MACHINE, "aarch64");
	if (!strncmp(platform, "musllinux", 9))
		set_text(r, FA_FACT_GLIBC, "");
	if (sscanf(platform, "manylinux_%d_%d", &major, &minor) != 2)
		return;
	version = fa_strf("%d.%d", major, minor); /* the first tag is the newest */
	set_text(r, FA_FACT_GLIBC, version);
	free(version);
}

/* "cp313-cp313t-manylinux_2_36_x86_64" */
static bool read_tag(struct fa_reading *r, const char *line)
{
	struct fa_strv parts = FA_STRV_INIT;
	bool is_tag;

	fa_strv_split(&parts, line, "-");
	is_tag = parts.n == 3 && strlen(parts.v[0]) >= 3 && islower((unsigned char)parts.v[0][0]) &&
	         islower((unsigned char)parts.v[0][1]) && isdigit((unsigned char)parts.v[0][2]) && !strchr(line, ' ');
	if (is_tag) {
		if (!strncmp(parts.v[1], "cp", 2) || !strncmp(parts.v[1], "pypy", 4))
			set_text(r, FA_FACT_PYTHON_ABI, parts.v[1]);
		else
			is_tag = false;
		tag_platform(r, parts.v[2]);
	}
	fa_strv_release(&parts);
	return is_tag;
}

static void read_debug_line(struct fa_reading *r, const char *line)
{
	const char *value = fa_read_value(line, "pip version");
	char *version = NULL;

	if (value && !strncmp(value, "pip ", 4)) {
		version = fa_read_version(value, false);
		fa_facts_set_text(r->out, FA_FACT_PIP, version, r->origin);
	}
	value = fa_read_value(line, "sys.version");
	if (value && isdigit((unsigned char)*value)) {
		free(version);
		version = fa_read_version(value, true);
		fa_facts_set_text(r->out, FA_FACT_PYTHON, version, r->origin);
	}
	free(version);
}

void fa_read_pip_debug(struct fa_reading *r)
{
	bool tag = false;

	for (size_t i = 0; i < r->lines->n && !tag; i++) {
		const char *line = r->lines->v[i] + strspn(r->lines->v[i], " \t");

		read_debug_line(r, line);
		tag = read_tag(r, line);
	}
	if (!tag)
		fa_read_unusable(r, "tag such as cp311-cp311-manylinux_2_36_x86_64");
}

/* ---- torch's version */

/* "130" -> "13.0", "1210" -> "12.10" */
static char *cuda_of_digits(const char *digits)
{
	size_t n = strspn(digits, "0123456789");

	return n >= 3 && n <= 4 ? fa_strf("%.2s.%.*s", digits, (int)n - 2, digits + 2) : NULL;
}

void fa_read_torch_version(struct fa_facts *out, const char *version, const char *origin)
{
	const char *label = strchr(version, '+');
	char *cuda = NULL, *hip = NULL;

	fa_facts_set_text(out, FA_FACT_TORCH, version, origin);
	if (!label)
		return;
	label++;
	if (!strncmp(label, "cu", 2))
		cuda = cuda_of_digits(label + 2);
	if (!strncmp(label, "rocm", 4))
		hip = fa_read_version(label + 4, false);
	if (cuda || hip || !strncmp(label, "cpu", 3) || !strncmp(label, "xpu", 3)) {
		fa_facts_set_text(out, FA_FACT_TORCH_CUDA, cuda ? cuda : "", origin);
		fa_facts_set_text(out, FA_FACT_TORCH_HIP, hip ? hip : "", origin);
	}
	free(cuda);
	free(hip);
}

/* ---- packages */

static char *normal_name(const char *name)
{
	struct fa_buf b = FA_BUF_INIT;

	for (; *name; name++) {
		bool separator = strchr("-_.", *name) != NULL;

		if (!separator)
			fa_buf_addc(&b, (char)tolower((unsigned char)*name));
		else if (b.len && b.data[b.len - 1] != '-')
			fa_buf_addc(&b, '-');
	}
	return b.data ? fa_buf_detach(&b) : fa_strdup("");
}

static const struct {
	const char *name;
	enum fa_fact fact;
} packages[] = {
	{ "torch", FA_FACT_TORCH },
	{ "flash-attn", FA_FACT_FLASH_ATTN },
	{ "flash-attn-3", FA_FACT_FLASH_ATTN_3 },
	{ "flashattn-hopper", FA_FACT_FLASH_ATTN_3 }, /* what setup.py called it first */
	{ "tokenspeed-fa3", FA_FACT_FLASH_ATTN_3 },   /* installs flash_attn_interface under FA3's own names */
	{ "flash-attn-4", FA_FACT_FLASH_ATTN_4 },
	{ "triton", FA_FACT_TRITON },
	{ "pytorch-triton", FA_FACT_TRITON },
	{ "pytorch-triton-rocm", FA_FACT_TRITON },
	{ "triton-rocm", FA_FACT_TRITON },
	{ "triton-windows", FA_FACT_TRITON },
	{ "pip", FA_FACT_PIP },
	{ "uv", FA_FACT_UV },
	{ "ninja", FA_FACT_NINJA },
};

static void packaged_cuda(struct fa_facts *out, const char *version, const char *origin)
{
	int major, minor;
	char *cuda;

	if (fa_facts_has(out, FA_FACT_TORCH_CUDA) || sscanf(version, "%d.%d", &major, &minor) != 2)
		return;
	cuda = fa_strf("%d.%d", major, minor);
	fa_facts_set_text(out, FA_FACT_TORCH_CUDA, cuda, origin);
	fa_facts_set_text(out, FA_FACT_TORCH_HIP, "", origin);
	fa_facts_doubt(out, FA_FACT_TORCH_CUDA, "by the CUDA runtime package beside torch, not by torch itself");
	free(cuda);
}

void fa_read_package(struct fa_facts *out, const char *name, const char *version, const char *origin)
{
	char *normal = normal_name(name);

	for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++)
		if (!strcmp(packages[i].name, normal)) {
			if (packages[i].fact == FA_FACT_TORCH)
				fa_read_torch_version(out, version, origin);
			else
				fa_facts_set_text(out, packages[i].fact, version, origin);
		}
	if (!strcmp(normal, "nvidia-cuda-runtime") || !strncmp(normal, "nvidia-cuda-runtime-cu", 22))
		packaged_cuda(out, version, origin);
	free(normal);
}

/* ---- pip list, pip freeze, pip list --format=json, uv pip list, conda list */

/* conda's build text: "py3.11_cuda12.4_cudnn9.1.0_0", "cuda126_mkl_py312…", "cpu_mkl_…" */
static void conda_torch(struct fa_facts *out, const char *version, const char *build, const char *origin)
{
	const char *p = build ? strstr(build, "cuda") : NULL;
	char *cuda = NULL;

	fa_read_torch_version(out, version, origin);
	if (p && isdigit((unsigned char)p[4]))
		cuda = p[4 + strspn(p + 4, "0123456789")] == '.' ? fa_read_version(p, false) : cuda_of_digits(p + 4);
	if (cuda) {
		fa_facts_set_text(out, FA_FACT_TORCH_CUDA, cuda, origin);
		fa_facts_set_text(out, FA_FACT_TORCH_HIP, "", origin);
	} else if (build && strstr(build, "cpu"))
		fa_facts_set_text(out, FA_FACT_TORCH_CUDA, "", origin);
	free(cuda);
}

static bool is_version(const char *word)
{
	return isdigit((unsigned char)word[0]) &&
	       word[strspn(word, "0123456789.abcdefghijklmnopqrstuvwxyz+!_-ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

static bool is_name(const char *word)
{
	return isalpha((unsigned char)word[0]) &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] == '\0';
}

/* "name==1.2", "name @ file:///…/name-1.2-cp311….whl" */
bool fa_read_frozen_line(struct fa_facts *out, const char *line, const char *origin)
{
	const char *equals = strstr(line, "=="), *at = strstr(line, " @ "), *base, *dash;
	char *name = NULL, *version = NULL;

	if (equals && equals > line) {
		name = fa_strndup(line, (size_t)(equals - line));
		version = fa_strndup(equals + 2, strcspn(equals + 2, " ;\\"));
	} else if (at && at > line && strstr(at, ".whl")) {
		name = fa_strndup(line, (size_t)(at - line));
		base = strrchr(at, '/') ? strrchr(at, '/') + 1 : at + 3;
		dash = strchr(base, '-');
		version = dash ? fa_strndup(dash + 1, strcspn(dash + 1, "-")) : NULL;
		for (char *p = version; p && *p; p++)
			if (!strncmp(p, "%2B", 3)) { /* the + of a label, in a URL */
				*p = '+';
				memmove(p + 1, p + 3, strlen(p + 3) + 1);
			}
	}
	if (name && version && is_name(name) && is_version(version))
		fa_read_package(out, name, version, origin);
	else
		free(version), version = NULL;
	free(name);
	free(version);
	return equals != NULL || at != NULL;
}

bool fa_read_listed_line(struct fa_facts *out, const char *line, const char *origin)
{
	struct fa_strv words = FA_STRV_INIT;
	bool is;

	fa_strv_split(&words, line, " \t");
	is = words.n >= 2 && words.n <= 5 && is_name(words.v[0]) && is_version(words.v[1]);
	if (is && words.n >= 3 && (!strcmp(words.v[0], "pytorch") || !strcmp(words.v[0], "torch")) && strchr(words.v[2], '_'))
		conda_torch(out, words.v[1], words.v[2], origin);
	else if (is)
		fa_read_package(out, words.v[0], words.v[1], origin);
	fa_strv_release(&words);
	return is;
}

static bool read_json_list(struct fa_reading *r)
{
	const char *from = r->text + strspn(r->text, " \t\n");
	struct fa_json *j = NULL;
	bool any = false;

	if (*from != '[' || fa_json_parse(&j, from, strlen(from), "pip list", NULL) < 0)
		return false;
	fa_json_each (e, j) {
		const char *name = fa_json_get_string(e, "name"), *version = fa_json_get_string(e, "version");

		if (name && version)
			fa_read_package(r->out, name, version, r->origin);
		any = any || (name && version);
	}
	fa_json_free(j);
	return any;
}

/* pip show: "Name: torch", then "Version: 2.9.0". */
static bool shown_package(struct fa_reading *r)
{
	const char *name = NULL;
	bool any = false;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *version = fa_read_value(r->lines->v[i], "Version"), *next = fa_read_value(r->lines->v[i], "Name");

		if (next)
			name = next;
		if (!version || !name || !is_name(name) || !is_version(version))
			continue;
		fa_read_package(r->out, name, version, r->origin);
		name = NULL;
		any = true;
	}
	return any;
}

/* A list of everything also says what is not there. It is sorted by name, and may have been cut: what would stand behind `last`
 * stays unknown. */
static void rest_is_not_there(struct fa_reading *r, const char *last)
{
	static const enum fa_fact facts[] = { FA_FACT_TORCH, FA_FACT_FLASH_ATTN, FA_FACT_FLASH_ATTN_3, FA_FACT_FLASH_ATTN_4,
		                              FA_FACT_TRITON };
	static const char *const names[] = { "torch", "flash-attn", "tokenspeed-fa3", "flash-attn-4", "triton" };

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (!r->out->v[facts[i]].known && (!last || strcmp(last, names[i]) > 0))
			set_text(r, facts[i], "");
}

static bool is_complete(const struct fa_strv *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		if (!strncmp(lines->v[i], "Package ", 8) || !strncmp(lines->v[i], "# packages in environment", 25))
			return true;
	return false;
}

/* The name of the last line that is a package; the caller's; NULL: none. */
static char *last_package(const struct fa_strv *lines)
{
	for (size_t i = lines->n; i--;) {
		struct fa_strv words = FA_STRV_INIT;
		char *name = NULL;

		fa_strv_split(&words, lines->v[i], " \t");
		if (words.n >= 2 && is_name(words.v[0]) && is_version(words.v[1]))
			name = normal_name(words.v[0]);
		fa_strv_release(&words);
		if (name)
			return name;
	}
	return NULL;
}

static bool read_lines(struct fa_reading *r)
{
	bool any = false;

	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i];

		if (*line == '#' || *line == '[' || !strncmp(line, "WARNING", 7))
			continue;
		any = fa_read_frozen_line(r->out, line, r->origin) || fa_read_listed_line(r->out, line, r->origin) || any;
	}
	return any;
}

void fa_read_pip_list(struct fa_reading *r)
{
	bool json = read_json_list(r);
	char *last;

	if (!json && !shown_package(r) && !read_lines(r)) {
		fa_read_unusable(r, "package");
		return;
	}
	/* the CUDA runtime says something about torch only where torch is */
	if (!fa_facts_has(r->out, FA_FACT_TORCH)) {
		fa_facts_forget(r->out, FA_FACT_TORCH_CUDA);
		fa_facts_forget(r->out, FA_FACT_TORCH_HIP);
	}
	last = last_package(r->lines);
	if (json || (last && is_complete(r->lines)))
		rest_is_not_there(r, json ? NULL : last);
	free(last);
}

/* ---- python -c 'import torch; print(torch.__version__, torch.version.cuda, torch._C._GLIBCXX_USE_CXX11_ABI)' */

static bool torch_line(struct fa_reading *r, const char *line)
{
	struct fa_strv words = FA_STRV_INIT;
	bool is;

	fa_strv_split(&words, line, " \t,()'");
	is = words.n >= 2 && is_version(words.v[0]) && strchr(words.v[0], '.') &&
	     (isdigit((unsigned char)words.v[1][0]) || !strcmp(words.v[1], "None"));
	if (is) {
		fa_read_torch_version(r->out, words.v[0], r->origin);
		if (strcmp(words.v[1], "None") != 0) {
			set_text(r, FA_FACT_TORCH_CUDA, words.v[1]);
			set_text(r, FA_FACT_TORCH_HIP, "");
		} else {
			set_text(r, FA_FACT_TORCH_CUDA, "");
		}
		if (words.n >= 3 && (!strcmp(words.v[2], "True") || !strcmp(words.v[2], "False")))
			fa_facts_set_bool(r->out, FA_FACT_TORCH_CXX11ABI, words.v[2][0] == 'T', r->origin);
	}
	fa_strv_release(&words);
	return is;
}

void fa_read_torch(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++)
		if (torch_line(r, r->lines->v[i]))
			return;
	if (fa_read_find(r->text, "No module named 'torch'") || fa_read_find(r->text, "No module named torch")) {
		set_text(r, FA_FACT_TORCH, "");
		return;
	}
	fa_read_unusable(r, "version of torch");
}
