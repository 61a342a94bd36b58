// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/maps_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool maps_line__parse(char *text, struct maps_line *ret)
{
	int at = 0;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &ret->start, &ret->end, ret->perms, &ret->offset, &ret->dev_major,
		   &ret->dev_minor, &ret->inode, &at) != 7 ||
	    !at || ret->start >= ret->end || strlen(ret->perms) != 4)
		return false;
	ret->path = text + at;
	return true;
}
