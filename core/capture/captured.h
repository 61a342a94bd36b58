/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CAPTURED_H
#define BRAID_CAPTURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "core/capture/map_asking.h"
#include "core/capture/process_names.h"
#include "core/profile/sink.h"
#include "core/target/place.h"

/* Capture's data of each program of a process, by the tracker's serial number. Such an entry lives
 * until capture__forget_process(). */

struct place_frame {   /* a place of the process as a frame */
	uint32_t id;   /* 0: not assigned yet */
	bool loop;     /* recorded as code of an interpreter loop */
	bool counted;  /* the count of places of compiled code includes it, or omits it because a
			  walker finds the frames of the code */
	bool fileless; /* counted as a place without a name in memory that no file backs */
};

/* The source of a runtime's frames in a process: its row in each recording. */
struct captured_source {
	struct captured_source *next;
	struct sink_source row; /* owns its texts */
};

struct captured {
	UT_hash_handle hh;
	uint32_t serial;
	struct process *process;    /* borrowed; lives longer */
	uint32_t id;		    /* 0: not recorded yet */
	uint32_t epoch;		    /* epoch of the process's places that `places` match */
	struct place_frame *places; /* index: number of the place - 1 */
	size_t n_places, cap_places;
	uint32_t attached;		 /* attached runtimes when loops were last marked */
	struct captured_source *sources; /* the latest source of each runtime */
	struct process_names names;
	uint32_t
		context_version; /* version of the process context whose attributes were recorded */

	/* --- code without an image: naming_compiled.c --- */
	bool has_own_code; /* there are samples of such code */
	uint32_t *unknown; /* numbers of places without a name */
	size_t n_unknown, cap_unknown;
	uint64_t unknown_ever; /* number of places ever added to `unknown` */
	uint64_t named_ever;   /* number of places in `unknown` that got a name */
	uint32_t resolved;     /* version of the maps at the last look-up of `unknown` */
	bool reported;	       /* a map was reported as the source of names */
	struct map_asking asking;
};

struct captured_set {
	struct captured *first; /* the others follow by hh.next */
};

/* Finds or adds the entry of @process. NULL: out of memory. */
struct captured *captured__get(struct captured_set *set, struct process *process);

/* Returns the entry; NULL: there is none. */
struct captured *captured__find(const struct captured_set *set, uint32_t serial);
void captured__forget(struct captured_set *set, struct captured *captured);

/* Copies @row, which replaces an earlier source of the same runtime. Returns 0 or -ENOMEM. */
int captured__source(struct captured *captured, const struct sink_source *row);

/* Drops all ids of processes and their places. */
void captured_set__renew(struct captured_set *set);
void captured_set__done(struct captured_set *set); /* idempotent */

/* Returns the entry of a place that place__at() just returned, borrowed until the next call. Drops
 * entries of an earlier epoch. NULL: out of memory. */
struct place_frame *captured__place(struct captured *captured, uint32_t number);

#endif
