/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_GO_H
#define BRAID_GO_H

/* The interface between the kernel half and user space for Go. */

#include "bpf/shared.h"

/* Offset in struct g (src/runtime/runtime2.go), in bytes. It is the same since Go 1.5, because
 * assembly of programs relies on it. */
#define GO_G_M 48

struct go_proc_rec {   /* key: address space */
	__s32 g_at;    /* offset of the thread's g from the thread pointer */
	__u32 curg_at; /* offset of m.curg */
	__u32 goid_at; /* offset of g.goid; 0: all of these are unknown */
	__u32 pad;
};
_Static_assert(sizeof(struct go_proc_rec) == 16, "go_proc_rec");

#endif
