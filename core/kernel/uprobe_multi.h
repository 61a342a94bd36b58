/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UPROBE_MULTI_H
#define BRAID_UPROBE_MULTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bpf/libbpf.h>

/* Uprobes at many places of a file by one link (Linux 6.6; for one process only since 6.10). This
 * needs one call, and detaching is fast. The kernel waits about 30 ms for the last program to end.
 * Links of perf events take 120 ms each, one after the other. */

/* Returns true if the kernel supports uprobe_multi, also for single processes. Tests that once. */
bool uprobe_multi__works(void);

/* Selects this way of attaching for @program, before it is loaded; no other way then works. */
int uprobe_multi__set(struct bpf_program *program);
bool uprobe_multi__is_set(const struct bpf_program *program);

#define UPROBE_MULTI_MAX 64

struct uprobe_multi_places {
	uint64_t offsets[UPROBE_MULTI_MAX]; /* offsets in the file */
	uint64_t cookies[UPROBE_MULTI_MAX];
	uint64_t semaphores[UPROBE_MULTI_MAX]; /* offsets of semaphores; 0: none */
	size_t n;
	bool at_return; /* probe the returns of the functions that begin at the offsets */
};

/* Attaches @program to @places of the file at @path, which may be a link in /proc. @pid: a process,
 * with all its threads; -1: all processes that map the file. Returns the link's descriptor, or
 * -errno. */
int uprobe_multi__attach(const struct bpf_program *program, const char *path, pid_t pid,
			 const struct uprobe_multi_places *places);

#endif
