/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IDLE_H
#define BRAID_IDLE_H

#include <stdbool.h>

/* Parts that rules share. IDLE_LOCKS: calls that wait for a lock or a condition. IDLE_POLLS:
 * calls that wait for one of several files. IDLE_LIBC: libc's names for both, as alternatives of
 * a pattern, and its frames without a name ("[libc.so.6+0x1234]"; fnmatch supports no backslash
 * before a bracket there). IDLE_UV: libuv's waits, alternatives with a bar at the end. */
#define IDLE_LOCKS "futex futex_wait"
#define IDLE_POLLS "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6"
#define IDLE_LIBC                                                                      \
	"*futex*|*pthread_cond_*|*sem_*wait*|*epoll_*wait*|*poll|*select|*sigsuspend|" \
	"?libc.so*|?libc-2*|?libpthread*|?ld-musl*"
#define IDLE_UV "uv_cond_wait|uv_sem_wait|uv__sem_wait|"

/* A wait that is no delay: a worker waits for work, an event loop for events, or a runtime's own
 * thread waits. Readers hide such waits unless the user requests them (braid report --idle). Each
 * rule is exact: a wait that it does not describe in full is shown.
 *
 * All parts of a rule have to match. Patterns are fnmatch's with FNM_EXTMATCH: "*", "?",
 * "[...]", "@(a|b)". */
struct idle_rule {
	const char *thread;   /* name of the thread; NULL: any */
	const char *image;    /* file with native code of the stack, without directory; NULL: any */
	const char *syscalls; /* system calls it may wait in, separated by blanks; NULL: any */

	/* A function on the stack, and its file's path; NULL: any. Only these frames may be
	 * further in: frames of the kernel, frames whose function matches `through`, and, unless
	 * `native`, any native frames. These are the runtime's own primitives of waiting. */
	const char *function, *file;
	const char *through;
	bool native;	   /* the function is native */
	const char *outer; /* the function that called it, ignoring native frames; NULL: any */

	const char *source; /* source of this fact */
};

#endif
