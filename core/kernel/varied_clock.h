/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VARIED_CLOCK_H
#define BRAID_VARIED_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Clock events (cpu_clock.h) whose period varies at random by up to 5 %, so that a program which
 * does something at the same rate is not always met at the same moment. The mean is what was asked
 * for. Why so and not otherwise: docs/decisions/0019-varied-period.md.
 *
 * Some 30 ticks have the same period, one that differs by 2 % at least: so the ticks of one such
 * hold are spread over the whole round of a program in step with the mean. A thread sets the next
 * period after the last tick of a hold: what has passed since that tick is lost to the kernel's
 * timer, which begins anew, and is taken from the periods that follow. */

/* --- which periods: no clock and no descriptor in it --- */

#define VARIED_LEAST 0.02
#define VARIED_MOST  0.05

/* Lost time is regained by at most this part of each period. */
#define VARIED_REGAINED 0.025

/* The shortest period, as a part of the mean. */
#define VARIED_SHORTEST (1 - VARIED_MOST - VARIED_REGAINED)

struct varied_period {
	uint64_t seed;
	uint64_t mean_ns;
	uint64_t period_ns; /* now */
	uint64_t since_ns;  /* CLOCK_MONOTONIC: when the timer last began anew */
	uint32_t ticks;	    /* of the hold */
	double lost_ns;	    /* that ticks are late by, in all; they will be early by as much */
	double regained_ns; /* of that, with each tick of the hold */
};

void varied_period__begin(struct varied_period *varied, uint64_t seed, uint64_t mean_ns,
			  uint64_t now_ns);

/* The mean is another one from now on. */
void varied_period__set_mean(struct varied_period *varied, uint64_t mean_ns, uint64_t now_ns);

/* When the next hold should begin: soon after the last tick of this one. */
uint64_t varied_period__due(const struct varied_period *varied);

/* The period from now on, which the timer begins with at this moment. */
uint64_t varied_period__next(struct varied_period *varied, uint64_t now_ns);

/* --- events whose period it is --- */

struct varied_clock;

/* Clock events of that period, one on each CPU, vary from now on. The descriptors may be closed
 * meanwhile. */
int varied_clock__new(const int *fds, size_t n, uint64_t mean_ns, struct varied_clock **ret,
		      struct err *err);

/* At once. -errno */
int varied_clock__set_mean(struct varied_clock *clock, uint64_t mean_ns);

/* As sample_rate__stopped() of its events. */
double varied_clock__stopped(const struct varied_clock *clock);

void varied_clock__free(struct varied_clock *clock); /* NULL is fine */

#endif
