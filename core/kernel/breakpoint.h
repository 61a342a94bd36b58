/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BREAKPOINT_H
#define BRAID_BREAKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "core/base/err.h"

/* Hardware breakpoints: a sample at each execution of one instruction, exactly one, and nothing in
 * the target is changed. The CPU has four at a time; one that belongs to threads takes none from
 * others, as the kernel switches them with the threads. */

/* All zero: none. */
struct breakpoints {
	struct bpf_link **links; /* one per thread; they own the events */
	size_t n, cap;
};

/* Runs `program` whenever a thread of the process is about to execute the instruction at `address`:
 * the threads that it has now, and those, and the processes, that these start later. The process
 * must not be starting threads meanwhile. */
int breakpoints__attach(struct breakpoints *breakpoints, const struct bpf_program *program,
			uint32_t pid, uint64_t address, struct err *err);

void breakpoints__detach(struct breakpoints *breakpoints); /* idempotent */

/* Do they on this machine? Not on every virtual one where they can be set. Tried in this thread. */
bool breakpoints__fire(void);

#endif
