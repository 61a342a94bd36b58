/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CALLS_H
#define BRAID_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/kernel/kernel_half.h"
#include "core/profile/profile.h"
#include "runtimes/runtime.h"

struct calls_opts {
	const struct kernel_half *half;		 /* its probes are detached */
	const struct runtime *const *runtimes;	 /* all runtimes, NULL-terminated */
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled */
	uint64_t end_ns; /* CLOCK_MONOTONIC: calls that have not returned lasted until then */
	bool lines; /* functions with equal names are different if they begin at different lines */
};

/* Returns the kernel half's counts of calls as a profile of times (PROFILE_NANOSECONDS,
 * counts_calls). The weight of a stack is the time in its innermost function itself. Returns 0,
 * -ENOMEM, or an error of reading a map. */
int calls__read(const struct calls_opts *opts, struct profile **ret, struct err *err);

#endif
