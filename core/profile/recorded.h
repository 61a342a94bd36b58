/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDED_H
#define BRAID_RECORDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/intern.h"
#include "core/base/strtab.h"
#include "core/profile/profile.h"
#include "core/profile/sink.h"

/* The contents of a recording, as tables in memory. They are read from a recording
 * (core/store/load.c) or built while recording (core/live/live_profile.c). All data in the tables
 * are checked: references are indexes into the arrays here, or RECORDED_NONE for absent and
 * dangling ones; chains of nodes end; texts are C strings.
 *
 * Samples are summed up, so that memory grows with the number of distinct stacks, not with time. */

struct where_node; /* core/profile/where_tree.h */

#define RECORDED_NONE	   UINT32_MAX
#define RECORDED_DEPTH_MAX 8192 /* nodes of a stack; a deeper stack is corrupt */
#define RECORDED_LEVEL_MAX 64	/* locations of a frame */

typedef size_t recorded_text; /* offset in the texts; 0: "" */

/* Rows of one table, ascending by `id`, which is the first member of each row type that is referred
 * to. */
#define RECORDED_ROWS(type)    \
	struct {               \
		type *rows;    \
		size_t n, cap; \
	}

struct recorded_event {
	uint32_t id;
	recorded_text name, unit;
};

struct recorded_process {
	uint32_t id, pid;
	recorded_text name, cgroup, container; /* "": unknown, or none */
	recorded_text command;		       /* command line; "": unknown */
	recorded_text service;		       /* name of its service; "": unknown */
	uint64_t start_ticks; /* start after boot, hundredths of a second; 0: unknown */
};

struct recorded_thread {
	uint32_t id, process, tid;
	recorded_text name;
};

struct recorded_image {
	uint32_t id;
	recorded_text name;	      /* path without the directory */
	recorded_text path, build_id; /* hexadecimal, "": none */
};

struct recorded_function {
	uint32_t id;
	recorded_text name, file;
};

struct recorded_frame {
	uint32_t id, image;
	uint64_t address;
	uint32_t location, n_locations; /* rows of locations, innermost first */
	uint8_t kind;			/* KINDS_MAX: invalid kind */
	bool loop;			/* code of an interpreter's loop */
	bool anonymous;			/* has no image, not even a missing one */
};

struct recorded_location {
	uint32_t function, line;
	uint8_t kind; /* as for frames */
};

struct recorded_node {
	uint32_t id, parent, frame;
	uint16_t depth;	  /* nodes from here outwards */
	uint8_t evidence; /* enum native_evidence; unknown values count as inferred */
	uint64_t address; /* address for merge__run() */
};

/* The attribute of a process that names its service. */
#define RECORDED_SERVICE "service.name"

typedef uint32_t recorded_word; /* id in recorded.words: equal texts have equal ids; 0: "" */

/* the request that a thread worked for */
struct recorded_context {
	uint32_t id;
	recorded_word trace, span; /* hexadecimal; "": none */
	recorded_word request;	   /* by RECORDED_GROUPS_REQUEST; 0: not yet made, or none */
	uint32_t label, n_labels;  /* rows of labels */
};

struct recorded_label {
	recorded_word key, value;
};

struct recorded_attribute {
	uint32_t process; /* index */
	recorded_word key, value;
};

/* a part of the samples' contexts by which stacks differ */
enum recorded_groups {
	RECORDED_GROUPS_NONE,
	RECORDED_GROUPS_TRACE,
	RECORDED_GROUPS_SPAN,
	RECORDED_GROUPS_REQUEST, /* span, trace and labels as one text */
	RECORDED_GROUPS_LABEL,	 /* the value of the label group_key */
};

