/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SUDO_USER_H
#define BRAID_SUDO_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* Who has asked for this by sudo, and is to read without it what braid writes. */

/* Is it this user? Never if braid does not run by sudo. */
bool sudo_user__is(uid_t uid);

/* The file becomes his, if there is one and the file system has owners. */
void sudo_user__give(int fd);

#endif
