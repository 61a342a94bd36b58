/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COPIED_FRAMES_H
#define BRAID_COPIED_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/shared.h"
#include "core/capture/pairing.h"

/* Native frames from the copies of stacks that come with some samples. */
struct copied_frames;

int copied_frames__new(struct copied_frames **ret);	/* -ENOMEM */
void copied_frames__free(struct copied_frames *copied); /* NULL is fine */

/* Forgets all images. -ENOMEM: none is forgotten. */
int copied_frames__renew(struct copied_frames *copied);

/* Unwinds a copy: frames (at most NATIVE_FRAMES_MAX), innermost first, and whether these are all.
 * Returns their number; 0: that could not be done. */
size_t copied_frames__of(struct copied_frames *copied, const struct process *process,
			 const struct rec_stack *stack, struct native_frame *ret,
			 bool *ret_complete);

#endif
