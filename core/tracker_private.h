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
	uint64_t unread;	/* as tracker__unread tells */
	struct process *wanted; /* of these, by next_wanted */
	bool any_pending;	/* a runtime may have asked to be tried again */
	uint32_t traps;		/* as tracker__traps tells */
	bool paused;		/* between tracker__pause_probes and tracker__resume_probes */
	bool walk_instead;	/* since then: no probes where there is a walker */
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

/* Of runtime `i` in the process; "": unknown. */
const char *tracker__version(const struct process *process, int i);

void tracker__tell_source(struct tracker *tracker, struct process *process, int i,
			  const char *version, const char *source, const char *reason);

/* Tells the kernel half what to do with samples of the process. */
int tracker__publish(struct tracker *tracker, const struct process *process);

/* The same when the kernel half has `before`, be it of another program. */
int tracker__publish_over(struct tracker *tracker, const struct process *process,
			  const struct proc_rec *before);

/* Forgets one that had this PID before. -ENOMEM. */
int tracker__new_process(struct tracker *tracker, uint32_t pid, const struct procfs_info *info,
			 struct process **ret);

void tracker__count_unread(struct tracker *tracker, struct process *process);
void tracker__forget(struct tracker *tracker, struct process *process); /* frees it */
void tracker__put_space(struct tracker *tracker, struct space *space);	/* NULL is fine */
void process__clear_mapped(struct process *process);

/* Probes may be there and yet not fire, or at one end of calls only (core/liveness.h): tells so,
 * once, after a second of the process's CPU time, and gives them up. */
void tracker__judge_probes(struct tracker *tracker, struct process *process);

/* The same before they are taken away for a while, if they have been hit often enough by now. */
void tracker__judge_paused(struct tracker *tracker, struct process *process);

/* Of a process that has ended: tells the source of what it had too little time to decide on. */
void tracker__judge_expected(struct tracker *tracker, struct process *process);

/* Where code is called from that a runtime's compiler made: the code of the interpreter loops and
 * what lies between; empty if the process has none. */
struct runtime_range tracker__jit_callers(const struct tracker *tracker,
					  const struct process *process);

#endif
