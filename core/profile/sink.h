/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SINK_H
#define BRAID_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"

/* The vocabulary of recorded data, and the interface of their consumer. Consumers are a recording
 * (core/store/recording.h) and a profile in memory (core/live/live_profile.h).
 *
 * The recorder (core/capture/ids.h) gives each object its id and offers it once. The ids of each
 * sort of object are dense from 1, in the order in which they are offered; 0 stands for "none". An
 * object is offered after all objects that it refers to, so that a sink can check references and
 * need not wait. A sink copies the texts that it receives. */

/* An event. Unless the user chooses another, `cpu` is shown, or the first event if there
 * is none.
 */
struct sink_event {
	const char *name; /* name as on the command line: "cpu" */
	const char *unit; /* unit of values: SINK_UNIT_* */
};

/* A sample of this event has the same `link` as the sample of the wait that it ended. */
#define SINK_EVENT_WAKEUP "wakeup"

/* For this event, and for names that begin with it and a colon, `object` is the age of the object,
 * in ns. */
#define SINK_EVENT_OUTSTANDING "outstanding"

/* Units of values. Readers show other units unchanged. */
#define SINK_UNIT_SAMPLES "samples" /* ticks of a timer that the sample stands for */
#define SINK_UNIT_NS	  "ns"
#define SINK_UNIT_BYTES	  "bytes"
#define SINK_UNIT_COUNT	  "count" /* occurrences of any other event */

/* A program that a process runs; exec makes a new one. */
struct sink_process {
	uint32_t pid, parent_pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat; identifies one incarnation, with pid */
	const char *name;     /* comm */
	const char *command;  /* command line, with blanks between arguments */
	const char *cgroup;   /* path as in /proc/PID/cgroup; NULL: unknown */
	const char *container; /* id or name; NULL: none */
};

/* The source of a runtime's frames in a process, and the reason why a better one is unavailable. */
struct sink_source {
	uint32_t process;
	const char *runtime, *version; /* version NULL: unknown */
	const char *source;
	const char *reason; /* NULL: no source is better */
};

/* a place in code; kinds are those of core/profile/profile.h */
struct sink_frame {
	int kind;
	uint32_t image;	  /* image of native code, whose address is link-time; otherwise 0 */
	uint32_t process; /* process of code that only one process has (JIT, runtime frames);
			     otherwise 0 */
	uint64_t address; /* native and kernel: an instruction that belongs to the call or is the
			   * interrupted one; runtime frames: the frame key */
	bool loop;	  /* native code of an interpreter's loop */
};

/* the name of a frame */
struct sink_location {
	int kind; /* differs from the frame's for inlined functions */
	const char *function;
	const char *file; /* NULL: none */
	uint32_t line;	  /* 0: unknown */
};

/* A text with a name. */
struct sink_label {
	const char *key, *value;
};

/* The request that a thread worked for, as the program states it. */
/* The keys of labels that are values of probes begin so. */
#define VALUE_LABEL "value."

struct sink_context {
	const char *trace, *span;	 /* ids, hexadecimal as in W3C Trace Context; NULL: none */
	const struct sink_label *labels; /* attributes, each with another key */
	size_t n_labels;
};

/* The distance of a frame's stack address (a native frame's CFA, a runtime frame's anchor) below
 * the base of its stack, in bytes. It makes equal stacks of different threads equal nodes. */
#define SINK_NO_OFFSET INT64_MIN       /* frame without a stack address: kernel frames */
#define SINK_APART     (INT64_MIN + 1) /* a runtime frame that waits on another stack */

/* A frame called by its parent's frame: stacks are paths to the root in a forest of nodes. */
struct sink_node {
	uint32_t parent; /* 0: outermost */
	uint32_t frame;
	int64_t offset;
	uint32_t evidence; /* enum native_evidence, by which the frame was found */
};

/* The bits of a frame's id, so that the evidence fits above them in a key. */
#define SINK_FRAME_BITS 30

