/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENTS_H
#define BRAID_EVENTS_H

#include <stdio.h>

#include "core/events/event.h"
#include "core/kernel/kernel_half.h"

/* The events of one session, from -e to the last sample. */

/* All kinds, NULL-terminated: behind parsing and help. */
extern const struct event_kind *const event_kinds[];

/* How it is written after -e, what is to be filled in in capitals: "tracepoint:SYS:NAME". */
void event_kind__usage(const struct event_kind *kind, char *ret, size_t size);

struct event_list {
	struct event_spec list[EVENTS_MAX]; /* number n is at n - 1 */
	uint32_t n;
};

/* Adds the events of a list "cpu,tracepoint:sched:sched_switch" to those that are there. -EINVAL
 * with a sentence: one that is unknown, or there already, or too many. */
int event_list__parse(const char *text, struct event_list *list, struct err *err);

/* Does any come by the clock; or does any not? */
bool event_list__has_timed(const struct event_list *list, bool timed);

/* Is one of them in files that targets have mapped, and that are not named by their whole path? */
bool event_list__has_mapped(const struct event_list *list);

/* Are any counted, by occurrences or by their unit? */
bool event_list__has_counted(const struct event_list *list, bool by_value);

/* The number of the event of that slot; 0: there is none. */
uint32_t event_list__of_slot(const struct event_list *list, enum event_slot slot);
/* The number of the event that waiting is; 0: of none. */
uint32_t event_list__waiting(const struct event_list *list);
/* Does any come by its rate unless there is a period? */
bool event_list__has_rated(const struct event_list *list);

/* How often there is a sample. */
struct event_rates {
	uint32_t frequency_hz; /* of events that come by the clock */
	uint64_t period;       /* of what is counted: each of so many; 0: each */
	uint64_t bytes;	       /* of what is sampled by bytes: one in so many; 0 or 1: each */
};

/* What the kernel half has to be loaded with: what `opts` says of events. */
void event_list__configure(const struct event_list *list, const struct event_rates *rates,
			   struct kernel_half_opts *opts);

struct events;

/* None is attached yet. NULL: out of memory. */
struct events *events__new(const struct event_list *list, struct kernel_half *half,
			   uint32_t frequency_hz, uint64_t period);

/* Attaches those that need to know what targets have mapped (`mapped`), or the others. After a
 * failure nothing is attached. */
int events__attach(struct events *events, bool mapped, const struct event_place *place,
		   struct err *err);

/* Has probes put into processes that are new. In each round; it costs nothing while there are
 * none. */
int events__join(struct events *events, const struct event_place *place, struct err *err);

/* The i-th caution that the user should know from the start; NULL: there are no more. */
const char *events__caution(const struct events *events, size_t i);

/* The sentence about processes whose probes came after their start; "": there were none. */
const char *events__late(struct events *events, uint32_t number);

/* Counts the processes that have ended without probes since the last call. */
void events__count_missed(struct events *events, const struct tracker *tracker);

/* Once a second: has those attached also in files that targets have mapped since. */
int events__follow(struct events *events, const struct event_place *place, struct err *err);

/* In each round: has them keep to their limits. */
int events__keep(struct events *events, struct err *err);

/* Returns the largest part, 0 to 1, of the time in which the kernel stopped an event's clock; known
 * once the events are detached. */
double events__stopped(const struct events *events);

/* Returns the number of allocating functions whose code the kernel half has no room for. */
uint64_t events__left_out(const struct events *events);

/* A sentence about what event `number` could not sample, and why; "": nothing. Also after they are
 * detached. */
const char *events__note(const struct events *events, uint32_t number);

/* When it was given up, to keep the limit; 0: it was not. */
uint64_t events__ended_ns(const struct events *events, uint32_t number);

/* Those that come by the clock: at the n-th part of their rate. -errno of one that keeps its. */
int events__slow_down(struct events *events, uint32_t slowdown);

void events__detach(struct events *events); /* idempotent; NULL is fine */
void events__free(struct events *events);   /* detaches; NULL is fine */

#endif
