/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PREDICTION_H
#define BRAID_PREDICTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/calibration.h"
#include "probes/catalogue.h"

/* What something will cost a process that does not do it yet, by the formula of textbooks:
 * overhead = frequency of an action x cost of an action / CPUs. Arithmetic only. */

/* What listens at the two ends of a call. */
enum listener {
	LISTENER_COUNT,	 /* bpf/probes.bpf.c: hits are counted */
	LISTENER_SHADOW, /* the shadow stack is kept, to be sampled */
	LISTENER_CALLS	 /* and calls are counted and timed */
};

/* ns of one call beyond the traps at both of its ends. `work` may have zeros: as on the calibrated
 * pair of probes, then. */
double prediction__work_ns(const struct calibration *calibration, const struct probe_work *work,
			   enum listener listener);

/* What is known of hits that were counted, and of the process meanwhile. */
struct hits_seen {
	double cpu_s;			   /* of the process */
	double user_share;		   /* of that, in user mode; < 0: not known */
	double plain_user_share;	   /* the same when nothing is counted */
	double hits_user_s, hits_kernel_s; /* what the hits should have cost, by the calibration */
};

/* CPU time that went into the process's own work. Never less than a tenth of what it is the rest
 * of: `ret_unsure`, then.
 *
 * Where hits took a good part of the time, calibrated costs do not tell how much: another program's
 * caches or a CPU that is slower for a moment make hits dearer by a third, and the rest is a
 * difference. But most of a hit is spent in the kernel, so that the kernel's share tells it, if one
 * knows what part of a hit is not (r = hits_user_s / hits_kernel_s) and how much of the process's
 * own time is (k = its kernel's / user time, when nothing is counted):
 *
 *   user = own user + r x hits' kernel;  kernel = k x own user + hits' kernel
 */
double prediction__own_cpu_s(const struct hits_seen *seen, bool *ret_unsure);

/* Of `cpu_s`, what is left without `cost_s`; as above never less than a tenth. */
double prediction__rest_s(double cpu_s, double cost_s, bool *ret_unsure);

/* One way to run braid. Rates are those of the process's own work: if it does as much as before. */
struct prediction {
	double calls_per_s, call_ns;	 /* 0: no probes */
	double samples_per_s, sample_ns; /* 0: no samples */
	double own_ns;			 /* braid's own CPU time per sample */
	/* Shares (1: all of it): of one CPU and of this machine for all that, and of the CPU time
	 * that the process takes for its work what it takes in addition. */
	double one_cpu, machine, slowdown;
};

/* Fills in the shares. `cpus_used`: CPU seconds of the process's own work in a second. */
void prediction__conclude(struct prediction *prediction, double cpus_used, unsigned cpus);

#endif
