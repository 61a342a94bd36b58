/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MAP_ASKING_H
#define BRAID_MAP_ASKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* Decides when to request a map of its code from a process (the runtime's hook ask_map). Requests
 * one first, and then while there is new code without a name. Requests fewer if they give no names.
 * Uses neither a clock nor a process. */

#define MAP_ASK_PAUSE_MIN_NS (3 * 1000000000ULL)
#define MAP_ASK_PAUSE_MAX_NS (60 * 1000000000ULL)

struct map_asking { /* all zero: no request yet */
	bool requested, under_way, answered;
	bool refused;  /* requests are impossible */
	bool reported; /* the reason was reported */
	uint64_t next_ns, pause_ns;
	uint64_t unknown_ever; /* as in struct map_request, at the last request */
	uint64_t named_ever;   /* as in struct map_request, at the last answer */
};

struct map_request {
	const struct runtime *runtime;
	struct runtime_session *session;
	uint32_t pid;
	size_t unknown;	       /* number of code addresses without a name now */
	uint64_t unknown_ever; /* number of addresses that had no name when first seen */
	uint64_t named_ever;   /* number of these that got one later */
	uint64_t now_ns;
	bool last;	  /* no later request is possible */
	unsigned wait_ms; /* time to wait for an answer */
};

/* Takes the next step. Returns 1 if there is a new map, and 0 if nothing has changed. Returns a
 * negative errno if the map is unavailable, with a message in @err to be reported, or "" if the
 * message was reported before. */
int map_asking__step(struct map_asking *asking, const struct map_request *requested,
		     struct err *err);

#endif
