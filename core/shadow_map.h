/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SHADOW_MAP_H
#define BRAID_SHADOW_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/shadow.h"
#include "core/err.h"
#include "core/kernel_half.h"

/* The kernel half's shadow stacks, mapped into this process. */
struct shadow_map {
	struct shadow *list;
	uint32_t n;
};

/* `n`: as in struct kernel_half_opts. Negative errno of mmap. */
int shadow_map__open(const struct kernel_half *half, uint32_t n, struct shadow_map *ret,
		     struct err *err);
void shadow_map__close(struct shadow_map *map); /* idempotent */

typedef void (*shadow_map_fn)(void *ctx, const struct shadow_entry *entry);

/* While no probe is attached: forgets all calls, so that a thread's next probe finds those that it
 * is in anew. `cut` (may be NULL) is told of each that was under way. */
void shadow_map__clear(struct shadow_map *map, shadow_map_fn cut, void *ctx);

#endif
