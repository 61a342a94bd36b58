/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENTS_ALLOC_H
#define BRAID_EVENTS_ALLOC_H

#include "core/events/event.h"
#include "runtimes/runtime.h"

/* What the events alloc and outstanding have in common. */

/* What the argument DOMAIN means, also if there is none; NULL: nothing. */
const struct runtime_allocator *alloc__find(const struct event *event,
					    const struct event_place *place);

/* There is no such domain. -EINVAL with the sentence. */
int alloc__unknown(const struct event *event, const struct event_place *place, struct err *err);

/* No target has such an allocator, as far as one can see. -ENOENT with the sentence, or 0 where a
 * runtime may come: then the sentence is in event->note, for whoever finds its file to delete. */
int alloc__nothing_found(struct event *event, const struct runtime_allocator *allocator,
			 const struct event_place *place, struct err *err);

#endif
