// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads the numbers of a hash, which the kernel may have filled to any degree. Needs root. */
#include "core/kernel/code_object_numbers.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "tests/tap.h"

struct value {
	uint32_t code;
	uint32_t rest[15];
};

static void check(const char *title, enum bpf_map_type type, uint32_t n)
{
	int fd = bpf_map_create(type, "numbers", 16, sizeof(struct value), CODE_OBJECTS_CACHED,
				NULL);
	struct u64map listed;
	uint32_t there = 0, right = 0;
	uint64_t key[2] = {};

	for (uint32_t i = 1; i <= n; i++) {
		struct value value = { .code = 7 * i };

		key[0] = (uint64_t)i << 12;
		bpf_map_update_elem(fd, key, &value, BPF_ANY);
	}
	is_int(code_object_numbers__read(fd, &listed), 0, "%s", title);
	for (uint32_t i = 1; i <= n; i++) {
		struct value value;

		key[0] = (uint64_t)i << 12;
		if (bpf_map_lookup_elem(fd, key, &value))
			continue; /* the hash had no room for it */
		there++;
		right += u64map__get(&listed, 7 * i) != 0;
	}
	ok(there == listed.n && right == there, "... %u numbers, all that are there", there);
	ok(n > CODE_OBJECTS_CACHED ? there > CODE_OBJECTS_CACHED / 2 : there == n, "... of %u", n);
	u64map__done(&listed);
	close(fd);
}

int main(void)
{
	struct u64map listed;

	is_int(code_object_numbers__read(-ENOENT, &listed), -ENOTSUP, "no map");
	check("empty", BPF_MAP_TYPE_LRU_HASH, 0);
	check("one", BPF_MAP_TYPE_LRU_HASH, 1);
	check("half full", BPF_MAP_TYPE_LRU_HASH, CODE_OBJECTS_CACHED / 2);
	check("full", BPF_MAP_TYPE_LRU_HASH, 2 * CODE_OBJECTS_CACHED);
	check("a hash that forgets nothing", BPF_MAP_TYPE_HASH, CODE_OBJECTS_CACHED / 2);
	return tap__done();
}
