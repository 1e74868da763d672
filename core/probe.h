/* Stage 1 in parts: each part asks the machine through sys and sets its facts; what fails costs its own fact only. */
#ifndef FA_PROBE_H
#define FA_PROBE_H

#include "facts.h"
#include "sys.h"

struct fa_target {     /* the target environment */
	char *dir;     /* folder that is or would be the environment */
	bool exists;   /* its interpreter is there */
	char *python;  /* that interpreter, or the one that would make it; NULL: none found */
	char *origin;  /* why it is this one: "--env", "VIRTUAL_ENV", … */
	char *data;    /* $XDG_DATA_HOME/fainstall of the machine that is looked at */
	bool is_conda; /* by conda-meta */
};

struct fa_probe {
	struct fa_facts *out;
	const struct fa_sys *sys;
	struct fa_target target;
	unsigned timeout_ms; /* of one command; 0: FA_PROBE_TIMEOUT_MS */
};

enum { FA_PROBE_TIMEOUT_MS = 5000, FA_PROBE_DRIVER_MS = 6000 };

/* ---- asking. Texts are the caller's, NULL when there is none. */
char *fa_probe_read(struct fa_probe *p, const char *path);
char *fa_probe_ask(struct fa_probe *p, const char *question, enum fa_sys_result *result);
bool fa_probe_there(struct fa_probe *p, const char *path); /* a file that can be read */

/* Sets a text fact to "", looked for and not there: unless the question ("find", "ninja") was never recorded. */
void fa_probe_none(struct fa_probe *p, enum fa_fact id, const char *ask, const char *of, const char *origin);

/* Runs a command and gives its output to the parser `tool`; a fault of the command becomes a problem about `what`. */
void fa_probe_tool(struct fa_probe *p, const char *tool, const char *const *argv);
void fa_probe_begin(struct fa_probe *p, const char *const *argv);

/* KEY=VALUE of an answer; borrowed pieces are copied: the caller's; NULL: no such key. */
char *fa_probe_value(const char *answer, const char *key);

void fa_probe_problem(struct fa_probe *p, const char *id, const char *tool, const char *repair, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));

/* ---- the parts */
void fa_target_init(struct fa_probe *p, const char *env);
void fa_target_release(struct fa_target *t);

void fa_detect_system(struct fa_probe *p);
void fa_detect_memory(struct fa_probe *p);
void fa_detect_nvidia(struct fa_probe *p);
void fa_detect_amd(struct fa_probe *p);
void fa_detect_tools_begin(struct fa_probe *p);
void fa_detect_tools(struct fa_probe *p);
void fa_detect_own_tools(struct fa_probe *p); /* after the packages: what no file told */
void fa_detect_toolkits_begin(struct fa_probe *p);
void fa_detect_toolkits(struct fa_probe *p);
void fa_detect_python_begin(struct fa_probe *p);
void fa_detect_python(struct fa_probe *p);

#endif
