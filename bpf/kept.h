/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_KEPT_H
#define BRAID_KEPT_H

/* A sample costs what changed since the thread's last one: the outer frames of that are kept, with
 * all that unwinding them depended on. A frame is found by its pc, its stack pointer, rbp and rbx,
 * and what it leads to depends, besides these and the tables, on a few words of the stack: the
 * return address, and the saved rbp and rbx. So where the unwinder comes to the very state that it
 * had in a kept frame, and these words are what they were, the callers are what they were. The
 * words are compared, of frame after frame, in memory that is read in large blocks; nothing is
 * looked up. At the first difference unwinding goes on as ever, from the state of that frame.
 *
 * What is kept is never trusted to be of this time, nor of this thread. It is of the same process
 * and tables, by the number of their last change (mapping_list.changes). Frames whose rule came
 * from anything else than a published table (code of a JIT compiler, frame pointers, signal frames,
 * a mapping just found in the kernel's list) are not kept, nor are those inside them.
 *
 * Bounded memory, without locks: KEPT_WAYS stacks for each slot of scratch memory, which a running
 * program has for itself; a thread takes the place of another one of the same remainder. */

#include <linux/types.h>

#define KEPT_WAYS	8
#define KEPT_FRAMES_MAX 128 /* the outermost; a power of two */
#define KEPT_SEARCHED	8   /* kept frames that are passed at each frame, at most */

#define KEPT_BLOCK_WORDS 256 /* a power of two */

#define KEPT_NO_VERSION 0xffffffffU

/* kept_frame.flags */
enum {
	KEPT_GOOD = 1,
	KEPT_OUTERMOST = 2, /* by its rule; else its return address is 0 */
	KEPT_RBP_LOST = 4,
	KEPT_RBX_LOST = 8,
};

struct kept_frame {
	__u64 pc, sp, rbp, rbx; /* as the unwinder came to it */
	__u64 cfa;
	__s32 rbp_at, rbx_at; /* where its caller's are, from the CFA; 0: not saved */
	__u32 flags;
	__u32 pad;
};

struct kept_stack {
	__u32 tgid, program; /* as in proc_rec */
	__u32 space;
	__u32 version; /* mappings__version */
	__u32 n;
	__u32 pad;
	struct kept_frame frames[KEPT_FRAMES_MAX]; /* outermost first */
};

/* Of the stack that is being unwound. */
struct kept_state {
	__u32 version; /* KEPT_NO_VERSION: nothing is kept, and nothing is used */
	__u32 follows; /* the frame that comes is a kept one */
	__u32 left;    /* kept frames that may come still: the outermost so many */
	__u32 n_kept;  /* that are the outermost ones of this stack */
	__u32 first;   /* number of the innermost frame since frames were last kept ones */
	__u32 end;     /* of those that were unwound */
	__u64 start;   /* address of block[0]; 0: nothing read yet */
	__u64 block[KEPT_BLOCK_WORDS];
	struct kept_frame frames[KEPT_FRAMES_MAX]; /* unwound; by number, the last so many */
};

#endif
