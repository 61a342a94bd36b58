/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MMAP_EVENTS_H
#define BRAID_MMAP_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Tells at once when any process of the machine maps code, so that a library which is loaded, or
 * replaces another one at the same address, is known before many samples land in it. */
struct mmap_events;

struct mmap_event {
	uint32_t pid;
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: only the PID is known */
	uint64_t start, end;
	uint64_t offset; /* in bytes, of the file */
	uint64_t inode;	 /* 0: it is no file, or not known */
	uint32_t dev_major, dev_minor;
	const char *path; /* as that process sees it; valid in the callback; NULL: no file */
};

struct mmap_events_opts {
	void (*on_mmap)(void *ctx, const struct mmap_event *event);
	void (*on_lost)(void *ctx); /* some have not come */
	void *ctx;
	bool patient; /* most are of no interest: wakes only when many have come */
};

/* 0 or a negative errno. Without it braid still works: mappings are read again when a pc is met
 * that lies in none, and once a second. */
int mmap_events__new(const struct mmap_events_opts *opts, struct mmap_events **ret);
void mmap_events__free(struct mmap_events *events); /* NULL is fine */

int mmap_events__fd(const struct mmap_events *events); /* to poll; -1 for NULL */

/* Calls the function for every event that has come, in the order of time. The function must not
 * consume any. */
void mmap_events__consume(struct mmap_events *events); /* NULL is fine */

#endif
