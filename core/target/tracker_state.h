/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_STATE_H
#define BRAID_TRACKER_STATE_H

#include "core/target/tracker.h"

/* Internal state of the tracker, and functions shared by its files. tracker.c has the set of
 * processes, tracker_events.c and tracker_exits.c their lives, and tracker_mappings.c their
 * mappings, tracker_contexts.c the contexts that they publish. tracker_runtimes.c has the sources
 * of their runtimes' frames (tracker_runtimes.h). */

struct cgroups;
struct recent_mappings;
struct spaces;

struct tracker {
	struct tracker_opts opts;
	struct runtime_set runtimes;
	uint32_t last_serial;
	uint32_t n_ended;    /* processes that have ended so far */
	uint32_t n_unprobed; /* ended processes without probes of events */
	int targets_fd;
	struct spaces *spaces;
	struct cgroups *cgroups;
	struct recent_mappings *recent;
	struct jit_sources *jit_sources;
	bool lost;	    /* set by tracker__on_lost() */
	uint64_t parked_ns; /* time of the last search for unused images */
	struct process *processes;
	struct process *ended; /* ended processes, by next_ended: the first to end is the first */
	uint64_t unread;       /* as tracker__unread() returns */
	struct tracker_forbidden forbidden;
	struct process *requested; /* processes that the user named, by next_requested */
	bool any_pending;	   /* a runtime may be pending */
	bool any_soon;		   /* ... since less than a second */
	uint64_t expects_until_ns; /* until then, a process may become ready to be attached */
	uint32_t traps;		   /* as tracker__traps() returns */
	bool given_up; /* set by tracker__give_up_probes(): no probes are attached any longer */
	char why[RUNTIME_REASON_BYTES]; /* ... and its reason */
};

/* Returns true if the process is still alive. */
bool tracker__lives(const struct tracker *tracker, const struct process *process);

/* Sets the treatment of the process's samples by the kernel half. Returns 0 or a negative errno. */
int tracker__publish(struct tracker *tracker, const struct process *process);

/* As tracker__publish(), if the kernel half has @before, even of another program. */
int tracker__publish_over(struct tracker *tracker, const struct process *process,
			  const struct proc_rec *before);

/* Adds a process, and frees a former one with the same PID. Returns 0 or -ENOMEM. */
int tracker__new_process(struct tracker *tracker, uint32_t pid, const struct procfs_info *info,
			 struct process **ret);

/* Sets the cgroup of the process. @id is the kernel half's; 0: unknown. */
void tracker__set_cgroup(struct tracker *tracker, struct process *process, uint64_t id);

/* Sets the child's cgroup to that of its parent; NULL: unknown. */
void tracker__share_cgroup(struct process *child, const struct process *parent);

/* Sets the name and the command line to those that the kernel half reported. */
void tracker__take_command(struct procfs_info *info, const struct rec_program *rec);

/* With a scope: returns true if the process is refused because its name does not match or it is
 * braid itself. No more samples of it are taken. */
bool tracker__is_refused(struct tracker *tracker, const struct rec_program *rec);

/* Returns true if no process that executed the same image had a runtime. Its mappings are then read
 * at its first sample, if there is one. */
bool process__is_plain(const struct process *process);

/* Reads the process context at @address, unless it is unchanged; 0: there is none. Sets *@ret_new
 * if a new publication was read. Returns 0 or -ENOMEM. */
int tracker__read_context(struct process *process, uint64_t address, bool *ret_new);

/* Lets the kernel half read the request contexts of the process's threads, if it publishes them.
 * The process must then be published. */
void tracker__attach_context(struct tracker *tracker, const struct process *process);
void tracker__detach_context(struct tracker *tracker, struct space *space); /* idempotent */

void tracker__count_unread(struct tracker *tracker, struct process *process);
void tracker__put_space(struct tracker *tracker, struct space *space); /* NULL is fine */

#endif
