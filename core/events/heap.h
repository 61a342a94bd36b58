/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENTS_HEAP_H
#define BRAID_EVENTS_HEAP_H

#include "core/events/event.h"

/* Allocations that an allocator in the process samples itself, by bytes. It passes the USDT probes
 * otel_memory:alloc(address, size, weight) and otel_memory:free(address), as libbraid-heap.so does
 * (probes/heap/sampler.h). The cost is that of the samples, at any rate of calls. */
extern const struct event_kind heap_alloc;	 /* alloc:usdt */
extern const struct event_kind heap_outstanding; /* outstanding:usdt */

/* Returns true for both. */
bool heap__is(const struct event_spec *spec);

/* Puts libbraid-heap.so first into LD_PRELOAD of this process's environment, for a command: one
 * sample in @bytes (0: its default). Returns 0, or -ENOENT with a message if the library is neither
 * beside the program nor installed, or -ENOMEM. */
int heap__preload(uint64_t bytes, struct err *err);

#endif
