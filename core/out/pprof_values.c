// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/pprof_values.h"

#include <assert.h>

#include "core/base/util.h"

uint64_t pprof_values__nanos(double value)
{
	if (!(value >= 1))
		return 0;
	return value < 9e18 ? (uint64_t)(value + 0.5) : (uint64_t)INT64_MAX;
}

uint64_t pprof_values__period_ns(const struct profile *profile)
{
	if (profile->unit != PROFILE_SAMPLES || !(profile->frequency_hz > 0))
		return 0;
	return pprof_values__nanos(1e9 / profile->frequency_hz);
}

size_t pprof_values__of(const struct profile *profile, uint64_t period_ns,
			struct pprof_value ret[PPROF_VALUES_MAX])
{
	static const char *const units[] = { [PROFILE_NANOSECONDS] = "nanoseconds",
					     [PROFILE_BYTES] = "bytes",
					     [PROFILE_COUNT] = "count" };
	const char *event = profile->event ? profile->event : "cpu";
	size_t n = 0;

	if (profile->counts_calls) {
		ret[0] = (struct pprof_value) { "calls", "count", PPROF_CALLS, event };
		ret[1] = (struct pprof_value) { "time", "nanoseconds", PPROF_WEIGHT, event };
		return 2;
	}
	if (profile->unit == PROFILE_SAMPLES) {
		ret[0] = (struct pprof_value) { "samples", "count", PPROF_WEIGHT, event };
		ret[1] = (struct pprof_value) { event, "nanoseconds", PPROF_TIME, event };
		return period_ns ? 2 : 1;
	}
	assert(profile->unit == PROFILE_OTHER || units[profile->unit]);
	if (profile__has_occurrences(profile))
		ret[n++] = (struct pprof_value) { profile->occurrences_name, "count",
						  PPROF_OCCURRENCES, event };
	ret[n++] = (struct pprof_value) { event,
					  profile->unit == PROFILE_OTHER ? profile->unit_name
									 : units[profile->unit],
					  PPROF_WEIGHT, event };
	return n;
}

const char *pprof_part__name(enum pprof_part part)
{
	static const char *const names[PPROF_PARTS_N] = { [PPROF_RUNNING] = "running",
							  [PPROF_WAITING] = "waiting",
							  [PPROF_PREEMPTED] = "preempted" };

	return names[part];
}

bool pprof_part__used(const struct profile *profile, enum pprof_part part)
{
	return (part != PPROF_ALL) == (profile->waiting || profile->preempted);
}

struct profile_node pprof_part__of(const struct profile_node *node, enum pprof_part part)
{
	struct profile_node of = *node;

	if (part == PPROF_RUNNING)
		of.self -= min_of(of.self, node->waiting);
	if (part == PPROF_RUNNING)
		of.self -= min_of(of.self, node->preempted);
	if (part == PPROF_RUNNING)
		of.occurrences -= min_of(of.occurrences, node->waits + node->preemptions);
	if (part == PPROF_WAITING) {
		of.self = node->waiting;
		of.occurrences = node->waits;
	}
	if (part == PPROF_PREEMPTED) {
		of.self = node->preempted;
		of.occurrences = node->preemptions;
	}
	return of;
}

uint64_t pprof_values__get(const struct pprof_value *value, const struct profile_node *node,
			   uint64_t period_ns)
{
	uint64_t factor = value->source == PPROF_TIME ? period_ns : 1;
	uint64_t from = value->source == PPROF_CALLS	     ? node->calls
			: value->source == PPROF_OCCURRENCES ? node->occurrences
							     : node->self;
	uint64_t product;

	/* All numbers of the format are signed. */
	if (__builtin_mul_overflow(from, factor, &product))
		return INT64_MAX;
	return min_of(product, (uint64_t)INT64_MAX);
}

uint64_t pprof_values__period(const struct profile *profile, uint64_t period_ns)
{
	if (profile->counts_calls)
		return 0;
	/* Values of other events are measured, not sampled. */
	return profile->unit == PROFILE_SAMPLES ? period_ns : 1;
}
