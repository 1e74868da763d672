/* Parser: what python -m torch.utils.collect_env prints, in its several layouts. */
#include "buf.h"
#include "read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void set_text(struct fa_reading *r, enum fa_fact id, const char *text)
{
	fa_facts_set_text(r->out, id, text, r->origin);
}

static bool told(const char *value)
{
	return value && *value && strcmp(value, "N/A") != 0 && strcmp(value, "None") != 0 && strcmp(value, "No CUDA") != 0 &&
	       strncmp(value, "Could not", 9) != 0;
}

/* HIP counts builds where ROCm counts patches: 6.3.42131 is of ROCm 6.3.x. */
static void drop_build_number(char *version)
{
	char *dot = strchr(version, '.');

	dot = dot ? strchr(dot + 1, '.') : NULL;
	if (dot && atoi(dot + 1) >= 1000)
		*dot = '\0';
}

/* A value that is a version, or told to be none. */
static void collect_version(struct fa_reading *r, enum fa_fact id, const char *value)
{
	char *version = told(value) ? fa_read_version(value, false) : NULL;

	if (version)
		drop_build_number(version);
	if (version)
		set_text(r, id, version);
	else if (value && (!strcmp(value, "N/A") || !strcmp(value, "None")))
		set_text(r, id, "");
	free(version);
}

static void collect_torch(struct fa_reading *r, const char *line)
{
	const char *value = fa_read_value(line, "PyTorch version");

	if (told(value))
		fa_read_torch_version(r->out, value, r->origin);
	else if (value && !strcmp(value, "N/A"))
		set_text(r, FA_FACT_TORCH, "");
	collect_version(r, FA_FACT_TORCH_CUDA, fa_read_value(line, "CUDA used to build PyTorch"));
	collect_version(r, FA_FACT_TORCH_HIP, fa_read_value(line, "ROCM used to build PyTorch"));
}

static void collect_python(struct fa_reading *r, const char *value)
{
	char *version = told(value) ? fa_read_version(value, true) : NULL, *abi;

	if (!version)
		return;
	abi = fa_read_python_abi(version, value);
	set_text(r, FA_FACT_PYTHON, version);
	if (abi)
		set_text(r, FA_FACT_PYTHON_ABI, abi);
	fa_read_python_platform(r);
	free(abi);
	free(version);
}

/* VERSION_ID: "12", "9.4"; Ubuntu's has no point release. */
static void collect_release(struct fa_reading *r, const char *number, bool ubuntu)
{
	size_t len = strspn(number, "0123456789.");
	char *version = fa_strndup(number, len), *dot = strchr(version, '.');

	dot = dot ? strchr(dot + 1, '.') : NULL;
	if (dot && ubuntu)
		*dot = '\0';
	if (len)
		set_text(r, FA_FACT_DISTRO_VERSION, version);
	free(version);
}

/* "Ubuntu 20.04.6 LTS (x86_64)", "Debian GNU/Linux 12 (bookworm) (x86_64)", "Microsoft Windows 11 Pro (10.0.22631 64-bit)" */
static void collect_os(struct fa_reading *r, const char *value)
{
	static const struct {
		const char *said, *id;
	} distros[] = { { "Ubuntu", "ubuntu" },   { "Debian", "debian" },     { "CentOS", "centos" },
		        { "Red Hat", "rhel" },    { "Rocky", "rocky" },       { "AlmaLinux", "almalinux" },
		        { "Fedora", "fedora" },   { "Amazon Linux", "amzn" }, { "openSUSE", "opensuse" },
		        { "SUSE Linux", "sles" }, { "Arch Linux", "arch" },   { "Linux Mint", "linuxmint" },
		        { "Manjaro", "manjaro" }, { "Pop!_OS", "pop" },       { "Azure Linux", "azurelinux" },
		        { "Oracle Linux", "ol" } };

	if (!told(value))
		return;
	if (strstr(value, "Windows") || strstr(value, "macOS")) {
		set_text(r, FA_FACT_OS, strstr(value, "Windows") ? "windows" : "darwin");
		return;
	}
	set_text(r, FA_FACT_OS, "linux");
	if (strstr(value, "x86_64") || strstr(value, "aarch64"))
		set_text(r, FA_FACT_MACHINE, strstr(value, "x86_64") ? "x86_64" : "aarch64");
	for (size_t i = 0; i < sizeof(distros) / sizeof(*distros); i++) {
		if (!strstr(value, distros[i].said))
			continue;
		set_text(r, FA_FACT_DISTRO, distros[i].id);
		collect_release(r, value + strcspn(value, "0123456789"), i == 0);
		return;
	}
}

