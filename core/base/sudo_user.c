// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/sudo_user.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns the number in an environment variable. Returns (uint32_t)-1, which is no user's number,
 * if it is missing or malformed, or if this process is not root's. */
static uint32_t number_of(const char *variable)
{
	const char *text = secure_getenv(variable);
	char *end;
	unsigned long number;

	if (geteuid() || !text || !*text)
		return UINT32_MAX;
	number = strtoul(text, &end, 10);
	return *end || number > UINT32_MAX ? UINT32_MAX : number;
}

bool sudo_user__is(uid_t uid)
{
	return uid != UINT32_MAX && uid == number_of("SUDO_UID");
}

void sudo_user__give(int fd)
{
	uint32_t owner = number_of("SUDO_UID"), group = number_of("SUDO_GID");

	if (owner != UINT32_MAX && group != UINT32_MAX && fchown(fd, owner, group))
		return; /* the file stays root's */
}
