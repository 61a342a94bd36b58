/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERF_H
#define BRAID_PERF_H

#include <stdbool.h>
#include <stdint.h>

/* Names of what the kernel counts as perf events, as perf has them. */
struct perf_name {
	const char *name;
	uint32_t type; /* of struct perf_event_attr */
	uint64_t config;
	const char *help; /* NULL: another name of the one before */
};
extern const struct perf_name perf_names[]; /* ended by one without a name */

/* Can that be counted here? */
bool perf__counts(const struct perf_name *name);

/* Does this machine count what its CPU does? */
bool perf__has_pmu(void);

#endif
