// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/inner_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/maps.h"

#define INNERS_MAX 1024 /* maximum number of chunks */

int inner_map__create(int array, const char *name, size_t bytes, struct inner_map *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	bool host = maps__is_host(array);
	int fd = host ? -1
		      : bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), bytes, 1, &opts);
	void *memory;
	int code;

	if (fd < 0 && !host)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      host ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		code = -errno;
		close_fd(&fd);
		return code;
	}
	*ret = (struct inner_map) { memory, fd };
	return 0;
}

/* Adds all maps in one call, which waits once. Older kernels require one call per map. */
int inner_maps__add(int array, const uint32_t *places, const struct inner_map *inners, uint32_t n)
{
	int fds[INNERS_MAX], code = 0;
	uint32_t done = n, i;

	if (n > INNERS_MAX)
		return -E2BIG;
	for (i = 0; i < n; i++)
		fds[i] = inners[i].fd;
	if (!maps__is_host(array) && !bpf_map_update_batch(array, places, fds, &done, NULL))
		return 0;
	for (i = 0; !code && i < n; i++)
		code = map__update(array, &places[i],
				   maps__is_host(array) ? inners[i].memory : (void *)&fds[i]);
	return code;
}
