/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COMPILED_CODE_H
#define BRAID_COMPILED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/target/jit_maps.h"
#include "core/target/process.h"

/* The code that a process generates while it runs: the runtimes that report it, when their files
 * (core/target/jit_maps.h) are read, and whether an address still has the same code. */

/* Returns true if runtime @i has names of the process's code, provided that there is a map. */
bool compiled_code__has_names_of(const struct process *process, int i);

/* Returns true if the memory of @mapped may have code of the runtime's compiler. False for NULL. */
bool compiled_code__may_be_of(const struct runtime *runtime, const struct mapped *mapped);

/* Returns the number of the attached runtime whose compiler has its code in the memory of @mapped,
 * or -1. @mapped may be NULL. */
int compiled_code__compiler(const struct process *process, const struct mapped *mapped);

/* Returns true for memory with contents that the process generated, without a file. False for NULL:
 * an unrecorded mapping is mostly a file that was not read in time. */
bool compiled_code__is_generated(const struct mapped *mapped);

/* Reads new reports of the process, if any runtime uses them. Returns 0 or -ENOMEM. */
int compiled_code__read(struct process *process, enum jit_look how);

/* Reads all that the process reported until @time_ns, unless already done. While *@ret_version is
 * unchanged, an address has the same code. *@ret_version is 0 for a process without maps. Returns 0
 * or -ENOMEM. */
int compiled_code__version(struct process *process, uint64_t time_ns, uint32_t *ret_version);

/* The code that an address had from some time on. */
struct jit_life {
	uint64_t first_ns;	 /* time of its first sample */
	struct jit_place in_map; /* entry.text 0: in no map so far */
	uint32_t version;	 /* version of the maps at the last lookup; 0: not looked up yet */
	uint32_t name_hash;	 /* hash of its name in the map; 0: unknown */
};

/* Sets @ret to the code at @address, which is first seen at @time_ns. Returns 0 or -ENOMEM. */
int compiled_code__meet(struct process *process, uint64_t address, uint64_t time_ns,
			struct jit_life *ret);

/* Checks whether @address has other code at @time_ns than @life. Returns 1 with the new code in
 * @ret, 0, or -ENOMEM. Code that a map newly names is not a change. A missing entry proves nothing
 * either: the map may be half written. */
int compiled_code__follow(struct process *process, uint64_t address, uint64_t time_ns,
			  struct jit_life *life, struct jit_life *ret);

/* Finds the code's name in a map, and the line of @address. */
bool compiled_code__symbol(struct process *process, uint64_t address, struct jit_life *life,
			   struct jit_symbol *ret);

/* As compiled_code__symbol(), for code of an image, which does not change: for code that was
 * compiled in advance. */
bool compiled_code__image_symbol(struct process *process, uint64_t address, struct jit_symbol *ret);

/* Adds the entries that were read so far from the process's files. */
void compiled_code__count(const struct process *process, struct jit_maps_counts *add_to);

/* Returns true, with the message in @ret, if an existing file was refused since the last call. */
bool compiled_code__refusal(struct process *process, struct err *ret);

void compiled_code__free(struct compiled_code *code); /* NULL is fine */

#endif
