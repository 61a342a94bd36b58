/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_C_LIBRARY_H
#define BRAID_C_LIBRARY_H

#include <linux/types.h>

/* What the walkers must know of a process's C library, shared by both halves: where its struct
 * pthread, which is at the fs base, has what they look for. */
struct c_library {
	/* musl: the pointer to the thread-specific values, one word each. 0: this is glibc, whose
	 * layout has been the same in all versions (bpf/thread_local.bpf.h). */
	__u16 values;
	__u16 tid; /* the thread's id in its own PID namespace, an int; 0: unknown */
};

#endif
