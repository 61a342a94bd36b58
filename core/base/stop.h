/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STOP_H
#define BRAID_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* Whether long work must end now, readable from any depth and any thread. Three things ask for it:
 * - stop__request(): a signal that the session's thread has taken;
 * - a deadline: the end of `-d`, or the end of the time that is left for names;
 * - SIGINT, SIGTERM or SIGHUP that is blocked and pending, while no thread takes them yet.
 * Work of unknown size looks between blocks of bounded size (core/base/quota.h does). */

/* Async-signal-safe. */
void stop__request(void);

/* The work is to end at @at_ns (CLOCK_MONOTONIC); 0: no deadline. */
void stop__set_deadline(uint64_t at_ns);

/* Withdraws the request and the deadline, for work that follows. */
void stop__clear(void);

bool stop__is_requested(void);

/* Work that a request meets is finished as long as it takes at most @cpu_ns of the process's CPU
 * time, and 2 s: samples that came just before Ctrl-C need the tables and names of their files. 0,
 * the default: work ends at once. */
void stop__set_grace(uint64_t cpu_ns);

/* Returns true if a stop is requested and the grace is used up: long work ends now. Waits that use
 * no CPU time look at stop__is_requested() instead. */
bool stop__is_due(void);

#endif
