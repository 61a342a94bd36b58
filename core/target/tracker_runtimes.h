/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_RUNTIMES_H
#define BRAID_TRACKER_RUNTIMES_H

#include "core/target/tracker.h"

/* Where the frames of a process's runtimes come from: the ladder of frame sources, which probes are
 * attached, and whether they fire. */

/* Decides for each runtime that is met for the first time in this address space, and attaches what
 * its frames will come from. */
void tracker__attach_runtimes(struct tracker *tracker, struct process *process);
void tracker__detach_space(struct tracker *tracker, int i, const struct space *space);

/* Probes are not inherited by a child. */
void tracker__probe_child(struct tracker *tracker, struct process *child,
			  const struct process *parent);

/* ... for good: nothing of them is known any more. */
void tracker__unprobe(struct tracker *tracker, struct process *process);

/* Attaches probes, and reports so, or why there are none. @no_walk: why its frames are not walked;
 * "": they are, or were not asked for. */
void tracker__probe(struct tracker *tracker, struct process *process, int i,
		    const struct mapped *mapped, const char *no_walk);

/* Runtime `i` in the process, as its hooks take it. */
struct runtime_target process__runtime_target(const struct process *process, int i,
					      const struct mapped *mapped);

/* The first mapping of an image that runtime `i` is in, or NULL. */
const struct mapped *tracker__find_runtime(const struct process *process, int i);

/* Of runtime `i` in the process; "": unknown. */
const char *tracker__version(const struct process *process, int i);

void tracker__report_source(struct tracker *tracker, struct process *process, int i,
			    const char *version, const char *source, const char *reason);

/* Probes may be there and yet not fire, or at one end of calls only (core/target/liveness.h):
 * reports so, once, after a second of the process's CPU time, and gives them up. `now`: do not wait
 * for that second, but decide if they have been hit often enough. */
void tracker__evaluate_probes(struct tracker *tracker, struct process *process, bool now);

/* Of a process that has ended: reports the source of what it had too little time to decide on. */
void tracker__evaluate_pre_attached(struct tracker *tracker, struct process *process);

/* Where code in the memory of `made` is called from, if a runtime's compiler may have made it
 * (NULL: any such code): the code of the interpreter loops and what lies between; empty: there is
 * none. */
struct code_callers tracker__jit_callers(const struct tracker *tracker,
					 const struct process *process, const struct mapped *made);

/* How the code that a process makes keeps frame pointers (runtime_verdict). */
struct made_code {
	unsigned int keeps; /* 0: unknown */
	uint64_t bytes;
};

struct made_code tracker__made_code(const struct tracker *tracker, const struct process *process);

/* The flags for mapping number @m of the process, or 0. */
unsigned int process__made_keeps(const struct process *process, size_t m, struct made_code made);

#endif
