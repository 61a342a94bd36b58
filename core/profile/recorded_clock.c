// SPDX-License-Identifier: GPL-2.0-or-later
/* Ticks of clocks with different rates have one common measure: the time that each stands for. */
#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/recorded.h"
#include "core/profile/sink.h"

uint64_t recorded__ticks_ns(uint64_t ticks, double frequency_hz)
{
	double ns = ticks * (1e9 / frequency_hz) + 0.5;

	return ns < 0x1p64 ? ns : UINT64_MAX;
}

bool recorded__is_ticks(const struct recorded *recorded, uint32_t event)
{
	return event < recorded->events.n &&
	       !strcmp(recorded__text(recorded, recorded->events.rows[event].unit),
		       SINK_UNIT_SAMPLES);
}

int recorded__call_ticks_ns(struct recorded *recorded)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < recorded->events.n; i++)
		if (recorded__is_ticks(recorded, i))
			ret = recorded__add_text(recorded, SINK_UNIT_NS,
						 &recorded->events.rows[i].unit);
	if (!ret)
		recorded->frequency_hz = 0;
	return ret;
}

/* Returns true if the values of @stack are ticks. */
static bool is_of_ticks(const struct recorded *recorded, uint32_t stack)
{
	return stack < recorded->stacks.n &&
	       recorded__is_ticks(recorded, recorded->stacks.rows[stack].event);
}

static uint8_t bits_of(uint64_t value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

int recorded__time_ticks(struct recorded *recorded)
{
	double hz = recorded->frequency_hz;

	for (size_t i = 0; i < recorded->stacks.n; i++) {
		if (!is_of_ticks(recorded, i))
			continue;
		if (!(hz > 0))
			return -ENODATA;
		recorded->stacks.rows[i].value =
			recorded__ticks_ns(recorded->stacks.rows[i].value, hz);
		recorded->stacks.rows[i].occurrences = 0; /* ticks are not occurrences */
	}
	for (size_t i = 0; i < recorded->buckets.n; i++) {
		struct recorded_bucket *bucket = &recorded->buckets.rows[i];

		if (!is_of_ticks(recorded, bucket->stack))
			continue;
		bucket->value = recorded__ticks_ns(bucket->value, hz);
		bucket->bits = bits_of(bucket->value / max_of(bucket->occurrences, 1u));
	}
	for (size_t i = 0; i < recorded->moments.n; i++) {
		struct recorded_moment *moment = &recorded->moments.rows[i];

		if (is_of_ticks(recorded, moment->stack))
			moment->value = recorded__ticks_ns(moment->value, hz);
	}
	return recorded__call_ticks_ns(recorded);
}
