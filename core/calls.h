/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CALLS_H
#define BRAID_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/kernel_half.h"
#include "core/profile.h"
#include "runtimes/runtime.h"

/* Time of calls that were under way when probes were detached meanwhile, by node of the tree.
 * Zeroed: none. */
struct calls_cut {
	uint64_t *ns;
	size_t n, cap;
};

struct shadow_entry;

/* The call is cut at `end_ns` (CLOCK_MONOTONIC). -ENOMEM. */
int calls_cut__add(struct calls_cut *cut, const struct shadow_entry *entry, uint64_t end_ns);
void calls_cut__done(struct calls_cut *cut); /* idempotent */

struct calls_opts {
	const struct kernel_half *half;		 /* its probes are detached */
	const struct runtime *const *runtimes;	 /* all known, NULL-terminated */
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled */
	uint64_t end_ns; /* CLOCK_MONOTONIC: calls that have not returned lasted until then */
	const struct calls_cut *cut;
	bool lines; /* tell functions apart by the lines that they begin at */
};

/* What the kernel half has counted, as a profile of times (PROFILE_NANOSECONDS): the weight of a
 * stack is the time in its innermost function itself. -ENOMEM and what reading maps returns. */
int calls__read(const struct calls_opts *opts, struct profile **ret, struct err *err);

#endif
