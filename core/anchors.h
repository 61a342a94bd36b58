/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ANCHORS_H
#define BRAID_ANCHORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The stack addresses of runtime frames, as far as the kernel half could not tell them frame by
 * frame. All stacks innermost first. Pure. */

struct runtime_pair { /* as in bpf/shared.h */
	uint64_t key;
	uint64_t address; /* 0: not known */
};

/* Takes out the pairs that are no frames (FRAME_ANCHOR), after giving their addresses to the
 * frames inside them. Returns the number of frames. */
size_t anchors__settle(struct runtime_pair *pairs, size_t n);

/* Gives frames without an address one within a native frame, where each native frame that runs
 * frames of this runtime (`loop_cfas`) runs exactly one. An interpreter loop may have been entered
 * but not have linked its frame yet; so where both stacks are complete, they are paired from the
 * outermost frames on, else from the innermost, until one has an address already. */
void anchors__pair(struct runtime_pair *pairs, size_t n, const uint64_t *loop_cfas, size_t n_loops,
		   bool complete);

/* Of a runtime whose loops run several frames each, where the walk ended before it came to what
 * tells the loop of the last ones: they are run by the first loop outside all frames that have an
 * address. */
void anchors__rest(struct runtime_pair *pairs, size_t n, const uint64_t *loop_cfas, size_t n_loops);

/* Takes out the innermost frames that no native frame runs any more: their address lies in no
 * interpreter loop, `loop_cfas` with `loop_starts` (the CFA of the native frame inside each).
 * Probes do not see every return. Returns the number of frames left. */
size_t anchors__prune(struct runtime_pair *pairs, size_t n, const uint64_t *loop_starts,
		      const uint64_t *loop_cfas, size_t n_loops);

/* A native frame, as far as it matters which runtime frames belong to it. */
struct anchor_native {
	uint64_t cfa;
	uint64_t function; /* address of the function's start; 0: unknown */
	bool loop;	   /* code of an interpreter loop */
};

/* Of a runtime whose loops run the frames up to a mark (FRAME_LOOP_END), and whose native methods
 * are frames, too: `functions` has for each pair the start of its function, 0 for a frame that a
 * loop runs, or RUNTIME_NATIVE_UNKNOWN. Adjacent loop frames (a loop and its parts) are one loop.
 * Where both stacks are complete, marks and loops are paired from the outermost on, else from the
 * innermost. A native method is given the address where the native frame that called it begins.
 * Frames behind FRAME_APART get ANCHOR_APART. Takes out the marks, returns the number of frames. */
#define ANCHOR_APART (UINT64_MAX - 1)
size_t anchors__match(struct runtime_pair *pairs, const uint64_t *functions, size_t n,
		      const struct anchor_native *natives, size_t n_natives, bool complete);

/* Of frames that probes told, of a runtime whose frames are native frames of code that it made:
 * each becomes one of the first such frame, `code_cfas`, that ends above its address. */
void anchors__outwards(struct runtime_pair *pairs, size_t n, const uint64_t *code_cfas,
		       size_t n_codes);

/* Of frames that probes told: where a loop's address is that between two parts of it, it becomes
 * one of the inner part, as anchors__match gives them. */
void anchors__inwards(struct runtime_pair *pairs, size_t n, const struct anchor_native *natives,
		      size_t n_natives);

#endif
