/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDED_H
#define BRAID_RECORDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/intern.h"
#include "core/profile/profile.h"
#include "core/profile/sink.h"

/* What was recorded, as tables in memory: read from a recording (core/store/load.c) or built while
 * recording (core/live/live_profile.c). All that the tables say is checked: references are
 * indexes into the arrays here, or RECORDED_NONE for those that are absent or lead nowhere; chains
 * of nodes end; texts are C strings.
 *
 * Samples are summed up, so that memory grows with the number of distinct stacks and not with
 * time. */

#define RECORDED_NONE	   UINT32_MAX
#define RECORDED_DEPTH_MAX 8192 /* nodes of a stack; deeper is damage */
#define RECORDED_LEVEL_MAX 64	/* locations of a frame */

typedef size_t recorded_text; /* place in the texts; 0 is "" */

/* Rows of one table, ascending by `id`, which each row type that is referred to begins with. */
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
	recorded_text name, cgroup, container; /* "": not known, or none */
	recorded_text command;		       /* line; "": unknown */
	uint64_t start_ticks;		       /* since boot, hundredths of a second; 0: unknown */
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
	uint8_t kind;			/* KINDS_MAX: none that there can be */
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
	uint8_t evidence; /* enum native_evidence; what is unknown is inferred */
	uint64_t address; /* as merge takes it */
};

/* All samples that have these in common. */
struct recorded_stack {
	uint32_t event, thread, native, runtime;
	struct rec_condition condition;
	uint8_t age;	/* of what is outstanding: 1 to RECORDED_AGES, by recorded__least_age; 0 */
	bool complete;	/* the native frames reach the thread's outermost one */
	uint64_t task;	/* 0: none; always unless keeps_tasks */
	uint32_t waker; /* the stack of who has ended the wait; RECORDED_NONE unless keeps_wakers */
	bool rest;	/* what followed the event's last samples, without any stack */
	uint64_t samples;     /* how many */
	uint64_t occurrences; /* that they stand for; saturates */
	uint64_t value;	      /* sum of their totals; saturates */
	uint64_t last;	      /* number of the newest one, of all samples */
};

/* Those of a stack's samples whose own value has so many significant bits. */
struct recorded_bucket {
	uint32_t stack;
	uint8_t bits;
	uint64_t occurrences, value; /* as in recorded_stack */
};

/* Those of a stack's samples that were taken in a column of time. */
struct recorded_moment {
	uint32_t stack;
	uint64_t column;
	uint64_t value; /* saturates */
};

/* What the recording's time is divided into, from its first sample on. */
struct recorded_columns {
	uint64_t first_ns, width_ns; /* width 0: moments are not kept */
	uint64_t n;
};

/* Times of samples. */
struct recorded_times {
	int64_t shift_ns; /* is added to them, by who adds samples, and then only ... */
	uint64_t from_ns,
		to_ns; /* ... those from the one to before the other are taken; both 0: all
			*/
};

struct recorded_counter {
	recorded_text name;
	uint64_t value;
};

struct recorded {
	char *texts;
	size_t n_texts, cap_texts;
	recorded_text kind_names[KINDS_MAX], kind_suffixes[KINDS_MAX]; /* "": no such kind */
	recorded_text target;
	recorded_text task_name; /* what tasks are called; "": not known */
	recorded_text host;	 /* that it was made on */
	recorded_text started;	 /* when, in UTC: "2026-11-24T06:30:00Z"; "": not known */
	double boot_s;		 /* when the machine was booted, CLOCK_REALTIME; 0: not known */
	int64_t clock_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC then; 0: not known */
	bool symbols_asked;	 /* debug servers were asked for symbols */
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
	RECORDED_ROWS(struct recorded_bucket) buckets; /* none unless keeps_buckets */
	RECORDED_ROWS(struct recorded_moment) moments; /* none unless columns has a width */
	RECORDED_ROWS(struct recorded_counter) counters;
	struct recorded_columns columns; /* set it before the first sample */
	struct recorded_times times;	 /* the same */
	bool keeps_buckets;		 /* set it before the first sample */
	bool keeps_wakers;		 /* the same */
	bool keeps_tasks;		 /* the same: there can be as many as samples */
	bool has_tasks;			 /* some sample has one */
	bool has_links;			 /* private: some sample has one */
	uint64_t min_age_ns;	     /* the same: what is outstanding, but younger, is left out */
	struct intern link_index;    /* private: of stacks, + 1, by their samples' links */
	struct intern stack_index;   /* private: of stacks, + 1 */
	struct intern bucket_index;  /* private: of buckets, + 1 */
	struct intern moment_index;  /* private: of moments, + 1 */
	struct intern measure_index; /* private: numbers of events with conditions, + 1 */
	struct intern task_index;    /* private: the same of those with tasks */
	uint32_t n_measures;
	uint64_t n_samples;
};

