// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/spaces.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/util.h"

#define READY_MAX 16 /* refilled up to here */
#define READY_MIN 8  /* when fewer are left */

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

/* A space whose map is yet to be added. The map's fd through `ret_fd`. */
static int create(struct spaces *spaces, struct space **ret, int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct space *space = calloc(1, sizeof(*space));
	int fd, err;

	if (!space)
		return -ENOMEM;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "mappings", sizeof(uint32_t),
			    sizeof(struct mappings_rec), 1, &opts);
	if (fd < 0) {
		err = -errno;
		free(space);
		return err;
	}
	space->shared =
		mmap(NULL, sizeof(*space->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (space->shared == MAP_FAILED) {
		err = -errno;
		close(fd);
		free(space);
		return err;
	}
	space->id = ++spaces->last_id;
	*ret = space;
	*ret_fd = fd;
	return 0;
}

/* All in one call waits once; kernels that cannot do that take them one by one. */
static int add_all(struct spaces *spaces, const uint32_t *ids, const int *fds, uint32_t n)
{
	uint32_t done = n, i;

	if (!bpf_map_update_batch(spaces->mappings_fd, ids, fds, &done, NULL))
		return 0;
	for (i = 0; i < n; i++)
		if (bpf_map_update_elem(spaces->mappings_fd, &ids[i], &fds[i], BPF_ANY))
			return -errno;
	return 0;
}

int spaces__refill(struct spaces *spaces)
{
	uint32_t ids[READY_MAX] = {}, n = 0, i;
	struct space *created[READY_MAX];
	int fds[READY_MAX] = {}, err = 0;

	if (spaces->n_free >= READY_MIN)
		return 0;
	while (!err && n < READY_MAX - spaces->n_free) {
		err = create(spaces, &created[n], &fds[n]);
		if (!err) {
			ids[n] = created[n]->id;
			n++;
		}
	}
	if (!err)
		err = add_all(spaces, ids, fds, n);
	for (i = 0; i < n; i++) {
		close(fds[i]);
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
	space->refs = space->decided = space->pending = space->told_pending = 0;
	space->attached = space->walkers = 0;
	append(spaces, space);
}
