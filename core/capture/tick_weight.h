/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TICK_WEIGHT_H
#define BRAID_TICK_WEIGHT_H

#include <stdint.h>

#include "bpf/shared.h"

/* The weight of samples that are taken by the clock, in ticks of the requested rate: 1, or more
 * after the rate was lowered. */
struct tick_weight {
	struct {
		uint64_t since_ns; /* CLOCK_MONOTONIC */
		uint32_t value;
	} before, now;
};

static inline void tick_weight__change(struct tick_weight *weight, uint64_t since_ns,
				       uint32_t value)
{
	weight->before = weight->now;
	weight->now.since_ns = since_ns;
	weight->now.value = value;
}

static inline uint32_t tick_weight__at(const struct tick_weight *weight, uint64_t time_ns)
{
	return time_ns < weight->now.since_ns ? weight->before.value : weight->now.value;
}

#endif
