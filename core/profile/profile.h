/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROFILE_H
#define BRAID_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/strtab.h"

/* A profile is the input of all reports: merged stacks as one tree of interned frames with weights,
 * which are sums of the values of one event's samples.
 *
 * A profile has no processes, ELF files or recordings, and names no language: the name and the mark
 * of a frame's kind are data. */

enum {
	KIND_KERNEL,
	KIND_NATIVE,
	KIND_INLINED, /* a native function inlined into the native frame that follows it rootwards
		       */
	KIND_RUNTIME, /* the first of the kinds that come from runtimes */
	KINDS_MAX = 32,
};

/* the unit of weights */
enum profile_unit {
	PROFILE_SAMPLES,     /* ticks of a timer */
	PROFILE_NANOSECONDS, /* time that was measured */
	PROFILE_BYTES,
	PROFILE_COUNT, /* occurrences of any event */
	PROFILE_OTHER, /* as in `unit_name` */
};

struct profile_kind {
	char name[32];	/* "kernel", "native", "inlined", then runtimes' names */
	char suffix[8]; /* for --annotate: "_[k]", "_[n]", "_[i]", ...; may be "" */
	bool label;	/* frames are labels, not code: groups, "woken by ..." */
};

/* The role of a frame in its run of native frames (core/profile/frames.h). */
enum profile_role {
	ROLE_PLAIN,
	ROLE_INTERPRETER, /* belongs to a library that runs a runtime's frames */
	ROLE_CALLER,	  /* also calls a function on behalf of a script */
	ROLE_SYSCALL,	  /* entry of a certain system call in the kernel */
	ROLE_BLOCK,	  /* stands for a run of frames of an interpreter's library */
};

struct profile_frame {
	uint32_t name;	  /* strtab ids */
	uint32_t file;	  /* full path, or "" */
	uint32_t line;	  /* 0: unknown or not requested */
	uint32_t library; /* short name, of native code and the kernel; "": none, or unknown */
	uint8_t kind;
	uint8_t role;	  /* enum profile_role; follows from the others */
	bool inferred;	  /* not proven to be on the stack */
	uint32_t image;	  /* number + 1 in `images`; 0: address unknown or not requested */
	uint64_t address; /* as in the image's file */
};

/* a file with native code */
struct profile_image {
	uint32_t path, build_id; /* strtab ids */
};

/* Node 0 is the root and has no frame. A node's parent always has a smaller index. */
struct profile_node {
	uint32_t parent;
	uint32_t frame;
	uint64_t self;	    /* weight of the stacks that end here */
	uint64_t calls;	    /* number of calls in those stacks; 0 unless calls were counted */
	uint64_t waiting;   /* part of `self` in which the thread waited, or was stopped */
	uint64_t preempted; /* part of `self` in which the thread was runnable, but another had the
			       CPU */
	uint64_t samples;   /* number of samples in `self`; 0: unknown */
	uint64_t occurrences; /* number of occurrences that the samples stand for; 0: unknown */
	uint64_t waits, preemptions; /* parts of `occurrences`: in `waiting` and `preempted` */
	uint32_t run; /* largest number of frames that the node stands for; 0 or 1: only its own */
};

/* The values that a stack adds to the node where it ends. */
struct profile_value {
	uint64_t weight, calls, waiting, preempted, samples, occurrences, waits, preemptions;
};

/* the part of a node's own value that belongs to one thread */
struct profile_share {
	uint32_t node, thread;
	struct profile_value value;
};

/* The weight that a thread's samples in a column of time add to the node where they end. */
enum profile_state {
	PROFILE_RUNNING,
	PROFILE_WAITING,
	PROFILE_PREEMPTED,
	PROFILE_LOCKED, /* waiting for the lock of its interpreter, or a monitor */
};
struct profile_cell {
	uint64_t column;
	uint32_t thread, node;
	uint8_t state; /* enum profile_state */
	uint64_t weight;
};

struct profile_thread {
	uint32_t pid, tid;
	uint64_t task; /* task that the thread worked on; 0: none, or not requested */
	char *process, *name;
	char *cgroup, *container; /* cgroup and container of the process; "": unknown, or none */
	char *command;		  /* command line of the process; "": unknown */
	char *service;		  /* service of the process, as it published it; "": unknown */
};

