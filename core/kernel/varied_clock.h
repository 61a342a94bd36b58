/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VARIED_CLOCK_H
#define BRAID_VARIED_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Clock events (cpu_clock.h) whose period varies at random by up to 5 %. A program with a periodic
 * activity is thus not always sampled at the same moment. The mean is the requested period.
 * docs/decisions/0019-varied-period.md explains the method.
 *
 * About 30 ticks (a hold) have the same period, which differs from the mean by at least 2 %. The
 * ticks of one hold are thus spread over the whole cycle of a program that runs in step with the
 * mean. A thread sets the next period after the last tick of a hold. The time since that tick is
 * lost, as the kernel's timer restarts; it is subtracted from the following periods. */

/* --- periods, without a clock or a descriptor --- */

#define VARIED_LEAST 0.02
#define VARIED_MOST  0.05

/* maximum of lost time that is regained, as a fraction of each period */
#define VARIED_REGAINED 0.025

/* shortest period, as a fraction of the mean */
#define VARIED_SHORTEST (1 - VARIED_MOST - VARIED_REGAINED)

struct varied_period {
	uint64_t seed;
	uint64_t mean_ns;
	uint64_t period_ns; /* present period */
	uint64_t since_ns;  /* CLOCK_MONOTONIC time of the timer's last restart */
	uint32_t ticks;	    /* length of the hold */
	double lost_ns;	    /* total delay of the ticks that has not been regained yet */
	double regained_ns; /* part of it that each tick of the hold regains */
};

void varied_period__begin(struct varied_period *varied, uint64_t seed, uint64_t mean_ns,
			  uint64_t now_ns);

/* Sets a new mean, which applies from now on. */
void varied_period__set_mean(struct varied_period *varied, uint64_t mean_ns, uint64_t now_ns);

/* Returns the time at which the next hold should begin: soon after the last tick of this one. */
uint64_t varied_period__due(const struct varied_period *varied);

/* Draws and returns the next period, with which the timer restarts at @now_ns. */
uint64_t varied_period__next(struct varied_period *varied, uint64_t now_ns);

/* --- events with such a period --- */

struct varied_clock;

/* Starts to vary the period of clock events, one on each CPU. The caller may close the
 * descriptors. */
int varied_clock__new(const int *fds, size_t n, uint64_t mean_ns, struct varied_clock **ret,
		      struct err *err);

/* Sets a new mean at once. Returns 0 or -errno. */
int varied_clock__set_mean(struct varied_clock *clock, uint64_t mean_ns);

/* As sample_rate__stopped(), for the clock's events. */
double varied_clock__stopped(const struct varied_clock *clock);

void varied_clock__free(struct varied_clock *clock); /* NULL is fine */

#endif
