/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SECTIONS_H
#define BRAID_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/capture/pairing.h"

/* A thread may be in several runtimes at once, one of which calls another through native code. Each
 * walker tells of its own frames only; here they become one stack, in the order of the native
 * frames that run them. Nothing is dropped. Pure. */

#define RUNTIME_STACK_MAX (SAMPLE_WORDS_MAX / 2)

/* Innermost first, as all stacks here. */
struct runtime_stack {
	struct runtime_pair pairs[RUNTIME_STACK_MAX];
	uint8_t runtimes[RUNTIME_STACK_MAX]; /* whose frame it is: index into the runtimes */
	uint8_t evidence[RUNTIME_STACK_MAX]; /* enum native_evidence */
	size_t n;
};

/* The frames of one runtime, as its pairing has left them. */
struct section {
	const struct runtime_pair *pairs;
	size_t n;
	uint8_t runtime;
	uint8_t evidence; /* of its frames: EVIDENCE_RULE or EVIDENCE_INFERRED */
};

struct section_natives {
	const struct native_frame *frames;
	size_t n;
	bool complete; /* they reach the thread's outermost frame */
};

struct sections; /* memory to work in */

struct sections *sections__new(void); /* NULL: out of memory */
void sections__free(struct sections *sections);

/* Merges up to SECTIONS_MAX sections, of at most RUNTIME_STACK_MAX frames together. Frames of one
 * section keep their order, and those without an address stay beside their neighbours. A section
 * without any address is taken to be outside of all others. Returns how many frames could only be
 * placed so. */
size_t sections__merge(struct sections *sections, const struct section *list, size_t n,
		       const struct section_natives *natives, struct runtime_stack *ret);

#endif
