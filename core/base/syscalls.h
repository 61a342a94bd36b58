/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SYSCALLS_H
#define BRAID_SYSCALLS_H

/* Names of the system calls of the architecture that braid is built for, as in the kernel's
 * headers: "futex", "epoll_wait", ... */

/* Returns a constant text; NULL: this build has no name for the number. */
const char *syscall__name(int number);

/* Returns the number, or -ENOENT for an unknown name. */
int syscall__number(const char *name);

/* Returns the lowest named number at or above @number, for lists; -1: there is none. */
int syscall__next(int number);

#endif
