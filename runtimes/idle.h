/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IDLE_H
#define BRAID_IDLE_H

#include <stdbool.h>

/* What rules have in common: calls that wait for a lock or a condition; that wait for one of
 * several files; what libc calls them, alternatives of a pattern, with its frames that have no
 * name ("[libc.so.6+0x1234]", but fnmatch knows no backslash before a bracket there); and libuv's
 * waits, alternatives with a bar at the end. */
#define IDLE_LOCKS "futex futex_wait"
#define IDLE_POLLS "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect6"
#define IDLE_LIBC                                                                      \
	"*futex*|*pthread_cond_*|*sem_*wait*|*epoll_*wait*|*poll|*select|*sigsuspend|" \
	"?libc.so*|?libc-2*|?libpthread*|?ld-musl*"
#define IDLE_UV "uv_cond_wait|uv_sem_wait|uv__sem_wait|"

/* A wait that means nothing: of a worker for work, of an event loop for events, of a runtime's own
 * thread. Readers hide such waits unless the user wants them (braid report --idle). Each rule is
 * exact: what it does not describe in full is shown.
 *
 * All that a rule names has to fit. Patterns are fnmatch's with FNM_EXTMATCH: "*", "?", "[...]",
 * "@(a|b)". */
struct idle_rule {
	const char *thread;   /* name of the thread; NULL: any */
	const char *image;    /* a file that has native code of the stack, without its directory;
				 NULL: any */
	const char *syscalls; /* names of those that it may wait in, blanks between; NULL: any */

	/* A function on the stack, and its file's path; NULL: any. Further in are only frames of
	 * the kernel, those whose function fits `through`, and, unless `native`, any native ones:
	 * what the runtime's own primitives of waiting look like. */
	const char *function, *file;
	const char *through;
	bool native;	   /* it is a function of native code */
	const char *outer; /* the function that called it, not counting native frames; NULL: any */

	const char *source; /* where it is written that this is so */
};

#endif
