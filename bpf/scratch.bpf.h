/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SCRATCH_BPF_H
#define BRAID_SCRATCH_BPF_H

#include "bpf/kept.h"
#include "bpf/kernel.h"
#include "bpf/shared.h"
#include "bpf/slots.bpf.h"

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* Stack memory is read in blocks that serve several frames: one read costs the same for 8 bytes
 * as for 200. */
#define BLOCK_WORDS 64
#define BLOCK_BYTES (BLOCK_WORDS * 8)

#define PAGE_BYTES 4096

#define VMA_NODE_WORDS 32

#define CODE_WORDS 4 /* of machine code around a pc; a power of two */

#define EPILOGUE_BYTES_MAX (1 << 17) /* that an epilogue takes off the stack */

/* The instructions from a pc on, as far as they were followed (bpf/frame_pointer.bpf.h). */
struct unwind_epilogue {
	__u32 at;		/* bytes from the pc */
	__u32 found;		/* what the last step has found */
	__u32 by_rbp;		/* distances are from rbp, else from rsp, as they are at the pc */
	__s32 sp;		/* distance of the stack pointer */
	__s32 rbp_at, rbx_at;	/* distances of the saved registers ... */
	__u32 has_rbp, has_rbx; /* ... that were popped */
	__u32 arguments;	/* bytes that the return takes off the stack */
};

struct unwind_state {
	__u64 pc, sp, rbp, rbx;
	__u64 regs[UNWIND_REGS];    /* of the innermost frame, or the one under a signal frame */
	struct mapping_rec mapping; /* the last one that matched */
	struct unwind_rule rule;    /* of the current frame */
	__u64 cfa;		    /* of the current frame */
	__u64 value;		    /* what stack__read and unwind__reg found */
	/* Bounds of a binary search. In memory, as the verifier would follow registers through
	 * every path of it. */
	volatile __u32 lo, hi;
	__u64 block_start; /* address of block[0]; 0: nothing read yet */
	__u32 block_bytes; /* valid */
	__u32 exact;	   /* pc is that of an instruction, not a return address */
	__u32 leaf;	   /* regs are those of this very frame */
	__u32 rbx_lost, rbp_lost;
	__u32 stop;	/* enum counter */
	__u32 complete; /* at the outermost frame */
	__u32 n;	/* frames */
	__u64 block[BLOCK_WORDS];
	struct pt_regs kernel_regs; /* as the kernel saved them */
	__u64 trampoline;	    /* of return probes; 0: none */
	__u64 hidden; /* kernel address of the innermost return_instance not passed yet */
	__u64 node[VMA_NODE_WORDS]; /* bpf/vma.bpf.h */
	struct image_key image_key;
	__u64 unknown_start; /* of a mapping of the file image_key, which has no image; 0: none */
	__u32 tabled;	     /* the rule is of a table */
	__u32 made;	     /* code was met that user space does not know of, nor who made it */
	__u32 over;	     /* the published mappings are over (mappings_rec.ended) */
	__u32 unpublished;   /* the mapping is of the kernel's list, not of user space's */
	__u64 chained;	     /* the last pointer of a switch that nests; 0: there was none */
	__u64 resumed;	 /* rsp of the frame that UNWIND_RESUME left another stack by; 0: none */
	__u64 caller_sp; /* the caller's stack pointer, if it is not the CFA; else 0 */
	struct frame_note note; /* of the current frame */
	__u64 checked_ns;    /* when what the notes of this stack say was looked up: the oldest */
	__u32 evidence;	     /* enum native_evidence of the frame at pc */
	__u32 next_evidence; /* the same of its caller */
	__u32 inferred;	     /* a frame of this stack is */
	__u32 lowered;	     /* steps to a lower stack */
	__u64 last;	     /* the ip of the last frame in the sample; 0: of no interest */
	__u32 searched;	     /* vma__at has found what is at the address, or that nothing is */
	__u32 later;	     /* the rule is one that is not made yet (UNWIND_LATER) */
	__u32 keeps;	     /* KEEPS_POINTERS and so on, of the code at the pc; 0: unknown */
	__u32 row_begins;    /* a row of the table begins at the pc */
	__u64 start_stack;   /* as in mm_struct; STACK_UNKNOWN: not read yet */
	__u64 seek;	     /* an address whose mapping is looked up */
	__u64 vma;	     /* kernel address of that mapping, by its own list; 0: none */
	__u64 code[CODE_WORDS]; /* machine code around code_at (bpf/return_address.bpf.h) */
	__u64 code_at;		/* 0: none */
	struct unwind_epilogue epilogue;
	__u32 disproof;	 /* 1 + index of the word that disproves a frame pointer; 0: none does */
	__u32 relation;	 /* of that word to the code at the pc: CALL_ELSEWHERE and so on */
	__u64 recent;	 /* hashes of facts begin with it (bpf/recent.bpf.h); 0: none are cached */
	__u64 recent_ns; /* beginning of the time in which cached facts were found */
};

/* Of events, by their number. */
#define EVENT_AT(event) ((event) & (2 * EVENTS_MAX - 1))
extern const volatile __u64 cfg_periods[2 * EVENTS_MAX];
extern const volatile __u64 cfg_values[2 * EVENTS_MAX];
extern const volatile __u64 cfg_minima[2 * EVENTS_MAX];

