/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CAPTURE_H
#define BRAID_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/jit_frames.h"
#include "core/recording.h"
#include "core/tracker.h"

/* From the kernel half's records to the recording: frames are interned, stacks become tree nodes,
 * new frames are named soon after (while their process is likely to live). */
struct capture;

struct capture_opts {
	struct recording *recording;
	struct tracker *tracker;
	struct images *images;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled */
	const char *kallsyms_path;
	enum unwind_mode unwind;
	uint32_t enabled;	     /* bit n: runtimes[n] is wanted */
	tracker_source_fn on_source; /* what the user should know of names; may be NULL */
	bool (*hurries)(void *ctx);  /* names that take long are left out; NULL: never */
	void *ctx;
};

/* What has been recorded so far. */
struct capture_stats {
	uint64_t samples, complete;
	uint64_t kernel_frames, native_frames;
	uint64_t kernel_unnamed; /* places, as the kernel hides its symbols */
	uint64_t runtime_frames[RUNTIMES_MAX];
	uint64_t copies_used;			 /* stacks that only a stack copy made longer */
	uint64_t recovered[COUNTERS_N];		 /* of these, now complete: by what had cut them */
	uint64_t copy_stacks, copy_stacks_equal; /* UNWIND_MODE_COPY: compared with the tables' */
	uint64_t copy_frames, copy_frames_equal;
};

int capture__new(const struct capture_opts *opts, struct capture **ret, struct err *err);
void capture__free(struct capture *capture); /* NULL is fine */

/* Samples that were taken at this time (CLOCK_MONOTONIC) or later stand for so many, as they come
 * at a lower rate. At first: 1. Those from before the change before this one are recorded by
 * then. */
void capture__weigh(struct capture *capture, uint64_t since_ns, uint32_t value);

/* From now on stack copies are left as they are. */
void capture__skip_copies(struct capture *capture);

/* One record of the ring buffer. 0 or a negative errno: the recording cannot go on. */
int capture__record(struct capture *capture, const void *data, size_t size, struct err *err);

/* Names what is new since the last call, all of it if this is the `last`. To be called before each
 * commit. */
int capture__name_frames(struct capture *capture, bool last, struct err *err);

/* The process is gone: names what its files still tell. Before tracker__on_gone. */
int capture__process_ended(struct capture *capture, struct process *process, struct err *err);

/* Now and then: forgets processes that ended a while ago. */
void capture__reap(struct capture *capture);

/* Writes the process's row if there is none yet. */
int capture__process_id(struct capture *capture, struct process *process, uint32_t *ret_id,
			struct err *err);

const struct capture_stats *capture__stats(const struct capture *capture);
struct jit_frames *capture__jit(const struct capture *capture); /* borrowed */

#endif
