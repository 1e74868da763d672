/* Parsers of what tools print, one per tool, shared by live probes, recorded machines and `--read`. Text comes from outside: any
 * bytes, cut anywhere. A parser sets the facts that it finds and adds a problem for a fault that is told; it never guesses. */
#ifndef FA_READ_H
#define FA_READ_H

#include "facts.h"
#include "strv.h"

struct fa_reading {
	struct fa_facts *out;
	const char *text;            /* made plain: UTF-8, no colours, no CR */
	const struct fa_strv *lines; /* of text, blanks at their ends removed */
	const char *tool;            /* word of --read */
	const char *origin;          /* what the facts are said to come from */
};

/* Runs the parser of `tool` (a word of fa_read_tools()) over raw output. -1: no such tool. */
int fa_read(struct fa_facts *out, const char *tool, const char *origin, const char *text, size_t len);

/* The text without colours, CR and NUL, in UTF-8 when it was UTF-16. The caller's. */
char *fa_read_plain(const char *text, size_t len);

/* Adds the first fault of fault.def that the text tells. false: none. */
bool fa_read_fault(struct fa_facts *out, const char *tool, const struct fa_strv *lines);

/* A problem of our own making: the text was there and says nothing usable. */
void fa_read_unusable(const struct fa_reading *r, const char *missing);

/* ---- pieces for the parsers */

/* First dotted number at or after p ("13.0" in "release 13.0, V13.0.88"), letters and + after it included when `tail`. The
 * caller's; NULL: none. */
char *fa_read_version(const char *p, bool tail);

/* Case-blind search. */
const char *fa_read_find(const char *text, const char *words);

/* "Label   : value" -> value, for a label in any case; NULL: not this line. Borrowed from line. */
const char *fa_read_value(const char *line, const char *label);

/* The line without what stands in parentheses. The caller's. */
char *fa_read_outside_parentheses(const char *line);

/* "00000000:2A:00.0" -> "0000:2a:00.0"; NULL: text does not begin with a PCI address. The caller's. */
char *fa_read_pci(const char *text);

/* Sets a card's name, and its architecture by the name when that is not known otherwise. */
void fa_read_card_name(struct fa_gpu *g, const char *name, size_t len);

/* "cu130" -> torch_cuda 13.0, "rocm6.4" -> torch_hip 6.4, "cpu" -> neither: from a torch version with a local label. */
void fa_read_torch_version(struct fa_facts *out, const char *version, const char *origin);

/* A package of an environment: the fact it is, if it is one. */
void fa_read_package(struct fa_facts *out, const char *name, const char *version, const char *origin);

/* "cp311", "cp313t", "pp310" of a version and the text that it stands in; the caller's; NULL: no version. */
char *fa_read_python_abi(const char *version, const char *text);
void fa_read_python_platform(struct fa_reading *r); /* os and machine, which only Windows' text tells */

/* A line "name==version" or "name @ URL", and one "name  version  …": false when it is none. */
bool fa_read_frozen_line(struct fa_facts *out, const char *line, const char *origin);
bool fa_read_listed_line(struct fa_facts *out, const char *line, const char *origin);

/* Names of environment variables that are facts, NULL-terminated (a name ending in * is a prefix). */
extern const char *const fa_read_env_names[];
bool fa_read_env_wanted(const char *name);

/* ---- the parsers, by file */
void fa_read_nvidia_smi(struct fa_reading *r);
void fa_read_nvidia_smi_list(struct fa_reading *r);
void fa_read_nvidia_smi_query(struct fa_reading *r);
void fa_read_nvidia_smi_q(struct fa_reading *r);
void fa_read_nvml(struct fa_reading *r);
void fa_read_proc_nvidia_version(struct fa_reading *r);
void fa_read_proc_nvidia_gpu(struct fa_reading *r);
void fa_read_tegra_release(struct fa_reading *r);
void fa_read_nvcc(struct fa_reading *r);
void fa_read_device_query(struct fa_reading *r);
void fa_read_lspci(struct fa_reading *r);
void fa_read_rocminfo(struct fa_reading *r);
void fa_read_rocm_smi(struct fa_reading *r);
void fa_read_ldd(struct fa_reading *r);
void fa_read_gcc(struct fa_reading *r);
void fa_read_cxx(struct fa_reading *r);
void fa_read_cl(struct fa_reading *r);
void fa_read_uname(struct fa_reading *r);
void fa_read_os_release(struct fa_reading *r);
void fa_read_lscpu(struct fa_reading *r);
void fa_read_meminfo(struct fa_reading *r);
void fa_read_env(struct fa_reading *r);
void fa_read_ninja(struct fa_reading *r);
void fa_read_git(struct fa_reading *r);
void fa_read_pip(struct fa_reading *r);
void fa_read_uv(struct fa_reading *r);
void fa_read_conda(struct fa_reading *r);
void fa_read_python(struct fa_reading *r);
void fa_read_pip_debug(struct fa_reading *r);
void fa_read_pip_list(struct fa_reading *r);
void fa_read_torch(struct fa_reading *r);
void fa_read_collect_env(struct fa_reading *r);

#endif
