// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/shadow_map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int shadow_map__open(const struct kernel_half *half, uint32_t n, struct shadow_map *ret,
		     struct err *err)
{
	struct shadow *list = mmap(NULL, n * sizeof(*list), PROT_READ | PROT_WRITE, MAP_SHARED,
				   kernel_half__map_fd(half, "shadows"), 0);

	if (list == MAP_FAILED)
		return err__set(err, -errno, "cannot map the shadow stacks: %s", strerror(errno));
	*ret = (struct shadow_map) { list, n };
	return 0;
}

void shadow_map__close(struct shadow_map *map)
{
	if (map->list)
		munmap(map->list, map->n * sizeof(*map->list));
	*map = (struct shadow_map) {};
}

/* As the kernel half does it when a thread ends, which may happen at the same time. */
static void clear(struct shadow *shadow, shadow_map_fn cut, void *ctx)
{
	uint32_t depth = __atomic_exchange_n(&shadow->depth, 0, __ATOMIC_ACQ_REL);

	for (uint32_t i = 0; cut && i < depth && i < SHADOW_DEPTH_MAX; i++)
		cut(ctx, &shadow->entries[i]);
	shadow->overflow = shadow->flags = shadow->lane = shadow->lanes_used = 0;
	shadow->lo = shadow->hi = 0;
	__atomic_store_n(&shadow->owner, 0, __ATOMIC_RELEASE);
}

void shadow_map__clear(struct shadow_map *map, shadow_map_fn cut, void *ctx)
{
	for (uint32_t i = 0; i < map->n; i++)
		if (map->list[i].owner)
			clear(&map->list[i], cut, ctx);
}
