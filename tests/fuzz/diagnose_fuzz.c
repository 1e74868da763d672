/* Any bytes as a log: lines, words, patterns, rules and what is said about them. Lines "@ fact=value" before the log are facts. */
#include "core/buf.h"
#include "core/diagnose.h"
#include "core/facts.h"
#include "core/json.h"
#include "core/matrix.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fa_diagnoser *diagnoser;

static void open_once(void)
{
	static struct fa_matrix *matrix;

	if (!diagnoser && (fa_matrix_open(&matrix, NULL) < 0 || fa_diagnoser_new(&diagnoser, matrix, NULL) < 0))
		abort();
}

static size_t take_facts(struct fa_facts *facts, const char *text, size_t size)
{
	size_t at = 0;

	while (size - at > 2 && text[at] == '@' && text[at + 1] == ' ') {
		const char *end = memchr(text + at, '\n', size - at);
		size_t len = end ? (size_t)(end - text) - at : size - at;
		char *assignment = fa_strndup(text + at + 2, len - 2);

		fa_facts_assign(facts, assignment, NULL);
		free(assignment);
		at += len + (end != NULL);
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fa_facts facts = FA_FACTS_INIT;
	struct fa_diagnosis d;
	size_t at;

	open_once();
	at = take_facts(&facts, (const char *)data, size);
	if (fa_diagnose_text(&d, diagnoser, (const char *)data + at, size - at, &facts, NULL) == 0) {
		struct fa_json *j = fa_diagnosis_to_json(&d);
		struct fa_buf page = FA_BUF_INIT;

		free(fa_json_print(j, false));
		fa_json_free(j);
		fa_diagnosis_print(&page, &d);
		fa_buf_release(&page);
	}
	fa_diagnosis_release(&d);
	fa_facts_release(&facts);
	return 0;
}
