/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_GO_H
#define BRAID_GO_H

/* What crosses between the two halves for Go. */

#include "bpf/shared.h"

/* Offsets of struct g and struct m (src/runtime/runtime2.go), in bytes: the same since Go 1.5,
 * as assembly of programs relies on it. */
#define GO_G_M 48

struct go_proc_rec {   /* key: address space */
	__s32 g_at;    /* of the thread's g, from the thread pointer */
	__u32 curg_at; /* of m.curg */
	__u32 goid_at; /* of g.goid; 0: nothing of these is known */
	__u32 pad;
};
_Static_assert(sizeof(struct go_proc_rec) == 16, "go_proc_rec");

#endif
