/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERF_H
#define BRAID_PERF_H

#include <stdbool.h>
#include <stdint.h>

/* names of perf events, as in perf */
struct perf_name {
	const char *name;
	uint32_t type; /* member of struct perf_event_attr */
	uint64_t config;
	const char *help; /* NULL: a synonym of the previous name */
};
extern const struct perf_name perf_names[]; /* ended by an entry without a name */

/* Returns true if this machine can count the event. */
bool perf__counts(const struct perf_name *name);

/* Returns true if this machine has hardware counters. */
bool perf__has_pmu(void);

#endif
