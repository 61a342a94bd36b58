/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ROUTING_H
#define BRAID_ROUTING_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/capture.h"
#include "core/target/tracker.h"

/* Routes the kernel half's records: samples go to capture, records of processes to the tracker.
 * When a process ends, capture is notified before the tracker drops the process. */
struct routing {
	struct tracker *tracker;
	struct capture *capture;
};

/* Each function returns 0, or a negative errno with a message: the recording cannot continue. */

/* Routes one record of the ring. */
int routing__record(const struct routing *routing, const void *data, size_t size, struct err *err);

/* Ends a process in the state ENDING, after its end. */
int routing__end(const struct routing *routing, struct process *process, struct err *err);

/* Frees processes that ended long enough before @consumed_ns, the time up to which the ring has
 * been consumed. */
int routing__consumed(const struct routing *routing, uint64_t consumed_ns, struct err *err);

#endif
