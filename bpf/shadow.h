/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SHADOW_H
#define BRAID_SHADOW_H

/* Shadow stacks, which probes push to and pop from, and the calls that they count: shared by both
 * halves. */

#include <linux/types.h>

#include "bpf/shared.h"

#define SHADOW_DEPTH_MAX  RUNTIME_FRAMES_MAX
#define SHADOW_MEMOS	  128 /* a power of two */
#define SHADOW_WORDS	  80
#define SHADOW_FIBERS_MAX 32

/* A thread has one shadow stack for each stack that it runs on, and for each runtime whose frames
 * it runs there: what their probes tell of calls cannot be mixed. */
enum { SHADOW_OF_THREAD, SHADOW_OF_SIGNALS, SHADOW_OF_FIBERS };

/* Regions of a thread's fiber stacks: numbers of the stacks that it switches between by itself. */
#define SHADOW_OF_FIBER(fiber) ((fiber) ? SHADOW_OF_FIBERS - 1 + (fiber) : SHADOW_OF_THREAD)

/* Whose a shadow stack is; `tid` is the kernel's, not that of a PID namespace, `runtime` the slot
 * of the runtime's walker. */
#define SHADOW_OWNER(tid, runtime, region) \
	((__u64)(runtime) << 40 | (__u64)(region) << 32 | (__u32)(tid))

#define SHADOW_TID(owner)     ((__u32)(owner))
#define SHADOW_REGION(owner)  ((__u32)((owner) >> 32) & 0xff)
#define SHADOW_RUNTIME(owner) ((__u32)((owner) >> 40))

/* A stack is in one of so many slots of the map `shadows` from its own on. */
#define SHADOW_HOME(owner)                                              \
	((__u32)(((owner) + ((owner) >> 30)) * 0x9e3779b97f4a7c15ULL >> \
		 40)) /* 2^64 / golden ratio */
#define SHADOW_SLOTS 16

/* shadow_entry.flags */
enum {
	ENTRY_SEEDED = 1, /* called before the probes were there; entered_ns: when it was found */
	/* No other entry has its anchor: one that has it is dead when this is pushed. */
	ENTRY_OWN_ANCHOR = 2,
	/* `match` is the address of the runtime's frame, where a sample finds the index. */
	ENTRY_LIVE_INDEX = 4,
	ENTRY_UNSETTLED = 8, /* its return shall tell the runtime more about the function */
};

struct shadow_entry {
	__u32 code;   /* as in rec_code; 0: unknown */
	__u32 index;  /* line or bytecode index, as the runtime has it */
	__u64 anchor; /* an address in the native frame that runs it; 0: unknown */
	__u64 match;  /* what the return tells of the call, or what its callees tell of it */
	__u64 entered_ns;
	__u32 node; /* of its call, in call_stats; 0: not counted */
	__u32 flags;
};
_Static_assert(sizeof(struct shadow_entry) == 40, "shadow_entry");

/* shadow.flags */
enum {
	SHADOW_PARTIAL = 1, /* calls from before the probes are missing at the outer end */
	SHADOW_COPIED = 2,  /* by fork: calls between it and the child's first probe are unknown */
	SHADOW_STARTED = 4, /* a probe has hit in this thread */
	/* Its calls' frames may be moved while they live: anchors do not tell which are dead. */
	SHADOW_FRAMES_MOVE = 8,
};

/* What a probe found out lately, so that it need not again. */
struct shadow_cache {
	__u64 name, file; /* addresses that name the function; file may be unused */
	__u32 line;
	__u32 code;
	__u64 checked_jiffies;
};

struct shadow_call_cache {
	__u32 parent, code;
	__u32 node;
};

/* A stack that a thread switches to and from without the kernel's knowledge (a fiber's). */
struct shadow_fiber {
	__u64 stack;  /* an address that names it for its runtime */
	__u64 state;  /* one that names what runs on it: another one there has begun anew */
	__u64 lo, hi; /* from the first to the last address that is known to be on it */
	__u64 used;   /* number of the switch to it */
};

/* Written by its own thread only; a sample may interrupt that anywhere. An entry is stored before
 * the depth says so. Free ones are empty, but keep their space and caches. */
struct shadow {
	__u64 owner;	/* SHADOW_OWNER; 0: free */
	__u32 depth;	/* entries in use, outermost first */
	__u32 overflow; /* calls beyond these that have not returned */
	__u32 flags;
	__u32 space; /* address space */
	__u32 pad;
	/* ENTRY_LIVE_INDEX: (the 32 bits at match + index_offset) << index_shift */
	__u16 index_offset;
	__u16 index_shift;
	/* While it is seeded. Here, as the verifier would count along in a program's own memory. */
	__u64 seed_frame; /* the runtime's next frame, outwards */
	__u64 seed_ns;
	__u32 seed_n; /* frames */
	__u32 seed_by_text;
	/* What a runtime reads in one piece; a program's own stack has no room for it. */
	__u64 words[SHADOW_WORDS];
	/* SHADOW_OF_THREAD, of a runtime that has fibers. Lane 0 is this very shadow stack. */
	__u32 fiber;	   /* the current one */
	__u32 fibers_used; /* bits */
	__u64 lo, hi;	   /* the current fiber stack's */
	__u64 switches;
	struct shadow_fiber fibers[SHADOW_FIBERS_MAX];
	struct shadow_entry entries[SHADOW_DEPTH_MAX];
	struct shadow_cache caches[SHADOW_MEMOS];
	struct shadow_call_cache call_memos[SHADOW_MEMOS];
};

/* --- calls --- */

/* A call path ends in a node: key {parent, code, space}. Node 0 is the root. */
struct call_key {
	__u32 parent;
	__u32 code;
	__u32 space;
};

/* Parent of nodes that stand for all calls of a function that found no room in the tree. */
#define CALL_UNPLACED 0xffffffff

struct call_stat { /* index: node */
	__u64 calls;
	__u64 returns;
	__u64 lost_returns; /* ended without one; seen dead later */
	__u64 inclusive_ns; /* of what ended, whether counted by calls or seeded */
	__u32 parent;
	__u32 code; /* 0: the node is not in use */
	__u32 space;
	__u32 pad;
};
_Static_assert(sizeof(struct call_stat) == 48, "call_stat");

#endif
