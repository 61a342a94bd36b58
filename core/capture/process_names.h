/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCESS_NAMES_H
#define BRAID_PROCESS_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"

/* The names of processes. A process is recorded with its first sample, and changes its name and its
 * command line ("title") later: a worker is forked, and then called by its task. The recording has
 * the last ones.
 *
 * The names are read from /proc after 1, 2, 4, ... commits, at most every 64th time, at once when
 * the kernel's name in a sample of the first thread has changed, and at the end. What /proc shows
 * may be of a program that was executed an instant ago, of which braid does not know yet. So a name
 * is recorded one commit after it was read, or when the process ends, unless the process has
 * executed something else by then. */

struct captured;
struct captured_set;
struct ids;
struct procfs_info;

struct process_names {
	char kernel[THREAD_NAME_BYTES]; /* of the first thread, by its last sample; "": none yet */
	bool has_changed;		/* `kernel`, since the names were read */
	uint64_t read_ns;		/* time of the last reading; 0: none */
	uint32_t wait;			/* commits until the next reading */
	uint32_t waited;		/* commits from the last reading to that one */
	struct procfs_info *read;	/* not recorded yet; owned; NULL: none */
};

/* A sample of the thread has this name of the kernel. */
void process_names__see(struct captured *captured, uint32_t tid,
			const char kernel[THREAD_NAME_BYTES]);

/* To be called before each commit. `last`: reads the names of all processes that are left. */
int process_names__run(const struct captured_set *set, struct ids *ids, bool last, struct err *err);

/* The process has ended, and did not execute anything before. */
int process_names__ended(struct captured *captured, struct ids *ids, struct err *err);

void process_names__done(struct process_names *names); /* idempotent */

#endif
