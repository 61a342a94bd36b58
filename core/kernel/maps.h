/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MAPS_H
#define BRAID_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Maps of the kernel half, wherever that runs: in the kernel, or built for this process
 * (bpf/host), where no privilege is needed. A map is a number: a file descriptor, or one of those
 * that stand for the host's maps. Each returns 0 or a negative errno. */

/* -ENOENT: the host has no map of that name. */
int maps__of_host(const char *name);
bool maps__is_host(int map);

int map__update(int map, const void *key, const void *value);
int map__lookup(int map, const void *key, void *ret_value);
int map__delete(int map, const void *key);

/* Sets *ret_key to the key behind @key; NULL: the first. -ENOENT: there is none. Not of the host's
 * maps: -EBADF. Keys that are deleted meanwhile may have the keys begin again. */
int map__next_key(int map, const void *key, void *ret_key);

#endif
