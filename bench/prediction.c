// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/prediction.h"

#include <math.h>

#include "core/util.h"

#define OWN_LEAST 0.1

/* With less, shares of ticks are too coarse: 10,000 of them are a percent wrong. */
#define HITS_LEAST 0.1
/* A process that is mostly in the kernel by itself tells little about hits by being there. */
#define USER_LEAST 0.5

double prediction__work_ns(const struct calibration *calibration, const struct probe_work *work,
			   enum listener listener)
{
	double pair_ns = calibration->pair[CALIBRATION_USDT].median;

	switch (listener) {
	case LISTENER_COUNT:
		return work->counted ? work->counted * pair_ns : 2 * calibration->count.median;
	case LISTENER_SHADOW:
		return pair_ns * (work->shadow ? work->shadow
					       : max_of(calibration->shadow_ratio.median - 1, 0));
	case LISTENER_CALLS:
		break;
	}
	return pair_ns *
	       (work->calls ? work->calls : max_of(calibration->calls_ratio.median - 1, 0));
}

double prediction__rest_s(double cpu_s, double cost_s, bool *ret_unsure)
{
	double rest_s = cpu_s - cost_s;

	*ret_unsure = rest_s < OWN_LEAST * cpu_s;
	return *ret_unsure ? OWN_LEAST * cpu_s : rest_s;
}

double prediction__own_cpu_s(const struct hits_seen *seen, bool *ret_unsure)
{
	double hits_s = seen->hits_user_s + seen->hits_kernel_s, r, k, user_s;

	if (hits_s < HITS_LEAST * seen->cpu_s || seen->user_share < 0 ||
	    seen->plain_user_share < USER_LEAST)
		return prediction__rest_s(seen->cpu_s, hits_s, ret_unsure);
	r = seen->hits_user_s / seen->hits_kernel_s;
	k = (1 - seen->plain_user_share) / seen->plain_user_share;
	user_s = prediction__rest_s(seen->user_share * seen->cpu_s,
				    r * (1 - seen->user_share) * seen->cpu_s, ret_unsure);
	return fmin(user_s / (1 - r * k) * (1 + k), seen->cpu_s);
}

void prediction__conclude(struct prediction *prediction, double cpus_used, unsigned cpus)
{
	double inside = (prediction->calls_per_s * prediction->call_ns +
			 prediction->samples_per_s * prediction->sample_ns) /
			NSEC_PER_SEC;

	prediction->one_cpu =
		inside + prediction->samples_per_s * prediction->own_ns / NSEC_PER_SEC;
	prediction->machine = prediction->one_cpu / max_of(cpus, 1U);
	prediction->slowdown = cpus_used > 0 ? inside / cpus_used : 0;
}
