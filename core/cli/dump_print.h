/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DUMP_PRINT_H
#define BRAID_DUMP_PRINT_H

#include <stdio.h>

#include "core/dump/dump.h"
#include "core/profile/frames.h"

struct dump_view {
	/* Frames that are shown of a stack with frames of a runtime. FRAMES_COLLAPSED: one line for
	 * each longer run of others. */
	enum profile_frames frames;
	bool all; /* idle threads are shown, and threads with the same stack are not joined */
};

/* Prints a process for people. 0 or -ENOMEM */
int dump__print(FILE *out, const struct dump_process *process,
		const struct runtime *const *runtimes, const struct dump_view *view);

/* One process of the document for programs: docs/reference/dump.md has the schema. */
void dump__json(FILE *out, const struct dump_process *process,
		const struct runtime *const *runtimes);

/* What a frame's kind is called. */
const char *dump__kind(const struct dump_frame *frame, const struct runtime *const *runtimes);

/* The thread of that id; NULL: there is none. */
const struct dump_thread *dump__find(const struct dump_process *process, uint32_t tid);

#endif
