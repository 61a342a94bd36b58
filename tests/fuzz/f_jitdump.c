// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/mman.h>
#include <unistd.h>

#include "core/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A jitdump file that grows once while it is read; the last byte says where. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_file file = { .fd = memfd_create("fuzz", MFD_CLOEXEC) };
	struct code_index index = {};
	struct jitdump dump = {};
	struct code_entry entry;
	char name[64], path[64];
	uint32_t line;
	size_t half;

	if (file.fd < 0 || !size)
		goto out;
	half = data[size - 1] * size / 256;
	if (write(file.fd, data, half) != (ssize_t)half)
		goto out;
	jitdump__read(&dump, &file, UINT64_MAX, 0, 1 << 20, &index);
	if (write(file.fd, data + half, size - half) != (ssize_t)(size - half))
		goto out;
	code_file__look(&file);
	jitdump__read(&dump, &file, UINT64_MAX, 1, 1 << 20, &index);
	for (size_t i = 0; i < index.n && i < 64; i++) {
		uint64_t address = index.entries[i].start + index.entries[i].size / 2;

		for (uint32_t skew = 0; skew <= 0x40; skew += 0x40) {
			if (!code_index__find(&index, address, 1 << skew / 4, &entry))
				continue;
			jitdump__name(&file, &entry, name, sizeof(name));
			jitdump__line(&file, &entry, address, skew, path, sizeof(path), &line);
		}
	}
out:
	code_index__done(&index);
	code_file__close(&file);
	return 0;
}
