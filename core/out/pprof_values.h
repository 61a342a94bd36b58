/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PPROF_VALUES_H
#define BRAID_PPROF_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/profile/profile.h"

/* The values that a stack has in a file of pprof, whose types and units the file names. */

enum pprof_source {
	PPROF_WEIGHT,
	PPROF_CALLS,
	PPROF_TIME,	   /* weight times the period of sampling */
	PPROF_OCCURRENCES, /* number of occurrences in the weight */
};

struct pprof_value {
	const char *type, *unit; /* borrowed from the profile */
	enum pprof_source source;
	const char *event; /* borrowed from the profile */
};

#define PPROF_VALUES_MAX 2

/* Converts a number from a file to nanoseconds, 0 to INT64_MAX. */
uint64_t pprof_values__nanos(double value);

/* Returns the time that a sample of a clock stands for, in ns; 0: unknown. */
uint64_t pprof_values__period_ns(const struct profile *profile);

/* Returns the values of a stack in @ret, in their order, and their number, at least one. @period_ns
 * 0: unknown. */
size_t pprof_values__of(const struct profile *profile, uint64_t period_ns,
			struct pprof_value ret[PPROF_VALUES_MAX]);

/* The part of a node's weight in which its threads were in one state. An event of time has up to
 * three samples for a stack, which differ in the label "state". */
enum pprof_part {
	PPROF_ALL, /* all states in one sample, without a label */
	PPROF_RUNNING,
	PPROF_WAITING,
	PPROF_PREEMPTED,
	PPROF_PARTS_N
};
const char *pprof_part__name(enum pprof_part part);
bool pprof_part__used(const struct profile *profile, enum pprof_part part);
/* Returns the node with that part only. */
struct profile_node pprof_part__of(const struct profile_node *node, enum pprof_part part);

uint64_t pprof_values__get(const struct pprof_value *value, const struct profile_node *node,
			   uint64_t period_ns);

/* Returns the sampling period, in the unit of the last value; 0: unknown, or calls. */
uint64_t pprof_values__period(const struct profile *profile, uint64_t period_ns);

#endif
