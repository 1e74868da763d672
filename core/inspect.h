/* What a binary or a wheel needs and holds, against a machine and its torch: one verdict for each key that decides, and one for
 * all. Names lie, so what stands inside counts; the name of a wheel is one key among others. */
#ifndef FA_INSPECT_H
#define FA_INSPECT_H

#include "err.h"
#include "facts.h"

#include <stdbool.h>
#include <stddef.h>

struct fa_json;
struct fa_buf;

enum fa_inspect_verdict { FA_INSPECT_FITS, FA_INSPECT_REFUSED, FA_INSPECT_UNKNOWN };

struct fa_inspect_row {
	const char *key; /* "Symbols", "GPU code", … */
	char *needs, *found;
	enum fa_inspect_verdict verdict;
};

struct fa_inspect {
	char *path;
	struct fa_inspect_row *rows;
	size_t n_rows;
	struct fa_json *binaries; /* array of X-rays, each with its name */
	bool extends_torch;       /* one of them needs a library of torch, or holds GPU code */
};

#define FA_INSPECT_INIT \
	{ \
		0 \
	}

/* path: a .so, or a .whl, which is unpacked into a folder of its own by the worker and removed again. Facts: of this machine and its
 * environment, or of another; only torch of this machine is read. -1: it cannot be read at all. */
int fa_inspect(struct fa_inspect *out, const char *path, const struct fa_facts *facts, struct fa_err *err);

/* REFUSED when a key refuses, else UNKNOWN when symbols or GPU code could not be judged, else FITS. */
enum fa_inspect_verdict fa_inspect_verdict(const struct fa_inspect *i);
void fa_inspect_print(struct fa_buf *out, const struct fa_inspect *i);
struct fa_json *fa_inspect_to_json(const struct fa_inspect *i);
void fa_inspect_release(struct fa_inspect *i);

#endif
