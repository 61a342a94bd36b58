/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CATALOGUE_H
#define BRAID_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/events/nearest.h"

/* The events of this machine, for users. */

struct catalogue_line {
	char *name; /* syntax for -e; words in capitals are placeholders */
	const char *unit;
	char *help; /* for tracepoints: their arguments */
};

struct catalogue {
	struct catalogue_line *list; /* sorted by name, tracepoints at the end */
	size_t n, cap;
	bool no_pmu;	 /* without hardware counters, which the machine does not have */
	bool no_kprobes; /* without functions of the kernel */
};

/* Reads all events except the probes of programs. Leaves out tracepoints if the kernel's types are
 * unreadable. Returns 0 or -ENOMEM. */
int catalogue__read(struct catalogue *ret, struct err *err);

/* Reads the USDT probes of a process. Returns 0, -ESRCH, -ENOMEM, ... */
int catalogue__read_process(uint32_t pid, struct catalogue *ret, struct err *err);

/* Filters by name: lines that contain @pattern, or that match it if it has one of *?[ in it. Case
 * is ignored. */
void catalogue__keep(struct catalogue *catalogue, const char *pattern);

/* Returns the names, or last parts of names, that are similar to @requested. */
struct nearest catalogue__nearest(const struct catalogue *catalogue, const char *requested);

void catalogue__done(struct catalogue *catalogue); /* idempotent */

#endif
