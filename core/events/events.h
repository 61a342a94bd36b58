/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENTS_H
#define BRAID_EVENTS_H

#include <stdio.h>

#include "core/events/event.h"
#include "core/kernel/kernel_half.h"

/* The events of one session, from -e to the last sample. */

/* All kinds, NULL-terminated: the base of parsing and help. */
extern const struct event_kind *const event_kinds[];

/* Writes the syntax after -e, with placeholders in capitals: "tracepoint:SYS:NAME". */
void event_kind__usage(const struct event_kind *kind, char *ret, size_t size);

/* Returns the name of the event that a common word stands for ("memory": "alloc"), or NULL. */
const char *event__meant(const char *word);

struct event_list {
	struct event_spec list[EVENTS_MAX]; /* event number n is at n - 1 */
	uint32_t n;
};

/* Adds the events of a list such as "cpu,tracepoint:sched:sched_switch". Returns 0, or -EINVAL with
 * a message: an event is unknown or present already, or there are too many. For values also
 * -ENOENT or -ENOTSUP: the kernel does not have them. */
int event_list__parse(const char *text, struct event_list *list, struct err *err);

/* Returns true if the list has an event whose kind's `timed` equals @timed. */
bool event_list__has_timed(const struct event_list *list, bool timed);

/* Returns true if the list has an event in files that targets map, other than those with an
 * absolute path. */
bool event_list__has_mapped(const struct event_list *list);

/* Returns true if the list has a counted event, by its unit (@by_value) or by occurrences. */
bool event_list__has_counted(const struct event_list *list, bool by_value);

/* Returns the number of the event with that slot; 0: there is none. */
uint32_t event_list__of_slot(const struct event_list *list, enum event_slot slot);
/* Returns the number of the event for waiting; 0: there is none. */
uint32_t event_list__waiting(const struct event_list *list);
/* Returns true if the list has an event with a rate, unless it has a period. */
bool event_list__has_rated(const struct event_list *list);

/* rates of samples */
struct event_rates {
	uint32_t frequency_hz; /* rate of events by the clock */
	uint64_t period;       /* occurrences per sample of counted events; 0: 1 */
	uint64_t bytes;	       /* bytes per sample of events by bytes; 0: 1 */
};

/* Sets the members of @opts that depend on the events, for the load of the kernel half. */
void event_list__configure(const struct event_list *list, const struct event_rates *rates,
			   struct kernel_half_opts *opts);

struct events;

/* Creates the events, without attaching any. NULL: out of memory. */
struct events *events__new(const struct event_list *list, struct kernel_half *half,
			   uint32_t frequency_hz, uint64_t period);

/* Attaches the events that depend on mapped files if @mapped is true, otherwise all other events.
 * After a failure none of these events is attached. */
int events__attach(struct events *events, bool mapped, const struct event_place *place,
		   struct err *err);

/* Attaches probes in new processes. Called in each round; costs nothing if there are none. */
int events__join(struct events *events, const struct event_place *place, struct err *err);

/* Returns the @i-th warning for the user at the start; NULL: there are no more. */
const char *events__caution(const struct events *events, size_t i);

/* Returns the message about processes that got probes after their start; "": there were none. */
const char *events__late(struct events *events, uint32_t number);

/* Counts the processes that ended without probes since the last call. */
void events__count_missed(struct events *events, const struct tracker *tracker);

/* Called once a second. Attaches events in files that targets mapped since the last call. */
int events__follow(struct events *events, const struct event_place *place, struct err *err);

/* Called in each round. Enforces the events' limits. */
int events__keep(struct events *events, struct err *err);

/* Returns the largest fraction, 0 to 1, of the time in which the kernel stopped an event's clock;
 * valid once the events are detached. */
double events__stopped(const struct events *events);

/* Returns the places of event @number, which has a pattern; valid until events__free(). */
const struct event_places *events__places(const struct events *events, uint32_t number);

/* Returns the number of allocating functions for which the kernel half had no room. */
uint64_t events__left_out(const struct events *events);

/* Returns a message about occurrences that event @number did not sample, with the reason; "": none.
 * Also valid after detaching. */
const char *events__note(const struct events *events, uint32_t number);

/* Returns the time at which the limit ended the event; 0: it did not. */
uint64_t events__ended_ns(const struct events *events, uint32_t number);

/* Divides the rate of events by the clock by @slowdown. Returns 0, or -errno of an event with an
 * unchanged rate. */
int events__slow_down(struct events *events, uint32_t slowdown);

void events__detach(struct events *events); /* idempotent; NULL is fine */
void events__free(struct events *events);   /* detaches; NULL is fine */

#endif
