/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PAIRING_H
#define BRAID_PAIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/tracker.h"
#include "runtimes/runtime.h"

/* Finds the native frames that run the frames of one runtime in one sample. The runtime decides
 * (its hook `anchors`). This module gives the hook the code that each native frame is in. */

struct native_frame {
	uint64_t ip; /* with NATIVE_EXACT */
	uint64_t cfa;
};

/* Returns the address of the instruction that the frame executes. For a return address, that is one
 * byte before, as the call may be the last instruction of its function. */
uint64_t native_frame__address(const struct native_frame *frame);

struct pairing_sample {
	struct process *process;
	uint64_t time_ns; /* time of the sample */
	const struct runtime *runtime;
	struct runtime_session *session;
	int index; /* index of the runtime in process->mapped[].image->runtimes */
	const struct native_frame *natives; /* innermost first, as all frames here */
	size_t n_natives;		    /* at most NATIVE_FRAMES_MAX */
	bool native_complete;
	uint32_t flags; /* flags of rec_section */
};

struct pairing; /* buffers */

struct pairing *pairing__new(void); /* NULL: out of memory */
void pairing__free(struct pairing *pairing);

/* Sets the addresses of the pairs (at most RUNTIME_PAIRS_MAX) as far as they can be found. Removes
 * pairs that are not frames, or that probes left over. Returns the number of frames. */
size_t pairing__run(struct pairing *pairing, const struct pairing_sample *sample,
		    struct runtime_pair *pairs, size_t n);

#endif
