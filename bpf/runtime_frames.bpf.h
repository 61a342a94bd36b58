/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUNTIME_FRAMES_BPF_H
#define BRAID_RUNTIME_FRAMES_BPF_H

/* Frames of runtimes that are native frames themselves. While it unwinds, the unwinder calls the
 * runtime's hook, which identifies each frame (struct frame_note), and puts it on a list. The
 * walker only copies the frames from that list. */

#include "bpf/scratch.bpf.h"

/* Adds a runtime frame to the list. @cfa: CFA of the native frame. */
static __always_inline void runtime_frames__add(struct scratch *scratch, __u64 key, __u64 cfa,
						__u32 walker, __u32 enters)
{
	struct runtime_frame *frame =
		&scratch->runtime_frames[scratch->n_runtime_frames & (NATIVE_FRAMES_MAX - 1)];

	frame->key = key;
	frame->address = cfa - 8;
	frame->walker = walker;
	frame->enters = enters;
	scratch->n_runtime_frames++;
}

/* Adds the frame that the unwinder has just left, if it is a runtime frame. */
static __always_inline void runtime_frames__add_left(struct scratch *scratch)
{
	const struct unwind_state *u = &scratch->unwind;
	const struct frame_note *note = &u->note;

	if (note->key && u->cfa)
		runtime_frames__add(scratch, note->key, u->cfa, note->walker, note->enters);
}

struct runtime_frames_pushing {
	struct scratch *scratch;
	__u32 walker;
	__u64 entered_at; /* address of the outermost frame that enters the runtime; 0: none */
};

#define RUNTIME_FRAMES_PER_STEP 4

static long runtime_frames__push_some(__u32 step, void *ctx)
{
	struct runtime_frames_pushing *pushing = ctx;
	struct scratch *scratch = pushing->scratch;
	__u32 at = step * RUNTIME_FRAMES_PER_STEP, i;

	for (i = 0; i < RUNTIME_FRAMES_PER_STEP && at < scratch->n_runtime_frames; i++, at++) {
		const struct runtime_frame *frame =
			&scratch->runtime_frames[at & (NATIVE_FRAMES_MAX - 1)];

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
static __always_inline __u64 runtime_frames__walk(struct scratch *scratch, __u32 walker)
{
	struct runtime_frames_pushing pushing = { .scratch = scratch, .walker = walker };
	__u32 first_word = scratch->n_words;

	bpf_loop((scratch->n_runtime_frames + RUNTIME_FRAMES_PER_STEP - 1) /
			 RUNTIME_FRAMES_PER_STEP,
		 runtime_frames__push_some, &pushing, 0);
	scratch__walked(scratch, walker, first_word, 1, 0);
	return pushing.entered_at;
}

#endif
