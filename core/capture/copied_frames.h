/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COPIED_FRAMES_H
#define BRAID_COPIED_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/shared.h"
#include "core/capture/pairing.h"

/* Native frames from the stack copies of some samples. */
struct copied_frames;

int copied_frames__new(struct copied_frames **ret);	/* -ENOMEM */
void copied_frames__free(struct copied_frames *copied); /* NULL is fine */

/* Drops all cached images. Returns 0, or -ENOMEM with the cache unchanged. */
int copied_frames__renew(struct copied_frames *copied);

/* Unwinds a copy. Stores up to NATIVE_FRAMES_MAX frames, innermost first; *@ret_complete is true if
 * these are all. Returns the number of frames; 0: the unwinding failed. */
size_t copied_frames__of(struct copied_frames *copied, const struct process *process,
			 const struct rec_stack *stack, struct native_frame *ret,
			 bool *ret_complete);

#endif
