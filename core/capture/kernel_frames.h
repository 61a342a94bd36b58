/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_FRAMES_H
#define BRAID_KERNEL_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/elf/kallsyms.h"

/* Which of the kernel's frames say something of a sample:
 *   - of waiting, not those of the scheduler, by which every wait ends. The kernel leaves them out
 *     itself where it tells the stack of a thread that is off the CPU (in_sched_functions(),
 *     kernel/sched/core.c; /proc/PID/stack), but not in the thread that has just come back;
 *   - of an interrupt, not those that it has interrupted: they have not caused it. */

/* Where the kernel has such code; 0: not known. */
struct kernel_texts {
	uint64_t sched_start, sched_end; /* functions that wait */
	uint64_t entry_start, entry_end; /* where interrupts enter */
};

struct kernel_texts kernel_texts__of(const struct kallsyms *kallsyms); /* NULL: nothing is known */

/* What interrupts are called by the kernel half, as if they were threads, with the id 0. */
#define INTERRUPT_NAME "(interrupt)"

/* Are there any that say nothing? */
bool kernel_frames__are_cut(const struct rec_sample *rec);

/* Of the `rec->n_kernel` at `words`, innermost first, into `ret`, which has room for
 * KERNEL_FRAMES_MAX + 1; how many those are. */
uint16_t kernel_frames__of(const struct kernel_texts *texts, const struct rec_sample *rec,
			   const uint64_t *words, uint64_t *ret);

#endif
