/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_HOST_HALF_H
#define BRAID_HOST_HALF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/waiting.h"
#include "core/base/memory.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/spaces.h"
#include "core/kernel/table_arena.h"

/* Samples of threads that do not run. The kernel half's programs, built for this process
 * (bpf/host), read the target's memory from here. They read each value of the kernel half's maps
 * once, at first use, so an object serves for a moment only. One at a time. */
struct host_half;

int host_half__new(const struct kernel_half *half, const struct table_arena *arena,
		   struct host_half **ret);	   /* -ENOMEM */
void host_half__free(struct host_half *host_half); /* NULL is fine */

/* Adds the numbers of new code objects to the kernel half's maps, so that later samples do not
 * number the same objects again. All records must have been routed: a sample of the kernel half may
 * have these numbers from now on. */
void host_half__share_codes(const struct host_half *host_half);

/* A task that is on no thread. Each sample of a task has another time. */
struct waiting_task {
	uint64_t id;
	double stands_for;	/* tasks, with itself */
	uint32_t context;	/* as in rec_sample */
	bool has_regs;		/* the thread's registers are those with which it continues */
	bool has_native_frames; /* and the native frames are its own */
	const struct memory_patch *patches; /* changes of the memory in which it is walked */
	size_t n_patches;
};

/* The data of such a sample besides its frames. */
struct waiting_sample {
	uint64_t time_ns, value, object, link;
	uint32_t event, peer;
	uint32_t flags; /* additional SAMPLE_* */
	struct rec_condition condition;
	const struct waiting_task *task; /* NULL: the thread itself is sampled */
};

/* Takes a sample of @thread, which runs in @space. Passes its records to @record, as the ring
 * would. Without @space the sample has the kernel's frames only. Returns 0, -ENOMEM, or the result
 * of @record. */
int host_half__sample(struct host_half *host_half, const struct space *space,
		      const struct waiting_thread *thread, const struct waiting_sample *sample,
		      int (*record)(void *ctx, const void *data, size_t size), void *ctx);

#endif
