/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CAPTURE_H
#define BRAID_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/naming_compiled.h"
#include "core/events/values.h"
#include "core/profile/sink.h"
#include "core/target/tracker.h"

/* Converts the kernel half's records to calls of a sink. Interns frames, and turns stacks into
 * nodes of a tree. Names new frames soon, while their process is likely to live. */
struct capture;

/* an event that is sampled */
struct capture_event {
	struct sink_event event;
	bool timed;	  /* taken by the clock, so that capture__weigh() applies */
	bool pending;	  /* values follow later; the totals of its rests are sums of objects */
	bool outstanding; /* counts memory that is not freed */
	const struct event_values *values; /* recorded with its samples; borrowed; NULL: none */
};

struct capture_opts {
	struct sink *sink;		    /* receives the samples; borrowed */
	const struct capture_event *events; /* event n of rec_sample.event is at n - 1; borrowed */
	uint32_t n_events;
	struct tracker *tracker;
	struct images *images;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL: not enabled */
	const char *kallsyms_path;
	uint32_t enabled;	     /* bit n: runtimes[n] is enabled */
	tracker_source_fn on_source; /* receives notices about sources of names; may be NULL */
	bool renews;		     /* capture__renew() will be called */
	bool (*hurries)(void *ctx);  /* true: skip names that take long; NULL: never */
	void (*on_fetch)(void *ctx); /* called before requests to debug servers; may be NULL */
	void *ctx;
};

/* Counts of the present recording. */
struct capture_stats {
	uint64_t samples, complete;
	uint64_t event_samples[EVENTS_MAX];	    /* samples of event n, at n - 1 */
	uint64_t sums[EVENTS_MAX][THREAD_STATES_N]; /* totals, by event and thread state */
	struct rest_rec rests[EVENTS_MAX];	    /* occurrences without a sample */
	uint64_t untimed; /* occurrences that may or may not reach the minimum */
	uint64_t ticks;	  /* samples taken by the clock */
	uint64_t runtime_ticks[RUNTIMES_MAX]; /* ticks with frames of the runtime */
	uint64_t unowned;	     /* samples lost as they belong to no process in the tracker */
	uint64_t malformed;	     /* samples lost as their record is malformed */
	uint64_t unfinished;	     /* samples lost as their value is still missing at the end */
	uint64_t contexts_lost;	     /* samples whose request context did not arrive */
	uint64_t contexts_malformed; /* request contexts whose attributes are incomplete */
	uint64_t repeat_lost;	     /* samples lost as the stack that they refer to is missing */
	uint64_t kernel_frames, native_frames;
	uint64_t inferred_frames;   /* inferred frames among native_frames */
	uint64_t inferred_runtimes; /* inferred frames among those of runtimes */
	uint64_t stale;		    /* runtimes' functions that were freed before they got a name */
	uint64_t kernel_unnamed;    /* addresses without a name, as the kernel hides its symbols */
	struct fetched_names_stats fetched;
	uint64_t runtime_frames[RUNTIMES_MAX];
	uint64_t unplaced;    /* frames placed by order alone, in samples with several runtimes */
	uint64_t unsure;      /* stacks cut where a mapping had just ended: COUNT_ENDED_MAPPING */
	uint64_t early;	      /* samples without a runtime's frames: its walker was not ready */
	uint64_t copies_used; /* stacks that only a stack copy extended */
	uint64_t recovered[COUNTERS_N]; /* stacks that a copy completed, by the cause of the cut */
};

int capture__new(const struct capture_opts *opts, struct capture **ret, struct err *err);
void capture__free(struct capture *capture); /* NULL is fine */

/* Sets the weight of samples of timed events that are taken at @since_ns (CLOCK_MONOTONIC) or
 * later, as they are taken at a lower rate. The initial weight is 1. All samples from before the
 * previous change must have been recorded. */
void capture__weigh(struct capture *capture, uint64_t since_ns, uint32_t value);

/* Stops the use of stack copies. */
void capture__skip_copies(struct capture *capture);

/* Records one record of the ring buffer: a sample, or a record that belongs to samples. Records
 * about the life of processes are not for this function. Returns 0, or a negative errno after which
 * the recording cannot go on. */
int capture__record(struct capture *capture, const void *data, size_t size, struct err *err);

/* the occurrences of an event that have no sample */
struct capture_rest {
	struct rest_rec kernel;	 /* those that the kernel half counted */
	uint64_t minimum;	 /* minimum of the event's values; 0: none */
	enum thread_state state; /* state of their threads */
	uint64_t time_ns;	 /* time within the recording */
	bool last;		 /* no values of pending samples will arrive */
};

/* Records the occurrences of @event without a sample, also those whose sample is lost, as a row
 * without a stack. If the event has pending values and a minimum, counts the occurrences as untimed
 * instead. Returns as capture__record(). */
int capture__rest(struct capture *capture, uint32_t event, const struct capture_rest *of,
		  struct err *err);

/* Names the frames that are new since the last call; with @last, all that have no name yet. Must be
 * called before each commit. */
int capture__name_frames(struct capture *capture, bool last, struct err *err);

/* Gets better names for code of stripped files from the user's debug servers, if any
 * (core/fetch/debuginfod.h). Must be called after the last capture__name_frames(). Takes up to 30
 * s. */
int capture__fetch_names(struct capture *capture, struct err *err);

/* Names the frames of a process that is gone, or that is about to execute another program, from its
 * files. Must be called while the tracker still has the process. Samples from its last moments may
 * follow. */
int capture__process_ended(struct capture *capture, const struct process *process, struct err *err);

/* Drops a process whose serial number will not occur in further samples. */
int capture__forget_process(struct capture *capture, const struct process *process,
			    struct err *err);

/* Returns the number of processes that capture has. */
size_t capture__count_processes(const struct capture *capture);

/* Reads the maps of code that a running process has generated. */
int capture__read_code(struct capture *capture, struct process *process, struct err *err);

/* Returns the process's id in *@ret_id; assigns one if necessary. */
int capture__process_id(struct capture *capture, struct process *process, uint32_t *ret_id,
			struct err *err);

/* Records the source of frames that was chosen for a runtime in a process, and the reason why a
 * better one is unavailable. */
int capture__source(struct capture *capture, struct process *process, const struct runtime *runtime,
		    const char *version, const char *source, const char *reason, struct err *err);

/* The two steps from one sink to the next, allowed if `renews` is set. capture__complete() names
 * all frames of the first sink, which receives nothing more; the stats then match it.
 * capture__renew() must follow: it directs all later records to the new, empty @sink and resets the
 * stats. A sample whose value is still pending moves to the new sink. */
int capture__complete(struct capture *capture, struct err *err);
int capture__renew(struct capture *capture, struct sink *sink, struct err *err);

const struct capture_stats *capture__stats(const struct capture *capture);
void capture__compiled_stats(const struct capture *capture, struct compiled_stats *ret);

#endif