/* As struct profile_thread; borrowed. */
struct profile_thread_of {
	uint32_t pid, tid;
	uint64_t task;
	const char *process, *name;
	const char *cgroup, *container; /* NULL: as "" */
	const char *command;		/* NULL: as "" */
	const char *service;		/* NULL: as "" */
};

/* The numbers of occurrences with values in [2^(i-1), 2^i), or with 0 for i == 0. */
#define PROFILE_BUCKETS 65
struct profile_histogram {
	char *name;		     /* name of the group; "" for all and for a stack */
	uint32_t node;		     /* node where the stack ends; 0: not of a stack */
	uint64_t occurrences, value; /* without those below 0 */
	uint64_t buckets[PROFILE_BUCKETS];
	uint64_t below; /* occurrences with values below 0 */
};

struct profile_loss {
	char *name; /* one line for people: "ring buffer full" */
	uint64_t count;
};

struct profile {
	struct strtab *strings;
	struct profile_kind kinds[KINDS_MAX];
	size_t n_kinds;
	struct profile_frame *frames;
	size_t n_frames, cap_frames;
	struct profile_node *nodes;
	size_t n_nodes, cap_nodes;
	struct profile_image *images; /* files of frames with addresses */
	size_t n_images, cap_images;
	uint32_t *short_files; /* by string: start of the part that labels show; NULL: not set */
	uint32_t n_short_files;
	void *frame_index, *node_index; /* private: hash tables of profile.c */
	struct profile_path *paths;	/* private */
	/* Names of functions of interpreters that call native functions for scripts: patterns of
	 * fnmatch(3) with FNM_EXTMATCH up to a NULL, borrowed; NULL: unknown. */
	const char *const *callers;
	const struct function_rules *const
		*rules;		/* rules of its runtimes, up to a NULL, borrowed; NULL: none */
	uint32_t *interpreters; /* libraries, set by profile__interpreter() */
	size_t n_interpreters, cap_interpreters;

	/* All values, divided among threads; empty unless requested. */
	struct profile_thread *threads;
	size_t n_threads, cap_threads;
	struct profile_share *shares;
	size_t n_shares, cap_shares;

	/* All values, divided among threads and columns of time: profile__add_cell(). Empty unless
	 * requested. */
	struct profile_cell *cells;
	size_t n_cells, cap_cells;
	uint64_t column_ns, n_columns;
	bool instants; /* columns are of 1 ns, and cells are not sorted */

	/* The event and its unit: profile__measures(). */
	enum profile_unit unit; /* PROFILE_SAMPLES unless the maker sets it */
	char *unit_name;	/* NULL: "samples" */
	char *event;		/* NULL: "cpu" */
	char *occurrences_name; /* "EVENT occurrences"; NULL: profile__measures was not called */
	char *task_name;	/* name of threads' tasks; NULL: unknown */
	bool counts_calls;	/* weights are the time of the nodes' calls */
	uint8_t group_kind;	/* kind of the outermost frames if they are groups, not code; 0: not
				   grouped */

	/* Numbers of frames of all samples, and of those that are inferred. */
	struct profile_evidence {
		uint64_t natives, inferred_natives;
		uint64_t runtimes, inferred_runtimes;
	} evidence;

	/* Idle waits, which are left out: their weight, the weight of all samples with them, and
	 * the number of threads that had some. */
	struct {
		uint64_t weight, whole;
		uint32_t threads;
	} idle;

	/* Waits that began before the recording and ended after it, of threads that did nothing
	 * else, and not idle by a rule. They are left out if `hidden`, and `idle.whole` has them.
	 */
	struct {
		uint64_t weight;
		uint32_t threads;
		bool hidden;
	} unbroken;

	/* The first one is that of all samples; empty unless requested. */
	struct profile_histogram *histograms;
	const char *histogram_of; /* a recorded value; borrowed; NULL: the event's own values */
	size_t n_histograms, cap_histograms;

