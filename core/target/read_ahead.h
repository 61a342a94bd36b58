/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_READ_AHEAD_H
#define BRAID_READ_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Order in which processes are read before a sample finds them.
 *
 * The kernel half finds a process by its first sample. That sample has no frames of an interpreter,
 * as nothing of the process was read. On a machine with more interpreters than CPUs the second
 * sample comes seconds later. So the processes that use CPU are listed from /proc, those that run
 * now first, then by their CPU time. The time counts since the last scan, or over their life at the
 * first scan. */
struct read_ahead;

struct read_ahead_opts {
	/* At the first scan: true includes idle processes, false only those that run now or have
	 * used CPU recently. */
	bool all;
	/* Returns true for a process that is to be profiled. Called once per scan. */
	bool (*is_selected)(void *ctx, uint32_t pid);
	/* Returns true for a process that needs no reading. */
	bool (*is_read)(void *ctx, uint32_t pid);
	void *ctx;
};

/* Creates an empty list. Returns 0 or -ENOMEM. */
int read_ahead__new(const struct read_ahead_opts *opts, struct read_ahead **ret);
void read_ahead__free(struct read_ahead *ahead); /* NULL is fine */

/* Lists the processes below procfs__root() again. Kernel threads and ended processes are left out.
 * Returns 0, -ENOMEM, or an error of opendir(). */
int read_ahead__look(struct read_ahead *ahead);

/* Removes the first process of the list that needs reading, and returns its PID; 0: the list is
 * empty. */
uint32_t read_ahead__next(struct read_ahead *ahead);

/* Returns true if the list is empty, including processes that need no reading. */
bool read_ahead__is_done(const struct read_ahead *ahead);

/* Returns the number of processes in the list that need reading. */
size_t read_ahead__count(const struct read_ahead *ahead);

#endif
