/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_KEPT_H
#define BRAID_KEPT_H

/* A sample costs what changed since the thread's last one: the outer frames of that are kept, with
 * all that unwinding them depended on. A frame is found by its pc, its stack pointer, rbp and rbx,
 * and what it leads to depends, besides these and the tables, on a few words of the stack: the
 * return address, and the saved rbp and rbx. So where the unwinder comes to the very state that it
 * had in a kept frame, and these words are what they were, the callers are what they were. The
 * words are compared, one after the other, in memory that is read in large blocks; nothing is
 * looked up, and nothing is written: the frames are copied into the sample only if it is sent
 * whole, and their hash is that of the outermost frames so far, which is kept, too. At the first
 * difference unwinding goes on as ever, from the state of that frame.
 *
 * What is kept is never trusted to be of this time, nor of this thread. It is of the same process
 * and tables, by the number of their last change (mapping_list.changes). Frames whose rule came
 * from anything else than a published table (signal frames, a mapping just found in the kernel's
 * list) are not kept, nor are those inside them.
 *
 * Frames of code without tables (frame pointers, compilers of runtimes) are kept where their rule
 * and what they are in their runtime depend on the same, and on a few more words of the stack,
 * which are compared as well (struct frame_note). What such code is may change, as it is freed and
 * other code takes its place: so these are kept for KEPT_NS since it was looked up.
 *
 * Bounded memory, without locks: KEPT_WAYS stacks for each slot of scratch memory, which a running
 * program has for itself; a thread takes the place of another one of the same remainder. */

#include <linux/types.h>

#define KEPT_WAYS	8
#define KEPT_STACKS_MAX 128  /* where there are so many slots that KEPT_WAYS each would be more */
#define KEPT_FRAMES_MAX 256  /* the outermost; a power of two */
#define KEPT_SLOTS_MAX	2048 /* words of the stack that their frames depend on; a power of two */
#define KEPT_SEARCHED	8    /* kept frames that are passed at each frame, at most */

#define KEPT_BLOCK_WORDS 256 /* a power of two */

#define KEPT_NO_VERSION 0xffffffffU

/* What hooks remember for themselves is looked up again after half of that: so what they have
 * looked at now is kept for the other half at least. */
#define KEPT_NS		200000000ULL
#define NOTE_RECHECK_NS (KEPT_NS / 2)

/* What a hook says of a frame that it was asked for (bpf/tableless.bpf.h). */
#define NOTE_WORDS    8
#define NOTE_WORDS_AT 24 /* bytes from the CFA down to the first of them: below the saved rbp */

struct frame_note {
	__u64 key;    /* FRAME_KEY of the runtime's frame that it is; 0: of none */
	__u32 walker; /* slot of that runtime's */
	__u32 enters; /* native code has called the runtime here */
	__u32 by_rbp; /* the key was found by the words at rbp: it is that frame's */
	/* Whether the rule and the key depend, besides the unwinder's state, the return address and
	 * the saved rbp, on nothing but these words: bit i, the i-th from NOTE_WORDS_AT down. */
	__u32 lasts;
	__u32 mask;
	__u32 brief; /* the same words may soon be of another function: the frame is not kept */
	__u64 words[NOTE_WORDS];
};

/* A frame of a runtime that is a native frame, on its way into the sample. */
struct noted_frame {
	__u64 key, address; /* as in a section */
	__u32 walker, enters;
};

/* kept_frame.flags */
enum {
	KEPT_GOOD = 1,
	KEPT_OUTERMOST = 2, /* by its rule; else its return address is 0 */
	KEPT_RBP_LOST = 4,
	KEPT_RBX_LOST = 8,
	KEPT_TABLELESS = 16,
	KEPT_ENTERS = 32,	 /* as in its note */
	KEPT_EVIDENCE_SHIFT = 8, /* enum native_evidence, two bits */
	KEPT_WALKER_SHIFT = 16,	 /* the walker */
};

struct kept_frame {
	__u64 pc, sp, rbp, rbx; /* as the unwinder came to it */
	__u64 cfa;
	__s32 rbp_at, rbx_at; /* where its caller's are, from the CFA; 0: not saved */
	__u32 flags;
	__u32 mask; /* of its note */
	__u64 key;  /* the same */
	/* Of a kept one. */
	__u64 top;   /* address of the innermost of its slots */
	__u32 slots; /* of this frame and those around it */
	__u32 pad;
};

/* Two independent hashes of frames, from the outermost one on. */
struct frames_hash {
	__u64 hash, check;
};

struct kept_stack {
	__u32 tgid, program; /* as in proc_rec */
	__u32 space;
	__u32 version; /* mappings__version */
	__u32 walkers; /* as in proc_rec: of whose code is known how it is left */
	__u32 n;
	__u32 n_tabled; /* the outermost, which have tables */
	__u32 pad;
	__u64 checked_ns;			    /* the oldest of the notes of the others */
	__u64 end;				    /* address behind the outermost slot */
	struct kept_frame frames[KEPT_FRAMES_MAX];  /* outermost first */
	struct frames_hash hashes[KEPT_FRAMES_MAX]; /* of each and those around it */
	/* Of all frames, in the same order; within a frame the return address, rbx, rbp, and the
	 * words of its note. */
	__u64 values[KEPT_SLOTS_MAX];
	__s32 steps[KEPT_SLOTS_MAX];  /* bytes to the next outer one */
	__u16 owners[KEPT_SLOTS_MAX]; /* whose it is */
};

/* Of the stack that is being unwound. */
struct kept_state {
	__u32 version; /* KEPT_NO_VERSION: nothing is kept, and nothing is used */
	__u32 follows; /* the frame that comes is a kept one */
	__u32 left;    /* kept frames that may come still: the outermost so many */
	__u32 n_kept;  /* that are the outermost ones of this stack */
	__u32 first;   /* number of the innermost frame since frames were last kept ones */
	__u32 end;     /* of those that were unwound */
	/* Outermost frames that are not in the sample yet, but for the last one, and the word where
	 * they begin; 0: all are there. */
	__u32 absent, absent_at;
	struct frames_hash absent_hash;
	__u64 start; /* address of block[0] */
	__u64 bytes; /* valid; 0: nothing read yet */
	__u64 block[KEPT_BLOCK_WORDS];
	struct kept_frame frames[KEPT_FRAMES_MAX]; /* unwound; by number, the last so many */
	__u64 words[KEPT_FRAMES_MAX][NOTE_WORDS];  /* of their notes */
};

#endif