	/* for titles */
	char *other_events; /* "a, b": other events of the recording; NULL or "": none */
	char *nameless; /* sentence about native code without symbols; NULL: too little to report */
	char *target;	/* "pid 4711 (python3 app.py)" */
	char *started;	/* start in UTC: "2026-11-24T06:30:00Z"; "" or NULL: unknown */
	char *host;	/* name of the recorded machine; "" or NULL: unknown */
	double duration_s;
	/* Start of the oldest process with a frame of an interpreter, CLOCK_REALTIME in seconds; 0:
	 * unknown, or no such process. */
	double begun_s;
	double frequency_hz;
	uint64_t total;		     /* sum of all weights */
	uint64_t waiting, preempted; /* parts of `total`, as for nodes */
	uint64_t parked;	     /* part of `waiting` of tasks that were on no thread */
	uint64_t parked_samples;     /* its samples */
	bool has_parked;	     /* there are such waits, shown or hidden as idle */
	uint64_t samples;	     /* number of samples; 0: unknown */
	uint64_t occurrences; /* number of occurrences that the samples stand for; 0: unknown */
	struct profile_loss *losses; /* only counters that are not zero */
	size_t n_losses, cap_losses;
};

/* Returns a new profile with the kinds kernel, native and inlined, or NULL if out of memory. */
struct profile *profile__new(void);
void profile__free(struct profile *profile); /* @profile may be NULL */

/* Sets event and unit (as SINK_UNIT_* of core/profile/sink.h spells it, or any other text). Both
 * are copied. 0 or -ENOMEM. */
int profile__measures(struct profile *profile, const char *event, const char *unit);

/* Returns the unit of weights: "samples" or another of SINK_UNIT_*, or any other text. */
const char *profile__unit(const struct profile *profile);

/* Returns the number of the kind of a runtime with that name; adds the kind if it is new. Returns
 * -ENOSPC if there are KINDS_MAX kinds. */
int profile__kind(struct profile *profile, const char *name, const char *suffix);

/* As profile__kind(), for a kind whose frames are labels, not code. */
int profile__label_kind(struct profile *profile, const char *name);

/* Returns true for a function of a runtime. */
static inline bool profile__is_runtime(const struct profile *profile,
				       const struct profile_frame *frame)
{
	return frame->kind >= KIND_RUNTIME && !profile->kinds[frame->kind].label;
}

/* Writes the short name of a file of native code: "libc" for "/lib/libc.so.6". */
#define PROFILE_LIBRARY_BYTES 256
void profile__library(const char *file, char *buf, size_t size);

/* Marks @library (a short name) as an interpreter: frames of it that are added later run a
 * runtime's frames. Returns 0 or -ENOMEM. */
int profile__interpreter(struct profile *profile, const char *library);

/* Sets *@ret to the number of the image + 1. Returns 0 or -ENOMEM. */
int profile__add_image(struct profile *profile, const char *path, const char *build_id,
		       uint32_t *ret);

/* Returns the frame that stands for a run of an interpreter's frames, in *@ret_frame. Returns 0 or
 * -ENOMEM. */
int profile__block(struct profile *profile, uint32_t library, uint32_t *ret_frame);

/* Returns the enum profile_role of a frame that is otherwise complete. For profile.c. */
uint8_t profile__role(const struct profile *profile, const struct profile_frame *frame);

/* Interns a frame; `file` and `library` may be NULL. 0 or -ENOMEM. */
int profile__code(struct profile *profile, uint8_t kind, const char *name, const char *file,
		  uint32_t line, const char *library, uint32_t *ret_frame);
/* As profile__code(), with kind, line, image, address and inferred as in @at. */
int profile__code_at(struct profile *profile, const struct profile_frame *at, const char *name,
		     const char *file, const char *library, uint32_t *ret_frame);
/* As profile__code(), without a library. */
int profile__frame(struct profile *profile, uint8_t kind, const char *name, const char *file,
		   uint32_t line, uint32_t *ret_frame);

/* Adds one stack; @frames are root first. With n == 0 the root node receives the weight. Returns 0
 * or -ENOMEM. */
int profile__add(struct profile *profile, const uint32_t *frames, size_t n, uint64_t weight);

