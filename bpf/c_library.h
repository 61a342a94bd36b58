/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_C_LIBRARY_H
#define BRAID_C_LIBRARY_H

#include <linux/types.h>

/* Layout of a process's C library for the walkers, shared by the kernel half and user space. The
 * offsets are from its struct pthread, which is at the thread's fs base. */
struct c_library {
	/* musl: offset of the pointer to the thread-specific values, one word each. 0: glibc, whose
	 * layout is the same in all versions (bpf/thread_local.bpf.h). */
	__u16 values;
	__u16 tid; /* offset of the thread's id in its own PID namespace, an int; 0: unknown */
};

#endif
