/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SAMPLES_H
#define BRAID_SAMPLES_H

#include "bench/workload.h"
#include "core/err.h"
#include "core/session.h"

/* What one sample costs, by depth of the stack. */

struct sample_cost_opts {
	const struct runtime *const *runtimes;
	uint32_t enabled;
	enum unwind_mode unwind;
	enum runtime_source source;
	uint32_t frequency_hz;
	double duration_s;
};

struct sample_cost {
	double kernel_ns; /* in BPF, per sample */
	double user_ns;	  /* of braid's CPU time, per sample */
	uint64_t samples;
};

/* Of a running process. The kernel's BPF statistics are on meanwhile. -ENODATA: it was not seen on
 * a CPU. */
int sample_cost__measure(const struct sample_cost_opts *opts, uint32_t pid, struct sample_cost *ret,
			 struct err *err);

/* The same of a worker of ours in `depth` native calls (bench/workers.h). */
int sample_cost__of_depth(const struct sample_cost_opts *opts, unsigned depth,
			  struct sample_cost *ret, struct err *err);

/* And of an interpreter that was found here, in `depth` calls of a function of its language. */
int sample_cost__of_calls(const struct sample_cost_opts *opts, const struct interpreter *of,
			  unsigned depth, struct sample_cost *ret, struct err *err);

#endif