/* As profile__add(), for stacks whose calls were counted and timed. */
int profile__add_calls(struct profile *profile, const uint32_t *frames, size_t n,
		       uint64_t weight_ns, uint64_t calls);

/* As profile__add(), for all values of a stack. The fields `waiting` and `preempted` are parts of
 * the weight, and at most as large. *@ret_node is the node where the stack ends; may be NULL. */
int profile__add_value(struct profile *profile, const uint32_t *frames, size_t n,
		       const struct profile_value *value, uint32_t *ret_node);

/* As profile__add_value(), for an existing node. */
void profile__add_at(struct profile *profile, uint32_t node, const struct profile_value *value);

/* Returns the child of @parent for @frame in *@ret_node; adds it if it is missing. Returns 0 or
 * -ENOMEM. */
int profile__child(struct profile *profile, uint32_t parent, uint32_t frame, uint32_t *ret_node);

/* Adds a thread. *@ret is its number in shares. Returns 0 or -ENOMEM. */
int profile__add_thread(struct profile *profile, const struct profile_thread_of *thread,
			uint32_t *ret);
int profile__copy_thread(struct profile *profile, const struct profile_thread *thread,
			 uint32_t *ret);
void profile_thread__done(struct profile_thread *thread);
int profile__add_share(struct profile *profile, const struct profile_share *share);

int profile__add_cell(struct profile *profile, const struct profile_cell *cell);

/* Must be called after the last cell. Sorts cells by column, thread, node and state, and adds up
 * equal ones. Makes columns wider until there are at most @most cells. Drops all cells if the
 * columns would become too wide. */
#define PROFILE_CELLS_MAX 300000
void profile__finish_cells(struct profile *profile, size_t most);

/* Returns an empty profile with the titles, losses, kinds and frames (by the same numbers) of
 * @profile, or NULL if out of memory. */
struct profile *profile__like(const struct profile *profile);

/* Turns the stacks of the samples round, so that they lead from functions to their callers. The
 * outermost labels stay outermost. Numbers of calls are dropped. The caller frees *@ret. Returns 0
 * or -ENOMEM. */
int profile__inverted(const struct profile *profile, struct profile **ret);

/* Returns true if some weights are of running threads and some of threads that do not run. */
bool profile__mixes(const struct profile *profile);

/* Returns true if the profile has numbers of occurrences besides its weights. It has none if it
 * mixes ticks of a clock and waits. */
bool profile__has_occurrences(const struct profile *profile);

/* Returns a new empty histogram, borrowed until the next one, or NULL if out of memory. */
struct profile_histogram *profile__add_histogram(struct profile *profile, const char *name);
/* @bucket PROFILE_BUCKETS: values below 0. */
void profile__count(struct profile_histogram *histogram, unsigned bucket, uint64_t occurrences,
		    uint64_t value);

int profile__add_loss(struct profile *profile, const char *name, uint64_t count);

/* Writes the mark that --annotate appends to a frame's name: its kind's suffix. The mark of an
 * inferred frame has a question mark: "_[n?]". */
#define PROFILE_MARK_BYTES 12
void profile__mark(const struct profile *profile, const struct profile_frame *frame,
		   char mark[PROFILE_MARK_BYTES]);

/* Writes "0.3 % of native frames and 2 % of runtime frames are inferred", or "" if no frame is. */
#define PROFILE_INFERRED_BYTES 96
void profile__inferred(const struct profile_evidence *evidence, char text[PROFILE_INFERRED_BYTES]);

/* Makes labels show each file by the shortest end of its path, in whole components, that no other
 * file of the profile has. Otherwise labels show the last component. Returns 0 or -ENOMEM. */
int profile__shorten_files(struct profile *profile);

/* Writes the label of @frame: `name`, or for frames with a file `name (base)`, `name (base:line)`
 * if line is not 0, with profile__mark() appended if @annotate is set. Native and inlined frames
 * show their file only if they have a line. The text is NUL-terminated, truncated if necessary, and
 * not yet escaped for any format. */
void profile__label(const struct profile *profile, const struct profile_frame *frame, int annotate,
		    char *buf, size_t size);

#endif