/* By enum event_slot. */
extern const volatile __u32 cfg_numbers[EVENT_SLOTS_N];

#include "bpf/budget.bpf.h"

/* One per slot (bpf/slots.bpf.h): a sample's from its trigger to the end of the last walker. Not a
 * per-CPU map: those are limited to 32 KiB. */
struct scratch {
	struct unwind_state unwind;
	__u64 interrupted[UNWIND_REGS];
	struct proc_rec proc;
	__u32 walkers_left; /* bits of the walkers still to run */
	__u32 n_words;	    /* used of sample.words */
	__u32 has_regs;	    /* the task's user registers are those of what it executes */
	__u32 cs;	    /* their code segment; 0: there are none */
	__u32 limited;	    /* what it costs is taken from the budget */
	struct kept_state kept;
	__u32 n_noted;
	struct noted_frame noted[NATIVE_FRAMES_MAX];
	struct {
		struct frames_hash hash;
		__u32 begin, end; /* words that are added next */
	} content;		  /* bpf/emit.bpf.c */
	struct {
		struct frames_hash notes; /* of the frames of runtimes */
		__u64 first_notes;	  /* the same of the first stack */
		__u64 checked_ns;	  /* as unwind_state.checked_ns, of the first stack */
		__u32 n, complete;	  /* as in unwind_state, of the first stack */
		__u32 version;		  /* of the mappings before the first stack */
		__u32 at;		  /* where the second stack begins among the words */
		__u32 differs;
	} twice; /* UNWIND_MODE_TWICE: not on the BPF stack, which has no room (bpf/unwind.bpf.c) */
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

/* What comes after the trigger: the walkers by their slots, and the unwinder. An array takes
 * programs of one type only, so each type that triggers has its own. */
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

/* braid's own PID namespace: in it PIDs are what the user and /proc call them. */
extern const volatile __u32 cfg_pidns_ino; /* 0: the initial one */

#define PIDNS_LEVELS_MAX 33 /* MAX_PID_NS_LEVEL is 32, include/linux/pid_namespace.h */

/* The task's id in that namespace, 0 if it is not in it. */
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

/* Pointers of the kernel's structs are read as memory, not followed: for each that is followed the
 * verifier (6.18) searches the kernel's types by name, for milliseconds. */
static __always_inline struct mm_struct *task__mm(const struct task_struct *task)
{
	return BPF_CORE_READ(task, mm);
}

#define CS_USER_MASK 3 /* of regs.cs: the privilege level */

static __always_inline __u32 task__tid(struct task_struct *task)
{
	return cfg_pidns_ino ? task__id(task) : task->pid;
}

/* The same of any task that the kernel names. */
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

/* The number of a function that is met for the first time, by whatever runtime. Dense from 1. */
static __always_inline __u32 code__new(void)
{
	return __sync_fetch_and_add(&last_code, 1) + 1;
}

/* Remembers it in a runtime's map of numbers, after user space was told, if `told`. Into `code`:
 * the number that counts, as a program that this one interrupted, or one on another CPU, may have
 * been first. -1: there is none, and the next sample tries again. */
static __always_inline int code__keep(void *codes, const void *key, int told, __u32 *code)
{
	const __u32 *known;

	if (told && !bpf_map_update_elem(codes, key, code, BPF_NOEXIST))
		return 0;
	known = bpf_map_lookup_elem(codes, key);
	if (!known) {
		count(COUNT_CODE_LOST);
		return -1;
	}
	*code = *known;
	return 0;
}

extern __u32 last_program;

/* The number of what a process executes from now on. */
static __always_inline __u32 program__new(void)
{
	return __sync_fetch_and_add(&last_program, 1) + 1;
}

/* The one that the running chain has claimed. */
static __always_inline struct scratch *scratch__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&scratches, &key);
}

/* The end of a chain that cannot go on. */
static __always_inline void scratch__abandon(void)
{
	count(COUNT_SCRATCH);
	slot__release();
}

/* A pair for which there is no room is counted along, until scratch__section finds that. */
static __always_inline void scratch__push(struct scratch *scratch, __u64 first, __u64 second)
{
	__u32 at = scratch->n_words, next = at + 1;

	if (at <= SAMPLE_WORDS_MAX - 2) {
		/* Linux 6.1's verifier does not see what the compiler does: that the mask is not
		 * needed. */
		asm volatile("" : "+r"(next));
		scratch->words[at & (SAMPLE_WORDS_MAX - 1)] = first;
		scratch->words[next & (SAMPLE_WORDS_MAX - 1)] = second;
	}
	scratch->n_words = at + 2;
}

/* Wakes user space only when much has gathered: it looks by itself a few times a second. */
extern const volatile __u32 cfg_ring_wakeup_bytes;

static __always_inline __u64 ring__flags(void)
{
	__u64 used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);

	return used >= cfg_ring_wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* The pairs from `first_word` on are the frames of the runtime with this slot. */
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

/* Returns the flags of a walker's section: its frames are all that there are if `complete`, unless
 * some found no room. */
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

/* The chain's end: sends the sample, and gives the slot back. A function that the verifier checks
 * by itself. bpf/emit.bpf.c */
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
