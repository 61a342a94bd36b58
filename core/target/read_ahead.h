/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_READ_AHEAD_H
#define BRAID_READ_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Processes in the order in which they are to be read before a sample finds them.
 *
 * The kernel half finds a process by its first sample, and that sample has no frames of an
 * interpreter: nothing of the process was read. On a machine with more interpreters than CPUs the
 * second sample comes seconds later. So the processes that use CPU are listed from /proc, those
 * that run now first, then by their CPU time: since the last look, or over their life at the first
 * look. */
struct read_ahead;

struct read_ahead_opts {
	/* At the first look: true lists processes that idle as well, false only those that run now
	 * or have used CPU lately. */
	bool all;
	/* Returns true for a process that is to be profiled. Called once a look. */
	bool (*is_wanted)(void *ctx, uint32_t pid);
	/* Returns true for a process that needs no reading. */
	bool (*is_known)(void *ctx, uint32_t pid);
	void *ctx;
};

/* -ENOMEM. */
int read_ahead__new(const struct read_ahead_opts *opts, struct read_ahead **ret);
void read_ahead__free(struct read_ahead *ahead); /* NULL is fine */

/* Lists the processes below procfs__root() anew. Kernel threads and processes that have ended are
 * left out. -ENOMEM, or what opendir() returned. */
int read_ahead__look(struct read_ahead *ahead);

/* Removes the first process of the list that is not known. 0: the list is empty. */
uint32_t read_ahead__next(struct read_ahead *ahead);

/* Returns true if the list is empty, known processes included. */
bool read_ahead__is_done(const struct read_ahead *ahead);

/* Returns the number of processes in the list that are not known. */
size_t read_ahead__count(const struct read_ahead *ahead);

#endif