static void collect_compiler(struct fa_reading *r, const char *value)
{
	char *rest = told(value) ? fa_read_outside_parentheses(value) : NULL,
	     *version = rest ? fa_read_version(rest, false) : NULL;
	char *text = version ? fa_strf("gcc %s", version) : NULL;

	if (text)
		set_text(r, FA_FACT_CC, text);
	free(text);
	free(version);
	free(rest);
}

static void collect_toolkit(struct fa_reading *r, const char *value)
{
	char *version = told(value) ? fa_read_version(value, false) : NULL;

	if (version) {
		fa_facts_add_toolkit(r->out, "cuda", version, NULL);
		fa_gpu_set(&r->out->toolkits_origin, r->origin);
	} else if (value && !strncmp(value, "Could not", 9)) {
		r->out->toolkits_known = true; /* nvcc was looked for */
	}
	free(version);
}

static void collect_card(struct fa_reading *r, const char *name)
{
	const char *gfx = strstr(name, "(gfx");
	struct fa_gpu *g = fa_facts_add_gpu(r->out);

	g->vendor = fa_strdup(gfx || strstr(name, "AMD") || strstr(name, "Radeon") ? "amd" : "nvidia");
	if (gfx) {
		char *arch = fa_strndup(gfx + 1, strcspn(gfx + 1, ":) "));

		fa_gpu_set(&g->arch, arch);
		free(arch);
	}
	fa_read_card_name(g, name, gfx ? (size_t)(gfx - name) : strlen(name));
	if (!r->out->gpus_origin)
		r->out->gpus_origin = fa_strdup(r->origin);
}

/* "GPU 0: NVIDIA A800 80GB PCIe" on lines of their own, or one name behind the label. */
static void collect_cards(struct fa_reading *r, const char *line)
{
	const char *value = fa_read_value(line, "GPU models and configuration"), *p = line + strspn(line, " \t");
	char *end;

	if (value && !strncmp(value, "GPU ", 4))
		p = value;
	else if (told(value)) {
		collect_card(r, value);
		return;
	}
	if (strncmp(p, "GPU ", 4) != 0 || !isdigit((unsigned char)p[4]))
		return;
	strtol(p + 4, &end, 10);
	if (*end == ':' && end[1] == ' ')
		collect_card(r, end + 2);
}

/* The processor's part is an lscpu; "Python platform: Linux-5.15.0-91-generic-x86_64-with-glibc2.35" */
static void collect_machine(struct fa_reading *r, const char *line)
{
	const char *value = fa_read_value(line, "CPU(s)");
	long cores = value ? strtol(value, NULL, 10) : 0;

	if (cores > 0 && cores < 1 << 20)
		fa_facts_set_number(r->out, FA_FACT_CORES, cores, r->origin);
	value = fa_read_value(line, "Libc version");
	if (value && !strncmp(value, "glibc-", 6))
		set_text(r, FA_FACT_GLIBC, value + 6);
	value = fa_read_value(line, "Python platform");
	if (value && strstr(value, "microsoft"))
		fa_facts_set_bool(r->out, FA_FACT_WSL, true, r->origin);
}

static void collect_package(struct fa_reading *r, const char *line)
{
	const char *p = line + strspn(line, " \t");

	if (!strncmp(p, "[pip3] ", 7) || !strncmp(p, "[pip] ", 6))
		fa_read_frozen_line(r->out, strchr(p, ' ') + 1, r->origin);
	else if (!strncmp(p, "[conda] ", 8))
		fa_read_listed_line(r->out, p + 8, r->origin);
	else if (strchr(p, '=') && isupper((unsigned char)*p)) {
		char *name = fa_strndup(p, strcspn(p, "="));

		if (fa_read_env_wanted(name))
			fa_facts_add_env(r->out, name, strchr(p, '=') + 1);
		free(name);
	}
}

void fa_read_collect_env(struct fa_reading *r)
{
	for (size_t i = 0; i < r->lines->n; i++) {
		const char *line = r->lines->v[i];

		collect_package(r, line);
		collect_torch(r, line);
		collect_os(r, fa_read_value(line, "OS"));
		collect_compiler(r, fa_read_value(line, "GCC version"));
		collect_python(r, fa_read_value(line, "Python version"));
		collect_toolkit(r, fa_read_value(line, "CUDA runtime version"));
		if (told(fa_read_value(line, "Nvidia driver version")))
			collect_version(r, FA_FACT_DRIVER, fa_read_value(line, "Nvidia driver version"));
		if (told(fa_read_value(line, "HIP runtime version")))
			collect_version(r, FA_FACT_ROCM, fa_read_value(line, "HIP runtime version"));
		collect_cards(r, line);
		collect_machine(r, line);
	}
	if (!r->out->v[FA_FACT_TORCH].known && !r->out->v[FA_FACT_PYTHON].known && !r->out->v[FA_FACT_OS].known)
		fa_read_unusable(r, "PyTorch version");
}
