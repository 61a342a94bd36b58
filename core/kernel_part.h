/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_PART_H
#define BRAID_KERNEL_PART_H

#include "bpf/braid.skel.h"
#include "core/err.h"

/* A few programs of the kernel half by themselves, with no map but those named: for measuring and
 * counting, where a session would be too much. */

/* Opens the BPF object with all other programs and maps left out; the caller sizes its maps and
 * sets its constants. NULL-terminated. Destroy with braid_bpf__destroy. */
int kernel_part__open(const char *const *programs, const char *const *maps, struct braid_bpf **ret,
		      struct err *err);

/* Loads it. -EPERM without privilege; the sentence says what would help. */
int kernel_part__load(struct braid_bpf *skel, struct err *err);

#endif
