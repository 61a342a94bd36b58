// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/untried.h"

#include <stdio.h>

void untried__accept(struct runtime_verdict *verdict, const char *row)
{
	verdict->support = RUNTIME_DEGRADED;
	snprintf(verdict->reason, sizeof(verdict->reason),
		 "this version was not tried yet; it is walked as %s, because all checks of this "
		 "build find that layout",
		 row);
}

void untried__refuse(char *buf, size_t size, const char *row, const char *part)
{
	snprintf(buf, size, "this version is newer than %s, and its %s differs", row, part);
}
