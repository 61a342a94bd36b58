/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_PIPELINE_H
#define BRAID_TESTS_REPLAY_PIPELINE_H

#include "bpf/host/programs.h"
#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/target/tracker.h"

/* One sample of one thread through all of braid: load (mappings, images, tables, runtimes), walk,
 * unwind, pair, record, merge, name. Only the kernel is missing: its half is built for the host.
 * core/target/procfs.h and core/base/memory.h read the given target. */

struct pipeline;

/* Makes a pipeline for all samples of a process, so that its ELF files are analysed once. Only one
 * pipeline may exist at a time. Returns 0 or -ENOMEM. */
int pipeline__new(struct pipeline **ret);
void pipeline__free(struct pipeline *pipeline); /* @pipeline may be NULL */

struct pipeline_frame {
	char *label;   /* as `report --lines --annotate` shows it */
	char *name;    /* name of the function alone */
	char *file;    /* full path; "": unknown */
	unsigned line; /* 0: unknown */
	int kind;      /* KIND_* of core/profile/profile.h */
	bool hidden;   /* shown with --keep-vm only */
};

struct pipeline_native {  /* a native frame without a name */
	char *image;	  /* file name without directories; "": code that no file backs */
	uint64_t vaddr;	  /* ip as a link-time address; without an image: process address */
	uint64_t address; /* process address of an instruction that belongs to the frame */
	uint64_t cfa;
};

struct pipeline_stack {
	struct pipeline_frame *frames; /* merged, outermost first */
	size_t n_frames, cap_frames;
	struct pipeline_native *natives; /* innermost first */
	size_t n_natives, cap_natives;
	uint32_t flags; /* flags of rec_sample */
	uint64_t counters[COUNTERS_N];
};

struct pipeline_input {
	struct host_thread thread;
	const struct memory *memory;
	const char *work; /* an existing directory for files of this run */
	/* Called with the finished stack, while all state that led to it exists; may be NULL. */
	void (*inspect)(void *ctx, struct process *process, const struct pipeline_stack *stack);
	/* Called before and after the sample is taken repeatedly, which checks that cached frames
	 * of earlier samples do not change it. NULL: no check. */
	void (*on_repeat)(void *ctx, bool begins);
	void *ctx;
};

/* Runs a sample. core/target/procfs.h must read the target already. Returns 0, or a negative errno
 * with a message; the caller calls pipeline__done() in any case. */
int pipeline__run(struct pipeline *pipeline, const struct pipeline_input *input,
		  struct pipeline_stack *ret, struct err *err);
void pipeline__done(struct pipeline_stack *stack);

#endif
