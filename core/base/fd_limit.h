/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FD_LIMIT_H
#define BRAID_FD_LIMIT_H

#include <sys/resource.h>

#include "core/base/err.h"

/* The limit of this process's file descriptors. braid raises it to the hard limit, less a reserve
 * for work that must not fail. Some further descriptors are for short use only. A target that uses
 * up the others loses names of its own frames, but the recording goes on. */

/* Raises the limit; *@ret_users is the old limit, for programs that the user starts. Returns
 * -EMFILE if the hard limit is too low to begin. */
int fd_limit__raise(struct rlimit *ret_users, struct err *err);
void fd_limit__restore(const struct rlimit *users);

/* Makes the reserve available until fd_limit__close_reserve(). The two do not nest. */
void fd_limit__open_reserve(void);
void fd_limit__close_reserve(void);

/* Checks a descriptor that stays open for long. Returns @fd, which may be a negative errno. If too
 * few descriptors would remain for short use, closes @fd and returns -EMFILE. */
int fd_limit__hold(int fd);

#endif
