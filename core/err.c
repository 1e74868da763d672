#include "err.h"

#include <stdarg.h>
#include <stdio.h>

int fa_err_set(struct fa_err *err, enum fa_status status, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	err->status = status;
	err->next[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

int fa_err_next(struct fa_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vsnprintf(err->next, sizeof(err->next), fmt, ap);
	va_end(ap);
	return -1;
}

const char *fa_status_name(enum fa_status status)
{
	switch (status) {
	case FA_OK: return "ok";
	case FA_CHECK: return "check";
	case FA_USAGE: return "usage";
	case FA_IMPOSSIBLE: return "impossible";
	case FA_MACHINE: return "machine";
	case FA_NETWORK: return "network";
	case FA_BUILD: return "build";
	case FA_INTEGRITY: return "integrity";
	case FA_INTERNAL: return "internal";
	case FA_INTERRUPTED: return "interrupted";
	}
	return "internal";
}
