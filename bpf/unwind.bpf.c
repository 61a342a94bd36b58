// SPDX-License-Identifier: GPL-2.0
#include "bpf/unwind.bpf.h"

#include "bpf/stack_copy.bpf.h"
#include "bpf/unmapped.bpf.h"

/* The stage between the trigger and the walkers: native frames, and a copy of the stack if they are
 * cut. Loaded once for each type of triggering programs. */

const volatile __u32 cfg_unwind = UNWIND_MODE_AUTO;
const volatile __u32 cfg_cached = 0;
/* Only for the host: the thread is suspended after a call, not at an instruction. */
const volatile __u32 cfg_suspended = 0;

static __always_inline void unwind__start(struct unwind_state *u)
{
	u->pc = u->regs[UNWIND_REG_PC];
	u->sp = u->regs[UNWIND_REG_RSP];
	u->rbp = u->regs[UNWIND_REG_RBP];
	u->rbx = u->regs[UNWIND_REG_RBX];
	u->rbx_lost = u->rbp_lost = 0;
	u->mapping.start = u->mapping.end = 0;
	u->block_start = 0;
	u->exact = u->leaf = !cfg_suspended;
	u->stop = u->complete = u->n = 0;
	u->unknown_start = 0;
	u->unlisted = u->over = 0;
	u->chained = u->resumed = 0;
	u->evidence = EVIDENCE_RULE;
	u->inferred = u->lowered = u->searched = 0;
	u->start_stack = STACK_UNKNOWN;
	u->code_at = u->last = 0;
	u->later = 0;
}

/* Returns 1 if libunwind in user space could give a better result with a copy of the stack. */
static __always_inline int wants_copy(const struct unwind_state *u)
{
	if (cfg_unwind == UNWIND_MODE_COPY)
		return 1;
	if (cfg_unwind == UNWIND_MODE_FP)
		return 0;
	return is_unread(u->stop) || u->stop == COUNT_NO_RULE || u->stop == COUNT_UNSUPPORTED ||
	       u->stop == COUNT_LOST_REG;
}

static __always_inline void unwind_frames(struct scratch *scratch, int with_cached)
{
	struct unwind_state *u = &scratch->unwind;

	unwind__start(u);
	u->checked_ns = scratch->sample.time_ns;
	scratch->n_runtime_frames = 0;
	unwind__start_probes(u, bpf_get_current_task_btf(),
			     scratch->sample.flags & SAMPLE_KERNEL_MODE);
	if (arch__is_compat(scratch->cs)) {
		u->stop = COUNT_COMPAT;
		return;
	}
	scratch->cached.version = CACHED_NO_VERSION;
	if (with_cached)
		cached__begin(scratch);
	recent__begin(scratch);
	bpf_loop(NATIVE_FRAMES_MAX, unwind__step, NULL, 0);
	if (with_cached)
		cached__save(scratch);
}

/* --- UNWIND_MODE_TWICE --- */

#define TWICE_AT 4096 /* words of the sample for the second stack, after those of the first */
_Static_assert(KERNEL_FRAMES_MAX + 2 * NATIVE_FRAMES_MAX <= TWICE_AT &&
		       TWICE_AT + 2 * NATIVE_FRAMES_MAX <= SAMPLE_WORDS_MAX,
	       "room for two stacks");

/* The state of a comparison is in the scratch memory. With locals instead, the frames of eight
 * calls on the way to block__fill() add up to 544 bytes. Linux 6.1 allows 512. */
static long twice__compare(__u32 index, void *unused)
{
	struct scratch *scratch = scratch__get();

	(void)unused;
	if (!scratch)
		return 1;
	if (scratch->words[(scratch->twice.at + index) & (SAMPLE_WORDS_MAX - 1)] ==
	    scratch->words[(TWICE_AT + index) & (SAMPLE_WORDS_MAX - 1)])
		return 0;
	scratch->twice.differs = 1;
	return 1;
}

