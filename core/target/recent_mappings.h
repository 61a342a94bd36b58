/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECENT_MAPPINGS_H
#define BRAID_RECENT_MAPPINGS_H

#include "core/target/procfs.h"

/* The last mappings of code that the kernel told of, of all processes: what is still known of the
 * files of one that ended before anybody read its /proc/PID/maps. */
struct recent_mappings;

#define RECENT_MAPPINGS_MAX 2048

struct recent_mappings *recent_mappings__new(void);	    /* NULL: out of memory */
void recent_mappings__free(struct recent_mappings *recent); /* NULL is fine */

/* Copies it; the oldest one gives way. Without memory it is as if there had been none. @time_ns is
 * CLOCK_MONOTONIC. */
void recent_mappings__add(struct recent_mappings *recent, uint32_t pid, uint64_t time_ns,
			  const struct procfs_mapping *mapping);

/* Those of that process, the last one first; borrowed until the next is added. `at`: 0, and then
 * what it was set to. NULL: there are no more. A PID is used again, and by whom is not told. */
const struct procfs_mapping *recent_mappings__next(const struct recent_mappings *recent,
						   uint32_t pid, size_t *at);

/* The time of the one that recent_mappings__next() has just returned. */
uint64_t recent_mappings__time(const struct recent_mappings *recent, size_t at);

#endif
