// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/mman.h>
#include <unistd.h>

#include "core/target/jitdump.h"
#include "tests/fuzz/fuzz.h"

#define CODE  0x1000
#define MOVED 0x3000

/* Reads a jitdump file that grows once meanwhile. The last byte is the part that exists at first,
 * in 1/256. */
bool target__run(const uint8_t *data, size_t size)
{
	struct jit_file file = { .fd = memfd_create("fuzz", MFD_CLOEXEC) };
	struct jit_index index = {};
	struct jitdump dump = {};
	struct jit_entry entry;
	bool named = false, moved = false;
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
	jit_file__look(&file);
	jitdump__read(&dump, &file, UINT64_MAX, 1, 1 << 20, &index);
	for (size_t i = 0; i < index.n && i < 64; i++) {
		uint64_t address = index.entries[i].start + index.entries[i].size / 2;

		for (uint32_t skew = 0; skew <= 0x40; skew += 0x40) {
			if (!jit_index__find(&index, address, 1 << skew / 4, &entry))
				continue;
			if (!jitdump__name(&file, &entry, name, sizeof(name)) ||
			    !jitdump__line(&file, &entry, address, skew, path, sizeof(path), &line))
				continue;
			named |= address < MOVED && name[0] && line;
			moved |= address >= MOVED && name[0] && line;
		}
	}
out:
	jit_index__done(&index);
	jit_file__close(&file);
	return named && moved;
}

/* The records of the format's specification, written here independently of the parser. */
struct __attribute__((packed)) seed {
	struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} header;
	struct __attribute__((packed)) {
		uint32_t id, size;
		uint64_t time, address, n;
		struct __attribute__((packed)) {
			uint64_t address;
			uint32_t line, discriminator;
			char file[5];
		} first;
		struct __attribute__((packed)) {
			uint64_t address;
			uint32_t line, discriminator;
			char file[2];
		} second;
	} lines;
	struct __attribute__((packed)) {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, address, code_size, index;
		char name[5];
		uint8_t code[16];
	} load;
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, before, address, code_size, index;
	} move;
	struct {
		uint32_t id, size;
		uint64_t time;
	} close;
	uint8_t half; /* for the target: the part that exists at first */
};

void target__seeds(void)
{
	struct seed seed = {
		.header = { 0x4a695444, 1, sizeof(seed.header), 62, 0, 1, 1, 0 },
		.lines = { 2,
			   sizeof(seed.lines),
			   90,
			   CODE,
			   2,
			   { CODE, 7, 0, "a.js" },
			   { CODE + 8, 9, 0, "\xff" } },
		.load = { 0, sizeof(seed.load), 100, 1, 1, CODE, CODE, 16, 1, "leaf", { 0 } },
		.move = { 1, sizeof(seed.move), 200, 1, 1, MOVED, CODE, MOVED, 16, 1 },
		.close = { 3, sizeof(seed.close), 300 },
		.half = 128,
	};

	fuzz__seed(&seed, sizeof(seed));
}
