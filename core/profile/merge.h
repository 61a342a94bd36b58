/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MERGE_H
#define BRAID_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Braids the native and the runtime stack of one sample into one, by stack address. Pure: no
 * kernel, no files, no state. A sample is never dropped for a mismatch: each frame is placed by the
 * best evidence available, and the report counts frames by evidence.
 *
 * A native frame spans [CFA of the frame that it called, its own CFA). A runtime frame's address
 * (its anchor) lies in the span of exactly one native frame: the interpreter loop that runs it.
 * Several runtime frames may share one loop, even one address; their order never changes. They may
 * be of several runtimes, of which one calls the other through native code.
 *
 * The native frames may lie on several stacks, in any order. A runtime frame is placed by its
 * address only if one native frame can contain it and the order of both stacks allows it.
 *
 * Compiled code runs the frames that it was made from, so that its native frame goes inside them.
 * But if a runtime frame's address is the start of the native frame, the native frame called it. */

#define MERGE_NO_ADDRESS 0
#define MERGE_APART	 UINT64_MAX /* runtime frame that has no native frames in this stack */

struct merge_frame {
	uint32_t frame; /* the caller's id */
	uint8_t kind;  /* runtime: number of the runtime; frames of one kind without an address stay
			  together */
	bool kernel;   /* kernel frames have no address and stay innermost */
	bool loop;     /* native: code of an interpreter's loop, or of a part of it */
	bool jit;      /* native: made by a compiler at run time, no part of a file */
	bool inferred; /* not proven; passed through to merge_placed */
	uint64_t address; /* native: CFA; runtime: anchor; or MERGE_NO_ADDRESS */
};

enum merge_placement {
	MERGE_PLACED_NATIVE,
	MERGE_PLACED_ADDRESS,  /* runtime frame inside the native frame that contains its anchor */
	MERGE_PLACED_ORDER,    /* between two native frames, by address, as none contains it */
	MERGE_PLACED_APPENDED, /* outside all native frames, as those are truncated. In a complete
				  stack: inside the outermost one, and inferred */
	MERGE_PLACED_APART,    /* as appended, but the frame belongs there */
};

struct merge_placed {
	uint32_t frame;
	enum merge_placement placement;
	bool loop;     /* native: an interpreter loop; its runtime frames precede it */
	bool inferred; /* the frame or its place is not proven, so that the stack is not complete */
};

struct merge_report {
	uint64_t by_address, by_order, appended, apart; /* runtime frames */
	/* Runtime frames whose place no native frame proves. Either the native stack is complete
	 * and no native frame spans their address, or their address contradicts the order. */
	uint64_t unproven;
	uint64_t loops; /* native frames found to be interpreter loops */
};

#define MERGE_DEPTH_MAX 8192 /* frames of one stack */

struct merge_stacks { /* innermost first */
	const struct merge_frame *native, *runtime;
	size_t n_native, n_runtime; /* at most MERGE_DEPTH_MAX each */
	bool complete;		    /* the native frames reach the thread's outermost frame */
};

/* Writes at most n_native + n_runtime entries to @ret, innermost first, and returns their number.
 * Native frames that run runtime frames, and the parts of a loop around them, are left out unless
 * @keep_vm; compiled code never is. Adds to @report (may be NULL). */
size_t merge__run(const struct merge_stacks *stacks, bool keep_vm, struct merge_placed *ret,
		  struct merge_report *report);

#endif
