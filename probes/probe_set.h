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

/* Probes at places in files, in the processes of a session: breakpoints are in the memory of these
 * processes only. A process that joins later gets all of them. Each process has links of its own,
 * which every hit of a place comes by: with many processes, or many new ones, the set goes
 * everywhere, with one link for all processes of the machine. */
struct probe_set;

#define PROBE_SET_MEMBERS_MAX 64 /* processes at a time, and ... */
#define PROBE_SET_JOINS_MAX   64 /* ... that join within PROBE_SET_JOINS_NS */
#define PROBE_SET_JOINS_NS    10000000000ULL

struct probe_set *probe_set__new(bool everywhere); /* NULL: out of memory */
void probe_set__free(struct probe_set *set);	   /* detaches; NULL is fine */

/* Attaches @program at all points, in each process of the set; all or nothing. The points' files
 * need not live longer than the call. Errors: as probe_links__attach. */
int probe_set__attach(struct probe_set *set, const struct bpf_program *program,
		      const struct probe_point *points, size_t n, struct err *err);

/* A process joins the set, or leaves it because it has ended. Errors: as probe_links__attach; a
 * process that ends meanwhile is no error. */
int probe_set__join(struct probe_set *set, pid_t pid, struct err *err);
void probe_set__leave(struct probe_set *set, pid_t pid);
bool probe_set__has(const struct probe_set *set, pid_t pid);

/* The n-th member's PID, in no order; 0: there are no more. */
pid_t probe_set__member(const struct probe_set *set, size_t n);

/* All processes that map the files, from now on. What they do in the moment between is not seen. */
int probe_set__go_everywhere(struct probe_set *set, struct err *err);
bool probe_set__is_everywhere(const struct probe_set *set);

/* Takes back everything, once and for all. */
void probe_set__detach(struct probe_set *set);

#endif
