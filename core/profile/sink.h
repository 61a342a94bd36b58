/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SINK_H
#define BRAID_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"

/* The vocabulary of what is recorded, and who takes it: a recording (core/store/recording.h), a
 * profile that lives in memory (core/live/live_profile.h).
 *
 * Whoever records (core/capture/ids.h) gives each thing its id and offers it once. The ids of each
 * sort of thing are dense from 1, in the order in which they are offered; 0 stands for "none". What
 * a thing refers to was offered before it, so that a sink can check and need not wait. A sink does
 * not keep the texts that it is given; it copies them. */

/* What is measured: the first event is the one that is shown unless the user asks for another. */
struct sink_event {
	const char *name; /* "cpu": as the command line spells it */
	const char *unit; /* what values are: SINK_UNIT_* */
};

/* Samples of this event and of others with the same `link`: who wakes, and who is woken. */
#define SINK_EVENT_WAKEUP "wakeup"

/* Of this, or what begins with it and a colon, `object` is how long something was held, in ns. */
#define SINK_EVENT_OUTSTANDING "outstanding"

/* Units of values. Readers show those of others' making as they are. */
#define SINK_UNIT_SAMPLES "samples" /* ticks of a timer: how many the sample stands for */
#define SINK_UNIT_NS	  "ns"
#define SINK_UNIT_BYTES	  "bytes"
#define SINK_UNIT_COUNT	  "count" /* occurrences of anything else */

/* A program that a process runs: exec makes a new one. */
struct sink_process {
	uint32_t pid, parent_pid;
	uint64_t start_ticks;  /* field 22 of /proc/PID/stat: with pid, one incarnation */
	const char *name;      /* comm */
	const char *command;   /* command line, blanks between arguments */
	const char *cgroup;    /* its path, as in /proc/PID/cgroup; NULL: not known */
	const char *container; /* its id or name; NULL: none */
};

/* Where a runtime's frames came from in a process, and why not from a better place. */
struct sink_source {
	uint32_t process;
	const char *runtime, *version; /* version NULL: not known */
	const char *source;
	const char *reason; /* NULL: there is no better one */
};

/* One place in code. Kinds are those of core/profile/profile.h. */
struct sink_frame {
	int kind;
	uint32_t image;	  /* native code of a file: address is link-time; else 0 */
	uint32_t process; /* code of one process only (JIT, runtime frames); else 0 */
	uint64_t address; /* native and kernel: an instruction that belongs to the call or is the
			   * interrupted one; runtime frames: the frame key */
	bool loop;	  /* native code of an interpreter's loop */
};

/* What a frame is called. */
struct sink_location {
	int kind; /* differs from the frame's for inlined functions */
	const char *function;
	const char *file; /* NULL: none */
	uint32_t line;	  /* 0: unknown */
};

/* How far below the base of its stack a frame's stack address (a native frame's CFA, a runtime
 * frame's anchor) lies, in bytes, so that equal stacks of different threads are equal nodes. */
#define SINK_NO_OFFSET INT64_MIN       /* it has no stack address: kernel frames */
#define SINK_APART     (INT64_MIN + 1) /* a runtime frame that waits on another stack */

/* A frame called by its parent's frame: stacks are paths to the root in a forest of nodes. */
struct sink_node {
	uint32_t parent; /* 0: outermost */
	uint32_t frame;
	int64_t offset;
	uint32_t evidence; /* enum native_evidence: how the frame was found */
};

/* Frames' ids have at most so many bits, so that the evidence fits above them in a key. */
#define SINK_FRAME_BITS 30

/* Returns all of a node but its offset as one number. */
static inline uint64_t sink_node__key(const struct sink_node *node)
{
	return (uint64_t)node->parent << 32 | node->evidence << SINK_FRAME_BITS | node->frame;
}

struct sink_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t value;	  /* its own, in the event's unit */
	uint64_t weight;  /* occurrences that it stands for, with itself */
	uint64_t total;	  /* the sum of their values */
	uint32_t event, thread, cpu;
	uint32_t native;  /* innermost node of the native (and kernel) stack; 0: none */
	uint32_t runtime; /* innermost node of the runtimes' stack; 0: none */
	uint32_t flags;	  /* SAMPLE_* of bpf/shared.h */
	struct rec_condition condition;
	uint32_t peer;		     /* tid; 0: none */
	uint64_t object, link, task; /* as in rec_sample; 0: none */
};

struct sink;

/* Each returns 0 or a negative errno with a sentence in `err` (which may be NULL). After a failed
 * call none may follow. */
struct sink_ops {
	int (*event)(struct sink *sink, uint32_t id, const struct sink_event *event,
		     struct err *err);
	int (*process)(struct sink *sink, uint32_t id, const struct sink_process *process,
		       struct err *err);
	/* The process that was offered as `id` has another name and command line by now. */
	int (*process_is_called)(struct sink *sink, uint32_t id, const char *name,
				 const char *command, struct err *err);
	/* One per name that the kernel had for a thread. */
	int (*thread)(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
		      const char *name, struct err *err);
	/* What the program calls the thread that was offered as `id`, instead of that name. */
	int (*thread_is_called)(struct sink *sink, uint32_t id, const char *name, struct err *err);
	/* `build_id`: hexadecimal, "" for none. */
	int (*image)(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		     struct err *err);
	int (*frame)(struct sink *sink, uint32_t id, const struct sink_frame *frame,
		     struct err *err);
	/* What was offered as `id` turns out to be the code of an interpreter's loop. */
	int (*frame_is_loop)(struct sink *sink, uint32_t id, struct err *err);
	/* Names a frame: innermost first, the last being the function that owns the code. Once per
	 * frame, or again with at least as many. Samples may come before it. */
	int (*locations)(struct sink *sink, uint32_t frame, const struct sink_location *locations,
			 size_t n, struct err *err);
	int (*node)(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *err);
	int (*sample)(struct sink *sink, const struct sink_sample *sample, struct err *err);
	int (*source)(struct sink *sink, const struct sink_source *source, struct err *err);

	/* After `forgot`, which who records takes back: whether what was offered as `id` is still
	 * there. What is not has to be offered again, under a new id. NULL: it never forgets. */
	bool (*has_frame)(const struct sink *sink, uint32_t id);
	bool (*has_node)(const struct sink *sink, uint32_t id);
};

/* The first member of what takes samples; its owner frees it. */
struct sink {
	const struct sink_ops *ops;
	bool forgot; /* frames and nodes, to save memory: who records asks has_frame and has_node */
};

#endif