/* Returns all of a node but its offset as one number. */
static inline uint64_t sink_node__key(const struct sink_node *node)
{
	return (uint64_t)node->parent << 32 | node->evidence << SINK_FRAME_BITS | node->frame;
}

struct sink_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t value;	  /* the sample's own value, in the event's unit */
	uint64_t weight;  /* occurrences that the sample stands for, including itself */
	uint64_t total;	  /* sum of the values of these occurrences */
	uint32_t event, thread, cpu;
	uint32_t native;  /* innermost node of the native (and kernel) stack; 0: none */
	uint32_t runtime; /* innermost node of the runtimes' stack; 0: none */
	uint32_t flags;	  /* SAMPLE_* of bpf/shared.h */
	struct rec_condition condition;
	uint32_t peer;		     /* tid; 0: none */
	uint64_t object, link, task; /* as in rec_sample; 0: none */
	uint32_t context;	     /* id; 0: none */
};

struct sink;

/* Each function returns 0, or a negative errno with a message in @err (which may be NULL). No call
 * may follow a failed one. */
struct sink_ops {
	int (*event)(struct sink *sink, uint32_t id, const struct sink_event *event,
		     struct err *err);
	int (*process)(struct sink *sink, uint32_t id, const struct sink_process *process,
		       struct err *err);
	/* Changes the name and command line of the process that was offered as @id. */
	int (*process_is_called)(struct sink *sink, uint32_t id, const char *name,
				 const char *command, struct err *err);
	/* Offers a thread, once for each name that the kernel had for it. */
	int (*thread)(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
		      const char *name, struct err *err);
	/* Replaces the name of the thread that was offered as @id by the name that the program
	 * uses. */
	int (*thread_is_called)(struct sink *sink, uint32_t id, const char *name, struct err *err);
	/* Offers an image. @build_id is hexadecimal; "": none. */
	int (*image)(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		     struct err *err);
	int (*frame)(struct sink *sink, uint32_t id, const struct sink_frame *frame,
		     struct err *err);
	/* Marks the frame that was offered as @id as code of an interpreter's loop. */
	int (*frame_is_loop)(struct sink *sink, uint32_t id, struct err *err);
	/* Names a frame, innermost first; the last location is the function that owns the code.
	 * Called once for a frame, or again with at least as many locations. Samples may precede
	 * it. */
	int (*locations)(struct sink *sink, uint32_t frame, const struct sink_location *locations,
			 size_t n, struct err *err);
	int (*node)(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *err);
	/* Offers a request context; NULL: not used. */
	int (*context)(struct sink *sink, uint32_t id, const struct sink_context *context,
		       struct err *err);
	/* Offers the context of one sample, instead of `context`, for sinks that do not store
	 * contexts. Other samples may precede that sample, which has the same @id. NULL: not
	 * used. */
	int (*next_context)(struct sink *sink, uint32_t id, const struct sink_context *context,
			    struct err *err);
	/* Sets an attribute of the service that the process belongs to. NULL: not used. */
	int (*attribute)(struct sink *sink, uint32_t process, const struct sink_label *label,
			 struct err *err);
	int (*sample)(struct sink *sink, const struct sink_sample *sample, struct err *err);
	int (*source)(struct sink *sink, const struct sink_source *source, struct err *err);

	/* Return true if the frame or node that was offered as @id is still in the sink. The
	 * recorder calls them after it finds the flag of struct sink set, and clears the flag.
	 * Missing ones must be offered again, under new ids. NULL: the sink never drops any. */
	bool (*has_frame)(const struct sink *sink, uint32_t id);
	bool (*has_node)(const struct sink *sink, uint32_t id);
};

/* the first member of a consumer of samples; its owner frees it */
struct sink {
	const struct sink_ops *ops;
	bool forgot; /* frames and nodes were dropped to save memory; the recorder then calls
			has_frame() and has_node() */
};

#endif
