// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/recent_mappings.h"

#include <string.h>

#include "tests/tap.h"

static void add(struct recent_mappings *recent, uint32_t pid, uint64_t start, char *path)
{
	recent_mappings__add(recent, pid, start + 1,
			     &(struct procfs_mapping) { .start = start, .path = path });
}

int main(void)
{
	struct recent_mappings *recent = recent_mappings__new();
	const struct procfs_mapping *found;
	char path[] = "/first";
	size_t at = 0;

	ok(!recent_mappings__next(recent, 7, &at), "nothing at first");
	add(recent, 7, 1000, path);
	strcpy(path, "/other");
	add(recent, 8, 1000, path);
	add(recent, 7, 2000, path);
	at = 0;
	found = recent_mappings__next(recent, 7, &at);
	ok(found && found->start == 2000 && !strcmp(found->path, "/other"), "the last one first");
	is_int(recent_mappings__time(recent, at), 2001, "its time");
	found = recent_mappings__next(recent, 7, &at);
	ok(found && found->start == 1000 && !strcmp(found->path, "/first"),
	   "then the one before, with a path of its own");
	ok(!recent_mappings__next(recent, 7, &at), "and no more");
	for (int i = 0; i < RECENT_MAPPINGS_MAX - 1; i++)
		add(recent, 9, i, path);
	at = 0;
	found = recent_mappings__next(recent, 7, &at);
	ok(found && found->start == 2000 && !recent_mappings__next(recent, 7, &at),
	   "the oldest ones have given way");
	at = 0;
	found = recent_mappings__next(recent, 9, &at);
	ok(found && found->start == RECENT_MAPPINGS_MAX - 2,
	   "and the last is found behind the end");
	recent_mappings__free(recent);
	return tap__done();
}
