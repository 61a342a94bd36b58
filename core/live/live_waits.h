/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVE_WAITS_H
#define BRAID_LIVE_WAITS_H

#include "core/base/intern.h"
#include "core/profile/sink.h"

/* Samples of waits that had not ended in the last two rounds of live_profile__look(). A thread that
 * still waits in the next round has the same stack, and need not be sampled again. */
struct live_waits {
	struct live_waits_list {
		struct sink_sample *list;
		size_t n, cap;
		struct intern index; /* numbers in `list`, + 1, by thread and begin */
	} before, now;
};

void live_waits__init(struct live_waits *waits);
void live_waits__done(struct live_waits *waits); /* idempotent */

/* Begins a round. */
void live_waits__advance(struct live_waits *waits);

/* Adds a sample to this round. @tid is its thread. Returns 0 or -ENOMEM. */
int live_waits__add(struct live_waits *waits, uint32_t tid, const struct sink_sample *sample);

/* Returns the previous round's sample of the thread's wait since @since_ns, borrowed, or NULL. */
const struct sink_sample *live_waits__find(const struct live_waits *waits, uint32_t tid,
					   uint64_t since_ns);

#endif
