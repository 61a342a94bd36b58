// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/err.h"

#include <stdarg.h>
#include <stdio.h>

int err__set(struct err *err, int code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return code;
}

int err__prefix(struct err *err, int code, const char *fmt, ...)
{
	struct err old;
	va_list args;
	int n;

	if (!err)
		return code;
	old = *err;
	va_start(args, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	if (n >= 0 && (size_t)n + 3 < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - n, ": %.*s",
			 (int)(sizeof(err->text) - n - 3), old.text);
	return code;
}
