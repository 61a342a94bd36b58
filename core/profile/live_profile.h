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
 * Who records offers each thing once (core/profile/sink.h) and remembers for long: a stack that
 * comes again after it went cannot be shown, and its samples are counted as evicted, too. With a
 * limit of 100 MB and more that is rare, as core/capture/ids.c forgets earlier and offers anew. */
struct live_profile;

/* While stacks go, half as much again is needed. -ENOMEM. */
int live_profile__new(size_t bytes_max, struct live_profile **ret);
void live_profile__free(struct live_profile *live); /* NULL is fine */

struct sink *live_profile__sink(struct live_profile *live); /* borrowed */

/* Kind numbers are those of the frames to come; once per kind. -ENOMEM. */
int live_profile__kind(struct live_profile *live, int kind, const char *name, const char *suffix);

/* From now on, before the first sample, only what came last counts: what was recorded during the
 * `slots` calls of live_profile__turn that came last, and since (core/profile/live_window.h).
 * -ENOMEM. */
int live_profile__window(struct live_profile *live, unsigned slots, uint64_t now_ns);
void live_profile__turn(struct live_profile *live, uint64_t now_ns);

/* The profile so far, with what was evicted as a loss. Errors as build__profile. */
int live_profile__get(const struct live_profile *live, const struct profile_filter *filter,
		      struct profile **ret, struct merge_report *report, struct err *err);

struct live_profile_stats {
	uint64_t samples, evicted; /* all that came; those that are no longer in it */
	size_t stacks, bytes;
};
void live_profile__stats(const struct live_profile *live, struct live_profile_stats *ret);

#endif
