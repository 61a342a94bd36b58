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

/* What capture keeps of each process incarnation, under the serial number that the tracker gave it,
 * until it is told that no more samples of it will come. */

struct place_frame {   /* one of the process's places as a frame */
	uint32_t id;   /* 0: none yet */
	bool loop;     /* recorded as the code of an interpreter loop */
	bool counted;  /* as a place of compiled code, or never to be */
	bool fileless; /* counted as a place without a name in memory of no file */
};

/* Where frames of a runtime come from in a process: its row in each recording. */
struct captured_source {
	struct captured_source *next;
	struct sink_source row; /* with texts of its own */
};

struct captured {
	UT_hash_handle hh;
	uint32_t serial;
	struct process *process;    /* borrowed, as long as this lives */
	uint32_t id;		    /* 0: not recorded yet */
	uint32_t epoch;		    /* of the process's places, of which these are */
	struct place_frame *places; /* by number - 1 */
	size_t n_places, cap_places;
	uint32_t attached;		 /* runtimes, when it was decided which frames are loops */
	struct captured_source *sources; /* the last one of each runtime */
	struct process_names names;

	/* --- code without an image: naming_compiled.c --- */
	bool has_own_code; /* samples of it have come */
	uint32_t *unknown; /* numbers of the places without a name */
	size_t n_unknown, cap_unknown;
	uint64_t unknown_ever; /* how many there have been */
	uint64_t named_ever;   /* and how many of them got one */
	uint32_t resolved;     /* version of the maps when the unknown ones were looked up */
	bool reported;	       /* that its names come from a map */
	struct map_asking asking;
};

/* All of them. */
struct captured_set {
	struct captured *first; /* then ->hh.next */
};

/* NULL: out of memory. */
struct captured *captured__get(struct captured_set *set, struct process *process);

/* NULL: nothing is kept of it. */
struct captured *captured__find(const struct captured_set *set, uint32_t serial);
void captured__forget(struct captured_set *set, struct captured *captured);

/* Remembers it, instead of an earlier one of that runtime. -ENOMEM. */
int captured__source(struct captured *captured, const struct sink_source *row);

/* No id of it, nor of its places, holds any more. */
void captured_set__renew(struct captured_set *set);
void captured_set__done(struct captured_set *set); /* idempotent */

/* The entry of a place that place__at has just given. Those of a former epoch are dropped. NULL:
 * out of memory. Borrowed until the next call. */
struct place_frame *captured__place(struct captured *captured, uint32_t number);

#endif
