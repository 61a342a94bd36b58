// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct intern_slot {
	uint64_t a, b;
	uint32_t id; /* 0: free */
};

#define CAP_FIRST 1024

void intern__init(struct intern *intern, size_t max)
{
	*intern = (struct intern) { .max = max };
}

void intern__done(struct intern *intern)
{
	free(intern->slots);
	intern->slots = NULL;
	intern->cap = intern->n = 0;
}

/* Mixes both numbers by the finalizer of MurmurHash3 (public domain, Austin Appleby). */
static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t hash = a * 0x9e3779b97f4a7c15ULL + b;

	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdULL;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53ULL;
	return hash ^ hash >> 33;
}

/* Returns the pair's slot, or the free slot where the pair would go. */
static struct intern_slot *find(struct intern_slot *slots, size_t cap, uint64_t a, uint64_t b)
{
	size_t i = mix(a, b) & (cap - 1);

	while (slots[i].id && (slots[i].a != a || slots[i].b != b))
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static int grow(struct intern *intern)
{
	size_t i, cap = intern->cap ? intern->cap * 2 : CAP_FIRST;
	struct intern_slot *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -1;
	for (i = 0; i < intern->cap; i++) {
		const struct intern_slot *old = &intern->slots[i];

		if (old->id)
			*find(slots, cap, old->a, old->b) = *old;
	}
	free(intern->slots);
	intern->slots = slots;
	intern->cap = cap;
	return 0;
}

int intern__keep(struct intern *intern, bool (*keeps)(const void *ctx, uint32_t id),
		 const void *ctx)
{
	struct intern retained = { .max = intern->max };

	for (size_t i = 0; i < intern->cap; i++) {
		const struct intern_slot *old = &intern->slots[i];
		uint32_t *id;

		if (!old->id || !keeps(ctx, old->id))
			continue;
		id = intern__at(&retained, old->a, old->b);
		if (!id) {
			intern__done(&retained);
			return -ENOMEM;
		}
		*id = old->id;
	}
	intern__done(intern);
	*intern = retained;
	return 0;
}

uint32_t intern__get(const struct intern *intern, uint64_t a, uint64_t b)
{
	return intern->cap ? find(intern->slots, intern->cap, a, b)->id : 0;
}

uint32_t *intern__at(struct intern *intern, uint64_t a, uint64_t b)
{
	struct intern_slot *slot = NULL;

	if (intern->cap) {
		slot = find(intern->slots, intern->cap, a, b);
		if (slot->id)
			return &slot->id;
	}
	if (intern->n >= intern->max) {
		memset(intern->slots, 0, intern->cap * sizeof(*intern->slots));
		intern->n = 0;
		slot = NULL;
	} else if (intern->n >= intern->cap / 4 * 3) {
		if (grow(intern))
			return NULL;
		slot = NULL;
	}
	if (!slot)
		slot = find(intern->slots, intern->cap, a, b);
	slot->a = a;
	slot->b = b;
	intern->n++;
	return &slot->id;
}
