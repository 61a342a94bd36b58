/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVE_WAITS_H
#define BRAID_LIVE_WAITS_H

#include "core/base/intern.h"
#include "core/profile/sink.h"

/* Samples of waits that had not ended at the last two looks at who waits: whoever still waits at
 * the next look has the same stack, and need not be sampled again. */
struct live_waits {
	struct live_waits_list {
		struct sink_sample *list;
		size_t n, cap;
		struct intern index; /* of these, + 1, by thread and begin */
	} before, now;
};

void live_waits__init(struct live_waits *waits);
void live_waits__done(struct live_waits *waits); /* idempotent */

/* Begins a look. */
void live_waits__turn(struct live_waits *waits);

/* Of this look; `tid`: of the sample's thread. -ENOMEM. */
int live_waits__add(struct live_waits *waits, uint32_t tid, const struct sink_sample *sample);

/* The sample of the last look, of a wait since that time. Borrowed; NULL: there is none. */
const struct sink_sample *live_waits__find(const struct live_waits *waits, uint32_t tid,
					   uint64_t since_ns);

#endif
