/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CAPTURE_H
#define BRAID_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/naming_compiled.h"
#include "core/profile/sink.h"
#include "core/target/tracker.h"

/* From the kernel half's records to a sink: frames are interned, stacks become tree nodes,
 * new frames are named soon after (while their process is likely to live). */
struct capture;

/* What is sampled. */
struct capture_event {
	struct sink_event event;
	bool timed;	  /* it comes by the clock, so that capture__weigh is about it */
	bool pending;	  /* values follow; totals of its rests are sums of objects */
	bool outstanding; /* it counts what is not freed */
};

struct capture_opts {
	struct sink *sink;		    /* what takes the samples; borrowed */
	const struct capture_event *events; /* number n of rec_sample.event is at n - 1; borrowed */
	uint32_t n_events;
	struct tracker *tracker;
	struct images *images;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled */
	const char *kallsyms_path;
	uint32_t enabled;	     /* bit n: runtimes[n] is wanted */
	tracker_source_fn on_source; /* what the user should know of names; may be NULL */
	bool renews;		     /* capture__renew will be called */
	bool (*hurries)(void *ctx);  /* names that take long are left out; NULL: never */
	void (*on_fetch)(void *ctx); /* debug servers are asked from now on; NULL: nobody cares */
	void *ctx;
};

/* What has been recorded so far. */
struct capture_stats {
	uint64_t samples, complete;
	uint64_t event_samples[EVENTS_MAX];	    /* of these, of event n at n - 1 */
	uint64_t sums[EVENTS_MAX][THREAD_STATES_N]; /* their totals, by the thread's state */
	struct rest_rec rests[EVENTS_MAX];	    /* what no sample stands for */
	uint64_t untimed; /* occurrences of which it is unknown whether they are wanted */
	uint64_t ticks;	  /* samples that came by the clock, */
	uint64_t runtime_ticks[RUNTIMES_MAX]; /* of these, with frames of the runtime */
	uint64_t unowned;    /* samples that came of no process that is known: lost */
	uint64_t malformed;  /* the same of what cannot be one */
	uint64_t unfinished; /* samples whose value had not come at the end: lost, too */
	uint64_t known_lost; /* the same of those whose stack should have come before */
	uint64_t kernel_frames, native_frames;
	uint64_t inferred_frames;   /* of the native ones */
	uint64_t inferred_runtimes; /* of the runtimes' frames */
	uint64_t stale;		 /* of the runtimes' frames: without a name, as it was too late */
	uint64_t kernel_unnamed; /* places, as the kernel hides its symbols */
	struct fetched_names_stats fetched;
	uint64_t runtime_frames[RUNTIMES_MAX];
	uint64_t unplaced;    /* of these, of samples with several runtimes: by order alone */
	uint64_t unsure;      /* stacks cut where a mapping had just ended: COUNT_ENDED_MAPPING */
	uint64_t early;	      /* without a runtime's frames, as its walker was not there yet */
	uint64_t copies_used; /* stacks that only a stack copy made longer */
	uint64_t recovered[COUNTERS_N]; /* of these, now complete: by what had cut them */
};

int capture__new(const struct capture_opts *opts, struct capture **ret, struct err *err);
void capture__free(struct capture *capture); /* NULL is fine */

/* Samples of timed events that were taken at this time (CLOCK_MONOTONIC) or later stand for so
 * many, as they come at a lower rate. At first: 1. Those from before the change before this one are
 * recorded by then. */
void capture__weigh(struct capture *capture, uint64_t since_ns, uint32_t value);

/* From now on stack copies are left as they are. */
void capture__skip_copies(struct capture *capture);

/* One record of the ring buffer: a sample, or what comes with samples; those of the life of
 * processes are not for this. 0 or a negative errno: the recording cannot go on. */
int capture__record(struct capture *capture, const void *data, size_t size, struct err *err);

/* The occurrences of an event that no sample stands for. */
struct capture_rest {
	struct rest_rec kernel;	 /* those that the kernel half has counted */
	uint64_t minimum;	 /* of the event's values; 0: none */
	enum thread_state state; /* of their threads */
	uint64_t time_ns;	 /* within the recording */
	bool last;		 /* no value of a pending sample will come */
};

/* Records the occurrences of @event that no sample stands for, also those whose sample is lost, as
 * a row without a stack. If the event has pending values and a minimum, they are counted as
 * untimed instead. As capture__record(). */
int capture__rest(struct capture *capture, uint32_t event, const struct capture_rest *of,
		  struct err *err);

/* Names what is new since the last call, all of it if this is the `last`. To be called before each
 * commit. */
int capture__name_frames(struct capture *capture, bool last, struct err *err);

/* After the last: better names for code of stripped files, from the user's debug servers, if he has
 * any (core/elf/debuginfod.h). Takes half a minute at most. */
int capture__fetch_names(struct capture *capture, struct err *err);

/* The process is gone, or is about to execute something else: names what its files still tell,
 * while what the tracker knows of it is there. Samples of its last moments may follow. */
int capture__process_ended(struct capture *capture, const struct process *process, struct err *err);

/* No more samples will come under its serial number: forgets it. */
int capture__forget_process(struct capture *capture, const struct process *process,
			    struct err *err);

/* Of how many processes something is kept. */
size_t capture__count_processes(const struct capture *capture);

/* Reads what a process that runs already has reported of the code that it has made. */
int capture__read_code(struct capture *capture, struct process *process, struct err *err);

/* The process's id, which it gets now if it has none yet. */
int capture__process_id(struct capture *capture, struct process *process, uint32_t *ret_id,
			struct err *err);

/* The frame source that was chosen for a runtime in a process, and why not a better one. */
int capture__source(struct capture *capture, struct process *process, const struct runtime *runtime,
		    const char *version, const char *source, const char *reason, struct err *err);

/* From one sink to the next, of what `renews`: names all that the first one has, so that nothing
 * more comes to it, and the stats are of what is in it. Then capture__renew has to follow, by which
 * all that comes from then on goes to that sink, which knows nothing yet, and the stats begin anew.
 * A sample whose value is still to come is none of the first one's, but of the next one's. */
int capture__complete(struct capture *capture, struct err *err);
int capture__renew(struct capture *capture, struct sink *sink, struct err *err);

const struct capture_stats *capture__stats(const struct capture *capture);
void capture__compiled_stats(const struct capture *capture, struct compiled_stats *ret);

#endif
