/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STOP_H
#define BRAID_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* The request to end long work now, readable from any depth and any thread. It has three sources:
 * - stop__request(): the session's thread received a signal;
 * - a deadline: the end of `-d`, or the end of the time that is left for names;
 * - SIGINT, SIGTERM or SIGHUP: blocked and pending, while no thread receives them yet.
 * Work of unknown size checks for a stop between blocks of bounded size (core/base/quota.h
 * does). */

/* Async-signal-safe. */
void stop__request(void);

/* Sets the deadline (CLOCK_MONOTONIC) for the work; 0: no deadline. */
void stop__set_deadline(uint64_t at_ns);

/* Withdraws the request and the deadline, for later work. */
void stop__clear(void);

bool stop__is_requested(void);

/* Lets work that is under way at a stop use up to @cpu_ns of the process's CPU time and 2 s.
 * Samples from just before Ctrl-C need the tables and names of their files. 0, the default: work
 * ends at once. */
void stop__set_grace(uint64_t cpu_ns);

/* Returns true if a stop is requested and the grace is used up: long work must end now. Waits that
 * use no CPU time check stop__is_requested() instead. */
bool stop__is_due(void);

#endif
