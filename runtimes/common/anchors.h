/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ANCHORS_H
#define BRAID_ANCHORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/runtime.h"

/* Rules for the hook `anchors`: they find the stack addresses of runtime frames for which the
 * kernel half has none. All stacks are innermost first. Pure functions. */

/* Removes the pairs that are no frames (FRAME_ANCHOR), after copying their addresses to the frames
 * inside them. Returns the number of frames. */
size_t anchors__settle(struct runtime_pair *pairs, size_t n);

/* Sets the address of each frame that has none to an address within a native frame, for runtimes
 * whose loops run exactly one frame each. A loop may have been entered without having linked its
 * frame yet. So complete stacks are paired from the outermost frames on. Others are paired from the
 * innermost frames on, up to the first frame that has an address. */
void anchors__pair(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives,
		   bool complete);

/* Sets the addresses of the outermost frames of a walk that ended early, for runtimes whose loops
 * run several frames each. Their loop is the first one outside all frames that have an address. */
void anchors__rest(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Removes the innermost frames that no native frame runs any more: their address lies in no
 * interpreter loop. Probes do not see every return. Returns the number of frames left. */
size_t anchors__prune(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Sets the addresses of the frames of a runtime whose loops run the frames up to a mark
 * (FRAME_LOOP_END), and whose native methods are frames, too. `functions` has the start of each
 * pair's function, 0 for a frame that a loop runs, or ANCHOR_FUNCTION_UNKNOWN. Adjacent loop frames
 * (a loop and its parts) are one loop. Marks and loops of complete stacks are paired from the
 * outermost mark on, those of other stacks from the innermost mark on. A native method gets the
 * address at which the native frame of its caller begins. Frames whose loop has not begun, by
 * @start, are placed inside the innermost native frame. Frames after FRAME_APART get RUNTIME_APART.
 * Removes the marks and returns the number of frames. */
enum anchors_start {
	ANCHORS_LOOP_FIRST,  /* a loop begins, and then links its frame */
	ANCHORS_FRAME_FIRST, /* the frame is linked and marked, and then its loop begins */
	ANCHORS_MARK_LAST,   /* the same, and a native method's callee is marked after its link */
};
#define ANCHOR_FUNCTION_UNKNOWN UINT64_MAX
size_t anchors__match(struct runtime_pair *pairs, const uint64_t *functions, size_t n,
		      const struct runtime_natives *natives, bool complete,
		      enum anchors_start start);

/* Moves frames that come from probes, for runtimes whose frames are native frames of compiled code:
 * each gets an address in the first such frame that ends above its own address. */
void anchors__outwards(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Moves frames that come from probes from the border between two parts of a loop into the inner
 * part, as anchors__match places frames. */
void anchors__inwards(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives);

/* Moves addresses from the outermost part of a loop to its innermost part. For runtimes whose loops
 * consist of parts that call each other, so that no part remains as a frame. The native frame
 * inside is a part if it is code of a loop, or if `called` is set. Native frames that run
 * frames themselves are excluded. */
void anchors__inside(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives,
		     bool called);

/* Returns true if both stacks reach their outermost frames, and so can be paired from there. */
static inline bool anchors__are_complete(const struct runtime_sample *sample)
{
	return sample->native_complete && !sample->cut;
}

#endif
