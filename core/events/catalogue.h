/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CATALOGUE_H
#define BRAID_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/events/nearest.h"

/* The events that this machine has, for people. */

struct catalogue_line {
	char *name; /* as -e takes it; what is in capitals is to be filled in */
	const char *unit;
	char *help; /* for tracepoints: their arguments */
};

struct catalogue {
	struct catalogue_line *list; /* sorted by name, tracepoints at the end */
	size_t n, cap;
	bool no_pmu;	 /* what CPUs count is left out: there is nothing to count it */
	bool no_kprobes; /* functions of the kernel are */
};

/* Everything but the probes of programs. Tracepoints are left out where the kernel's types cannot
 * be read. -ENOMEM. */
int catalogue__read(struct catalogue *ret, struct err *err);

/* The USDT probes of a process. -ESRCH, -ENOMEM, ... */
int catalogue__read_process(uint32_t pid, struct catalogue *ret, struct err *err);

/* Keeps those whose names hold `pattern`, or are as it says if it has one of *?[. Upper and lower
 * case are the same. */
void catalogue__keep(struct catalogue *catalogue, const char *pattern);

/* Of all names, and of the last parts of them, those that `wanted` may have meant. */
struct nearest catalogue__nearest(const struct catalogue *catalogue, const char *wanted);

void catalogue__done(struct catalogue *catalogue); /* idempotent */

#endif
