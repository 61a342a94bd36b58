/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MEMORY_PRIVATE_H
#define BRAID_MEMORY_PRIVATE_H

#include "core/base/memory.h"

/* The operations of a source of memory (memory.c, memory_core.c, memory_pages.c), which embeds this
 * struct as its first member. */
struct memory {
	int (*read)(const struct memory *memory, uint64_t address, void *to, size_t size);
	void (*free)(struct memory *memory);
	memory_read_fn observer;
	void *observer_ctx;
};

#endif
