/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MMAP_EVENTS_H
#define BRAID_MMAP_EVENTS_H

#include <stdint.h>

/* Tells at once when any process of the machine maps code, so that a library which is loaded, or
 * replaces another one at the same address, is known before many samples land in it. */
struct mmap_events;

typedef void (*mmap_events_fn)(void *ctx, uint32_t pid);

/* 0 or a negative errno. Without it braid still works: mappings are read again when a pc is met
 * that lies in none, and once a second. */
int mmap_events__new(mmap_events_fn on_mmap, void *ctx, struct mmap_events **ret);
void mmap_events__free(struct mmap_events *events); /* NULL is fine */

int mmap_events__fd(const struct mmap_events *events); /* to poll; -1 for NULL */

/* Calls the function for every event that has come. */
void mmap_events__consume(struct mmap_events *events); /* NULL is fine */

#endif
