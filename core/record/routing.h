/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ROUTING_H
#define BRAID_ROUTING_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/capture.h"
#include "core/target/tracker.h"

/* Who learns what of the kernel half's records, and in which order: samples go to capture, the life
 * of processes to the tracker; capture is told before the tracker forgets what it may still need.
 */
struct routing {
	struct tracker *tracker;
	struct capture *capture;
};

/* Each returns 0, or a negative errno with a sentence: the recording cannot go on. */

/* One record of the ring. */
int routing__record(const struct routing *routing, const void *data, size_t size, struct err *err);

/* A process that was `ending` has ended. */
int routing__gone(const struct routing *routing, struct process *process, struct err *err);

/* All that was in the ring at this time has been consumed: frees what ended long enough before. */
int routing__consumed(const struct routing *routing, uint64_t consumed_ns, struct err *err);

#endif
