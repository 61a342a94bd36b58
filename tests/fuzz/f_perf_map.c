// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/target/perf_map.h"
#include "tests/fuzz/fuzz.h"

/* Reads a perf map that grows once meanwhile. The first byte is the part that exists at first, in
 * 1/256. Then looks up each entry at its start and its end. */
bool target__run(const uint8_t *data, size_t size)
{
	struct jit_file file = { .fd = memfd_create("fuzz", MFD_CLOEXEC) };
	struct perf_map_counts counts = {};
	struct jit_index index = {};
	struct jit_entry entry;
	char name[64];
	size_t half;

	if (file.fd < 0 || !size)
		goto out;
	half = data[0] * size / 256;
	if (write(file.fd, data, half) != (ssize_t)half)
		goto out;
	perf_map__read(&file, 512, 0, &index, &counts);
	if (write(file.fd, data + half, size - half) != (ssize_t)(size - half))
		goto out;
	if (jit_file__look(&file) == JIT_FILE_REWRITTEN)
		abort(); /* it only grew */
	perf_map__read(&file, UINT64_MAX, 1, &index, &counts);
	if (index.n != counts.symbols)
		abort();
	for (size_t i = 0; i < index.n; i++) {
		uint64_t start = index.entries[i].start;
		uint64_t last = start + index.entries[i].size - 1;

		/* An entry exists here, even if another one covers it now. */
		if (!jit_index__find(&index, start, 1, &entry) ||
		    !perf_map__name(&file, &entry, name, sizeof(name)) ||
		    !jit_index__find(&index, last, 0, &entry))
			abort();
	}
out:
	jit_index__done(&index);
	jit_file__close(&file);
	return counts.symbols > 0;
}

void target__seeds(void)
{
	fuzz__seed_text("1000 10 one\n0x1008 0x10 two words\n2000 0 none\n2000 fff a\n2000 1 b\n");
}
