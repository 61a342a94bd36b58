/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CACHED_UNWIND_H
#define BRAID_CACHED_UNWIND_H

/* A sample costs only the changes since the thread's last sample. The kernel half stores the outer
 * frames of that sample with all values that unwinding them depended on. A frame is found by its
 * pc, its stack pointer, rbp and rbx. Its caller depends on these, on the tables, and on a few
 * words of the stack: the return address, and the saved rbp and rbx. If the unwinder reaches the
 * state of a stored frame, and these words are unchanged, the callers are unchanged.
 *
 * The words are compared one after the other, in memory that is read in large blocks. There are no
 * look-ups and no writes. The frames are copied into the sample only if it is sent whole. For each
 * frame, the hash of this frame and all outer ones is stored, too. At the first difference normal
 * unwinding continues from the state of that frame.
 *
 * A stored stack may be outdated, or belong to another thread, which the comparison of the words
 * detects. But it must be of the same process, and the tables must not have changed since
 * (mapping_list.changes). Frames whose rule came from another source than a published table are not
 * stored, nor are the frames inside them. Such sources are signal frames and mappings just found in
 * the kernel's list.
 *
 * Frames of code without tables (frame pointers, compilers of runtimes) are stored under a further
 * condition. Their rule and their key in their runtime must depend only on the same words, and on a
 * few more words of the stack. These are compared as well (struct frame_note). Such code may be
 * freed and replaced by other code, so that its frames are valid only for CACHED_NS after it was
 * looked up.
 *
 * Memory is bounded, and there are no locks. Each slot of scratch memory, which a running program
 * has for itself, has CACHED_WAYS stacks. The remainder of the thread's id selects the stack, so
 * that threads with the same remainder replace each other's stacks. */

#include <linux/types.h>

#define CACHED_WAYS	   8
#define CACHED_UNWINDS_MAX 128	/* limit if CACHED_WAYS for each slot would be more */
#define CACHED_FRAMES_MAX  256	/* the outermost frames; a power of two */
#define CACHED_SLOTS_MAX   2048 /* words of the stack that the frames depend on; a power of two */
#define CACHED_SEARCHED	   8	/* maximum number of stored frames to skip at each frame */

#define CACHED_BLOCK_WORDS 256 /* a power of two */

#define CACHED_NO_VERSION 0xffffffffU

/* Lifetime of frames without a table, in ns. Hooks look up their own stored results again after
 * half of this time. A result that they use now therefore stays valid for at least the other half.
 */
#define CACHED_NS	200000000ULL
#define NOTE_RECHECK_NS (CACHED_NS / 2)

/* The result of a runtime's hook for a frame (bpf/tableless.bpf.h). */
#define NOTE_WORDS    8
#define NOTE_WORDS_AT 24 /* bytes from the CFA down to the first word, below the saved rbp */

struct frame_note {
	__u64 key;    /* FRAME_KEY of the runtime's frame at this place; 0: none */
	__u32 walker; /* slot of that runtime's walker */
	__u32 enters; /* native code has called the runtime here */
	__u32 by_rbp; /* the key was found by the words at rbp, and belongs to that frame */
	/* The rule and the key depend only on the unwinder's state, the return address, the saved
	 * rbp and the words in @mask. Bit i of it is the i-th word from NOTE_WORDS_AT down. */
	__u32 lasts;
	__u32 mask;
	__u32 brief; /* the words may soon belong to another function: the frame is not stored */
	__u64 words[NOTE_WORDS];
};

/* A frame of a runtime that is also a native frame, before it is stored in the sample. */
struct runtime_frame {
	__u64 key, address; /* as in a section */
	__u32 walker, enters;
};

/* cached_unwind_frame.flags */
enum {
	CACHED_GOOD = 1,
	CACHED_OUTERMOST = 2, /* by its rule; without the flag, its return address is 0 */
	CACHED_RBP_LOST = 4,
	CACHED_RBX_LOST = 8,
	CACHED_TABLELESS = 16,
	CACHED_ENTERS = 32,	   /* as in its note */
	CACHED_EVIDENCE_SHIFT = 8, /* enum native_evidence, two bits */
	CACHED_WALKER_SHIFT = 16,  /* the walker */
};

struct cached_unwind_frame {
	__u64 pc, sp, rbp, rbx; /* state of the unwinder at the frame */
	__u64 cfa;
	__s32 rbp_at, rbx_at; /* places of the caller's values, from the CFA; 0: not saved */
	__u32 flags;
	__u32 mask; /* as in its note */
	__u64 key;  /* as in its note */
	/* Only in stored frames: */
	__u64 top;   /* address of the innermost of its words */
	__u32 slots; /* number of words of this frame and the frames around it */
	__u32 pad;
};

/* Two independent hashes of frames, from the outermost one inward. */
struct frames_hash {
	__u64 hash, check;
};

struct cached_unwind {
	__u32 tgid, program; /* as in proc_rec */
	__u32 space;
	__u32 version; /* mappings__version */
	__u32 walkers; /* as in proc_rec: the runtimes whose code has rules */
	__u32 n;
	__u32 n_tabled; /* number of outermost frames that have tables */
	__u32 pad;
	__u64 checked_ns;				      /* time of the others' oldest note */
	__u64 end;					      /* address after the outermost word */
	struct cached_unwind_frame frames[CACHED_FRAMES_MAX]; /* outermost first */
	struct frames_hash hashes[CACHED_FRAMES_MAX];	      /* hash i covers the frames 0 to i */
	/* The words of all frames, in the same order. Within a frame: the return address, rbx, rbp,
	 * and the words of its note. */
	__u64 values[CACHED_SLOTS_MAX];
	__s32 steps[CACHED_SLOTS_MAX];	/* bytes to the next outer word */
	__u16 owners[CACHED_SLOTS_MAX]; /* index of the frame that the word belongs to */
};

/* State of the stack that is being unwound. */
struct cached_unwind_state {
	__u32 version;	/* CACHED_NO_VERSION: frames are neither stored nor used */
	__u32 follows;	/* the next frame is a stored one */
	__u32 left;	/* number of stored frames that may still follow: the outermost ones */
	__u32 n_cached; /* number of stored frames that are the outermost ones of this stack */
	__u32 first;	/* number of the innermost frame since the last stored frames */
	__u32 end;	/* number after the last unwound frame */
	/* absent: number of outermost frames whose words are not in the sample yet, except those of
	 * the outermost one; 0: all are there. absent_at: index of the word where they begin. */
	__u32 absent, absent_at;
	struct frames_hash absent_hash;
	__u64 start; /* address of block[0] */
	__u64 bytes; /* valid; 0: nothing read yet */
	__u64 block[CACHED_BLOCK_WORDS];
	struct cached_unwind_frame
		frames[CACHED_FRAMES_MAX];	    /* the last unwound frames, by number */
	__u64 words[CACHED_FRAMES_MAX][NOTE_WORDS]; /* words of their notes */
};

#endif
