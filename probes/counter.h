/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COUNTER_H
#define BRAID_COUNTER_H

#include "probes/attach.h"

/* Counts hits of places in programs, by a separate BPF object. */
struct probe_counter;

/* Creates a counter for points with cookies 0 to @n - 1, which does not count yet. Returns 0, or
 * -EPERM without the privilege. */
int probe_counter__open(size_t n, struct probe_counter **ret, struct err *err);
void probe_counter__free(struct probe_counter *counter); /* detaches; NULL is fine */

/* As the functions of probe_links in attach.h. */
int probe_counter__attach(struct probe_counter *counter, pid_t pid,
			  const struct probe_point *points, size_t n, struct err *err);
int probe_counter__raise_semaphore(struct probe_counter *counter, pid_t pid,
				   const struct elf_file *file, uint64_t semaphore_vaddr,
				   struct err *err);
void probe_counter__detach(struct probe_counter *counter); /* counts stay readable */

/* Starts or stops the count of hits at all sites. */
void probe_counter__count(struct probe_counter *counter, bool counts);

uint64_t probe_counter__hits(const struct probe_counter *counter, uint32_t cookie);

#endif
