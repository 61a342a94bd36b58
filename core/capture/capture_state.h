/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CAPTURE_STATE_H
#define BRAID_CAPTURE_STATE_H

/* The private state of capture, and the functions that its files share.
 *
 *   capture.c            records and samples
 *   capture_processes.c  processes
 *   capture_renew.c      the step to another sink */

#include "core/capture/cached_result.h"
#include "core/capture/capture.h"
#include "core/capture/captured.h"
#include "core/capture/contexts.h"
#include "core/capture/copied_frames.h"
#include "core/capture/ids.h"
#include "core/capture/naming.h"
#include "core/capture/naming_compiled.h"
#include "core/capture/pairing.h"
#include "core/capture/pending_values.h"
#include "core/capture/place_frames.h"
#include "core/capture/sample_record.h"
#include "core/capture/sections.h"
#include "core/capture/sent_stacks.h"
#include "core/capture/stack_copies.h"
#include "core/capture/stack_nodes.h"
#include "core/capture/tick_weight.h"

struct capture {
	struct capture_opts opts;
	struct capture_stats stats;
	struct ids *ids;
	struct naming *naming;
	struct naming_compiled *compiled;
	struct place_frames *place_frames;
	struct captured_set processes;
	struct stack_nodes *nodes;
	struct copied_frames *copier;
	struct stack_copies *stacks;
	struct sent_stacks *sent;
	struct native_frame frames[NATIVE_FRAMES_MAX];
	size_t n_frames;
	struct runtime_pair pairs[RUNTIME_STACK_MAX]; /* pairs of all sections */
	struct pairing *pairing;
	struct pending_values *pending;
	struct sections *sections;
	struct contexts contexts;
	struct runtime_stack runtime_stack;
	struct tick_weight weight;
	uint64_t n_codes;   /* number of code records */
	uint32_t forgotten; /* value of ids__forgotten() when last checked */
	bool skips_copies;
	struct rest_rec lost[EVENTS_MAX]; /* event n at n - 1 */
	struct pending_record *carried;	  /* samples on their way to the next sink */
};

/* Returns capture's data of @process in *@ret, with an id. */
int capture__captured_of(struct capture *capture, struct process *process, struct captured **ret,
			 struct err *err);

/* Records the attributes that processes have published since their last sample. */
int capture__offer_attributes(struct capture *capture, struct err *err);

/* Records a sample. @sent is the cached result of the same stack, and receives the new one; NULL:
 * no cache. */
int capture__sample(struct capture *capture, const struct rec_sample *rec, size_t size,
		    struct cached_result *sent, struct err *err);

/* a lost sample; fields as in rec_sample */
struct lost_sample {
	uint64_t event, state, time_ns, weight, total, object;
};

/* Adds the occurrences that a lost sample stands for to the rest of its event. */
void capture__lose(struct capture *capture, const struct lost_sample *lost);

/* As capture__lose(), for a sample without a process, which it counts as unowned. */
void capture__lose_record(struct capture *capture, const struct rec_sample *rec);

/* Offers the events to the sink. Their ids are the kernel half's numbers. */
int capture__begin_events(struct capture *capture, struct err *err);

/* Drops the ids of frames and nodes that the sink dropped. */
void capture__forget_ended(struct capture *capture);

#endif
