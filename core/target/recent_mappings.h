/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECENT_MAPPINGS_H
#define BRAID_RECENT_MAPPINGS_H

#include "core/target/procfs.h"

/* The last mappings of code that the kernel reported, of all processes. They identify the files of
 * a process that ended before its /proc/PID/maps was read. */
struct recent_mappings;

#define RECENT_MAPPINGS_MAX 2048

struct recent_mappings *recent_mappings__new(void);	    /* NULL: out of memory */
void recent_mappings__free(struct recent_mappings *recent); /* NULL is fine */

/* Copies the mapping and evicts the oldest one. Without memory the mapping is dropped. @time_ns is
 * CLOCK_MONOTONIC. */
void recent_mappings__add(struct recent_mappings *recent, uint32_t pid, uint64_t time_ns,
			  const struct procfs_mapping *mapping);

/* Returns the next mapping of process @pid, the newest first, or NULL. *@at must be 0 at the first
 * call. Borrowed until the next mapping is added. A PID may have been reused, and the mappings of
 * both processes are returned. */
const struct procfs_mapping *recent_mappings__next(const struct recent_mappings *recent,
						   uint32_t pid, size_t *at);

/* Returns the time of the mapping that recent_mappings__next() has just returned. */
uint64_t recent_mappings__time(const struct recent_mappings *recent, size_t at);

#endif
