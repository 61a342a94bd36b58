/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_HITS_H
#define BRAID_PROBE_HITS_H

#include <stdint.h>

#include "core/kernel/kernel_half.h"

/* number of hits of the probes that feed shadow stacks */
struct probe_hits {
	uint64_t entries, returns;
};

/* Adds the hits of the probes in an address space to @hits. Returns 0 or -ENOMEM. */
int probe_hits__add(const struct kernel_half *half, uint32_t space, struct probe_hits *hits);

#endif
