/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BPF_HOST_PROGRAMS_H
#define BRAID_BPF_HOST_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"

/* The sampler and the walkers, built for the host. */

struct host_thread { /* the thread to sample */
	uint32_t tgid, tid;
	uint64_t regs[UNWIND_REGS]; /* in the order of DWARF (bpf/unwind_rule.h) */
	uint64_t fs_base;
	uint64_t start_stack; /* as in mm_struct; 0: unknown */
	const char *name;     /* at most THREAD_NAME_BYTES - 1 bytes are used */
	/* For a thread in the kernel: its kernel frames, and orig_ax. NULL: it is in user space. */
	const uint64_t *kernel;
	uint32_t n_kernel;
	int64_t syscall;
	/* Return probes, as in struct waiting_thread. */
	uint64_t trampoline;
	const uint64_t (*returns)[2];
	uint32_t n_returns;
	bool own_ids;	/* the target's thread ids are valid in braid's PID namespace, too */
	bool suspended; /* it is suspended after a call: pc is a return address, and only the
			   callee-saved ones of the other registers are valid */
};

/* Adds the maps of all programs, empty, and fills the walkers' slots. host__done() removes them. */
void host_programs__open(void);

/* Numbers new code objects from @last_code + 1 on. */
void host_programs__number_codes_from(uint32_t last_code);

/* Returns the last of these numbers that is in use. */
uint32_t host_programs__codes(void);

/* Lets later samples also record whether the thread holds its interpreter's lock or waits for it.
 */
void host_programs__look_at_locks(void);

/* Takes one sample of @thread, as if a timer interrupted it at @now_ns (CLOCK_MONOTONIC). Its
 * records come through host.on_record. The process must be in the map `targets`, and its memory in
 * host.memory. */
void host_programs__sample(const struct host_thread *thread, uint64_t now_ns);

#endif
