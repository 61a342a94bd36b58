// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/half.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "core/base/util.h"
#include "core/kernel/kernel_half.h"

/* File descriptors of the maps that are the host's; inner maps have real ones, of memory files. */
#define FD_FIRST 0x40000000

#define INNER_MAX (CHUNKS_MAX + 64)

static struct inner {
	void *memory;
	size_t size;
	bool arena; /* a chunk of the table arena */
} inners[INNER_MAX];
static size_t n_inners;

#define ARENA "chunks"

void half__open(void)
{
	host_programs__open();
}

static void unmap_inners(bool arena)
{
	size_t n = 0;

	for (size_t i = 0; i < n_inners; i++) {
		if (inners[i].arena && !arena)
			inners[n++] = inners[i];
		else
			munmap(inners[i].memory, inners[i].size);
	}
	n_inners = n;
}

void half__reset(void)
{
	for (size_t i = 0; i < host.n_maps; i++)
		if (strcmp(host.maps[i].name, ARENA) != 0)
			host_map__reset(host.maps[i].map);
	unmap_inners(false);
}

void half__close(void)
{
	host__done();
	unmap_inners(true);
}

/* NULL: no map of the host's. */
static const struct host_map *map_of(int fd)
{
	return fd >= FD_FIRST && (size_t)(fd - FD_FIRST) < host.n_maps ? &host.maps[fd - FD_FIRST]
								       : NULL;
}

static int map_fd(const char *name)
{
	const struct host_map *map = host_map__named(name);

	return map ? FD_FIRST + (int)(map - host.maps) : -ENOENT;
}

/* --- libbpf --- */

int bpf_map_create(enum bpf_map_type map_type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	(void)map_type, (void)key_size, (void)opts;
	if (fd >= 0 && ftruncate(fd, (off_t)value_size * max_entries))
		close_fd(&fd);
	return fd;
}

/* The memory of an inner map, as the host sees it. */
static void *share(int fd, const struct host_map *map)
{
	struct inner *inner = &inners[n_inners];
	struct stat st;

	if (n_inners == INNER_MAX || fstat(fd, &st))
		return NULL;
	inner->size = st.st_size;
	inner->memory = mmap(NULL, inner->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (inner->memory == MAP_FAILED)
		return NULL;
	inner->arena = !strcmp(map->name, ARENA);
	n_inners++;
	return inner->memory;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const struct host_map *map = map_of(fd);

	(void)flags;
	if (map && !map->value_size)
		value = share(*(const int *)value, map);
	errno = map && value ? -host_map__update(map->map, key, value) : EBADF;
	return errno ? -errno : 0;
}

int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
			 const struct bpf_map_batch_opts *opts)
{
	(void)fd, (void)keys, (void)values, (void)count, (void)opts;
	return -ENOTSUP; /* then one by one */
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const struct host_map *map = map_of(fd);
	const void *found = map ? host_map__lookup(map->map, key) : NULL;

	errno = found ? 0 : ENOENT;
	if (found)
		memcpy(value, found, map->value_size);
	return found ? 0 : -ENOENT;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	const struct host_map *map = map_of(fd);

	return map ? host_map__delete(map->map, key) : -EBADF;
}

/* --- core/kernel/kernel_half.h --- */

int kernel_half__map_fd(const struct kernel_half *half, const char *name)
{
	(void)half;
	return map_fd(name);
}

void kernel_half__set_plain(struct kernel_half *kernel_half, uint32_t image, bool plain)
{
	(void)kernel_half, (void)image, (void)plain;
}

void kernel_half__end_probes(struct kernel_half *half)
{
	(void)half;
}

int kernel_half__load_runtime(struct kernel_half *half, int i, struct err *err)
{
	(void)half, (void)i, (void)err;
	return 0;
}

int kernel_half__load_probes(struct kernel_half *half, struct err *err)
{
	(void)half;
	return err__set(err, -ENOTSUP, "there are no probes in a replay");
}
