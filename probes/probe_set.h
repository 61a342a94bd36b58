/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_SET_H
#define BRAID_PROBE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bpf/libbpf.h>

#include "core/base/err.h"
#include "probes/attach.h"

/* Probes at places in files, in the processes of a session: breakpoints are only in the memory of
 * these processes. A process that joins later gets all probes. Each process has links of its own,
 * and every hit of a place checks all links. With many processes, or many new ones, the set goes
 * everywhere, with one link for all processes of the machine. */
struct probe_set;

#define PROBE_SET_MEMBERS_MAX 64 /* processes at a time, and ... */
#define PROBE_SET_JOINS_MAX   64 /* ... processes that join within PROBE_SET_JOINS_NS */
#define PROBE_SET_JOINS_NS    10000000000ULL

struct probe_set *probe_set__new(bool everywhere); /* NULL: out of memory */
void probe_set__free(struct probe_set *set);	   /* detaches; NULL is fine */

/* Attaches @program at all points, in each process of the set; all or nothing. The points' files
 * need not outlive the call. Errors are those of probe_links__attach(). */
int probe_set__attach(struct probe_set *set, const struct bpf_program *program,
		      const struct probe_point *points, size_t n, struct err *err);

/* Add a process, or remove one that has ended. Errors are those of probe_links__attach(); a process
 * that ends meanwhile is not an error. */
int probe_set__join(struct probe_set *set, pid_t pid, struct err *err);
void probe_set__leave(struct probe_set *set, pid_t pid);
bool probe_set__has(const struct probe_set *set, pid_t pid);

/* Returns the PID of member number @n, in no particular order; 0: there are no more. */
pid_t probe_set__member(const struct probe_set *set, size_t n);

/* Attaches the probes in all processes that map the files. Hits during the change are lost. */
int probe_set__go_everywhere(struct probe_set *set, struct err *err);
bool probe_set__is_everywhere(const struct probe_set *set);

/* Detaches everything permanently. */
void probe_set__detach(struct probe_set *set);

#endif
