/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DUMP_PRINT_H
#define BRAID_DUMP_PRINT_H

#include <stdio.h>

#include "core/profile/frames.h"
#include "core/session/dump.h"

/* For people. Of a stack with frames of a runtime those that `frames` says: with FRAMES_COLLAPSED
 * one line for each longer run of others. */
void dump__print(FILE *out, const struct dump_process *process,
		 const struct runtime *const *runtimes, enum profile_frames frames);

/* One process of the document for programs: docs/dump.md has the schema. */
void dump__json(FILE *out, const struct dump_process *process,
		const struct runtime *const *runtimes);

/* What a frame's kind is called. */
const char *dump__kind(const struct dump_frame *frame, const struct runtime *const *runtimes);

/* The thread of that id; NULL: there is none. */
const struct dump_thread *dump__find(const struct dump_process *process, uint32_t tid);

#endif
