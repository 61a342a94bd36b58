/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INNER_MAPS_H
#define BRAID_INNER_MAPS_H

#include <stddef.h>
#include <stdint.h>

/* Maps of one value that stand in an array of maps and are written through memory. Adding them
 * waits for an RCU grace period (10 to 20 ms), once for all that are added together. `array` as in
 * core/kernel/maps.h: where that is the host's, so are they. */

struct inner_map {
	void *memory; /* mapped; the caller's to munmap */
	int fd;	      /* the caller's to close; -1: the host's have none */
};

/* A map of `bytes`, not in the array yet. -errno of creating or mapping it. */
int inner_map__create(int array, const char *name, size_t bytes, struct inner_map *ret);

/* Puts `n` of them at `places` of the array. -errno of the kernel. */
int inner_maps__add(int array, const uint32_t *places, const struct inner_map *inners, uint32_t n);

#endif
