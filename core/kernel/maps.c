// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "bpf/host/host.h"

#define HOST_FIRST 0x40000000 /* above every file descriptor */

int maps__of_host(const char *name)
{
	const struct host_map *map = host_map__named(name);

	return map ? HOST_FIRST + (int)(map - host.maps) : -ENOENT;
}

bool maps__is_host(int map)
{
	return map >= HOST_FIRST;
}

/* Returns the host's map number @map; NULL: there is none. */
static const struct host_map *host_map(int map)
{
	size_t i = map - HOST_FIRST;

	return i < host.n_maps ? &host.maps[i] : NULL;
}

int map__update(int map, const void *key, const void *value)
{
	if (!maps__is_host(map))
		return bpf_map_update_elem(map, key, value, BPF_ANY) ? -errno : 0;
	return host_map(map) ? (int)host_map__update(host_map(map)->map, key, value) : -EBADF;
}

int map__lookup(int map, const void *key, void *ret_value)
{
	const void *found;

	if (!maps__is_host(map))
		return bpf_map_lookup_elem(map, key, ret_value) ? -errno : 0;
	found = host_map(map) ? host_map__lookup(host_map(map)->map, key) : NULL;
	if (!found) {
		errno = ENOENT; /* as libbpf does */
		return -ENOENT;
	}
	memcpy(ret_value, found, host_map(map)->value_size);
	return 0;
}

int map__delete(int map, const void *key)
{
	if (!maps__is_host(map))
		return bpf_map_delete_elem(map, key) ? -errno : 0;
	return host_map(map) ? (int)host_map__delete(host_map(map)->map, key) : -EBADF;
}

int map__next_key(int map, const void *key, void *ret_key)
{
	if (maps__is_host(map))
		return -EBADF;
	return bpf_map_get_next_key(map, key, ret_key) ? -errno : 0;
}
