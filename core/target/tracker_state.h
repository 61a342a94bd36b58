/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_STATE_H
#define BRAID_TRACKER_STATE_H

#include "core/target/tracker.h"

/* The tracker from inside: its state, and what its files do for each other. tracker.c has the set
 * of processes, tracker_events.c and tracker_exits.c their lives, tracker_mappings.c what they map,
 * and tracker_runtimes.c where their runtimes' frames come from (tracker_runtimes.h). */

struct cgroups;
struct recent_mappings;
struct spaces;

struct tracker {
	struct tracker_opts opts;
	struct runtime_set runtimes;
	uint32_t last_serial;
	uint32_t n_gone;     /* processes that have ended so far */
	uint32_t n_unprobed; /* of these, those that had no probes of events yet */
	int targets_fd;
	struct spaces *spaces;
	struct cgroups *cgroups;
	struct recent_mappings *recent;
	struct code_sources *code_sources;
	bool lost;	    /* since tracker__on_lost */
	uint64_t parked_ns; /* when unused images were looked for */
	struct process *processes;
	struct process *gone; /* of these, by next_gone: the first to end is the first */
	uint64_t unread;      /* as tracker__unread reports */
	struct tracker_forbidden forbidden;
	struct process *wanted; /* of these, by next_wanted */
	bool any_pending;	/* a runtime may have asked to be tried again */
	uint32_t traps;		/* as tracker__traps reports */
	bool given_up;		/* since tracker__give_up_probes: none are attached any more */
	char why[RUNTIME_REASON_BYTES]; /* ... and its reason */
};

/* Is the process still there? */
bool tracker__lives(const struct tracker *tracker, const struct process *process);

/* Sets what the kernel half does with samples of the process. */
int tracker__publish(struct tracker *tracker, const struct process *process);

/* The same when the kernel half has `before`, be it of another program. */
int tracker__publish_over(struct tracker *tracker, const struct process *process,
			  const struct proc_rec *before);

/* Forgets one that had this PID before. -ENOMEM. */
int tracker__new_process(struct tracker *tracker, uint32_t pid, const struct procfs_info *info,
			 struct process **ret);

/* Where the process is: `id` as the kernel half tells, 0 where it did not. */
void tracker__set_cgroup(struct tracker *tracker, struct process *process, uint64_t id);

/* A child begins where its parent is; NULL: that is not known. */
void tracker__share_cgroup(struct process *child, const struct process *parent);

/* What it is called, as the kernel half tells. */
void tracker__take_command(struct procfs_info *info, const struct rec_program *rec);

/* With a scope: it is not called as it should be. No more samples are taken of it. */
bool tracker__is_refused(struct tracker *tracker, const struct rec_program *rec);

/* Whoever executed the same before had no runtime: what this maps will matter with its first
 * sample, if there is one. */
bool process__is_plain(const struct process *process);

void tracker__count_unread(struct tracker *tracker, struct process *process);
void tracker__put_space(struct tracker *tracker, struct space *space); /* NULL is fine */

#endif
