// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/strtab.h"

#include <errno.h>
#include <string.h>
#include <uthash.h>

#include "core/base/util.h"

struct entry {
	UT_hash_handle hh;
	uint32_t id;
	char text[];
};

struct strtab {
	struct entry *by_text;
	struct entry **by_id;
	size_t n, cap;
};

struct strtab *strtab__new(void)
{
	struct strtab *strtab = calloc(1, sizeof(*strtab));
	uint32_t id;

	if (strtab && strtab__intern(strtab, "", &id)) {
		strtab__free(strtab);
		return NULL;
	}
	return strtab;
}

void strtab__free(struct strtab *strtab)
{
	size_t i;

	if (!strtab)
		return;
	HASH_CLEAR(hh, strtab->by_text);
	for (i = 0; i < strtab->n; i++)
		free(strtab->by_id[i]);
	free(strtab->by_id);
	free(strtab);
}

int strtab__intern(struct strtab *strtab, const char *text, uint32_t *ret_id)
{
	size_t len = strlen(text);
	struct entry *entry;

	HASH_FIND(hh, strtab->by_text, text, len, entry);
	if (!entry) {
		if (array__reserve(&strtab->by_id, &strtab->cap, strtab->n + 1,
				   sizeof(*strtab->by_id)))
			return -ENOMEM;
		entry = calloc(1, sizeof(*entry) + len + 1);
		if (!entry)
			return -ENOMEM;
		memcpy(entry->text, text, len + 1);
		entry->id = strtab->n;
		strtab->by_id[strtab->n++] = entry;
		HASH_ADD_KEYPTR(hh, strtab->by_text, entry->text, len, entry);
	}
	*ret_id = entry->id;
	return 0;
}

bool strtab__has(const struct strtab *strtab, const char *text)
{
	struct entry *entry;

	HASH_FIND(hh, strtab->by_text, text, strlen(text), entry);
	return entry != NULL;
}

const char *strtab__get(const struct strtab *strtab, uint32_t id)
{
	return id < strtab->n ? strtab->by_id[id]->text : "";
}

uint32_t strtab__count(const struct strtab *strtab)
{
	return strtab->n;
}
