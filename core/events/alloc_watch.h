/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_WATCH_H
#define BRAID_ALLOC_WATCH_H

#include "core/events/event.h"
#include "probes/attach.h"

/* Has calls watched within a limit: all of the time or, where that costs too much, in windows
 * (core/events/alloc_windows.h), by threads of its own. */
struct alloc_watch;

/* All is watched at first, in processes that join, or @everywhere. `event` outlives it. -ENOMEM. */
int alloc_watch__new(struct event *event, bool everywhere, struct alloc_watch **ret,
		     struct err *err);
void alloc_watch__free(struct alloc_watch *watch); /* detaches; NULL is fine */

/* Further places. What attaching them returns. */
int alloc_watch__add(struct alloc_watch *watch, const struct probe_point *points, size_t n,
		     struct err *err);

/* Once there are some: from now on they cost `percent` of the machine at most (0: anything).
 * Without the kernel's statistics there is no limit, which event->note says. */
void alloc_watch__begin_limit(struct alloc_watch *watch, double percent);

/* A process joins those that are watched, or has ended. What attaching returns. With more than
 * PROBE_SET_MEMBERS_MAX processes all of the machine's are watched. */
int alloc_watch__join(struct alloc_watch *watch, pid_t pid, struct err *err);
bool alloc_watch__is_everywhere(struct alloc_watch *watch);
void alloc_watch__leave(struct alloc_watch *watch, pid_t pid);

/* In each round: goes over to windows if it has to, and has event->note say so. What attaching has
 * returned since the last time. */
int alloc_watch__keep(struct alloc_watch *watch, struct err *err);

#endif
