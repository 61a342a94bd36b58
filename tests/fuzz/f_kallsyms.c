// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "core/elf/kallsyms.h"
#include "tests/fuzz/fuzz.h"

#define KERNEL 0xffffffff81000000

/* Parses /proc/kallsyms of a kernel that may format it differently. */
bool target__run(const uint8_t *data, size_t size)
{
	struct kallsyms *kallsyms = NULL;
	const char *name, *module = NULL;
	bool found = false;

	if (kallsyms__load(fuzz__file(data, size), &kallsyms, NULL) != 0)
		return false;
	for (uint64_t address = KERNEL; address < KERNEL + 0x200; address += 8) {
		name = kallsyms__find(kallsyms, address, &module);
		found |= name && name[0] && module && strlen(module) == 4;
	}
	for (uint64_t address = UINT64_MAX; address; address >>= 4)
		kallsyms__find(kallsyms, address, NULL);
	kallsyms__free(kallsyms);
	return found;
}

void target__seeds(void)
{
	fuzz__seed_text("0000000000000000 A percpu_start\n"
			"ffffffff81000000 t local_alias\n"
			"ffffffff81000000 T _stext\n"
			"ffffffff81000040 W weak_one\n"
			"not a symbol line\n"
			"ffffffff81000100 D data_one\n"
			"ffffffff81000180 t in_module\t[ext4]\n");
}
