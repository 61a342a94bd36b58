/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SCRATCH_BPF_H
#define BRAID_SCRATCH_BPF_H

#include "bpf/arch/arch.bpf.h"
#include "bpf/cached_unwind.h"
#include "bpf/kernel.h"
#include "bpf/shared.h"
#include "bpf/slots.bpf.h"
#include "bpf/values.h"

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Stack memory is read in blocks that serve several frames: one read of 8 bytes costs the same as
 * one of 200. */
#define BLOCK_WORDS 64
#define BLOCK_BYTES (BLOCK_WORDS * 8)

#define PAGE_BYTES 4096

#define VMA_NODE_WORDS 32

#define INSN_WORDS 4 /* words of machine code around a pc; a power of two */

#define EPILOGUE_BYTES_MAX (1 << 17) /* maximum size of an epilogue's stack area */

/* The instructions from a pc on, as far as they were followed (bpf/frame_pointer.bpf.h). */
struct unwind_epilogue {
	__u32 at;		/* bytes from the pc */
	__u32 found;		/* the result of the last step */
	__u32 by_rbp;		/* distances are from rbp, else from rsp, as of the pc */
	__s32 sp;		/* distance of the stack pointer */
	__s32 rbp_at, rbx_at;	/* distances of the saved registers ... */
	__u32 has_rbp, has_rbx; /* ... that were popped */
	__u32 arguments;	/* bytes that the return takes off the stack */
};

struct unwind_state {
	__u64 pc, sp, rbp, rbx;
	__u64 regs[UNWIND_REGS];    /* registers of the innermost frame, or the one under a signal
				       frame */
	struct mapping_rec mapping; /* the last mapping that matched */
	struct unwind_rule rule;    /* rule of the current frame */
	__u64 cfa;		    /* CFA of the current frame */
	__u64 value;		    /* result of stack__read and unwind__reg */
	/* Bounds of a binary search. They are in memory, because the verifier would follow
	 * registers through every path of the search. */
	volatile __u32 lo, hi;
	__u64 block_start; /* address of block[0]; 0: nothing read yet */
	__u32 block_bytes; /* valid */
	__u32 exact;	   /* pc is the address of an instruction, not a return address */
	__u32 leaf;	   /* regs are those of the current frame */
	__u32 rbx_lost, rbp_lost;
	__u32 stop;	/* enum counter */
	__u32 complete; /* at the outermost frame */
	__u32 n;	/* frames */
	__u64 block[BLOCK_WORDS];
	struct pt_regs kernel_regs; /* as the kernel saved them */
	__u64 trampoline;	    /* trampoline of return probes; 0: none */
	__u64 hidden; /* kernel address of the innermost return_instance that is not passed yet */
	__u64 node[VMA_NODE_WORDS]; /* bpf/vma.bpf.h */
	struct image_key image_key;
	__u64 unknown_start; /* start of a mapping of image_key without an image; 0: none */
	__u32 tabled;	     /* the rule is from a table */
	__u32 unlisted;	     /* the stack has unregistered code of an unknown runtime */
	__u32 over;	     /* the published mappings are outdated (mappings_rec.ended) */
	__u32 unpublished;   /* the mapping is from the kernel's list, not from user space */
	__u64 chained;	     /* the last pointer of a nested stack switch; 0: none */
	__u64 resumed;	     /* rsp of the frame where UNWIND_RESUME left another stack; 0: none */
	__u64 caller_sp;     /* the caller's stack pointer if it differs from the CFA; else 0 */
	struct frame_note note; /* note of the current frame */
	__u64 checked_ns;    /* time of the oldest look-up that a note of this stack depends on */
	__u32 evidence;	     /* enum native_evidence of the frame at pc */
	__u32 next_evidence; /* evidence of its caller */
	__u32 inferred;	     /* a frame of this stack is inferred */
	__u32 lowered;	     /* number of steps to a lower stack */
	__u64 last;	     /* the ip of the last frame in the sample; 0: unused */
	__u32 searched;	     /* vma__at has finished the search for the address */
	__u32 later;	     /* the rule does not exist yet (UNWIND_LATER) */
	__u32 keeps;	     /* KEEPS_POINTERS and so on, for the code at the pc; 0: unknown */
	__u32 row_begins;    /* a row of the table begins at the pc */
	__u64 start_stack;   /* as in mm_struct; STACK_UNKNOWN: not read yet */
	__u64 seek;	     /* an address whose mapping is looked up */
	__u64 vma;	     /* kernel address of that mapping, by its own list; 0: none */
	__u64 code[INSN_WORDS]; /* machine code around code_at (bpf/return_address.bpf.h) */
	__u64 code_at;		/* 0: none */
	struct unwind_epilogue epilogue;
	__u32 disproof;	 /* 1 + index of the word that disproves a frame pointer; 0: none */
	__u32 relation;	 /* that word's relation to the code at the pc: CALL_ELSEWHERE and so on */
	__u64 recent;	 /* start of hashes of facts (bpf/recent.bpf.h); 0: no caching */
	__u64 recent_ns; /* beginning of the period of the cached facts */
};

