/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_FRAMES_H
#define BRAID_KERNEL_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/elf/kallsyms.h"

/* Selects the kernel's frames that are relevant to a sample:
 *   - If the thread waits, the scheduler's frames are left out, as every wait ends in them. The
 *     kernel also omits them from the stack of a thread that is off the CPU
 *     (in_sched_functions(), kernel/sched/core.c; /proc/PID/stack), but not from that of a
 *     thread that has just come back.
 *   - In an interrupt, the interrupted frames are left out, as they did not cause it. */

/* address ranges of such code; 0: unknown */
struct kernel_texts {
	uint64_t sched_start, sched_end; /* functions that wait */
	uint64_t entry_start, entry_end; /* entries of interrupts */
};

struct kernel_texts kernel_texts__of(const struct kallsyms *kallsyms); /* NULL: all are unknown */

/* The kernel half's name for interrupts, which it records as threads with the id 0. */
#define INTERRUPT_NAME "(interrupt)"

/* Returns true if the sample has frames that are left out. */
bool kernel_frames__are_cut(const struct rec_sample *rec);

/* Copies the relevant frames among the `rec->n_kernel` at @words, innermost first, to @ret, which
 * has room for KERNEL_FRAMES_MAX + 1. Returns their number. */
uint16_t kernel_frames__of(const struct kernel_texts *texts, const struct rec_sample *rec,
			   const uint64_t *words, uint64_t *ret);

#endif
