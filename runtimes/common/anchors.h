/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ANCHORS_H
#define BRAID_ANCHORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/runtime.h"

/* Rules for the hook `anchors`: the stack addresses of runtime frames, as far as the kernel half
 * could not tell them frame by frame. All stacks innermost first. Pure. */

/* Takes out the pairs that are no frames (FRAME_ANCHOR), after giving their addresses to the
 * frames inside them. Returns the number of frames. */
size_t anchors__settle(struct runtime_pair *pairs, size_t n);

/* Gives frames without an address one within a native frame, where each loop runs exactly one. An
 * interpreter loop may have been entered but not have linked its frame yet; so where both stacks
 * are complete, they are paired from the outermost frames on, else from the innermost, until one
 * has an address already. */
void anchors__pair(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives,
		   bool complete);

/* Of a runtime whose loops run several frames each, where the walk ended before it came to what
 * tells the loop of the last ones: they are run by the first loop outside all frames that have an
 * address. */
void anchors__rest(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Takes out the innermost frames that no native frame runs any more: their address lies in no
 * interpreter loop. Probes do not see every return. Returns the number of frames left. */
size_t anchors__prune(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Of a runtime whose loops run the frames up to a mark (FRAME_LOOP_END), and whose native methods
 * are frames, too: `functions` has for each pair the start of its function, 0 for a frame that a
 * loop runs, or ANCHOR_FUNCTION_UNKNOWN. Adjacent loop frames (a loop and its parts) are one loop.
 * Where both stacks are complete, marks and loops are paired from the outermost on, else from the
 * innermost. A native method is given the address where the native frame that called it begins.
 * Frames whose loop has not begun, by @start, are placed inside of the innermost native frame.
 * Frames behind FRAME_APART get RUNTIME_APART. Takes out the marks, returns the number of frames.
 */
enum anchors_start {
	ANCHORS_LOOP_FIRST,  /* a loop begins, and then links its frame */
	ANCHORS_FRAME_FIRST, /* the frame is linked and marked, and then its loop begins */
	ANCHORS_MARK_LAST,   /* the same, and a native method's callee is marked after its link */
};
#define ANCHOR_FUNCTION_UNKNOWN UINT64_MAX
size_t anchors__match(struct runtime_pair *pairs, const uint64_t *functions, size_t n,
		      const struct runtime_natives *natives, bool complete,
		      enum anchors_start start);

/* Of frames that probes told, of a runtime whose frames are native frames of code that it has
 * compiled: each becomes one of the first such frame that ends above its address. */
void anchors__outwards(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Of frames that probes told: where a loop's address is that between two parts of it, it becomes
 * one of the inner part, as anchors__match gives them. */
void anchors__inwards(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Of a runtime whose loops' frames are in parts that call each other, where the walk told addresses
 * in the outermost part: these become addresses in the innermost one, so that no part is left over.
 * The native frame inside is a part if it is code of a loop, or, with `called`, in any case; not if
 * it runs frames itself. */
void anchors__inside(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives,
		     bool called);

/* Do both stacks reach their outermost frames, so that they can be paired from there? */
static inline bool anchors__are_complete(const struct runtime_sample *sample)
{
	return sample->native_complete && !sample->cut;
}

#endif
