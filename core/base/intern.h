/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INTERN_H
#define BRAID_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A map from pairs of numbers to ids, made for the look-ups that are done for every frame of every
 * sample: open addressing, one cache line for most hits. */
struct intern {
	struct intern_slot *slots;
	size_t cap, n; /* cap is a power of two */
	size_t max;    /* with so many pairs in it, the map forgets them all and starts anew */
};

/* max: at least 1. Memory comes with use: at most 64 bytes for each of max pairs. */
void intern__init(struct intern *intern, size_t max);
void intern__done(struct intern *intern);

/* Forgets all pairs but those whose ids are to be kept. -ENOMEM: it is as before. */
int intern__keep(struct intern *intern, bool (*keeps)(const void *ctx, uint32_t id),
		 const void *ctx);

/* The pair's id; 0: it is not there. */
uint32_t intern__get(const struct intern *intern, uint64_t a, uint64_t b);

/* Where the pair's id is, borrowed until the next call; 0 there means that the pair is new, and
 * the caller must store an id other than 0. NULL: out of memory. */
uint32_t *intern__at(struct intern *intern, uint64_t a, uint64_t b);

#endif
