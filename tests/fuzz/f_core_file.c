// SPDX-License-Identifier: GPL-2.0-or-later
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/files/memory_core.h"
#include "tests/fuzz/fuzz.h"

#define BASE 0x10000

/* Reads the memory of a core file at a few addresses: in a segment, at its end, across two of them,
 * and where the core file claims a mapped file. */
bool target__run(const uint8_t *data, size_t size)
{
	static const uint64_t addresses[] = { BASE, BASE + 0xff8, BASE + 0x1ff8, 0,
					      UINT64_MAX - 3 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC), n = 0;
	struct memory *memory;
	char bytes[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
		close(fd);
		return false;
	}
	if (memory__of_core(fd, "fuzz", &memory, NULL))
		return false;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
		n += !memory__read(memory, addresses[i], bytes, sizeof(bytes));
	memory__free(memory);
	return n > 1;
}

void target__seeds(void)
{
	static const char path[] = "/nothing";
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr segments[3];
		Elf64_Nhdr note;
		char name[12]; /* aligns the description after it */
		uint64_t files[5];
		char path[16];
		char memory[0x100];
	} core = {
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_CORE,
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 3 },
		.note = { sizeof(core.name), sizeof(core.files) + sizeof(core.path), NT_FILE },
		.name = "CORE",
		.files = { 1, 4096, BASE + 0x2000, BASE + 0x3000, 0 },
	};

	memcpy(core.path, path, sizeof(path));
	core.segments[0] = (Elf64_Phdr) { .p_type = PT_NOTE,
					  .p_offset = (char *)&core.note - (char *)&core,
					  .p_filesz = core.memory - (char *)&core.note };
	core.segments[1] = (Elf64_Phdr) { .p_type = PT_LOAD,
					  .p_offset = core.memory - (char *)&core,
					  .p_vaddr = BASE,
					  .p_filesz = sizeof(core.memory),
					  .p_memsz = sizeof(core.memory) };
	core.segments[2] = core.segments[1];
	core.segments[2].p_vaddr = BASE + 0xf80;
	fuzz__seed(&core, sizeof(core));
}
