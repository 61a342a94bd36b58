/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INNER_MAPS_H
#define BRAID_INNER_MAPS_H

#include <stddef.h>
#include <stdint.h>

/* Maps of one value that are elements of an array of maps, and that braid writes through memory.
 * Adding maps waits for an RCU grace period (10 to 20 ms), once for all maps of a call. `array` is
 * as in core/kernel/maps.h: if it is the host's, so are the inner maps. */

struct inner_map {
	void *memory; /* mapped; the caller must munmap() it */
	int fd;	      /* the caller must close it; -1: a host's map */
};

/* Creates a map of @bytes, not in the array yet. Returns 0, or -errno of creating or mapping it. */
int inner_map__create(int array, const char *name, size_t bytes, struct inner_map *ret);

/* Puts @n maps at @places of the array. Returns 0 or the kernel's -errno. */
int inner_maps__add(int array, const uint32_t *places, const struct inner_map *inners, uint32_t n);

#endif
