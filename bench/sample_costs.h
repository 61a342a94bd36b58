/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SAMPLE_COSTS_H
#define BRAID_SAMPLE_COSTS_H

#include "bench/workload.h"
#include "core/record/session.h"

/* The cost of one sample, by depth of the stack. */

struct sample_cost_opts {
	const struct runtime *const *runtimes;
	uint32_t enabled;
	enum unwind_mode unwind;
	uint32_t frequency_hz;
	double duration_s;
	unsigned depth; /* depth of the calls */
};

struct sample_cost {
	double kernel_ns; /* time in BPF per sample */
	double user_ns;	  /* braid's CPU time per sample */
	uint64_t samples;
};

/* Measure the cost: of_native() in a process of braid's own, in native calls; of_interpreter() in
 * an installed interpreter, in calls of a function of its language. Both turn the kernel's BPF
 * statistics on meanwhile. */
int sample_cost__of_native(const struct sample_cost_opts *opts, struct sample_cost *ret,
			   struct err *err);
int sample_cost__of_interpreter(const struct sample_cost_opts *opts, const struct interpreter *of,
				struct sample_cost *ret, struct err *err);

#endif
