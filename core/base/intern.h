/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INTERN_H
#define BRAID_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A map from pairs of numbers to ids, for the look-ups that each frame of each sample needs: open
 * addressing, one cache line for most hits. */
struct intern {
	struct intern_slot *slots;
	size_t cap, n; /* cap is a power of two */
	size_t max;    /* pairs; at that number the map drops all pairs and starts anew */
};

/* @max is at least 1. Memory grows with use: at most 64 bytes for each of @max pairs. */
void intern__init(struct intern *intern, size_t max);
void intern__done(struct intern *intern);

/* Drops all pairs except those for which @keeps returns true. On -ENOMEM the map is unchanged. */
int intern__keep(struct intern *intern, bool (*keeps)(const void *ctx, uint32_t id),
		 const void *ctx);

/* Returns the pair's id; 0: the map does not have the pair. */
uint32_t intern__get(const struct intern *intern, uint64_t a, uint64_t b);

/* Returns the place of the pair's id, borrowed until the next call. An id of 0 means that the pair
 * is new: the caller must store another id. NULL: out of memory. */
uint32_t *intern__at(struct intern *intern, uint64_t a, uint64_t b);

#endif
