/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_PRIVATE_H
#define BRAID_TRACKER_PRIVATE_H

#include "core/tracker.h"

/* Shared by tracker.c (processes and their mappings) and tracker_runtimes.c (where the runtimes'
 * frames of a process come from). */

struct spaces;

struct tracker {
	struct tracker_opts opts;
	int targets_fd;
	struct spaces *spaces;
	struct process *processes;
	uint64_t unread;   /* as tracker__unread tells */
	uint32_t traps;	   /* as tracker__traps tells */
	bool paused;	   /* between tracker__pause_probes and tracker__resume_probes */
	bool walk_instead; /* since then: no probes where there is a walker */
	char why[RUNTIME_REASON_BYTES];
};

/* Decides for each runtime that is met for the first time in this address space, and attaches what
 * its frames will come from. */
void tracker__attach_runtimes(struct tracker *tracker, struct process *process);

/* Is it still there? */
bool tracker__lives(const struct tracker *tracker, const struct process *process);

/* Probes are not inherited by a child. */
void tracker__probe_child(struct tracker *tracker, struct process *child,
			  const struct process *parent);
void tracker__detach_all_probes(struct tracker *tracker);

/* ... for good: nothing of them is known any more. */
void tracker__unprobe(struct tracker *tracker, struct process *process);

/* Attaches probes, or tells why there are none; that there are some only if `tell`. Not now if
 * they are paused. */
void tracker__probe(struct tracker *tracker, struct process *process, int i,
		    const struct mapped *mapped, bool tell);

/* The first mapping of an image that runtime `i` is in, or NULL. */
const struct mapped *tracker__find_runtime(const struct process *process, int i);

void tracker__tell_source(struct tracker *tracker, struct process *process, int i,
			  const char *version, const char *source, const char *reason);

/* Tells the kernel half what to do with samples of the process. */
int tracker__publish(struct tracker *tracker, const struct process *process);

/* Probes may be there and yet not fire: tells so, once, after a second of the process's CPU time
 * without a call, and gives them up if they were not asked for. */
void tracker__judge_probes(struct tracker *tracker, struct process *process);

/* Of a process that has ended: tells the source of what it had too little time to decide on. */
void tracker__judge_expected(struct tracker *tracker, struct process *process);

/* Where code is called from that a runtime's compiler made: the code of the interpreter loops and
 * what lies between; empty if the process has none. */
struct runtime_range tracker__jit_callers(const struct tracker *tracker,
					  const struct process *process);

#endif
