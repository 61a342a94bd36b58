/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MMAP_EVENTS_H
#define BRAID_MMAP_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Reports at once when any process of the machine maps code. A library that is loaded, or that
 * replaces another one at the same address, is thus found before many samples hit it. */
struct mmap_events;

struct mmap_event {
	uint32_t pid;
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: only the PID is valid */
	uint64_t start, end;
	uint64_t offset; /* bytes, within the file */
	uint64_t inode;	 /* 0: not a file, or unknown */
	uint32_t dev_major, dev_minor;
	const char *path; /* in the process's view; valid during the callback; NULL: not a file */
};

struct mmap_events_opts {
	void (*on_mmap)(void *ctx, const struct mmap_event *event);
	void (*on_lost)(void *ctx); /* events were lost */
	void *ctx;
	bool patient; /* most events are irrelevant: wake only for many */
};

/* Opens the events. Returns 0 or a negative errno. braid works without them: mappings are read
 * again when a pc lies outside of all, and once a second. */
int mmap_events__new(const struct mmap_events_opts *opts, struct mmap_events **ret);
void mmap_events__free(struct mmap_events *events); /* NULL is fine */

int mmap_events__fd(const struct mmap_events *events); /* for poll(); -1 for NULL */

/* Calls on_mmap() for each event so far, in order of time. on_mmap() must not call this
 * function. */
void mmap_events__consume(struct mmap_events *events); /* NULL is fine */

#endif
