/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NOTED_BPF_H
#define BRAID_NOTED_BPF_H

/* Frames of runtimes that are native frames themselves. While it unwinds, the unwinder calls the
 * runtime's hook, which identifies each frame (struct frame_note), and puts it on a list. The
 * walker only copies the frames from that list. */

#include "bpf/scratch.bpf.h"

/* Adds a runtime frame to the list. @cfa: CFA of the native frame. */
static __always_inline void noted__add(struct scratch *scratch, __u64 key, __u64 cfa, __u32 walker,
				       __u32 enters)
{
	struct noted_frame *frame = &scratch->noted[scratch->n_noted & (NATIVE_FRAMES_MAX - 1)];

	frame->key = key;
	frame->address = cfa - 8;
	frame->walker = walker;
	frame->enters = enters;
	scratch->n_noted++;
}

/* Adds the frame that the unwinder has just left, if it is a runtime frame. */
static __always_inline void noted__take(struct scratch *scratch)
{
	const struct unwind_state *u = &scratch->unwind;
	const struct frame_note *note = &u->note;

	if (note->key && u->cfa)
		noted__add(scratch, note->key, u->cfa, note->walker, note->enters);
}

struct noted_pushing {
	struct scratch *scratch;
	__u32 walker;
	__u64 entered_at; /* address of the outermost frame that enters the runtime; 0: none */
};

#define NOTED_PER_STEP 4

static long noted__push_some(__u32 step, void *ctx)
{
	struct noted_pushing *pushing = ctx;
	struct scratch *scratch = pushing->scratch;
	__u32 at = step * NOTED_PER_STEP, i;

	for (i = 0; i < NOTED_PER_STEP && at < scratch->n_noted; i++, at++) {
		const struct noted_frame *frame = &scratch->noted[at & (NATIVE_FRAMES_MAX - 1)];

		if (frame->walker != pushing->walker)
			continue;
		scratch__push(scratch, frame->key, frame->address);
		if (frame->enters)
			pushing->entered_at = frame->address;
	}
	return 0;
}

/* Pushes the section of a walker whose frames all come from the unwinder. Returns the address of
 * the outermost frame that enters the runtime, or 0. */
static __always_inline __u64 noted__walk(struct scratch *scratch, __u32 walker)
{
	struct noted_pushing pushing = { .scratch = scratch, .walker = walker };
	__u32 first_word = scratch->n_words;

	bpf_loop((scratch->n_noted + NOTED_PER_STEP - 1) / NOTED_PER_STEP, noted__push_some,
		 &pushing, 0);
	scratch__walked(scratch, walker, first_word, 1, 0);
	return pushing.entered_at;
}

#endif
