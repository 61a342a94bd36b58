/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCESS_NAMES_H
#define BRAID_PROCESS_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"

/* The names of processes. A process is recorded with its first sample. It may change its name and
 * its command line ("title") later, as a worker does after the fork. The recording has the last
 * ones.
 *
 * The names are read from /proc after 1, 2, 4, ... commits, up to every 64th commit. They are read
 * at once if the kernel's name in a sample of the first thread changes, and at the end. /proc may
 * already show a program that the process executed a moment ago, before braid sees the exec. So a
 * name is recorded one commit after it was read, or when the process ends. It is dropped if the
 * process executed another program by then. */

struct captured;
struct captured_set;
struct ids;
struct procfs_info;

struct process_names {
	char kernel[THREAD_NAME_BYTES]; /* name in the first thread's last sample; "": none */
	bool has_changed;		/* `kernel` changed since the names were read */
	uint64_t read_ns;		/* time of the last read; 0: none */
	uint32_t wait;			/* commits until the next read */
	uint32_t waited;		/* commits between the last read and the next one */
	struct procfs_info *read;	/* names not recorded yet; owned; NULL: none */
};

/* Records the kernel's name of a thread in a sample. */
void process_names__see(struct captured *captured, uint32_t tid,
			const char kernel[THREAD_NAME_BYTES]);

/* Reads and records names; must be called before each commit. With @last, reads the names of all
 * remaining processes. */
int process_names__run(const struct captured_set *set, struct ids *ids, bool last, struct err *err);

/* Records the last names of a process that ended without executing another program. */
int process_names__ended(struct captured *captured, struct ids *ids, struct err *err);

void process_names__done(struct process_names *names); /* idempotent */

#endif
