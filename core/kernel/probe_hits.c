// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/probe_hits.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "bpf/probe_rec.h"

int probe_hits__add(const struct kernel_half *half, uint32_t space, struct probe_hits *hits)
{
	int recs_fd = kernel_half__map_fd(half, "probe_recs");
	int hits_fd = kernel_half__map_fd(half, "probe_hits");
	int n_cpus = libbpf_num_possible_cpus();
	uint64_t *by_cpu = n_cpus > 0 ? calloc(n_cpus, sizeof(*by_cpu)) : NULL;
	struct probe_rec rec;

	if (!by_cpu)
		return -ENOMEM;
	for (uint32_t i = 0; i < PROBE_SITES_MAX; i++) {
		if (bpf_map_lookup_elem(recs_fd, &i, &rec) || !(rec.flags & PROBE_TAKEN) ||
		    rec.space != space || bpf_map_lookup_elem(hits_fd, &i, by_cpu))
			continue;
		for (int cpu = 0; cpu < n_cpus; cpu++)
			*(rec.role == PROBE_ENTRY ? &hits->entries : &hits->returns) += by_cpu[cpu];
	}
	free(by_cpu);
	return 0;
}
