// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/target_maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

static int take(struct target_maps *maps, const char *line, const char *root, FILE *out)
{
	struct target_mapping mapping = {};
	unsigned long inode = 1;
	char perms[8], dev[16];
	size_t skip = strlen(root);

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %15s %lu %4095[^\n]",
		   &mapping.start, &mapping.end, perms, &mapping.offset, dev, &inode,
		   mapping.path) < 6)
		return 0;
	if (skip && !strncmp(mapping.path, root, skip))
		memmove(mapping.path, mapping.path + skip, strlen(mapping.path + skip) + 1);
	if (!strcmp(mapping.path, "[vdso]")) {
		snprintf(mapping.path, sizeof(mapping.path), VDSO_PATH);
		inode = 1;
	}
	fprintf(out, "%" PRIx64 "-%" PRIx64 " %s %08" PRIx64 " %s %lu %s\n", mapping.start,
		mapping.end, perms, mapping.offset, dev, inode, mapping.path);
	if (array__reserve(&maps->list, &maps->cap, maps->n + 1, sizeof(*maps->list)))
		return -ENOMEM;
	maps->list[maps->n++] = mapping;
	return 0;
}

int target_maps__read(struct target_maps *maps, pid_t pid, const char *root, char **ret_text)
{
	char path[64], *line = NULL;
	size_t cap = 0, size = 0;
	FILE *in, *out;
	int code = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	out = open_memstream(ret_text, &size);
	maps->n = 0;
	while (!code && getline(&line, &cap, in) > 0)
		code = take(maps, line, root, out);
	fclose(out);
	fclose(in);
	free(line);
	return code;
}

void target_maps__done(struct target_maps *maps)
{
	free(maps->list);
	*maps = (struct target_maps) {};
}

const struct target_mapping *target_maps__find(const struct target_maps *maps, uint64_t address)
{
	for (size_t i = 0; i < maps->n; i++)
		if (address >= maps->list[i].start && address < maps->list[i].end)
			return &maps->list[i];
	return NULL;
}
