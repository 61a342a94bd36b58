/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COMPILED_CODE_H
#define BRAID_COMPILED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/target/code_maps.h"
#include "core/target/process.h"

/* The code that a process makes while it runs: which of its runtimes report it, when their files
 * (core/target/code_maps.h) are read, and whether an address still has the code that it had. */

/* Does runtime number `i` know names of the process's code, if there is a map? */
bool compiled_code__has_names_of(const struct process *process, int i);

/* Can the memory of `mapped` have code of the runtime's compiler? NULL cannot. */
bool compiled_code__may_be_of(const struct runtime *runtime, const struct mapped *mapped);

/* The attached runtime, by number, whose compiler has its code in the memory of `mapped`; -1: no
 * one. NULL is fine. */
int compiled_code__compiler(const struct process *process, const struct mapped *mapped);

/* Is it memory that holds what the process has made itself, and no file? Not where nothing is known
 * to be mapped (NULL): that is a file which was not read in time, mostly. */
bool compiled_code__is_made(const struct mapped *mapped);

/* Reads what the process has reported since, if any runtime wants to know. -ENOMEM. */
int compiled_code__read(struct process *process, enum code_look how);

/* Reads what the process had reported until `time_ns`, if that was not done yet. As long as the
 * number is the same, an address has the same code. 0 for a process without maps. -ENOMEM. */
int compiled_code__version(struct process *process, uint64_t time_ns, uint32_t *ret_version);

/* The code that an address had from some time on. */
struct code_life {
	uint64_t first_ns;	  /* the first sample of it */
	struct code_place in_map; /* entry.text 0: in no map so far */
	uint32_t version;	  /* of the maps when that was looked up; 0: not yet */
	uint32_t name_hash;	  /* of what the map calls it; 0: not known */
};

/* The code at `address`, which is met for the first time at `time_ns`. -ENOMEM. */
int compiled_code__meet(struct process *process, uint64_t address, uint64_t time_ns,
			struct code_life *ret);

/* Has `address` other code at `time_ns` than `life`? Then `ret` is that. What was not known may
 * have become known, which is no change; and that a map does not have some code any more proves
 * nothing: it may be half written. Returns 1, 0, or -ENOMEM. */
int compiled_code__follow(struct process *process, uint64_t address, uint64_t time_ns,
			  struct code_life *life, struct code_life *ret);

/* What a map calls that code, and the line of `address`. */
bool compiled_code__symbol(struct process *process, uint64_t address, struct code_life *life,
			   struct code_symbol *ret);

/* The same for code of an image, which does not change: for what was compiled in advance. */
bool compiled_code__image_symbol(struct process *process, uint64_t address,
				 struct code_symbol *ret);

/* Adds what was read of the process's files so far. */
void compiled_code__count(const struct process *process, struct code_maps_counts *add_to);

/* Why a file that is there was not read, since the last call; false: nothing to say. */
bool compiled_code__refusal(struct process *process, struct err *ret);

void compiled_code__free(struct compiled_code *code); /* NULL is fine */

#endif
