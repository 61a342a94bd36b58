/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENTS_HEAP_H
#define BRAID_EVENTS_HEAP_H

#include "core/events/event.h"

/* Allocations that an allocator in the process samples itself, by bytes. It passes the USDT probes
 * otel_memory:alloc(address, size, weight) and otel_memory:free(address), as libbraid-heap.so does
 * (probes/heap/sampler.h). The cost is that of the samples, at any rate of calls. */
extern const struct event_kind heap_alloc;	 /* alloc:usdt */
extern const struct event_kind heap_outstanding; /* outstanding:usdt */

#endif
