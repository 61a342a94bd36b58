/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_PRIVATE_H
#define BRAID_JIT_PRIVATE_H

/* Shared by jit_frames.c (which code a frame stands for) and jit_names.c (what it is called). */

#include "core/code_maps.h"
#include "core/jit_asking.h"
#include "core/jit_frames.h"
#include "core/jit_labels.h"

/* One address of a process, with the code that it has in the newest samples. */
struct jit_slot {
	uint64_t address, first_ns; /* the frame's first sample */
	struct code_place place;    /* as find_code gives it; entry.text 0: not known */
	uint32_t version;	    /* of the maps when that was looked up */
	uint32_t frame, generation;
	bool loop;	    /* recorded as such */
	bool counted;	    /* as a place of compiled code, or never to be */
	uint32_t name_hash; /* of what a map calls it; 0: not known */
};

/* What is known of one process's code. */
struct jit_code {
	struct code_maps *maps;	  /* NULL: no runtime wants them */
	struct u64map by_address; /* slot's number + 1 */
	struct jit_slot *slots;
	size_t n_slots, cap_slots;
	struct jit_slot *unknown; /* copies of those whose frames have no name */
	size_t n_unknown, cap_unknown;
	uint64_t unknown_ever; /* how many there have been */
	uint64_t named_ever;   /* and how many got one */
	struct jit_asking asking;
	uint32_t attached; /* runtimes, when it was decided which frames are loops */
	uint32_t resolved; /* version of the maps when the unknown ones were looked up */
	bool told;	   /* that its names come from a map */
};

struct jit_frames {
	struct jit_frames_opts opts;
	struct jit_labels labels;
	struct jit_frames_stats stats;
	struct code_maps_counts counts; /* of processes that have ended */
};

/* Tells the user. */
void jit__tell(const struct jit_frames *jit, struct process *process, int runtime,
	       const char *source, const char *reason);

/* Hash of what a map calls code; never 0. */
uint32_t jit__hash(const char *name);

/* Names the slot's frame, which was recorded as `frame`, by the slot's place. Returns 1, 0 if it
 * has no name there, or a negative errno. */
int jit__name_slot(struct jit_frames *jit, struct process *process, struct jit_slot *slot,
		   const struct recording_frame *frame, struct err *err);

/* Under a name that says where it is, if no runtime has one for all of its code. -ENOMEM. */
int jit__name_by_place(struct jit_frames *jit, const struct mapped *mapped,
		       const struct runtime *compiler, const struct jit_slot *slot);

/* A naming_code_fn; `ctx` is a struct jit_frames. What a process's maps tell of code in an image:
 * it does not change. */
bool jit__name_image_code(void *ctx, uint32_t pid, uint64_t address, struct recording_location *ret,
			  char buf[NAMING_TEXT_BYTES]);

#endif
