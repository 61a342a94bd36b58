/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SHADOW_H
#define BRAID_SHADOW_H

/* Shadow stacks, which probes push to and pop from, and the calls that they count: shared by the
 * kernel half and user space. */

#include <linux/types.h>

#include "bpf/shared.h"

#define SHADOW_DEPTH_MAX  RUNTIME_FRAMES_MAX
#define SHADOW_CACHES	  128 /* a power of two */
#define SHADOW_WORDS	  80
#define SHADOW_FIBERS_MAX 32

/* A thread has one shadow stack for each stack that it runs on, and for each runtime whose frames
 * it runs there. The calls of different runtimes' probes cannot be mixed. */
enum { SHADOW_OF_THREAD, SHADOW_OF_SIGNALS, SHADOW_OF_FIBERS };

/* Regions of a thread's fiber stacks: numbers of the stacks between which the thread itself
 * switches. */
#define SHADOW_OF_FIBER(fiber) ((fiber) ? SHADOW_OF_FIBERS - 1 + (fiber) : SHADOW_OF_THREAD)

/* Owner of a shadow stack: `tid` is the kernel's, not that of a PID namespace, and `runtime` the
 * slot of the runtime's walker. */
#define SHADOW_OWNER(tid, runtime, region) \
	((__u64)(runtime) << 40 | (__u64)(region) << 32 | (__u32)(tid))

#define SHADOW_TID(owner)     ((__u32)(owner))
#define SHADOW_REGION(owner)  ((__u32)((owner) >> 32) & 0xff)
#define SHADOW_RUNTIME(owner) ((__u32)((owner) >> 40))

/* A stack is in one of SHADOW_SLOTS slots of the map `shadows`, from its home slot on. */
#define SHADOW_HOME(owner)                                              \
	((__u32)(((owner) + ((owner) >> 30)) * 0x9e3779b97f4a7c15ULL >> \
		 40)) /* 2^64 / golden ratio */
#define SHADOW_SLOTS 16

/* shadow_entry.flags */
enum {
	ENTRY_SEEDED = 1, /* called before the probes; entered_ns: time of its detection */
	/* No other live entry has its anchor: an entry with the same anchor is dead when this one
	 * is pushed. */
	ENTRY_OWN_ANCHOR = 2,
	/* `match` is the address of the runtime's frame, from which a sample reads the index. */
	ENTRY_LIVE_INDEX = 4,
	ENTRY_UNSETTLED = 8, /* its return must report more about the function to the runtime */
};

struct shadow_entry {
	__u32 code;   /* as in rec_code_object; 0: unknown */
	__u32 index;  /* line or bytecode index, as in the runtime */
	__u64 anchor; /* an address in the native frame that runs it; 0: unknown */
	__u64 match;  /* identity of the call at its return, or in its callees' probes */
	__u64 entered_ns;
	__u32 node; /* node of its call, in call_stats; 0: not counted */
	__u32 flags;
};
_Static_assert(sizeof(struct shadow_entry) == 40, "shadow_entry");

/* shadow.flags */
enum {
	SHADOW_PARTIAL = 1, /* calls from before the probes are missing at the outer end */
	SHADOW_COPIED = 2,  /* by fork: calls between it and the child's first probe are unknown */
	SHADOW_STARTED = 4, /* a probe has hit in this thread */
	/* Its calls' frames may be moved while they live: anchors do not show which are dead. */
	SHADOW_FRAMES_MOVE = 8,
};

/* The cached result of a probe's lookup. */
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

/* A stack that a thread switches to and from without the kernel (a fiber's). */
struct shadow_fiber {
	__u64 stack;  /* an address that identifies it for its runtime */
	__u64 state;  /* an address that identifies the code that runs on it; after a change the
			 stack has begun anew */
	__u64 lo, hi; /* first and last address that are proven to be on it */
	__u64 used;   /* number of the switch to it */
};

/* Written only by its own thread; a sample may interrupt the thread at any time. An entry is stored
 * before the depth includes it. Free shadow stacks are empty, but retain their space and caches. */
struct shadow {
	__u64 owner;	/* SHADOW_OWNER; 0: free */
	__u32 depth;	/* entries in use, outermost first */
	__u32 overflow; /* further calls that have not returned */
	__u32 flags;
	__u32 space; /* address space */
	__u32 pad;
	/* ENTRY_LIVE_INDEX: (the 32 bits at match + index_offset) << index_shift */
	__u16 index_offset;
	__u16 index_shift;
	/* State of seeding. It is stored here, because the verifier would track values in a
	 * program's own memory. */
	__u64 seed_frame; /* the runtime's next frame, outwards */
	__u64 seed_ns;
	__u32 seed_n; /* number of frames */
	__u32 seed_by_text;
	/* Buffer for one read of a runtime; a program's own stack has no space for it. */
	__u64 words[SHADOW_WORDS];
	/* For SHADOW_OF_THREAD, of a runtime that has fibers. Fiber stack 0 is this shadow stack
	 * itself. */
	__u32 fiber;	   /* the current one */
	__u32 fibers_used; /* one bit per fiber stack */
	__u64 lo, hi;	   /* bounds of the current fiber stack */
	__u64 switches;
	struct shadow_fiber fibers[SHADOW_FIBERS_MAX];
	struct shadow_entry entries[SHADOW_DEPTH_MAX];
	struct shadow_cache caches[SHADOW_CACHES];
	struct shadow_call_cache call_memos[SHADOW_CACHES];
};

/* --- calls --- */

/* A call path ends in a node: key {parent, code, space}. Node 0 is the root. */
struct call_key {
	__u32 parent;
	__u32 code;
	__u32 space;
};

/* Parent of nodes for all calls of a function that found no space in the tree. */
#define CALL_UNPLACED 0xffffffff

struct call_stat { /* index: node */
	__u64 calls;
	__u64 returns;
	__u64 lost_returns; /* ended without a return; detected as dead later */
	__u64 inclusive_ns; /* time of ended calls, counted or seeded ones */
	__u32 parent;
	__u32 code; /* 0: the node is not in use */
	__u32 space;
	__u32 pad;
};
_Static_assert(sizeof(struct call_stat) == 48, "call_stat");

#endif
