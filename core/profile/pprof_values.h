/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PPROF_VALUES_H
#define BRAID_PPROF_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "core/profile/profile.h"

/* The values that a stack has in a file of pprof, whose types and units the file names. */

enum pprof_source {
	PPROF_WEIGHT,
	PPROF_CALLS,
	PPROF_TIME, /* weight times the period of sampling */
};

struct pprof_value {
	const char *type, *unit; /* borrowed of the profile */
	enum pprof_source source;
};

#define PPROF_VALUES_MAX 2

/* In their order; `period_ns` 0: not known. At least one. */
size_t pprof_values__of(const struct profile *profile, uint64_t period_ns,
			struct pprof_value ret[PPROF_VALUES_MAX]);

uint64_t pprof_values__get(const struct pprof_value *value, const struct profile_node *node,
			   uint64_t period_ns);

/* How often samples come, in the unit of the last of the values; 0: not known, or they are calls.
 */
uint64_t pprof_values__period(const struct profile *profile, uint64_t period_ns);

#endif
