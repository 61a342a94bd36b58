/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COUNTED_H
#define BRAID_COUNTED_H

#include "bench/modes.h"
#include "bench/prediction.h"
#include "probes/probe_process.h"

/* What the hits that were counted in a process say of its calls. */

struct counted {
	uint64_t hits, calls; /* in all its images */
	double hits_cost_s;   /* CPU time of the process that went into the hits */
	double own_cpu_s;     /* and that went into its own work */
	double dearer;	      /* hits cost so many times what they should */
	bool unsure;	      /* hits took nearly all: own_cpu_s is not known */
	/* What probes at all those calls cost, by enum listener. LISTENER_COUNT: not used. */
	double calls_cost_s[LISTENER_CALLS + 1];
};

/* After probe_process__measure. `plain`, `meanwhile`: ticks in the process before, and while hits
 * were counted. */
void counted__of(const struct probe_process *process, const struct calibration *calibration,
		 const struct mode_ticks *plain, const struct mode_ticks *meanwhile,
		 struct counted *ret);

/* ns of one hit while it is counted. */
double counted__hit_ns(const struct probe_image *image, const struct probe_row *row,
		       const struct calibration *calibration);

/* Has the image a pair of probes that braid sees calls by, as far as is known now? */
bool counted__sees_calls(const struct probe_image *image);

#endif
