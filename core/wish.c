#include "wish.h"

#include "buf.h"
#include "closest.h"
#include "version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct fa_wish_row rows[] = {
#define WISH(id, option, kind, argument, help) [FA_WISH_##id] = { option, FA_WISH_##kind, argument, help },
#include "wish.def"
#undef WISH
};

const struct fa_wish_row *fa_wish_row(enum fa_wish_id id)
{
	return &rows[id];
}

int fa_wish_find(enum fa_wish_id *out, const char *option)
{
	for (int i = 0; i < FA_WISH_COUNT; i++) {
		if (!strcmp(rows[i].option, option)) {
			*out = (enum fa_wish_id)i;
			return 0;
		}
	}
	return -1;
}

/* ---- forms of a value: each says whether it fits and, when not, what does */

/* `word` is one of those of the row's argument ("fa2|fa3|fa4" or "fp16,bf16"). */
static int check_word(enum fa_wish_id id, const char *word, struct fa_err *err)
{
	const char *option = rows[id].option, *guess;
	struct fa_strv words = FA_STRV_INIT;
	int rc = 0;

	fa_strv_split(&words, rows[id].argument, "|,");
	if (!fa_strv_has(&words, word)) {
		char *all = fa_strv_join(&words, ", ");

		guess = fa_closest(word, (const char *const *)words.v, words.n);
		rc = fa_err_set(err, FA_USAGE, "--%s: unknown value \"%s\"; known are %s", option, word, all);
		fa_err_next(err, "write --%s %s", option, guess ? guess : words.v[0]);
		free(all);
	}
	fa_strv_release(&words);
	return rc;
}

/* The letters of a version as PEP 440 has them; a local label may hold any. */
static bool known_letters(const char *text)
{
	static const char *const known[] = { "a", "b", "c", "rc", "alpha", "beta", "post", "dev" };
	size_t i;

	while (*text && *text != '+') {
		size_t len = 0;

		while (isalpha((unsigned char)text[len]))
			len++;
		for (i = 0; len && i < sizeof(known) / sizeof(*known); i++)
			if (strlen(known[i]) == len && !strncmp(text, known[i], len))
				break;
		if (len && i == sizeof(known) / sizeof(*known))
			return false;
		text += len ? len : 1;
	}
	return true;
}

static int check_version(enum fa_wish_id id, const char *text, struct fa_err *err)
{
	const char *option = rows[id].option;

	if (fa_version_valid(text) && known_letters(text))
		return 0;
	fa_err_set(err, FA_USAGE, "--%s: \"%s\" is not a version", option, text);
	if (text[0] == 'v' && fa_version_valid(text + 1))
		return fa_err_next(err, "write --%s %s", option, text + 1);
	return fa_err_next(err, "write --%s %s", option,
	                   id == FA_WISH_TORCH ? "2.8.0 or 2.8.0+cu128" : "as 2.8.3 or 2.7.4.post1");
}

/* Number of dotted decimal parts at the start of text; *end is what follows them. */
static int dotted(const char *text, const char **end)
{
	int parts = 0;

	while (isdigit((unsigned char)*text)) {
		parts++;
		while (isdigit((unsigned char)*text))
			text++;
		if (*text != '.')
			break;
		text++;
	}
	*end = text;
	return parts;
}

static int check_cuda(const char *text, struct fa_err *err)
{
	const char *end;
	int parts = dotted(text, &end);
	size_t digits;

	if (parts >= 1 && parts <= 3 && !*end && end[-1] != '.')
		return 0;
	fa_err_set(err, FA_USAGE, "--cuda: \"%s\" is not a CUDA version", text);
	digits = strspn(text + 2, "0123456789");
	if (!strncmp(text, "cu", 2) && digits >= 3 && !text[2 + digits])
		return fa_err_next(err, "write --cuda %.*s.%s", (int)digits - 1, text + 2, text + 2 + digits - 1);
	return fa_err_next(err, "write it as X.Y, for example --cuda 12.8");
}

static int check_python(const char *text, struct fa_err *err)
{
	const char *end;
	int parts = dotted(text, &end), minor = 0;

	if (parts == 2 && end[-1] != '.' && (!*end || !strcmp(end, "t")))
		return 0;
	fa_err_set(err, FA_USAGE, "--python: \"%s\" is not a Python version of the form X.Y", text);
	if (parts == 3 && !*end) {
		minor = (int)(strrchr(text, '.') - text);
		return fa_err_next(err, "write --python %.*s", minor, text);
	}
	return fa_err_next(err, "write it as X.Y, for example --python 3.12; free-threaded as 3.13t");
}