/* Call recorded__done in any case. -ENOMEM. */
int recorded__init(struct recorded *recorded);
void recorded__done(struct recorded *recorded);

/* The other way round: the offset that gave a node's address. */
int64_t recorded__offset(const struct recorded_node *node);

/* How much memory the tables need, without what is reserved for growth. */
size_t recorded__bytes(const struct recorded *recorded);

/* Borrowed until a text is added. */
static inline const char *recorded__text(const struct recorded *recorded, recorded_text text)
{
	return recorded->texts + text;
}

/* Each adds a row at the end, whose id is greater than that of the row before it, and returns 0,
 * -ENOMEM or -EBADMSG: it cannot be true. References are ids, and those that lead nowhere become
 * RECORDED_NONE. */

int recorded__add_text(struct recorded *recorded, const char *text, recorded_text *ret);
int recorded__add_event(struct recorded *recorded, uint32_t id, const char *name, const char *unit);
/* Several with one number: the last one counts. */
int recorded__add_kind(struct recorded *recorded, uint8_t kind, const char *name,
		       const char *suffix);
int recorded__add_process(struct recorded *recorded, uint32_t id, uint32_t pid, const char *name,
			  const char *cgroup, const char *container); /* NULL is as good as "" */
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

/* `frame->loop`, `kind` (KINDS_MAX and above: none), `image`, `address` count. `anonymous`: no
 * image, not even one that is missing. */
int recorded__add_frame(struct recorded *recorded, uint32_t id, const struct sink_frame *frame,
			bool anonymous);

/* The next outward location of a frame (by index); all of one frame's follow each other. More than
 * RECORDED_LEVEL_MAX are ignored. */
int recorded__add_location(struct recorded *recorded, uint32_t frame, uint8_t kind,
			   uint32_t function, uint32_t line);

int recorded__add_node(struct recorded *recorded, uint32_t id, const struct sink_node *node);

/* The sums of the stack that has the sample's event, thread and nodes, a new row if it is the
 * first. Borrowed until the next row. */
int recorded__stack(struct recorded *recorded, const struct sink_sample *sample,
		    struct recorded_stack **ret);

/* Is it about what was allocated and not freed? Then samples' `object` is how long that was held,
 * in ns. */
bool recorded__is_outstanding(const struct recorded *recorded, uint32_t event);

/* The smallest age of a class from 1, in ns; that of the one after the last is the greatest there
 * is. */
#define RECORDED_AGES 6
uint64_t recorded__least_age(unsigned age);

/* The class of an age. */
uint8_t recorded__age(uint64_t age_ns);

/* Adds to the stack's sums. */
int recorded__add_sample(struct recorded *recorded, const struct sink_sample *sample);

/* Sums of a stack (by index) in a bucket or a column, which are added to. */
int recorded__add_bucket(struct recorded *recorded, const struct recorded_bucket *bucket);
int recorded__add_moment(struct recorded *recorded, const struct recorded_moment *moment);

/* The row of a stack that is the same in all but sums. Borrowed until the next row. */
int recorded__same_stack(struct recorded *recorded, const struct recorded_stack *stack,
			 struct recorded_stack **ret);

/* Forgets all samples, and nothing else. */
void recorded__clear_samples(struct recorded *recorded);

/* Copies into `to`, which is empty, the stacks that are marked by index, and what they need. */
int recorded__keep(const struct recorded *recorded, const bool *stacks, struct recorded *to);

/* Index of the row with that id, or RECORDED_NONE. */
uint32_t recorded__find_id(const void *rows, size_t n, size_t size, uint32_t id);
#define recorded__find(table, id) \
	recorded__find_id((table)->rows, (table)->n, sizeof(*(table)->rows), (id))

/* Is the event (its index) a timer's, whose values are ticks? */
bool recorded__is_ticks(const struct recorded *recorded, uint32_t event);

/* Returns the time that the ticks stand for, in ns; saturates. */
uint64_t recorded__ticks_ns(uint64_t ticks, double frequency_hz);

/* Makes times of all ticks, so that they can be added to those of another rate: values and unit of
 * the timer's events. -ENODATA: there are ticks, and their rate is unknown; -ENOMEM. */
int recorded__time_ticks(struct recorded *recorded);

/* The unit alone, for values that are times already. -ENOMEM */
int recorded__call_ticks_ns(struct recorded *recorded);

#endif
