// SPDX-License-Identifier: GPL-2.0
#include "bpf/unwind.bpf.h"

#include "bpf/stack_copy.bpf.h"

/* The stage between the trigger and the walkers: native frames, and a copy of the stack where they
 * end too early. Loaded once for each type of programs that trigger. */

const volatile __u32 cfg_unwind = UNWIND_MODE_AUTO;
const volatile __u32 cfg_kept = 0;

#define CS_COMPAT 0x23 /* __USER32_CS */

static __always_inline void unwind__start(struct unwind_state *u)
{
	u->pc = u->regs[UNWIND_REG_PC];
	u->sp = u->regs[UNWIND_REG_RSP];
	u->rbp = u->regs[UNWIND_REG_RBP];
	u->rbx = u->regs[UNWIND_REG_RBX];
	u->rbx_lost = u->rbp_lost = 0;
	u->mapping.start = u->mapping.end = 0;
	u->block_start = 0;
	u->exact = u->leaf = 1;
	u->stop = u->complete = u->n = 0;
	u->unknown_start = 0;
}

static __always_inline int is_unmapped(__u32 stop)
{
	return stop == COUNT_NO_MAPPINGS || stop == COUNT_UNMAPPED_PC ||
	       stop == COUNT_TORN_MAPPINGS;
}

/* Could libunwind in user space do better with a copy of the stack? */
static __always_inline int wants_copy(const struct unwind_state *u)
{
	if (cfg_unwind == UNWIND_MODE_COPY)
		return 1;
	if (cfg_unwind == UNWIND_MODE_FP)
		return 0;
	return is_unmapped(u->stop) || u->stop == COUNT_NO_RULE || u->stop == COUNT_UNSUPPORTED ||
	       u->stop == COUNT_LOST_REG;
}

static __always_inline void report_unmapped(const struct scratch *scratch)
{
	struct rec_unmapped rec = { .type = REC_UNMAPPED,
				    .tgid = scratch->sample.tgid,
				    .time_ns = scratch->sample.time_ns,
				    .start = scratch->unwind.unknown_start,
				    .key = scratch->unwind.image_key,
				    .program = scratch->proc.program };

	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP))
		count(COUNT_EVENT_LOST);
}

static __always_inline void unwind_native(struct scratch *scratch)
{
	struct rec_sample *sample = &scratch->sample;
	struct unwind_state *u = &scratch->unwind;

	__builtin_memcpy(scratch->interrupted, u->regs, sizeof(scratch->interrupted));
	unwind__start(u);
	unwind__start_probes(u, bpf_get_current_task_btf(), sample->flags & SAMPLE_KERNEL_MODE);
	if (scratch->cs == CS_COMPAT) {
		u->stop = COUNT_COMPAT;
	} else {
		kept__begin(scratch);
		bpf_loop(NATIVE_FRAMES_MAX, unwind__step, NULL, 0);
		kept__save(scratch);
	}
	if (u->complete)
		sample->flags |= SAMPLE_COMPLETE;
	else if (!u->stop)
		u->stop = COUNT_TRUNCATED;
	if (u->stop == COUNT_TRUNCATED)
		sample->flags |= SAMPLE_NATIVE_TRUNCATED;
	if (u->stop)
		count(u->stop);
	if (is_unmapped(u->stop))
		report_unmapped(scratch);
	sample->n_native = u->n;
	sample->stop = u->stop;
	if (wants_copy(u) && copy_stack(scratch))
		sample->flags |= SAMPLE_HAS_STACK;
}

SEC("?perf_event")
int unwind_stack(void *ctx)
{
	struct scratch *scratch = scratch__get();

	if (!scratch) {
		scratch__abandon();
		return 0;
	}
	unwind_native(scratch);
	scratch__next(ctx, scratch);
	return 0;
}
