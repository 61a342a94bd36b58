/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOCK_CALLS_EVENT_H
#define BRAID_LOCK_CALLS_EVENT_H

#include "core/events/event.h"

/* lock:pthread[:MIN], the kind that `-e lock:pthread` selects. */
extern const struct event_kind event_lock_calls;

#endif
