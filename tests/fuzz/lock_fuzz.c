/* requirements.lock from anywhere; what was read must print to a text that reads the same. */
#include "core/buf.h"
#include "core/lock.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fa_buf text = FA_BUF_INIT;
	struct fa_lock l, again;
	struct fa_wish w;

	if (fa_lock_parse(&l, (const char *)data, size, "fuzz", NULL) < 0)
		return 0;
	fa_lock_print(&text, &l);
	if (fa_lock_parse(&again, fa_buf_str(&text), text.len, "fuzz", NULL) < 0)
		abort();
	if (fa_lock_wish(&w, &l, NULL) == 0)
		fa_wish_release(&w);
	fa_lock_release(&again);
	fa_lock_release(&l);
	fa_buf_release(&text);
	return 0;
}
