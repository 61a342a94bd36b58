/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MAP_ASKING_H
#define BRAID_MAP_ASKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* When to ask a process for a map of its code (the runtime's hook ask_map): at first, and while
 * there is new code without a name; less and less often where that does not help. Knows no clock
 * and no process. */

#define MAP_ASK_PAUSE_MIN_NS (3 * 1000000000ULL)
#define MAP_ASK_PAUSE_MAX_NS (60 * 1000000000ULL)

struct map_asking { /* all zero: not asked yet */
	bool asked, under_way, answered;
	bool refused;  /* it cannot be asked */
	bool reported; /* why not */
	uint64_t next_ns, pause_ns;
	uint64_t unknown_ever; /* when it was asked last */
	uint64_t named_ever;   /* when it had answered */
};

struct map_request {
	const struct runtime *runtime;
	struct runtime_session *session;
	uint32_t pid;
	size_t unknown;	       /* addresses of code that have no name now */
	uint64_t unknown_ever; /* how many have had none when they were met */
	uint64_t named_ever;   /* and how many of these got one later */
	uint64_t now_ns;
	bool last;	  /* now or never */
	unsigned wait_ms; /* for an answer */
};

/* Takes the next step. 1: a new map is there; 0: nothing new; negative: it is unavailable, with a
 * sentence in `err` to be reported, which is "" if it was before. */
int map_asking__step(struct map_asking *asking, const struct map_request *asked, struct err *err);

#endif
