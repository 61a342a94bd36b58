// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_asyncio.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/elf/elf_file.h"
#include "core/target/procfs.h"

#define SECTION ".AsyncioDebug"

static int read_section(const struct elf_file *file, struct python_asyncio *ret)
{
	Elf_Data *data = elf_file__section(file, SECTION, NULL);

	if (!data || data->d_size < sizeof(*ret))
		return -ENOENT;
	memcpy(ret, data->d_buf, sizeof(*ret));
	return 0;
}

/* A library of its own, or built into the interpreter. */
static bool may_have_it(const char *path)
{
	const char *base = strrchr(path, '/');

	return base && (strncmp(base, "/_asyncio.", 10) == 0 || strstr(base, "python"));
}

int python_asyncio__find(uint32_t pid, struct python_asyncio *ret)
{
	struct procfs_mappings mappings = {};
	struct elf_file *file;
	int code = -ENOENT;

	if (procfs__mappings(pid, &mappings))
		return -ENOENT;
	for (size_t i = 0; code && i < mappings.n; i++) {
		const struct procfs_mapping *mapping = &mappings.list[i];

		if (!may_have_it(mapping->path) ||
		    elf_file__open(procfs__open_mapping(pid, mapping), mapping->path, &file, NULL))
			continue;
		code = read_section(file, ret);
		elf_file__free(file);
	}
	procfs_mappings__done(&mappings);
	return code ? -ENOENT : 0;
}
