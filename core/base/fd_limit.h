/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FD_LIMIT_H
#define BRAID_FD_LIMIT_H

#include <sys/resource.h>

#include "core/base/err.h"

/* How many file descriptors this process may have. All that the hard limit allows, but for a few
 * that are kept back for what must not fail, and some that nothing may hold for long: so a target
 * that uses up the others costs the names of its own frames, and not the recording. */

/* From now on; `ret_users` is the limit as it was, for the user's own programs. -EMFILE if the hard
 * limit is too low to begin at all. */
int fd_limit__raise(struct rlimit *ret_users, struct err *err);
void fd_limit__restore(const struct rlimit *users);

/* The few that are kept back can be had between these two, which do not nest. */
void fd_limit__open_reserve(void);
void fd_limit__close_reserve(void);

/* A descriptor that is to be held for long, or a negative errno, which is returned as it is. Where
 * not enough would be left for what comes and goes it is closed: -EMFILE. */
int fd_limit__hold(int fd);

#endif
