// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>

#include "core/target/procfs.h"
#include "tests/fuzz/fuzz.h"

/* Parses /proc/PID/maps, whose paths the process chooses. */
bool target__run(const uint8_t *data, size_t size)
{
	struct procfs_mappings mappings = {};
	bool file = false, jit = false, vdso = false;
	FILE *maps;

	if (!size)
		return false;
	maps = fmemopen((void *)data, size, "r");
	if (!maps)
		fuzz__die("fmemopen fails");
	procfs__parse_mappings(maps, &mappings);
	fclose(maps);
	for (size_t i = 0; i < mappings.n; i++) {
		const struct procfs_mapping *mapping = &mappings.list[i];

		if (mapping->start >= mapping->end || !mapping->path ||
		    (i && mapping->start < mapping[-1].end))
			abort();
		file |= mapping->path[0] == '/';
		jit |= mapping->anonymous && !mapping->vdso;
		vdso |= mapping->vdso;
	}
	procfs_mappings__done(&mappings);
	return file && jit && vdso;
}

void target__seeds(void)
{
	fuzz__seed_text(
		"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/one two\n"
		"00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/one two\n"
		"00a00000-00a10000 r-xp 00000000 08:02 173522      /tmp/gone\\012 (deleted)\n"
		"35b1800000-35b1820000 rwxp 00000000 00:00 0 \n"
		"35b1820000-35b1900000 ---p 00000000 00:00 0 \n"
		"7ffe00000000-7ffe00001000 r-xp 00000000 00:00 0                  [vdso]\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]\n");
}
