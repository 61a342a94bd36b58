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
	PPROF_OCCURRENCES, /* how many the weight is of */
};

struct pprof_value {
	const char *type, *unit; /* borrowed of the profile */
	enum pprof_source source;
	const char *event; /* the same */
};

#define PPROF_VALUES_MAX 2

/* Of a number that comes from a file. */
uint64_t pprof_values__nanos(double value);

/* That a sample of a clock stands for; 0: not known. */
uint64_t pprof_values__period_ns(const struct profile *profile);

/* In their order; `period_ns` 0: not known. At least one. */
size_t pprof_values__of(const struct profile *profile, uint64_t period_ns,
			struct pprof_value ret[PPROF_VALUES_MAX]);

/* The part of a node's weight in which its threads were in one state: an event of time has up to
 * three samples a stack, which the label "state" keeps apart. */
enum pprof_part {
	PPROF_ALL, /* states do not matter: the only one, without a label */
	PPROF_RUNNING,
	PPROF_WAITING,
	PPROF_PREEMPTED,
	PPROF_PARTS_N
};
const char *pprof_part__name(enum pprof_part part);
bool pprof_part__used(const struct profile *profile, enum pprof_part part);
/* The node, with that part alone. */
struct profile_node pprof_part__of(const struct profile_node *node, enum pprof_part part);

uint64_t pprof_values__get(const struct pprof_value *value, const struct profile_node *node,
			   uint64_t period_ns);

/* How often samples come, in the unit of the last of the values; 0: not known, or they are calls.
 */
uint64_t pprof_values__period(const struct profile *profile, uint64_t period_ns);

#endif