/* Values by event number. */
#define EVENT_AT(event) ((event) & (2 * EVENTS_MAX - 1))
extern const volatile __u64 cfg_periods[2 * EVENTS_MAX];
extern const volatile __u64 cfg_values[2 * EVENTS_MAX];
extern const volatile __u64 cfg_minima[2 * EVENTS_MAX];

/* Values by enum event_slot. */
extern const volatile __u32 cfg_numbers[EVENT_SLOTS_N];

#include "bpf/budget.bpf.h"

/* Memory of a sample from its trigger to the end of the last walker, one per slot
 * (bpf/slots.bpf.h). It is not a per-CPU map, because those are limited to 32 KiB. */
struct scratch {
	struct unwind_state unwind;
	__u64 interrupted[UNWIND_REGS];
	struct proc_rec proc;
	__u32 walkers_left; /* bits of the walkers still to run */
	__u32 n_words;	    /* used of sample.words */
	__u32 has_regs;	    /* the user registers of the task are those of its current code */
	__u32 cs;	    /* code segment in these registers; 0: there are no registers */
	__u32 limited;	    /* the cost of the sample is charged to the budget */
	__u32 has_values;   /* `values` are those of the sample */
	struct cached_unwind_state cached;
	__u32 n_runtime_frames;
	struct runtime_frame runtime_frames[NATIVE_FRAMES_MAX];
	struct {
		struct frames_hash hash;
		__u32 begin, end; /* the next words to add */
	} content;		  /* bpf/emit.bpf.c */
	struct {
		struct frames_hash notes; /* hash for the frames of runtimes */
		__u64 first_notes;	  /* the same, of the first stack */
		__u64 checked_ns;	  /* as unwind_state.checked_ns, of the first stack */
		__u32 n, complete;	  /* as in unwind_state, of the first stack */
		__u32 version;		  /* mappings' version before the first stack */
		__u32 at;		  /* index of the first word of the second stack */
		__u32 differs;
	} twice; /* UNWIND_MODE_TWICE: the BPF stack has no room for this (bpf/unwind.bpf.c) */
	struct rec_context context; /* bpf/context.bpf.h */
	struct rec_values values;   /* bpf/values.bpf.h */
	struct rec_sample sample;
	__u64 words[SAMPLE_WORDS_MAX]; /* continues sample */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS_N);
	__type(key, __u32);
	__type(value, __u64);
} counters __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20); /* user space resizes it */
} ring __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TARGETS_MAX);
	__type(key, __u32);
	__type(value, struct proc_rec);
} targets __weak SEC(".maps");

