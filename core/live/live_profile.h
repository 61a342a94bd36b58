/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVE_PROFILE_H
#define BRAID_LIVE_PROFILE_H

#include "core/live/live_queue.h"
#include "core/profile/build.h"
#include "core/profile/sink.h"

/* A sink that stores the recorded data in memory. It can produce a profile at any time, equal to
 * that of a recording. Samples are summed up by stack, so that memory grows with the number of
 * distinct stacks only, up to a limit. At the limit the sink evicts the half of the stacks with the
 * oldest samples, and all rows that only these stacks need. The recorder is notified
 * (core/profile/sink.h), and offers an evicted row again when it recurs. */
struct live_profile;

/* Makes a live profile. Eviction needs half as much memory again. Returns 0 or -ENOMEM. */
int live_profile__new(size_t bytes_max, struct live_profile **ret);
void live_profile__free(struct live_profile *live); /* @live may be NULL */

struct sink *live_profile__sink(struct live_profile *live); /* borrowed */

/* Names a kind, by the number that frames will have; called once per kind. Returns 0 or -ENOMEM. */
int live_profile__kind(struct live_profile *live, int kind, const char *name, const char *suffix);

/* Limits the profile to a window; must be called before the first sample. The window consists of
 * the present slot and the @slots slots before it. live_profile__advance() begins a slot
 * (core/live/live_window.h). Returns 0 or -ENOMEM. */
int live_profile__window(struct live_profile *live, unsigned slots, uint64_t now_ns);
void live_profile__advance(struct live_profile *live, uint64_t now_ns);

/* Stores samples one by one instead of their sums, at most @max at a time; must be called before
 * the first sample. */
void live_profile__queue(struct live_profile *live, size_t max);

/* A sample with the data of its event and thread, borrowed until the next call. */
struct live_sample {
	const struct queued_sample *queued;
	const char *event, *unit;
	struct profile_thread_of thread;
};

/* Takes the first stored sample. With @stack, it becomes the only sample of live_profile__get().
 * Returns 1; 0: there is none; or -ENOMEM. */
int live_profile__next(struct live_profile *live, bool stack, struct live_sample *ret);

/* Waits that have not ended have no samples yet. They are added in rounds, with a window only.
 * live_profile__look() begins a round and removes the waits of the previous one. Then
 * live_profile__waits() is called for each waiting thread. If the previous round had the same wait,
 * by thread and begin, the function counts it up to @now_ns and returns 1. If it returns 0, the
 * wait must be offered as a sample with SAMPLE_UNDER_WAY. Otherwise it returns -ENOMEM. */
void live_profile__look(struct live_profile *live);
int live_profile__waits(struct live_profile *live, uint32_t tid, uint64_t since_ns,
			uint64_t now_ns);

/* Returns the profile so far in *@ret. Evicted samples are a loss. Errors as build__profile(). */
int live_profile__get(const struct live_profile *live, const struct profile_filter *filter,
		      struct profile **ret, struct merge_report *report, struct err *err);

struct live_profile_stats {
	uint64_t samples, evicted; /* all samples; those that were evicted */
	uint64_t dropped;	   /* samples that a full queue did not take */
	size_t stacks, bytes;
};
void live_profile__stats(const struct live_profile *live, struct live_profile_stats *ret);

#endif