static long twice__hash_note(__u32 index, void *unused)
{
	struct scratch *scratch = scratch__get();
	const struct runtime_frame *frame;

	(void)unused;
	if (!scratch)
		return 1;
	frame = &scratch->runtime_frames[index & (NATIVE_FRAMES_MAX - 1)];
	frames_hash__add(&scratch->twice.notes, frame->key, frame->address);
	return 0;
}

/* Returns a hash of the runtime frames of a stack, for the comparison of both. */
static __always_inline __u64 twice__hash_notes(struct scratch *scratch)
{
	scratch->twice.notes = (struct frames_hash)FRAMES_HASH_BEGIN;
	bpf_loop(scratch->n_runtime_frames, twice__hash_note, NULL, 0);
	return scratch->twice.notes.hash;
}

/* Saves the data of the first stack for the comparison, and begins the second one at the sample's
 * words. */
static __noinline int twice__reverse(struct scratch *scratch)
{
	struct unwind_state *u = &scratch->unwind;

	scratch->twice.first_notes = twice__hash_notes(scratch);
	scratch->twice.checked_ns = u->checked_ns;
	scratch->twice.n = u->n;
	scratch->twice.complete = u->complete;
	scratch->n_words = scratch->twice.at;
	/* The registers may be those of a signal frame now. */
	__builtin_memcpy(u->regs, scratch->interrupted, sizeof(u->regs));
	return 0;
}

/* Compares both stacks, with three exceptions. Stacks without cached frames are not compared, nor
 * those during which user space changed the tables. The last exception is code that could not be
 * sent to user space because the ring is full: it has another number each time. */
static __noinline int twice__end(struct scratch *scratch)
{
	const struct unwind_state *u = &scratch->unwind;

	if (scratch->cached.version == CACHED_NO_VERSION ||
	    scratch->cached.version != scratch->twice.version ||
	    scratch->twice.version != mappings__version(scratch->proc.space) ||
	    (!scratch->cached.n_cached && !scratch->cached.first) || !scratch->twice.checked_ns ||
	    !u->checked_ns)
		return 0;
	cached__complete(scratch);
	scratch->twice.differs = scratch->twice.n != u->n ||
				 scratch->twice.complete != u->complete ||
				 scratch->twice.first_notes != twice__hash_notes(scratch);
	bpf_loop(2 * scratch->twice.n, twice__compare, NULL, 0);
	count(scratch->twice.differs ? COUNT_CACHED_DIFFERS : COUNT_CACHED_SAME);
	return 0;
}

/* Unwinds twice, the first time without cached frames. */
static __always_inline void unwind_twice(struct scratch *scratch)
{
	scratch->twice.at = scratch->n_words;
	scratch->twice.version = mappings__version(scratch->proc.space);
	scratch->n_words = TWICE_AT;
	unwind_frames(scratch, 0);
	twice__reverse(scratch);
	unwind_frames(scratch, 1);
	twice__end(scratch);
}

static __always_inline void unwind_native(struct scratch *scratch)
{
	struct rec_sample *sample = &scratch->sample;
	struct unwind_state *u = &scratch->unwind;

	__builtin_memcpy(scratch->interrupted, u->regs, sizeof(scratch->interrupted));
	if (cfg_unwind == UNWIND_MODE_TWICE)
		unwind_twice(scratch);
	else
		unwind_frames(scratch, 1);
	if (u->complete && !u->inferred)
		sample->flags |= SAMPLE_COMPLETE;
	if (!u->complete && !u->stop)
		u->stop = COUNT_TRUNCATED;
	if (u->over)
		sample->flags |= SAMPLE_REMAPPED;
	if (u->stop == COUNT_TRUNCATED)
		sample->flags |= SAMPLE_NATIVE_TRUNCATED;
	if (u->stop)
		count(u->stop);
	if (u->stop == COUNT_NO_MAPPINGS || u->stop == COUNT_UNMAPPED_PC ||
	    u->stop == COUNT_TORN_MAPPINGS || u->unlisted || u->over)
		unmapped__report(scratch);
	if (u->stop == COUNT_RULE_LATER)
		later__report(scratch);
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
