/* Any bytes as a log: lines, words, patterns, rules and what is said about them. */
#include "core/diagnose.h"
#include "core/json.h"
#include "core/matrix.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fa_diagnoser *diagnoser;

static void open_once(void)
{
	static struct fa_matrix *matrix;

	if (!diagnoser && (fa_matrix_open(&matrix, NULL) < 0 || fa_diagnoser_new(&diagnoser, matrix, NULL) < 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fa_diagnosis d;

	open_once();
	if (fa_diagnose_text(&d, diagnoser, (const char *)data, size, NULL, NULL) == 0) {
		struct fa_json *j = fa_diagnosis_to_json(&d);

		free(fa_json_print(j, false));
		fa_json_free(j);
	}
	fa_diagnosis_release(&d);
	return 0;
}
