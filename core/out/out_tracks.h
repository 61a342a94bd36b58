/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_TRACKS_H
#define BRAID_OUT_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/out/out_common.h"
#include "core/out/pprof_values.h"

/* What the writers for viewers with a track per thread share: a profile's samples, or stacks,
 * thread by thread. */

struct out_part {
	uint32_t node, thread;
	uint64_t time_ns; /* since the recording's first sample; 0 of sums */
	struct profile_value value;
};

struct out_tracks {
	const struct profile *profile;
	struct out_tree tree;
	struct out_part *parts; /* by thread (pid, tid), then time, then as stacks are shown; none
				   without a value, unless they are `counted` */
	size_t n_parts;
	bool counted;		  /* parts have numbers of occurrences */
	bool instants;		  /* a part is a sample, else all of a thread and stack */
	struct pprof_value value; /* what their values are, and its unit: the last of a stack's */
	uint64_t period_ns;	  /* 0: not known, or not of a clock */
	uint32_t *stack;	  /* room for out_tracks__stack */
};

/* 0 or -ENOMEM; call out_tracks__done in any case. */
int out_tracks__init(struct out_tracks *tracks, const struct profile *profile);
/* As out_tracks__init(), with parts that have occurrences only, if the profile has these numbers.
 */
int out_tracks__init_counted(struct out_tracks *tracks, const struct profile *profile);
void out_tracks__done(struct out_tracks *tracks);

/* Where the track that begins with this part ends. */
size_t out_tracks__end(const struct out_tracks *tracks, size_t first);

/* Of a part, in the unit of `value`; at most INT64_MAX. */
uint64_t out_tracks__value(const struct out_tracks *tracks, size_t part);

/* NULL: values are not divided among threads. */
const struct profile_thread *out_tracks__thread(const struct out_tracks *tracks, size_t part);

/* The frames of a part's stack, root first, borrowed until the next call. None: the sample has no
 * stack. */
const uint32_t *out_tracks__stack(struct out_tracks *tracks, size_t part, size_t *ret_n);

/* A frame's name with its kind's suffix if `annotate`, raw. Owned by the caller; NULL: out of
 * memory. */
char *out_tracks__name(const struct profile *profile, const struct profile_frame *frame,
		       int annotate);

/* "EVENT", or "EVENT: THREAD (TID)" and " of PROCESS (PID)" where that is another. Not escaped,
 * owned by the caller; NULL: out of memory. */
char *out_tracks__title(const struct out_tracks *tracks, const struct profile_thread *thread);

#endif