/* the sum of all samples that agree in these fields */
struct recorded_stack {
	uint32_t event, thread, native, runtime;
	struct rec_condition condition;
	uint8_t age;	      /* class of an outstanding object's age, 1 to RECORDED_AGES, by
				 recorded__least_age(); 0: none */
	bool complete;	      /* the native frames reach the thread's outermost one */
	uint64_t task;	      /* 0: none; always unless keeps_tasks */
	recorded_word group;  /* by recorded.groups; 0: none */
	uint32_t waker;	      /* stack that ended the wait; RECORDED_NONE unless keeps_wakers */
	bool rest;	      /* occurrences after the event's last samples, without any stack */
	uint64_t samples;     /* number of samples */
	uint64_t occurrences; /* occurrences that the samples stand for; saturates */
	uint64_t value;	      /* sum of their totals; saturates */
	uint64_t last;	      /* number of its newest sample, among all samples */
};

/* the samples of a stack whose own value has `bits` significant bits */
struct recorded_bucket {
	uint32_t stack;
	uint8_t bits;
	uint64_t occurrences, value; /* as in recorded_stack */
};

/* the samples of a stack in one column of time */
struct recorded_moment {
	uint32_t stack;
	uint64_t column;
	uint64_t value; /* saturates */
};

/* The columns that divide the recording's time, from its first sample on. */
struct recorded_columns {
	uint64_t first_ns, width_ns; /* width 0: no moments are recorded */
	uint64_t n;
};

/* Selects samples by time. */
struct recorded_times {
	int64_t shift_ns; /* recorded__add_sample() adds it to each time */
	uint64_t from_ns,
		to_ns; /* only samples from from_ns to before to_ns are added; both 0: all */
};

struct recorded_counter {
	recorded_text name;
	uint64_t value;
};

struct recorded {
	char *texts;
	size_t n_texts, cap_texts;
	recorded_text kind_names[KINDS_MAX], kind_suffixes[KINDS_MAX]; /* "": unused kind */
	recorded_text target;
	recorded_text task_name; /* name of tasks; "": unknown */
	recorded_text host;	 /* name of the recorded machine */
	recorded_text started;	 /* start in UTC: "2026-11-24T06:30:00Z"; "": unknown */
	double boot_s;		 /* boot time of the machine, CLOCK_REALTIME; 0: unknown */
	int64_t clock_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC at the start; 0: unknown */
	bool symbols_queried;	 /* debug servers were queried for symbols */
	double duration_s, frequency_hz;
	RECORDED_ROWS(struct recorded_event) events;
	RECORDED_ROWS(struct recorded_process) processes;
	RECORDED_ROWS(struct recorded_thread) threads;
	RECORDED_ROWS(struct recorded_image) images;
	RECORDED_ROWS(struct recorded_function) functions;
	RECORDED_ROWS(struct recorded_frame) frames;
	RECORDED_ROWS(struct recorded_location) locations;
	RECORDED_ROWS(struct recorded_node) nodes;
	RECORDED_ROWS(struct recorded_stack) stacks;
	RECORDED_ROWS(struct recorded_bucket) buckets; /* empty unless keeps_buckets */
	RECORDED_ROWS(struct recorded_moment) moments; /* empty unless columns have a width */
	RECORDED_ROWS(struct recorded_counter) counters;
	RECORDED_ROWS(struct recorded_context) contexts; /* empty unless they are needed */
	RECORDED_ROWS(struct recorded_label) labels;
	RECORDED_ROWS(struct recorded_attribute) attributes;
	struct strtab *words;	     /* private: texts of contexts and attributes; NULL: none yet */
	enum recorded_groups groups; /* must be set before the first sample */
	recorded_word group_key;     /* the same */
	const struct where_node *where;	 /* only samples that it selects are added; NULL: all */
	struct recorded_columns columns; /* must be set before the first sample */
	struct recorded_times times;	 /* must be set before the first sample */
	bool keeps_buckets;		 /* must be set before the first sample */
	uint32_t bucket_key; /* key of the label that buckets count; 0: they count the samples'
				values */
	bool keeps_wakers;   /* must be set before the first sample */
	bool keeps_tasks;    /* must be set before the first sample; there may be as many tasks as
				samples */
	bool has_tasks;	     /* some sample has a task */
	bool has_contexts;   /* some sample has a context */
	bool has_links;	     /* private: some sample has a link */
	uint64_t min_age_ns; /* outstanding objects of a smaller age are left out; must be set
				before the first sample */
	struct intern link_index;    /* private: numbers of stacks, + 1, by their samples' links */
	struct intern stack_index;   /* private: numbers of stacks, + 1 */
	struct intern bucket_index;  /* private: numbers of buckets, + 1 */
	struct intern moment_index;  /* private: numbers of moments, + 1 */
	struct intern group_index;   /* private: numbers of measures with groups, + 1 */
	struct intern measure_index; /* private: numbers of events with conditions, + 1 */
	struct intern task_index;    /* private: numbers of these with tasks, + 1 */
	uint32_t n_measures;
	uint64_t n_samples;
};

