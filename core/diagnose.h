/* From a wall of text to the cause and the command that mends it. The knowledge is matrix/causes.json: signals (texts that a log
 * can hold), and causes that follow from signals and facts by rules. One pass over the log, memory independent of its size. */
#ifndef FA_DIAGNOSE_H
#define FA_DIAGNOSE_H

#include "buf.h"
#include "err.h"
#include "facts.h"
#include "strv.h"

#include <stddef.h>

struct fa_json;
struct fa_matrix;

struct fa_evidence {
	size_t line; /* from 1, as an editor counts */
	char *text;  /* the line, at most 400 bytes around the match */
};

struct fa_cause {
	char *id;          /* stable, as in matrix/causes.json */
	double confidence; /* 0 to 1, of the rule that held */
	char *title;
	char *because;
	char *source;
	struct fa_evidence *evidence;
	size_t n_evidence;
	struct fa_strv repair; /* commands first, filled with this machine's values */
};

struct fa_noise {
	char *id;
	size_t line;
	char *text; /* why it is harmless */
};

struct fa_diagnosis {
	struct fa_cause *causes; /* best first */
	size_t n_causes;
	struct fa_noise *noise;
	size_t n_noise;
	struct fa_evidence *unknown; /* lines that look like errors and that no cause explains: what to report */
	size_t n_unknown;
	size_t n_lines;
};

#define FA_DIAGNOSIS_INIT \
	{ \
		0 \
	}

/* matrix/causes.json, compiled: once for any number of logs. The matrix must outlive it. */
struct fa_diagnoser;
int fa_diagnoser_new(struct fa_diagnoser **out, struct fa_matrix *matrix, struct fa_err *err);
void fa_diagnoser_free(struct fa_diagnoser *d);

/* Reads the file ("-": standard input) and names causes. `facts` (may be NULL) decide between equal texts and fill the repairs.
 * 0 also when no cause is found; -1: the file cannot be read (FA_USAGE). */
int fa_diagnose_file(struct fa_diagnosis *out, struct fa_diagnoser *d, const char *path, const struct fa_facts *facts,
                     struct fa_err *err);
int fa_diagnose_text(struct fa_diagnosis *out, struct fa_diagnoser *d, const char *text, size_t len,
                     const struct fa_facts *facts, struct fa_err *err);

struct fa_json *fa_diagnosis_to_json(const struct fa_diagnosis *d); /* fainstall.diagnosis/1 */
void fa_diagnosis_print(struct fa_buf *out, const struct fa_diagnosis *d);
void fa_diagnosis_release(struct fa_diagnosis *d);

#endif
