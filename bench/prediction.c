// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/prediction.h"

#include "core/util.h"

#define OWN_LEAST 0.1

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

double prediction__own_cpu_s(double cpu_s, double cost_s, bool *ret_unsure)
{
	double own_s = cpu_s - cost_s;

	*ret_unsure = own_s < OWN_LEAST * cpu_s;
	return *ret_unsure ? OWN_LEAST * cpu_s : own_s;
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
