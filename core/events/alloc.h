/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENTS_ALLOC_H
#define BRAID_EVENTS_ALLOC_H

#include "core/events/event.h"
#include "runtimes/runtime.h"

/* Shared by the events alloc and outstanding. */

/* Returns the allocator for the argument DOMAIN, or for no argument; NULL: there is none of that
 * name. */
const struct runtime_allocator *alloc__find(const struct event *event,
					    const struct event_place *place);

/* Sets the message for an unknown domain. Returns -EINVAL. */
int alloc__unknown(const struct event *event, const struct event_place *place, struct err *err);

/* Handles the case that no target has the allocator. Returns -ENOENT with a message, or 0 if a
 * runtime may load later. Then event->note has the message, which must be deleted when a file is
 * found. */
int alloc__nothing_found(struct event *event, const struct runtime_allocator *allocator,
			 const struct event_place *place, struct err *err);

#endif
