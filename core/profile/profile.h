/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROFILE_H
#define BRAID_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/strtab.h"

/* A profile is what presentation sees: merged stacks as one tree of interned frames with weights,
 * which are sums of the values of one event's samples.
 * It knows nothing of processes, ELF files or recordings, and no language by name: what a frame's
 * kind is called, and how it is marked, is data. */

enum {
	KIND_KERNEL,
	KIND_NATIVE,
	KIND_INLINED, /* a native function inlined into the native frame that follows it rootwards
		       */
	KIND_RUNTIME, /* the first of the kinds that come from runtimes */
	KINDS_MAX = 32,
};

/* What weights are. */
enum profile_unit {
	PROFILE_SAMPLES,     /* ticks of a timer */
	PROFILE_NANOSECONDS, /* time that was measured */
	PROFILE_BYTES,
	PROFILE_COUNT, /* occurrences of anything */
	PROFILE_OTHER, /* `unit_name` tells */
};

struct profile_kind {
	char name[32];	/* "kernel", "native", "inlined", then runtimes' names */
	char suffix[8]; /* for --annotate: "_[k]", "_[n]", "_[i]", ...; may be "" */
	bool label;	/* its frames are no code: groups, "woken by ..." */
};

/* What a frame is to the run of native frames that it stands in (core/profile/frames.h). */
enum profile_role {
	ROLE_PLAIN,
	ROLE_INTERPRETER, /* of a library that runs a runtime's frames */
	ROLE_CALLER,	  /* the same, and what it calls is a function that a script called */
	ROLE_SYSCALL,	  /* where the kernel begins with a certain system call */
	ROLE_BLOCK,	  /* stands for a run of frames of an interpreter's library */
};

struct profile_frame {
	uint32_t name;	  /* strtab ids */
	uint32_t file;	  /* full path, or "" */
	uint32_t line;	  /* 0: unknown or not wanted */
	uint32_t library; /* of native code and the kernel: in short; "": none, or unknown */
	uint8_t kind;
	uint8_t role;	/* enum profile_role; follows from the others */
	bool inferred;	/* nothing proves that it was there */
	uint32_t image; /* number + 1 in the profile's; 0: its address is not known or not wanted */
	uint64_t address; /* as in the image's file */
};

/* A file with native code. */
struct profile_image {
	uint32_t path, build_id; /* strtab ids */
};

/* Node 0 is the root and has no frame. A node's parent always has a smaller index. */
struct profile_node {
	uint32_t parent;
	uint32_t frame;
	uint64_t self;	      /* weight of the stacks that end here */
	uint64_t calls;	      /* of those stacks; 0 unless calls were counted */
	uint64_t waiting;     /* part of `self`: the thread waited, or was stopped */
	uint64_t preempted;   /* part of `self`: it could have run, but another had the CPU */
	uint64_t samples;     /* that `self` comes from; 0: not known */
	uint64_t occurrences; /* that these stand for; 0: not known */
	uint64_t waits, preemptions; /* parts of these: in `waiting` and `preempted` */
	uint32_t run;		     /* it stands for so many frames at most; 0 or 1: for its own */
};

/* What a stack adds to the node where it ends. */
struct profile_value {
	uint64_t weight, calls, waiting, preempted, samples, occurrences, waits, preemptions;
};

/* A part of a node's own value: that of one thread. */
struct profile_share {
	uint32_t node, thread;
	struct profile_value value;
};

/* What a thread's samples in a column of time add to the node where they end. */
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
	uint64_t task; /* that it was at; 0: none, or it does not matter */
	char *process, *name;
	char *cgroup, *container; /* of the process; "": not known, or none */
	char *command;		  /* line of the process; "": unknown */
};

/* The same, borrowed. */
struct profile_thread_of {
	uint32_t pid, tid;
	uint64_t task;
	const char *process, *name;
	const char *cgroup, *container; /* NULL is as good as "" */
	const char *command;		/* the same */
};

/* How many occurrences had values in [2^(i-1), 2^i), or 0 for i == 0. */
#define PROFILE_BUCKETS 65
struct profile_histogram {
	char *name;    /* of the group; "" for all and for a stack */
	uint32_t node; /* where the stack ends; 0: it is not of one */
	uint64_t occurrences, value;
	uint64_t buckets[PROFILE_BUCKETS];
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
	struct profile_image *images; /* of frames with addresses */
	size_t n_images, cap_images;
	uint32_t
		*short_files; /* by string: where the part begins that labels show; NULL: not set */
	uint32_t n_short_files;
	void *frame_index, *node_index; /* private: hash tables of profile.c */
	struct profile_path *paths;	/* private */
	/* Names of functions of interpreters that call native functions for scripts, patterns of
	 * fnmatch(3) with FNM_EXTMATCH up to a NULL, borrowed; NULL: not known. */
	const char *const *callers;
	const struct code_rules *const
		*rules;		/* of its runtimes, up to a NULL, borrowed; NULL: none */
	uint32_t *interpreters; /* libraries, by profile__interpreter */
	size_t n_interpreters, cap_interpreters;

