// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/counter.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "core/base/util.h"
#include "core/kernel/kernel_subset.h"

struct probe_counter {
	struct braid_bpf *skel;
	struct probe_links *links;
	uint64_t *by_cpu; /* hits of one site */
	int n_cpus;
};

static int load(struct probe_counter *counter, size_t n, struct err *err)
{
	static const char *const programs[] = { "count_hit", "nothing", NULL };
	static const char *const maps[] = { "probe_hits", NULL };
	int ret = kernel_subset__open(programs, maps, &counter->skel, err);

	if (!ret)
		ret = bpf_map__set_max_entries(counter->skel->maps.probe_hits, n);
	return ret ? ret : kernel_subset__load(counter->skel, err);
}

int probe_counter__open(size_t n, struct probe_counter **ret_counter, struct err *err)
{
	struct probe_counter *counter = calloc(1, sizeof(*counter));
	int ret;

	if (!counter)
		return err__set(err, -ENOMEM, "out of memory");
	counter->n_cpus = libbpf_num_possible_cpus();
	counter->by_cpu = calloc(max_of(counter->n_cpus, 1), sizeof(*counter->by_cpu));
	counter->links = probe_links__new();
	ret = counter->by_cpu && counter->links ? load(counter, max_of(n, (size_t)1), err)
						: err__set(err, -ENOMEM, "out of memory");
	if (ret)
		probe_counter__free(counter);
	else
		*ret_counter = counter;
	return ret;
}

void probe_counter__free(struct probe_counter *counter)
{
	if (!counter)
		return;
	probe_links__free(counter->links);
	braid_bpf__destroy(counter->skel);
	free(counter->by_cpu);
	free(counter);
}

int probe_counter__attach(struct probe_counter *counter, pid_t pid,
			  const struct probe_point *points, size_t n, struct err *err)
{
	return probe_links__attach(counter->links, counter->skel->progs.count_hit, pid, points, n,
				   err);
}

int probe_counter__raise_semaphore(struct probe_counter *counter, pid_t pid,
				   const struct elf_file *file, uint64_t semaphore_vaddr,
				   struct err *err)
{
	return probe_links__raise_semaphore(counter->links, counter->skel->progs.nothing, pid, file,
					    semaphore_vaddr, err);
}

void probe_counter__detach(struct probe_counter *counter)
{
	probe_links__detach(counter->links);
}

void probe_counter__count(struct probe_counter *counter, bool counts)
{
	__atomic_store_n(&counter->skel->bss->hits_count, counts, __ATOMIC_RELEASE);
}

uint64_t probe_counter__hits(const struct probe_counter *counter, uint32_t cookie)
{
	int fd = bpf_map__fd(counter->skel->maps.probe_hits);
	uint64_t hits = 0;

	if (bpf_map_lookup_elem(fd, &cookie, counter->by_cpu))
		return 0;
	for (int cpu = 0; cpu < counter->n_cpus; cpu++)
		hits += counter->by_cpu[cpu];
	return hits;
}
