/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BPF_HOST_PROGRAMS_H
#define BRAID_BPF_HOST_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"

/* The sampler and the walkers, built for the host. */

struct host_thread { /* that is to be sampled */
	uint32_t tgid, tid;
	uint64_t regs[UNWIND_REGS]; /* in the order of DWARF (bpf/unwind_rule.h) */
	uint64_t fs_base;
	uint64_t start_stack; /* as mm_struct has it; 0: unknown */
	const char *name;     /* at most THREAD_NAME_BYTES - 1 count */
	/* Of one that is in the kernel: its frames there, and orig_ax. NULL: it is not. */
	const uint64_t *kernel;
	uint32_t n_kernel;
	int64_t syscall;
	/* Return probes, as in struct still_thread. */
	uint64_t trampoline;
	const uint64_t (*returns)[2];
	uint32_t n_returns;
	bool own_ids;	/* what the target knows as ids of its threads are what braid does */
	bool suspended; /* it stands behind a call: pc is a return address, and of the other
			 * registers the callee-saved ones are true */
};

/* Adds the maps of all programs, empty, and fills the walkers' slots. host__done ends it. */
void host_programs__open(void);

/* Code objects that are met for the first time get the numbers behind this one. */
void host_programs__number_codes_from(uint32_t last_code);

/* The last of these numbers that was given. */
uint32_t host_programs__codes(void);

/* How it stands to its interpreter's lock is looked at, too. */
void host_programs__look_at_locks(void);

/* One sample of the thread, as if a timer had interrupted it at `now_ns`
 * (CLOCK_MONOTONIC): its records come through host.on_record. The process must be in the map
 * `targets`, and its memory in host.memory. */
void host_programs__sample(const struct host_thread *thread, uint64_t now_ns);

#endif