/* The programs after the trigger: the walkers by their slots, and the unwinder. An array accepts
 * programs of one type only, so each type of trigger has its own array. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STAGES_N);
	__type(key, __u32);
	__type(value, __u32);
} stages __weak SEC(".maps");

static __always_inline void count(enum counter counter)
{
	__u32 key = counter;
	__u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value) /* atomic: probe programs can be preempted by others on the same CPU */
		__sync_fetch_and_add(value, 1);
}

/* Reverts count(), for a loss that turned out to be none. */
static __always_inline void uncount(enum counter counter)
{
	__u32 key = counter;
	__u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		__sync_fetch_and_add(value, -1ULL);
}

/* braid's own PID namespace. PIDs in it are the ones of the user and of /proc. */
extern const volatile __u32 cfg_pidns_ino; /* 0: the initial one */

#define PIDNS_LEVELS_MAX 33 /* MAX_PID_NS_LEVEL is 32, include/linux/pid_namespace.h */

/* Returns the id of @task in that namespace, or 0 if the namespace does not contain it. */
static __always_inline __u32 task__id(const struct task_struct *task)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	const void *numbers = (const void *)pid + bpf_core_field_offset(struct pid, numbers);
	struct upid upid;
	__u32 level;

	for (level = 0; level < PIDNS_LEVELS_MAX; level++) {
		if (!pid || level > BPF_CORE_READ(pid, level) ||
		    bpf_probe_read_kernel(&upid, sizeof(upid), numbers + level * sizeof(upid)))
			return 0;
		if (BPF_CORE_READ(upid.ns, ns.inum) == cfg_pidns_ino)
			return upid.nr;
	}
	return 0;
}

static __always_inline __u32 task__pid(struct task_struct *task)
{
	return cfg_pidns_ino ? task__id(task->group_leader) : task->tgid;
}

/* Returns the memory of @task. Pointers in the kernel's structs are read as memory, not followed.
 * For each followed pointer the verifier (6.18) searches the kernel's types by name, which takes
 * milliseconds. */
static __always_inline struct mm_struct *task__mm(const struct task_struct *task)
{
	return BPF_CORE_READ(task, mm);
}

static __always_inline __u32 task__tid(struct task_struct *task)
{
	return cfg_pidns_ino ? task__id(task) : task->pid;
}

/* Returns the thread id of any task that the kernel names. */
static __always_inline __u32 task__tid_of(const struct task_struct *task)
{
	return cfg_pidns_ino ? task__id(task) : BPF_CORE_READ(task, pid);
}

static __always_inline __u32 task__pid_of(const struct task_struct *task)
{
	return cfg_pidns_ino ? task__id(BPF_CORE_READ(task, group_leader))
			     : BPF_CORE_READ(task, tgid);
}

extern __u32 last_code;

/* Returns the number for a code object that any runtime uses for the first time. Numbers are dense
 * from 1. */
static __always_inline __u32 code_object__new(void)
{
	return __sync_fetch_and_add(&last_code, 1) + 1;
}

/* Stores the number *@code in @codes, a runtime's map of numbers, if user space was @reported. Sets
 * *@code to the number in the map: an interrupted program, or one on another CPU, may have been
 * first. Returns -1 if there is no number; the next sample then tries again. */
static __always_inline int code_object__store(void *codes, const void *key, int reported,
					      __u32 *code)
{
	const __u32 *existing;

	if (reported && !bpf_map_update_elem(codes, key, code, BPF_NOEXIST))
		return 0;
	existing = bpf_map_lookup_elem(codes, key);
	if (!existing) {
		count(COUNT_CODE_LOST);
		return -1;
	}
	*code = *existing;
	return 0;
}

extern __u32 last_program;

/* Returns a number for the next program of a process. */
static __always_inline __u32 program__new(void)
{
	return __sync_fetch_and_add(&last_program, 1) + 1;
}

/* Returns the slot that the running chain has claimed. */
static __always_inline struct scratch *scratch__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&scratches, &key);
}

/* Ends a chain that cannot continue. */
static __always_inline void scratch__abandon(void)
{
	count(COUNT_SCRATCH);
	slot__release();
}

