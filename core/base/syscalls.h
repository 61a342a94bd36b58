/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SYSCALLS_H
#define BRAID_SYSCALLS_H

/* Names of the system calls of the architecture that braid is built for, as the kernel's headers
 * have them: "futex", "epoll_wait", ... */

/* A constant text; NULL: there is none with that number that this build knows. */
const char *syscall__name(int number);

/* -ENOENT: none is known by that name. */
int syscall__number(const char *name);

/* The one whose numbers are looked at next, for lists: `number` and above; -1: that was the last.
 */
int syscall__next(int number);

#endif
