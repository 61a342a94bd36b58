/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVE_PROFILE_H
#define BRAID_LIVE_PROFILE_H

#include "core/profile/build.h"
#include "core/profile/sink.h"

/* A sink that keeps what was recorded in memory and can show it at any time, as it would be shown
 * of a recording. Samples are summed up by stack, so that memory grows with the number of distinct
 * stacks only, up to a limit. Where that is reached, the stacks go that have not been seen for the
 * longest time, half of them at once, and what they alone needed.
 *
 * Who records is told (core/profile/sink.h), and offers what went once more when it comes again. */
struct live_profile;

/* While stacks go, half as much again is needed. -ENOMEM. */
int live_profile__new(size_t bytes_max, struct live_profile **ret);
void live_profile__free(struct live_profile *live); /* NULL is fine */

struct sink *live_profile__sink(struct live_profile *live); /* borrowed */

/* Kind numbers are those of the frames to come; once per kind. -ENOMEM. */
int live_profile__kind(struct live_profile *live, int kind, const char *name, const char *suffix);

/* From now on, before the first sample, only what came last counts: what was recorded during the
 * `slots` calls of live_profile__turn that came last, and since (core/live/live_window.h).
 * -ENOMEM. */
int live_profile__window(struct live_profile *live, unsigned slots, uint64_t now_ns);
void live_profile__turn(struct live_profile *live, uint64_t now_ns);

/* Waits that have not ended are in no sample yet. Who looks at them begins with live_profile__look:
 * what the last look has found does not count any more. Then each wait of this look is one that is
 * known from the last one, by its thread and its begin, and counts up to now, or
 * live_profile__waits returns 0, and it has to come as a sample with SAMPLE_UNDER_WAY. With a
 * window only. 1, 0, -ENOMEM. */
void live_profile__look(struct live_profile *live);
int live_profile__waits(struct live_profile *live, uint32_t tid, uint64_t since_ns,
			uint64_t now_ns);

/* The profile so far, with what was evicted as a loss. Errors as build__profile. */
int live_profile__get(const struct live_profile *live, const struct profile_filter *filter,
		      struct profile **ret, struct merge_report *report, struct err *err);

struct live_profile_stats {
	uint64_t samples, evicted; /* all that came; those that are no longer in it */
	size_t stacks, bytes;
};
void live_profile__stats(const struct live_profile *live, struct live_profile_stats *ret);

#endif
