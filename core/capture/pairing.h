/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PAIRING_H
#define BRAID_PAIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/tracker.h"
#include "runtimes/runtime.h"

/* Which native frames run the frames of one runtime in one sample: the runtime decides (its hook
 * `anchors`), here it is told what code the native frames are in. */

struct native_frame {
	uint64_t ip; /* with NATIVE_EXACT */
	uint64_t cfa;
};

/* The instruction that belongs to the frame: a return address is looked up one byte before, as the
 * call may be the last instruction of its function. */
uint64_t native_frame__address(const struct native_frame *frame);

struct pairing_sample {
	struct process *process;
	uint64_t time_ns; /* when it was taken */
	const struct runtime *runtime;
	struct runtime_session *session;
	int index; /* of the runtime, in process->mapped[].image->runtimes */
	const struct native_frame *natives; /* innermost first, as are all frames here */
	size_t n_natives;		    /* at most NATIVE_FRAMES_MAX */
	bool native_complete;
	uint32_t flags; /* of rec_section */
};

struct pairing; /* memory to work in */

struct pairing *pairing__new(void); /* NULL: out of memory */
void pairing__free(struct pairing *pairing);

/* Gives the pairs (at most RUNTIME_PAIRS_MAX) addresses, as far as they can be told, and takes out
 * those that are no frames, or were left over by probes. Returns the number of frames. */
size_t pairing__run(struct pairing *pairing, const struct pairing_sample *sample,
		    struct runtime_pair *pairs, size_t n);

#endif
