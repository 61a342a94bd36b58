/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_PIPELINE_H
#define BRAID_TESTS_REPLAY_PIPELINE_H

#include "bpf/host/programs.h"
#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/target/tracker.h"

/* One sample of one thread through all of braid: load (mappings, images, tables, runtimes), walk,
 * unwind, pair, record, merge, name. Only the kernel is not there: its half is built for the host,
 * and the target is what core/target/procfs.h and core/base/memory.h are told to read. */

struct pipeline;

/* One for all samples of a process: what is known of its ELF files, and their unwind tables, is
 * found out once. -ENOMEM. Only one at a time. */
int pipeline__new(struct pipeline **ret);
void pipeline__free(struct pipeline *pipeline); /* NULL is fine */

struct pipeline_frame {
	char *label;   /* as `report --lines --annotate` shows it */
	char *name;    /* of the function alone */
	char *file;    /* its full path; "": unknown */
	unsigned line; /* 0: unknown */
	int kind;      /* core/profile/profile.h */
	bool hidden;   /* shown with --keep-vm only */
};

struct pipeline_native {  /* a native frame before it is named */
	char *image;	  /* path without directories; "": code that no file backs */
	uint64_t vaddr;	  /* its ip as a link-time address; without an image: in the process */
	uint64_t address; /* in the process, of an instruction that belongs to the frame */
	uint64_t cfa;
};

struct pipeline_stack {
	struct pipeline_frame *frames; /* merged, outermost first */
	size_t n_frames, cap_frames;
	struct pipeline_native *natives; /* innermost first */
	size_t n_natives, cap_natives;
	uint32_t flags; /* of rec_sample */
	uint64_t counters[COUNTERS_N];
};

struct pipeline_input {
	struct host_thread thread;
	const struct memory *memory;
	const char *work; /* an existing directory for files of this run */
	/* Called with the stack when it is known, while everything that led to it is still there.
	 * NULL: nobody. */
	void (*inspect)(void *ctx, struct process *process, const struct pipeline_stack *stack);
	/* Called before and after the sample is taken again and again, to see whether frames that
	 * are kept from samples before make it another one. NULL: that is not done. */
	void (*on_repeat)(void *ctx, bool begins);
	void *ctx;
};

/* 0 or a negative errno with the sentence. core/target/procfs.h must have been told what to read,
 * and a pipeline__done must follow in any case. */
int pipeline__run(struct pipeline *pipeline, const struct pipeline_input *input,
		  struct pipeline_stack *ret, struct err *err);
void pipeline__done(struct pipeline_stack *stack);

#endif
