// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/code_object_numbers.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernel/maps.h"

/* At least the number of elements in a bucket of the kernel's hash; otherwise the kernel returns
 * -ENOSPC (kernel/bpf/hashtab.c, as of Linux 6.1). */
#define BATCH 1024

static int read_batches(int fd, const struct bpf_map_info *info, void *keys, void *values,
			struct u64map *ret)
{
	uint64_t at[8], next[8]; /* position: 32 bits for a hash, at most a key for others */
	void *from = NULL;
	uint32_t n;
	int rc = 0;

	do {
		n = BATCH;
		rc = bpf_map_lookup_batch(fd, from, next, keys, values, &n, NULL);
		if (rc && rc != -ENOENT) /* ENOENT comes with the last batch */
			return rc == -ENOMEM ? rc : -ENOTSUP;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t number = *(const uint32_t *)((const char *)values +
							      (size_t)i * info->value_size);

			if (u64map__put(ret, number, 1))
				return -ENOMEM;
		}
		memcpy(at, next, sizeof(at));
		from = at;
	} while (!rc);
	return 0;
}

int code_object_numbers__read(int map, struct u64map *ret)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	void *keys, *values;
	int rc;

	*ret = (struct u64map) {};
	if (map < 0 || maps__is_host(map) || bpf_obj_get_info_by_fd(map, &info, &size) ||
	    info.value_size < sizeof(uint32_t))
		return -ENOTSUP;
	keys = calloc(BATCH, info.key_size);
	values = calloc(BATCH, info.value_size);
	rc = keys && values ? read_batches(map, &info, keys, values, ret) : -ENOMEM;
	free(keys);
	free(values);
	return rc;
}
