// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/inner_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int inner_map__create(const char *name, size_t bytes, void **ret_memory, int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), bytes, 1, &opts);
	void *memory;
	int ret;

	if (fd < 0)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		ret = -errno;
		close(fd);
		return ret;
	}
	*ret_memory = memory;
	*ret_fd = fd;
	return 0;
}

/* All in one call waits once; kernels that cannot do that take them one by one. */
int inner_maps__add(int array_fd, const uint32_t *places, const int *fds, uint32_t n)
{
	uint32_t done = n, i;

	if (!bpf_map_update_batch(array_fd, places, fds, &done, NULL))
		return 0;
	for (i = 0; i < n; i++)
		if (bpf_map_update_elem(array_fd, &places[i], &fds[i], BPF_ANY))
			return -errno;
	return 0;
}