static int check_number(enum fa_wish_id id, const char *text, long least, long most, struct fa_err *err)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (isdigit((unsigned char)text[0]) && !*end && n >= least && n <= most)
		return 0;
	fa_err_set(err, FA_USAGE, "--%s: \"%s\" is not a number from %ld to %ld", rows[id].option, text, least, most);
	return fa_err_next(err, "write for example --%s %s", rows[id].option, id == FA_WISH_JOBS ? "4" : "128");
}

static int check_dtype(const char *text, struct fa_err *err)
{
	static const char *const known[] = { "fp16", "bf16", "fp32", "fp64", "fp8", "fp4", "int8" };
	static const char *const others[][2] = { { "float16", "fp16" }, { "half", "fp16" }, { "bfloat16", "bf16" } };
	const char *guess = NULL;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(text, known[i]))
			return 0;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(text, others[i][0]))
			guess = others[i][1];
	if (!guess)
		guess = fa_closest(text, known, sizeof(known) / sizeof(*known));
	fa_err_set(err, FA_USAGE, "--dtype: unknown data type \"%s\"", text);
	return fa_err_next(err, "write --dtype %s", guess ? guess : "bf16 or fp16");
}

static int check_arch(const char *text, struct fa_err *err)
{
	size_t n = strspn(text, "0123456789"), hex;

	if (n >= 2 && n <= 3 && !text[n])
		return 0;
	hex = !strncmp(text, "gfx", 3) ? strspn(text + 3, "0123456789abcdef") : 0;
	if (hex >= 3 && hex <= 4 && !text[3 + hex])
		return 0;
	fa_err_set(err, FA_USAGE, "--arch: \"%s\" is not a GPU architecture", text);
	return fa_err_next(err, "write the compute capability without its dot, --arch 90, or a gfx name, --arch gfx942; "
	                        "`fainstall matrix show gpus` lists cards");
}

static int check_source(const char *text, struct fa_err *err)
{
	static const char *const allowed[] = { "https://", "http://127.0.0.1", "http://localhost", "http://[::1]" };

	if (!strstr(text, "://"))
		return 0;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if (!strncmp(text, allowed[i], strlen(allowed[i])))
			return 0;
	fa_err_set(err, FA_USAGE, "--source: \"%s\" is not an https address", text);
	return fa_err_next(err, "use https; plain http is taken from a loopback address only");
}

static int check_env(const char *text, struct fa_err *err)
{
	if (strchr(text, '/'))
		return 0;
	if (isalnum((unsigned char)text[0]) &&
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(text))
		return 0;
	fa_err_set(err, FA_USAGE, "--env: \"%s\" is not a name for an environment", text);
	return fa_err_next(err, "use letters, digits, dot, underscore and hyphen, or a folder with a slash: --env ./%s",
	                   text[0] == '.' ? "venv" : text);
}

/* Lower case words with hyphens: their meaning is data, so only the form is checked here. */
static int check_form(enum fa_wish_id id, const char *text, struct fa_err *err)
{
	if (strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(text))
		return 0;
	fa_err_set(err, FA_USAGE, "--%s: \"%s\" is not a word of small letters, digits and hyphens", rows[id].option, text);
	return fa_err_next(err, "write for example --%s %s", rows[id].option, id == FA_WISH_WITH ? "torchvision" : "window");
}

static int check(enum fa_wish_id id, const char *text, struct fa_err *err)
{
	switch (id) {
	case FA_WISH_FLASH_ATTN:
	case FA_WISH_TORCH: return check_version(id, text, err);
	case FA_WISH_CUDA: return check_cuda(text, err);
	case FA_WISH_PYTHON: return check_python(text, err);
	case FA_WISH_LINE:
	case FA_WISH_ROUTE:
	case FA_WISH_PROFILE:
	case FA_WISH_FEATURES:
	case FA_WISH_RELAX: return check_word(id, text, err);
	case FA_WISH_ARCH: return check_arch(text, err);
	case FA_WISH_DTYPE: return check_dtype(text, err);
	case FA_WISH_HEAD_DIM: return check_number(id, text, 8, 1024, err);
	case FA_WISH_JOBS: return check_number(id, text, 1, 4096, err);
	case FA_WISH_SOURCE: return check_source(text, err);
	case FA_WISH_ENV: return check_env(text, err);
	case FA_WISH_NEEDS:
	case FA_WISH_WITH: return check_form(id, text, err);
	case FA_WISH_KEEP_TORCH:
	case FA_WISH_OFFLINE:
	case FA_WISH_COUNT: break;
	}
	return 0;
}