/* The caller calls recorded__done() in any case. Returns 0 or -ENOMEM. */
int recorded__init(struct recorded *recorded);
void recorded__done(struct recorded *recorded);

/* Returns the offset from which the node's address was computed. */
int64_t recorded__offset(const struct recorded_node *node);

/* Returns the memory that the tables need, in bytes, without reserved space. */
size_t recorded__bytes(const struct recorded *recorded);

/* Returns a text, borrowed until another text is added. */
static inline const char *recorded__text(const struct recorded *recorded, recorded_text text)
{
	return recorded->texts + text;
}

/* Each function below adds a row at the end, whose id must be greater than that of the previous
 * row. References are ids; dangling ones become RECORDED_NONE. Each returns 0, -ENOMEM, or -EBADMSG
 * for a row that contradicts the others. */

int recorded__add_text(struct recorded *recorded, const char *text, recorded_text *ret);
int recorded__add_event(struct recorded *recorded, uint32_t id, const char *name, const char *unit);
/* If a kind is added twice, the last one counts. */
int recorded__add_kind(struct recorded *recorded, uint8_t kind, const char *name,
		       const char *suffix);
int recorded__add_process(struct recorded *recorded, uint32_t id, uint32_t pid, const char *name,
			  const char *cgroup, const char *container); /* NULL: as "" */
int recorded__name_process(struct recorded *recorded, uint32_t id, const char *name);
int recorded__set_command(struct recorded *recorded, uint32_t id, const char *command);
int recorded__set_start(struct recorded *recorded, uint32_t id, uint64_t start_ticks);
int recorded__add_thread(struct recorded *recorded, uint32_t id, uint32_t process, uint32_t tid,
			 const char *name);
int recorded__name_thread(struct recorded *recorded, uint32_t id, const char *name);
int recorded__add_image(struct recorded *recorded, uint32_t id, const char *path,
			const char *build_id);
int recorded__add_function(struct recorded *recorded, uint32_t id, const char *name,
			   const char *file);
int recorded__add_counter(struct recorded *recorded, const char *name, uint64_t value);

int recorded__add_context(struct recorded *recorded, uint32_t id, const char *trace,
			  const char *span);
/* Adds a label of the context with the id @context. All labels of one context must follow each
 * other. */
int recorded__add_label(struct recorded *recorded, uint32_t context, const char *key,
			const char *value);
int recorded__add_attribute(struct recorded *recorded, uint32_t process, const char *key,
			    const char *value);

/* Returns the word of a text in *@ret; adds it if it is new. Returns 0 or -ENOMEM. */
int recorded__word(struct recorded *recorded, const char *text, uint32_t *ret);
const char *recorded__word_text(const struct recorded *recorded, uint32_t word); /* borrowed */

/* the number that a label is */
struct recorded_number {
	uint64_t number; /* two's complement */
	bool is_negative;
};

