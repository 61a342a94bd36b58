/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UPROBE_MULTI_H
#define BRAID_UPROBE_MULTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bpf/libbpf.h>

/* Uprobes at many places of a file by one link (Linux 6.6; of one process only since 6.10). Besides
 * being one call, they go at once: the kernel waits some 30 ms for the last program to end, where
 * each link of a perf event takes 120 ms, one after the other. */

/* Has the kernel got them, for single processes, too? Asked once. */
bool uprobe_multi__works(void);

/* Before it is loaded: the program is attached that way, and no other. */
int uprobe_multi__set(struct bpf_program *program);
bool uprobe_multi__is_set(const struct bpf_program *program);

#define UPROBE_MULTI_MAX 64

struct uprobe_multi_places {
	uint64_t offsets[UPROBE_MULTI_MAX]; /* in the file */
	uint64_t cookies[UPROBE_MULTI_MAX];
	uint64_t semaphores[UPROBE_MULTI_MAX]; /* offsets of what is raised meanwhile; 0: nothing */
	size_t n;
	bool at_return; /* of the functions that begin there */
};

/* Attaches @program to @places of the file at @path, which may be a link in /proc. @pid: of a
 * process, with all of its threads; -1: all that map the file. Returns the link's descriptor, or
 * -errno. */
int uprobe_multi__attach(const struct bpf_program *program, const char *path, pid_t pid,
			 const struct uprobe_multi_places *places);

#endif
