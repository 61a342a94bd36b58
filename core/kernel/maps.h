/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MAPS_H
#define BRAID_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Maps of the kernel half, which runs either in the kernel, or in this process (bpf/host), where no
 * privilege is needed. A map is a number: a file descriptor, or a number that stands for a map of
 * the host. All functions return 0 or a negative errno. */

/* Returns the number of the host's map, or -ENOENT. */
int maps__of_host(const char *name);
bool maps__is_host(int map);

int map__update(int map, const void *key, const void *value);
int map__lookup(int map, const void *key, void *ret_value);
int map__delete(int map, const void *key);

/* Sets *@ret_key to the key after @key; NULL: the first key. Returns -ENOENT if there is none, or
 * -EBADF for the host's maps. If keys are deleted meanwhile, the iteration may restart. */
int map__next_key(int map, const void *key, void *ret_key);

#endif
