/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SECTIONS_H
#define BRAID_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/capture/pairing.h"

/* A thread may be in several runtimes at once, one of which calls another through native code. Each
 * walker finds only its own runtime's frames. This module merges the sections into one stack, in
 * the order of the native frames that run them. No frame is dropped. Pure. */

#define RUNTIME_STACK_MAX (SAMPLE_WORDS_MAX / 2)

/* innermost first, as all stacks here */
struct runtime_stack {
	struct runtime_pair pairs[RUNTIME_STACK_MAX];
	uint8_t runtimes[RUNTIME_STACK_MAX]; /* index of each frame's runtime */
	uint8_t evidence[RUNTIME_STACK_MAX]; /* enum native_evidence */
	size_t n;
};

/* the frames of one runtime, after pairing */
struct section {
	const struct runtime_pair *pairs;
	size_t n;
	uint8_t runtime;
	uint8_t evidence; /* evidence of its frames: EVIDENCE_RULE or EVIDENCE_INFERRED */
};

struct section_natives {
	const struct native_frame *frames;
	size_t n;
	bool complete; /* reach the thread's outermost frame */
};

struct sections; /* buffers */

struct sections *sections__new(void); /* NULL: out of memory */
void sections__free(struct sections *sections);

/* Merges up to SECTIONS_MAX sections, of at most RUNTIME_STACK_MAX frames together. Frames of one
 * section stay in their order, and those without an address stay beside their neighbours. A section
 * without any address is placed outside of all others. Returns the number of frames without an
 * address in such sections. */
size_t sections__merge(struct sections *sections, const struct section *list, size_t n,
		       const struct section_natives *natives, struct runtime_stack *ret);

#endif
