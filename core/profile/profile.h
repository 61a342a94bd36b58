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
};

struct profile_frame {
	uint32_t name; /* strtab ids */
	uint32_t file; /* full path, or "" */
	uint32_t line; /* 0: unknown or not wanted */
	uint8_t kind;
};

/* Node 0 is the root and has no frame. A node's parent always has a smaller index. */
struct profile_node {
	uint32_t parent;
	uint32_t frame;
	uint64_t self;	    /* weight of the stacks that end here */
	uint64_t calls;	    /* of those stacks; 0 unless calls were counted */
	uint64_t waiting;   /* part of `self`: the thread waited, or was stopped */
	uint64_t preempted; /* part of `self`: it could have run, but another had the CPU */
};

/* What a stack adds to the node where it ends. */
struct profile_value {
	uint64_t weight, calls, waiting, preempted;
};

/* How many samples had values in [2^(i-1), 2^i), or 0 for i == 0. */
#define PROFILE_BUCKETS 65
struct profile_histogram {
	char *name;    /* of the group; "" for all and for a stack */
	uint32_t node; /* where the stack ends; 0: it is not of one */
	uint64_t samples, value;
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
	void *frame_index, *node_index; /* private: hash tables of profile.c */
	struct profile_path *paths;	/* private */

	/* What was measured: profile__measures. */
	enum profile_unit unit; /* PROFILE_SAMPLES unless the maker sets it */
	char *unit_name;	/* NULL: "samples" */
	char *event;		/* NULL: "cpu" */
	bool counts_calls;	/* weights are the time of the nodes' calls */
	uint8_t group_kind;	/* of outermost frames that are no code, but what the user has
				   grouped by; 0: there are none */

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
	char *target;	    /* "pid 4711 (python3 app.py)" */
	double duration_s;
	double frequency_hz;
	uint64_t total;		     /* sum of all weights */
	uint64_t waiting, preempted; /* parts of it, as for nodes */
	uint64_t samples;	     /* that they come from; 0: not known */
	struct profile_loss *losses; /* only counters that are not zero */
	size_t n_losses, cap_losses;
};

/* With the kinds kernel, native and inlined in place. NULL: out of memory. */
struct profile *profile__new(void);
void profile__free(struct profile *profile); /* NULL is fine */

/* Sets event and unit (as SINK_UNIT_* of core/profile/sink.h spells it, or any other text). Both
 * are copied. 0 or -ENOMEM. */
int profile__measures(struct profile *profile, const char *event, const char *unit);

/* Kind number of a runtime of that name, added at first sight; or -ENOSPC. */
int profile__kind(struct profile *profile, const char *name, const char *suffix);

/* Interns a frame; `file` may be NULL. 0 or -ENOMEM. */
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

/* Are some weights of running and some of not running? */
bool profile__mixes(const struct profile *profile);

/* A new one, empty, borrowed until the next; NULL: out of memory. */
struct profile_histogram *profile__add_histogram(struct profile *profile, const char *name);
void profile__count(struct profile_histogram *histogram, unsigned bucket, uint64_t samples,
		    uint64_t value);

int profile__add_loss(struct profile *profile, const char *name, uint64_t count);

/* How a frame is shown everywhere: `name`, or for frames with a file `name (base)`, `name
 * (base:line)` where line is not 0, with the kind's suffix appended if `annotate`. Native and
 * inlined frames show their file only when they have a line. Writes a NUL-terminated text, cut if
 * need be, raw: not yet escaped for any format. */
void profile__label(const struct profile *profile, const struct profile_frame *frame, int annotate,
		    char *buf, size_t size);

#endif