/* As CUDA, TORCH_CUDA_ARCH_LIST and ROCm write them: "sm_90", "compute_90", "9.0", "9.0a", "9.0+PTX" -> "90", "gfx942:xnack-" ->
 * "gfx942". What is none of them stays as it is. */
static char *plain_arch(const char *text)
{
	static const char *const prefixes[] = { "sm_", "sm", "compute_" };
	const char *end;
	struct fa_buf b = FA_BUF_INIT;

	if (!strncmp(text, "gfx", 3))
		return fa_strndup(text, strcspn(text, ":"));
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (!strncmp(text, prefixes[i], strlen(prefixes[i]))) {
			text += strlen(prefixes[i]);
			break;
		}
	}
	if (dotted(text, &end) > 2 || end == text || end[-1] == '.')
		return fa_strdup(text);
	for (const char *p = text; p < end; p++)
		if (*p != '.')
			fa_buf_addc(&b, *p);
	end += *end == 'a' || *end == 'f';
	if (*end && strcasecmp(end, "+ptx") != 0 && strcasecmp(end, "ptx") != 0)
		fa_buf_adds(&b, end);
	return fa_buf_detach(&b);
}

static int set_list(struct fa_wish *w, enum fa_wish_id id, const char *value, struct fa_err *err)
{
	struct fa_strv given = FA_STRV_INIT, all = FA_STRV_INIT;
	int rc = -1;

	if (w->v[id])
		fa_strv_split(&all, w->v[id], ",");
	fa_strv_split(&given, value, id == FA_WISH_ARCH ? ",; " : ",");
	if (!given.n) {
		fa_err_set(err, FA_USAGE, "--%s: the list is empty", rows[id].option);
		fa_err_next(err, "write --%s %s, or leave the option out", rows[id].option, rows[id].argument);
		goto done;
	}
	for (size_t i = 0; i < given.n; i++) {
		char *piece = id == FA_WISH_ARCH ? plain_arch(given.v[i]) : fa_strdup(given.v[i]);

		if (check(id, piece, err) < 0) {
			free(piece);
			goto done;
		}
		if (fa_strv_has(&all, piece))
			free(piece);
		else
			fa_strv_take(&all, piece);
	}
	free(w->v[id]);
	w->v[id] = fa_strv_join(&all, ",");
	rc = 0;
done:
	fa_strv_release(&given);
	fa_strv_release(&all);
	return rc;
}

static bool printable(const char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			return false;
	return true;
}

int fa_wish_set(struct fa_wish *w, enum fa_wish_id id, const char *value, struct fa_err *err)
{
	if (rows[id].kind == FA_WISH_FLAG) {
		free(w->v[id]);
		w->v[id] = fa_strdup("yes");
		return 0;
	}
	if (!value || !value[0] || !printable(value)) {
		fa_err_set(err, FA_USAGE, "--%s: %s", rows[id].option,
		           value && value[0] ? "control characters in the value" : "the value is empty");
		return fa_err_next(err, "write --%s %s, or leave the option out", rows[id].option, rows[id].argument);
	}
	if (rows[id].kind == FA_WISH_LIST)
		return set_list(w, id, value, err);
	if (check(id, value, err) < 0)
		return -1;
	free(w->v[id]);
	w->v[id] = fa_strdup(value);
	return 0;
}

const char *fa_wish_get(const struct fa_wish *w, enum fa_wish_id id)
{
	return w->v[id];
}

void fa_wish_list(const struct fa_wish *w, enum fa_wish_id id, struct fa_strv *out)
{
	if (w->v[id])
		fa_strv_split(out, w->v[id], ",");
}

void fa_wish_argv(const struct fa_wish *w, struct fa_strv *out)
{
	for (int i = 0; i < FA_WISH_COUNT; i++) {
		if (!w->v[i])
			continue;
		fa_strv_pushf(out, "--%s", rows[i].option);
		if (rows[i].kind != FA_WISH_FLAG)
			fa_strv_push(out, w->v[i]);
	}
}

void fa_wish_copy(struct fa_wish *out, const struct fa_wish *w)
{
	for (int i = 0; i < FA_WISH_COUNT; i++)
		out->v[i] = fa_strdup(w->v[i]);
}

void fa_wish_release(struct fa_wish *w)
{
	for (int i = 0; i < FA_WISH_COUNT; i++)
		free(w->v[i]);
	*w = (struct fa_wish)FA_WISH_INIT;
}
