/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_HITS_H
#define BRAID_PROBE_HITS_H

#include <stdint.h>

#include "core/kernel/kernel_half.h"

/* How often probes that feed shadow stacks were hit. */
struct probe_hits {
	uint64_t entries, returns;
};

/* Adds those of probes that are attached in an address space. -ENOMEM. */
int probe_hits__add(const struct kernel_half *half, uint32_t space, struct probe_hits *hits);

#endif
