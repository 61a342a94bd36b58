// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/title.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *title__of(const char *name, const char *command, char buf[TITLE_BYTES])
{
	size_t word = command ? strcspn(command, " ") : 0, len;
	bool named = command && strchr(name, ' ') && !strncmp(command, name, strlen(name));

	if (!named && !(word > 1 && command[word - 1] == ':' && command[word] && *command != '/'))
		return name;
	snprintf(buf, TITLE_BYTES, "%s", command);
	/* Programs overwrite arguments that were longer than the title. */
	for (len = strlen(buf); len && buf[len - 1] == ' ';)
		buf[--len] = '\0';
	return buf;
}

const char *title__of_thread(const char *name, const char *process, const char *command,
			     char buf[TITLE_BYTES])
{
	const char *title = title__of(process, command, buf);

	return *name && title == buf && !strncmp(buf, name, strlen(name)) ? title : name;
}