	/* All values, divided among threads; none unless the maker was asked for them. */
	struct profile_thread *threads;
	size_t n_threads, cap_threads;
	struct profile_share *shares;
	size_t n_shares, cap_shares;

	/* The same over time, in columns: profile__add_cell. None unless the maker was asked. */
	struct profile_cell *cells;
	size_t n_cells, cap_cells;
	uint64_t column_ns, n_columns;
	bool instants; /* columns are of 1 ns, and cells in no order */

	/* What was measured: profile__measures. */
	enum profile_unit unit; /* PROFILE_SAMPLES unless the maker sets it */
	char *unit_name;	/* NULL: "samples" */
	char *event;		/* NULL: "cpu" */
	char *occurrences_name; /* "EVENT occurrences"; NULL: profile__measures was not called */
	char *task_name;	/* what threads' tasks are called; NULL: not known */
	bool counts_calls;	/* weights are the time of the nodes' calls */
	uint8_t group_kind;	/* of outermost frames that are no code, but what the user has
				   grouped by; 0: there are none */

	/* Frames of all samples, and how many of them nothing proves. */
	struct profile_evidence {
		uint64_t natives, inferred_natives;
		uint64_t runtimes, inferred_runtimes;
	} evidence;

	/* Waiting that means nothing, left out: its weight, that of all with it, and the threads
	 * in which it was. */
	struct {
		uint64_t weight, whole;
		uint32_t threads;
	} idle;

	/* The first is that of all; none unless the maker adds some. */
	struct profile_histogram *histograms;
	size_t n_histograms, cap_histograms;

	/* for titles */
	char *other_events; /* "a, b": what else the recording has; NULL or "": nothing */
	char *nameless; /* what native code has no symbols, a sentence; NULL: all that counts has */
	char *target;	/* "pid 4711 (python3 app.py)" */
	char *started;	/* when, in UTC: "2026-11-24T06:30:00Z"; "" or NULL: not known */
	char *host;	/* that it was recorded on; "" or NULL: not known */
	double duration_s;
	/* When the oldest process began that has a frame of an interpreter, CLOCK_REALTIME in
	 * seconds; 0: not known, or there is none. */
	double begun_s;
	double frequency_hz;
	uint64_t total;		     /* sum of all weights */
	uint64_t waiting, preempted; /* parts of it, as for nodes */
	uint64_t samples;	     /* that they come from; 0: not known */
	uint64_t occurrences;	     /* that these stand for; the same */
	struct profile_loss *losses; /* only counters that are not zero */
	size_t n_losses, cap_losses;
};

/* With the kinds kernel, native and inlined in place. NULL: out of memory. */
struct profile *profile__new(void);
void profile__free(struct profile *profile); /* NULL is fine */

/* Sets event and unit (as SINK_UNIT_* of core/profile/sink.h spells it, or any other text). Both
 * are copied. 0 or -ENOMEM. */
int profile__measures(struct profile *profile, const char *event, const char *unit);

/* Returns the unit of weights: "samples" or another of SINK_UNIT_*, or any other text. */
const char *profile__unit(const struct profile *profile);

/* Kind number of a runtime of that name, added at first sight; or -ENOSPC. */
int profile__kind(struct profile *profile, const char *name, const char *suffix);

/* The same for a kind whose frames are no code. */
int profile__label_kind(struct profile *profile, const char *name);

/* Is it a function of a runtime? */
static inline bool profile__is_runtime(const struct profile *profile,
				       const struct profile_frame *frame)
{
	return frame->kind >= KIND_RUNTIME && !profile->kinds[frame->kind].label;
}

/* What a file of native code is called in short: "libc" for "/lib/libc.so.6". */
#define PROFILE_LIBRARY_BYTES 256
void profile__library(const char *file, char *buf, size_t size);

/* Frames of this library (in short) that come later run a runtime's frames. 0 or -ENOMEM. */
int profile__interpreter(struct profile *profile, const char *library);

/* `ret`: its number + 1. 0 or -ENOMEM. */
int profile__add_image(struct profile *profile, const char *path, const char *build_id,
		       uint32_t *ret);

/* The frame that stands for a run of such a library's frames. 0 or -ENOMEM. */
int profile__block(struct profile *profile, uint32_t library, uint32_t *ret_frame);

