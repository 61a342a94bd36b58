// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/recent_mappings.h"

#include <stdlib.h>
#include <string.h>

struct recent_mappings {
	struct recent {
		uint32_t pid;
		uint64_t time_ns;
		struct procfs_mapping mapping; /* owns its path; NULL: a free entry */
	} list[RECENT_MAPPINGS_MAX];
	size_t next; /* index of the oldest entry */
};

struct recent_mappings *recent_mappings__new(void)
{
	return calloc(1, sizeof(struct recent_mappings));
}

void recent_mappings__free(struct recent_mappings *recent)
{
	for (size_t i = 0; recent && i < RECENT_MAPPINGS_MAX; i++)
		free(recent->list[i].mapping.path);
	free(recent);
}

void recent_mappings__add(struct recent_mappings *recent, uint32_t pid, uint64_t time_ns,
			  const struct procfs_mapping *mapping)
{
	struct recent *to = &recent->list[recent->next];

	free(to->mapping.path);
	to->pid = pid;
	to->time_ns = time_ns;
	to->mapping = *mapping;
	to->mapping.path = strdup(mapping->path);
	recent->next = (recent->next + 1) % RECENT_MAPPINGS_MAX;
}

/* Returns the entry that was added @back entries before the next one. */
static const struct recent *entry_at(const struct recent_mappings *recent, size_t back)
{
	return &recent->list[(recent->next + RECENT_MAPPINGS_MAX - back) % RECENT_MAPPINGS_MAX];
}

const struct procfs_mapping *recent_mappings__next(const struct recent_mappings *recent,
						   uint32_t pid, size_t *at)
{
	while (*at < RECENT_MAPPINGS_MAX) {
		const struct recent *one = entry_at(recent, ++*at);

		if (one->mapping.path && one->pid == pid)
			return &one->mapping;
	}
	return NULL;
}

uint64_t recent_mappings__time(const struct recent_mappings *recent, size_t at)
{
	return entry_at(recent, at)->time_ns;
}
