/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_WATCH_H
#define BRAID_ALLOC_WATCH_H

#include "core/events/event.h"
#include "probes/attach.h"

/* Watches calls within a limit: permanently or, if that costs too much, in windows
 * (core/events/alloc_windows.h), by its own threads. */
struct alloc_watch;

/* Creates a watch of all calls, in processes that join, or @everywhere. @event must outlive it.
 * Returns 0 or -ENOMEM. */
int alloc_watch__new(struct event *event, bool everywhere, struct alloc_watch **ret,
		     struct err *err);
void alloc_watch__free(struct alloc_watch *watch); /* detaches; NULL is fine */

/* Adds places. Returns 0 or an error of attaching them. */
int alloc_watch__add(struct alloc_watch *watch, const struct probe_point *points, size_t n,
		     struct err *err);

/* Sets the limit, once there are places: they cost at most @percent of the machine (0: no limit).
 * Without the kernel's statistics there is no limit, and event->note reports that. */
void alloc_watch__begin_limit(struct alloc_watch *watch, double percent);

/* Watch a process, or stop watching a process that ended. Return 0 or an error of attaching. With
 * more than PROBE_SET_MEMBERS_MAX processes, all processes of the machine are watched. */
int alloc_watch__join(struct alloc_watch *watch, pid_t pid, struct err *err);
bool alloc_watch__is_everywhere(struct alloc_watch *watch);
void alloc_watch__leave(struct alloc_watch *watch, pid_t pid);

/* Called in each round. Changes to windows if necessary, and describes them in event->note. Returns
 * 0, or an error of attaching since the last call. */
int alloc_watch__keep(struct alloc_watch *watch, struct err *err);

#endif
