/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INNER_MAPS_H
#define BRAID_INNER_MAPS_H

#include <stddef.h>
#include <stdint.h>

/* Maps of one value that stand in an array of maps and are written through memory. Adding them
 * waits for an RCU grace period (10 to 20 ms), once for all that are added together. */

/* A map of `bytes`, mapped at `ret_memory` (the caller's to munmap), not in an array yet; `ret_fd`
 * is the caller's to close. -errno of creating or mapping it. */
int inner_map__create(const char *name, size_t bytes, void **ret_memory, int *ret_fd);

/* Puts maps `fds` at `places` of array `array_fd`, `n` of each. -errno of the kernel. */
int inner_maps__add(int array_fd, const uint32_t *places, const int *fds, uint32_t n);

#endif
