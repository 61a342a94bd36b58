/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_TRACKS_H
#define BRAID_OUT_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/out/out_common.h"
#include "core/out/pprof_values.h"

/* The state that writers for viewers with a track for each thread share: a profile's samples, or
 * stacks, thread by thread. */

struct out_part {
	uint32_t node, thread;
	uint64_t time_ns; /* since the recording's first sample; 0 for sums */
	struct profile_value value;
};

struct out_tracks {
	const struct profile *profile;
	struct out_tree tree;
	struct out_part *parts; /* by thread (pid, tid), then time, then as stacks are shown;
				   without those that have no value, unless `counted` */
	size_t n_parts;
	bool counted;  /* parts have numbers of occurrences */
	bool instants; /* a part is one sample; otherwise the sum of a thread and stack */
	struct pprof_value value; /* type and unit of values: the last value of a stack */
	uint64_t period_ns;	  /* 0: unknown, or not a clock's */
	uint32_t *stack;	  /* buffer of out_tracks__stack() */
};

/* Returns 0 or -ENOMEM; the caller calls out_tracks__done() in any case. */
int out_tracks__init(struct out_tracks *tracks, const struct profile *profile);
/* As out_tracks__init(). If the profile has numbers of occurrences, adds parts that have only
 * these. */
int out_tracks__init_counted(struct out_tracks *tracks, const struct profile *profile);
void out_tracks__done(struct out_tracks *tracks);

/* Returns the end of the track that begins with part @first, exclusive. */
size_t out_tracks__end(const struct out_tracks *tracks, size_t first);

/* Returns the value of a part, in the unit of `value`; at most INT64_MAX. */
uint64_t out_tracks__value(const struct out_tracks *tracks, size_t part);

/* Returns the thread of a part; NULL: values are not divided among threads. */
const struct profile_thread *out_tracks__thread(const struct out_tracks *tracks, size_t part);

/* Returns the frames of a part's stack, root first, borrowed until the next call. *@ret_n is 0 if
 * the sample has no stack. */
const uint32_t *out_tracks__stack(struct out_tracks *tracks, size_t part, size_t *ret_n);

/* Returns a frame's name, not escaped, with its kind's suffix if @annotate is set. Owned by the
 * caller; NULL: out of memory. */
char *out_tracks__name(const struct profile *profile, const struct profile_frame *frame,
		       int annotate);

/* Returns "EVENT", or "EVENT: THREAD (TID)", with " of PROCESS (PID)" unless the pid equals the
 * tid. Not escaped, owned by the caller; NULL: out of memory. */
char *out_tracks__title(const struct out_tracks *tracks, const struct profile_thread *thread);

#endif