/* For profile.c: enum profile_role of a frame that is otherwise complete. */
uint8_t profile__role(const struct profile *profile, const struct profile_frame *frame);

/* Interns a frame; `file` and `library` may be NULL. 0 or -ENOMEM. */
int profile__code(struct profile *profile, uint8_t kind, const char *name, const char *file,
		  uint32_t line, const char *library, uint32_t *ret_frame);
/* The same with kind, line, image, address and inferred as in `at`. */
int profile__code_at(struct profile *profile, const struct profile_frame *at, const char *name,
		     const char *file, const char *library, uint32_t *ret_frame);
/* The same without a library. */
int profile__frame(struct profile *profile, uint8_t kind, const char *name, const char *file,
		   uint32_t line, uint32_t *ret_frame);

/* Adds one stack, `frames` root first. 0 or -ENOMEM. n == 0 gives the weight to the root node. */
int profile__add(struct profile *profile, const uint32_t *frames, size_t n, uint64_t weight);

/* profile__add for stacks whose calls were counted and timed. */
int profile__add_calls(struct profile *profile, const uint32_t *frames, size_t n,
		       uint64_t weight_ns, uint64_t calls);

/* The same for all that a stack can add. The parts are at most the weight. `ret_node`: where it
 * ends; may be NULL. */
int profile__add_value(struct profile *profile, const uint32_t *frames, size_t n,
		       const struct profile_value *value, uint32_t *ret_node);

/* The same for a node that is there already. */
void profile__add_at(struct profile *profile, uint32_t node, const struct profile_value *value);

/* The node of `parent`'s child for that frame, added if it is not there. 0 or -ENOMEM. */
int profile__child(struct profile *profile, uint32_t parent, uint32_t frame, uint32_t *ret_node);

/* 0 or -ENOMEM. `ret`: its number in shares. */
int profile__add_thread(struct profile *profile, const struct profile_thread_of *thread,
			uint32_t *ret);
int profile__copy_thread(struct profile *profile, const struct profile_thread *thread,
			 uint32_t *ret);
void profile_thread__done(struct profile_thread *thread);
int profile__add_share(struct profile *profile, const struct profile_share *share);

int profile__add_cell(struct profile *profile, const struct profile_cell *cell);

/* After the last one: sorts them by column, thread, node and state, adds up what is alike, and
 * makes columns wider until there are at most `most`; where that takes too wide ones, there are
 * none. */
#define PROFILE_CELLS_MAX 300000
void profile__finish_cells(struct profile *profile, size_t most);

/* An empty one with the titles, losses, kinds and frames (by the same numbers) of another. NULL:
 * out of memory. */
struct profile *profile__like(const struct profile *profile);

/* The same samples with their stacks turned round: what functions were called by. The outermost
 * labels stay outermost. Calls stay with no node. The caller frees `*ret`. 0 or -ENOMEM. */
int profile__inverted(const struct profile *profile, struct profile **ret);

/* Are some weights of running and some of not running? */
bool profile__mixes(const struct profile *profile);

/* Returns true if the weights are no numbers of occurrences, and these numbers are known, too. They
 * are not if the profile mixes ticks of a clock and waits. */
bool profile__has_occurrences(const struct profile *profile);

/* A new one, empty, borrowed until the next; NULL: out of memory. */
struct profile_histogram *profile__add_histogram(struct profile *profile, const char *name);
void profile__count(struct profile_histogram *histogram, unsigned bucket, uint64_t occurrences,
		    uint64_t value);

int profile__add_loss(struct profile *profile, const char *name, uint64_t count);

/* The mark that --annotate appends to a frame's name: its kind's suffix. That of an inferred frame
 * has a question mark: "_[n?]". */
#define PROFILE_MARK_BYTES 12
void profile__mark(const struct profile *profile, const struct profile_frame *frame,
		   char mark[PROFILE_MARK_BYTES]);

/* Writes "0.3 % of native frames and 2 % of runtime frames are inferred", or "" if none are. */
#define PROFILE_INFERRED_BYTES 96
void profile__inferred(const struct profile_evidence *evidence, char text[PROFILE_INFERRED_BYTES]);

/* Has labels show files by the shortest end of their path, from a slash on, that no other file of
 * the profile has. Else they show the last component. 0 or -ENOMEM */
int profile__shorten_files(struct profile *profile);

/* How a frame is shown everywhere: `name`, or for frames with a file `name (base)`, `name
 * (base:line)` where line is not 0, with profile__mark() appended if `annotate`. Native and
 * inlined frames show their file only when they have a line. Writes a NUL-terminated text, cut if
 * need be, raw: not yet escaped for any format. */
void profile__label(const struct profile *profile, const struct profile_frame *frame, int annotate,
		    char *buf, size_t size);

#endif
