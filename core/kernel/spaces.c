// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/spaces.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/inner_maps.h"

#define READY_MAX 16 /* refill up to this number */
#define READY_MIN 8  /* refill below this number */

struct spaces {
	int mappings_fd;
	uint32_t last_id;
	struct space *first, *last; /* free ones */
	uint32_t n_free;
};

int spaces__new(int mappings_fd, struct spaces **ret)
{
	struct spaces *spaces = calloc(1, sizeof(*spaces));
	int err;

	if (!spaces)
		return -ENOMEM;
	spaces->mappings_fd = mappings_fd;
	err = spaces__refill(spaces);
	if (err)
		spaces__free(spaces);
	else
		*ret = spaces;
	return err;
}

static void space__free(struct space *space)
{
	munmap(space->shared, sizeof(*space->shared));
	free(space);
}

void spaces__free(struct spaces *spaces)
{
	struct space *space;

	if (!spaces)
		return;
	while ((space = spaces->first)) {
		spaces->first = space->next;
		space__free(space);
	}
	free(spaces);
}

static void append(struct spaces *spaces, struct space *space)
{
	space->next = NULL;
	if (spaces->first)
		spaces->last->next = space;
	else
		spaces->first = space;
	spaces->last = space;
	spaces->n_free++;
}

/* Creates a space whose map is not added yet. */
static int create(struct spaces *spaces, struct space **ret, struct inner_map *ret_map)
{
	struct space *space = calloc(1, sizeof(*space));
	int err;

	if (!space)
		return -ENOMEM;
	err = inner_map__create(spaces->mappings_fd, "mappings", sizeof(*space->shared), ret_map);
	if (err) {
		free(space);
		return err;
	}
	space->shared = ret_map->memory;
	space->id = ++spaces->last_id;
	*ret = space;
	return 0;
}

int spaces__refill(struct spaces *spaces)
{
	uint32_t ids[READY_MAX] = {}, n = 0, i;
	struct space *created[READY_MAX];
	struct inner_map maps[READY_MAX] = {};
	int err = 0;

	if (spaces->n_free >= READY_MIN)
		return 0;
	while (!err && n < READY_MAX - spaces->n_free) {
		err = create(spaces, &created[n], &maps[n]);
		if (!err) {
			ids[n] = created[n]->id;
			n++;
		}
	}
	if (n) /* the number of those created */
		err = inner_maps__add(spaces->mappings_fd, ids, maps, n);
	if (err)
		spaces->last_id -= n;
	for (i = 0; i < n; i++) {
		close_fd(&maps[i].fd);
		if (err)
			space__free(created[i]);
		else
			append(spaces, created[i]);
	}
	return err;
}

int spaces__take(struct spaces *spaces, struct space **ret)
{
	struct space *space;
	int err = spaces->first ? 0 : spaces__refill(spaces);

	if (err)
		return err;
	space = spaces->first;
	spaces->first = space->next;
	spaces->n_free--;
	space->next = NULL;
	space->refs = 1;
	*ret = space;
	return 0;
}

void spaces__give(struct spaces *spaces, struct space *space)
{
	space->shared->lists[0].n = space->shared->lists[1].n = 0;
	space->refs = space->decided = space->pending = space->reported_pending = 0;
	space->attached = space->walkers = space->n_copies = 0;
	space->awaits_context = false;
	append(spaces, space);
}
