/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_RUNTIMES_H
#define BRAID_TRACKER_RUNTIMES_H

#include "core/target/tracker.h"

/* Sources of the frames of a process's runtimes: their order of preference, the attached probes,
 * and whether these fire. */

/* Selects and attaches the source of frames for each runtime that is new in this address space. */
void tracker__attach_runtimes(struct tracker *tracker, struct process *process);

/* Marks the runtimes of @image as pending, which the process has mapped since it was read. */
void tracker__await_runtimes(struct tracker *tracker, struct process *process,
			     const struct image *image);

/* Reads the files of runtimes that the process will load later, and loads their walkers. */
void tracker__expect_runtimes(struct tracker *tracker, struct process *process);
void tracker__detach_space(struct tracker *tracker, int i, const struct space *space);

/* Attaches probes to a child, which does not inherit them. */
void tracker__probe_child(struct tracker *tracker, struct process *child,
			  const struct process *parent);

/* Detaches the probes of the process and drops their data. */
void tracker__unprobe(struct tracker *tracker, struct process *process);

/* Attaches probes and reports the source, or the reason why there are none. @no_walk is the reason
 * why its frames are not walked; "": they are, or a walk was not requested. */
void tracker__probe(struct tracker *tracker, struct process *process, int i,
		    const struct mapped *mapped, const char *no_walk);

/* Returns runtime @i in the process in the form that its hooks take. */
struct runtime_target process__runtime_target(const struct process *process, int i,
					      const struct mapped *mapped);

/* Returns the first mapping of an image of runtime @i, or NULL. */
const struct mapped *tracker__find_runtime(const struct process *process, int i);

/* Returns the version of runtime @i in the process; "": unknown. */
const char *tracker__version(const struct process *process, int i);

void tracker__report_source(struct tracker *tracker, struct process *process, int i,
			    const char *version, const char *source, const char *reason);

/* Detects probes that do not fire, or at one end of calls only (core/target/liveness.h). Reports
 * and detaches them, once, after a second of the process's CPU time. @now: does not wait for that
 * second, but decides if the hits are sufficient. */
void tracker__evaluate_probes(struct tracker *tracker, struct process *process, bool now);

/* Reports the source of runtimes that an ended process left undecided. */
void tracker__evaluate_pre_attached(struct tracker *tracker, struct process *process);

/* Returns the range of callers of code in the memory of @generated, if a runtime's compiler may
 * have generated it (NULL: any such code). It is the code of the interpreter loops and the gaps
 * between them; empty: none. */
struct code_callers tracker__jit_callers(const struct tracker *tracker,
					 const struct process *process,
					 const struct mapped *generated);

/* Use of frame pointers in the code that a process generates (runtime_verdict). */
struct generated_code {
	unsigned int keeps; /* 0: unknown */
	uint64_t bytes;
};

struct generated_code tracker__generated_code(const struct tracker *tracker,
					      const struct process *process);

/* Returns the flags for mapping number @m of the process, or 0. */
unsigned int process__generated_keeps(const struct process *process, size_t m,
				      struct generated_code generated);

#endif
