/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SUDO_USER_H
#define BRAID_SUDO_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user who ran braid by sudo, and who can later read braid's files without sudo. */

/* Returns true if @uid is that user; always false if braid does not run by sudo. */
bool sudo_user__is(uid_t uid);

/* Makes that user the owner of the file, if there is such a user and the file system has owners. */
void sudo_user__give(int fd);

#endif