/* Converts a text such as 12, -1 or 0x1f. Returns false if it is no number. */
bool recorded__number(const char *text, struct recorded_number *ret);

/* Returns the value of a label of the context (an index); 0: it has no such label. */
uint32_t recorded__label(const struct recorded *recorded, uint32_t context, uint32_t key);

/* Sets *@ret to the group of the context (an index) by recorded.groups; 0: none. Returns 0 or
 * -ENOMEM. */
int recorded__group(struct recorded *recorded, uint32_t context, uint32_t *ret);

/* Adds a frame. Uses `kind` (KINDS_MAX and above: invalid), `image`, `address` and `loop` of
 * @frame. @anonymous is set if it has no image, not even a missing one. */
int recorded__add_frame(struct recorded *recorded, uint32_t id, const struct sink_frame *frame,
			bool anonymous);

/* Adds the next outward location of @frame (an index). All locations of one frame must follow each
 * other. Those beyond RECORDED_LEVEL_MAX are ignored. */
int recorded__add_location(struct recorded *recorded, uint32_t frame, uint8_t kind,
			   uint32_t function, uint32_t line);

int recorded__add_node(struct recorded *recorded, uint32_t id, const struct sink_node *node);

/* Returns the row of the sample's stack in *@ret; adds it if it is new. Borrowed until the next
 * row. */
int recorded__stack(struct recorded *recorded, const struct sink_sample *sample,
		    struct recorded_stack **ret);

/* Returns true if the event is about memory that is allocated and not freed. The `object` of its
 * samples is the age of the memory, in ns. */
bool recorded__is_outstanding(const struct recorded *recorded, uint32_t event);

/* Returns the smallest age of class @age, from 1, in ns. For the class after the last one it is
 * UINT64_MAX. */
#define RECORDED_AGES 6
uint64_t recorded__least_age(unsigned age);

/* Returns the class of an age. */
uint8_t recorded__age(uint64_t age_ns);

/* Adds a sample to the sums of its stack. */
int recorded__add_sample(struct recorded *recorded, const struct sink_sample *sample);

/* Add to the sums of a stack (by index) in a bucket or a column. */
int recorded__add_bucket(struct recorded *recorded, const struct recorded_bucket *bucket);
int recorded__add_moment(struct recorded *recorded, const struct recorded_moment *moment);

/* Returns the row of the stack that equals @stack in all but sums; adds it if it is new. Borrowed
 * until the next row. */
int recorded__same_stack(struct recorded *recorded, const struct recorded_stack *stack,
			 struct recorded_stack **ret);

/* Removes all samples, and nothing else. */
void recorded__clear_samples(struct recorded *recorded);

/* Copies the stacks that are marked by index, and all rows that they need, to @to, which must be
 * empty. */
int recorded__keep(const struct recorded *recorded, const bool *stacks, struct recorded *to);

/* Returns the index of the row with that id, or RECORDED_NONE. */
uint32_t recorded__find_id(const void *rows, size_t n, size_t size, uint32_t id);
#define recorded__find(table, id) \
	recorded__find_id((table)->rows, (table)->n, sizeof(*(table)->rows), (id))

/* Returns true if the event (an index) is a timer's, whose values are ticks. */
bool recorded__is_ticks(const struct recorded *recorded, uint32_t event);

/* Returns the time that the ticks stand for, in ns; saturates. */
uint64_t recorded__ticks_ns(uint64_t ticks, double frequency_hz);

/* Converts ticks of timers to times, so that they can be added to those of another rate. Changes
 * the values and the unit of such events. Returns 0, -ENOMEM, or -ENODATA if there are ticks and
 * their rate is unknown. */
int recorded__time_ticks(struct recorded *recorded);

/* Changes the unit of ticks, for values that are times already. Returns 0 or -ENOMEM. */
int recorded__call_ticks_ns(struct recorded *recorded);

#endif
