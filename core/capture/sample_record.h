/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SAMPLE_RECORD_H
#define BRAID_SAMPLE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/shared.h"
#include "core/capture/sections.h"

/* Returns true if a REC_SAMPLE of @size bytes is plausible: it contains the frames that it claims,
 * and belongs to one of the session's events. */
static inline bool sample_record__is_sane(const struct rec_sample *rec, size_t size,
					  uint32_t n_events)
{
	size_t pairs = 0;

	if (!rec->event || rec->event > n_events || rec->n_native > NATIVE_FRAMES_MAX ||
	    rec->n_sections > SECTIONS_MAX || rec->condition.state >= THREAD_STATES_N)
		return false;
	for (int i = 0; i < rec->n_sections; i++) {
		if (rec->sections[i].n > RUNTIME_PAIRS_MAX)
			return false;
		pairs += rec->sections[i].n;
	}
	return pairs <= RUNTIME_STACK_MAX &&
	       size >= sizeof(*rec) + 8 * (rec->n_kernel + 2 * (rec->n_native + pairs));
}

#endif
