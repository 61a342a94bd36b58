/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DUMP_PRINT_H
#define BRAID_DUMP_PRINT_H

#include <stdio.h>

#include "core/dump/dump.h"
#include "core/profile/frames.h"

struct dump_view {
	/* Frames that are shown of a stack with runtime frames. FRAMES_COLLAPSED: one line for each
	 * longer run of other frames. */
	enum profile_frames frames;
	bool all; /* show idle threads, and do not join threads with equal stacks */
};

/* Prints a process for users. Returns 0 or -ENOMEM. */
int dump__print(FILE *out, const struct dump_process *process,
		const struct runtime *const *runtimes, const struct dump_view *view);

/* Writes one process of the document for programs: docs/reference/dump.md has the schema. */
void dump__json(FILE *out, const struct dump_process *process,
		const struct runtime *const *runtimes);

/* Returns the name of a frame's kind. */
const char *dump__kind(const struct dump_frame *frame, const struct runtime *const *runtimes);

/* Returns the thread with id @tid; NULL: there is none. */
const struct dump_thread *dump__find(const struct dump_process *process, uint32_t tid);

#endif