/* Adds a pair. A pair without room is only counted, and scratch__section detects it. */
static __always_inline void scratch__push(struct scratch *scratch, __u64 first, __u64 second)
{
	__u32 at = scratch->n_words, next = at + 1;

	if (at <= SAMPLE_WORDS_MAX - 2) {
		/* Linux 6.1's verifier does not recognise, as the compiler does, that the mask is
		 * redundant. */
		asm volatile("" : "+r"(next));
		scratch->words[at & (SAMPLE_WORDS_MAX - 1)] = first;
		scratch->words[next & (SAMPLE_WORDS_MAX - 1)] = second;
	}
	scratch->n_words = at + 2;
}

/* Bytes in the ring from which user space is woken. It polls the ring a few times a second
 * anyway. */
extern const volatile __u32 cfg_ring_wakeup_bytes;

static __always_inline __u64 ring__flags(void)
{
	__u64 used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);

	return used >= cfg_ring_wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Adds a section with the pairs from @first_word on, the frames of the runtime with the slot
 * @walker. */
static __always_inline void scratch__section(struct scratch *scratch, __u32 walker,
					     __u32 first_word, __u32 flags)
{
	struct rec_sample *sample = &scratch->sample;
	__u32 at = sample->n_sections, room = SAMPLE_WORDS_MAX - first_word;

	if (at >= SECTIONS_MAX)
		room = 0;
	if (scratch->n_words - first_word > room) {
		scratch->n_words = first_word + (room & ~1U);
		flags |= SECTION_TRUNCATED;
	}
	if (flags & SECTION_TRUNCATED) {
		sample->flags |= SAMPLE_RUNTIME_TRUNCATED;
		count(COUNT_WALK_TRUNCATED);
	}
	if (flags & SECTION_BROKEN)
		sample->flags |= SAMPLE_RUNTIME_BROKEN;
	if (scratch->n_words == first_word)
		return;
	sample->sections[at & (SECTIONS_MAX - 1)] = (struct rec_section) {
		.n = (scratch->n_words - first_word) / 2, .walker = walker, .flags = flags
	};
	sample->n_sections = at + 1;
}

/* Returns the flags of a walker's section. @complete: the walker has found all frames; @truncated:
 * some frames had no space. */
static __always_inline __u32 section__flags(int complete, int truncated)
{
	return truncated ? SECTION_TRUNCATED : complete ? 0 : SECTION_BROKEN;
}

/* Ends the section of a walker. */
static __always_inline void scratch__walked(struct scratch *scratch, __u32 walker, __u32 first_word,
					    int complete, int truncated)
{
	scratch__section(scratch, walker, first_word, section__flags(complete, truncated));
}

/* Replaces the reason why the native frames end by @stop; 0: a runtime's own record of the stack
 * proves that they reach its end. */
static __always_inline void scratch__stop(struct scratch *scratch, __u32 stop)
{
	uncount(scratch->sample.stop);
	scratch->sample.stop = stop;
	if (stop)
		count(stop);
	else if (!scratch->unwind.inferred)
		scratch->sample.flags |= SAMPLE_COMPLETE;
}

/* Ends the chain: sends the sample, and releases the slot. The verifier checks this function
 * separately (bpf/emit.bpf.c). */
__noinline int scratch__emit(struct scratch *scratch);

/* Runs the next walker of this sample by a tail call or, if none is left, emits the sample. */
static __always_inline void scratch__next(void *ctx, struct scratch *scratch)
{
	__u32 slot;

	for (slot = 0; slot < WALKERS_MAX; slot++) {
		if (!(scratch->walkers_left & 1U << slot))
			continue;
		scratch->walkers_left &= ~(1U << slot);
		bpf_tail_call(ctx, &stages, slot);
		count(COUNT_WALK_TAIL_CALL); /* still here: the slot is empty */
	}
	scratch__emit(scratch);
}

#endif
