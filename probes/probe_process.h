/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_PROCESS_H
#define BRAID_PROBE_PROCESS_H

#include "probes/probe_image.h"

/* The probes of all code files of a process. */

/* Returns the walkers' verdict on a file; strings are borrowed until the next call. */
typedef void (*probe_walker_fn)(void *ctx, const struct elf_file *file, struct probe_walker *ret);

struct probe_process {
	uint32_t pid;
	struct probe_image **images; /* images with probe sites, or of a runtime */
	size_t n_images, cap_images;
	struct err *unread; /* reasons for unreadable files */
	size_t n_unread, cap_unread;
	double cpu_s; /* CPU time of the process during the measurement */
};

/* Opens one file by name. Returns 0, or a negative errno with a message. */
int probe_process__open_file(const char *path, probe_walker_fn walker, void *ctx, bool has_map,
			     struct probe_image **ret, struct err *err);

/* @pid is a thread group's id. Returns 0, -ESRCH, -EACCES if its mappings are unreadable, or
 * -ENOMEM. */
int probe_process__open(uint32_t pid, probe_walker_fn walker, void *ctx, struct probe_process *ret,
			struct err *err);
void probe_process__done(struct probe_process *process); /* idempotent */

/* Counts hits of all useful rows for @seconds, and evaluates the images by them. The process pays
 * for each hit. Returns 0, or a negative errno with a message if nothing was measured. */
int probe_process__measure(struct probe_process *process, double seconds, struct err *err);

#endif
