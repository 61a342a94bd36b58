// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/modes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "bpf/bench.h"
#include "core/cpu_clock.h"
#include "core/kernel_part.h"
#include "core/procfs.h"
#include "core/util.h"

struct mode_sampler {
	struct braid_bpf *skel;
	struct bpf_link **links; /* by CPU; NULL: not online */
	uint64_t *by_cpu;
	int n_cpus;
};

static int load(struct mode_sampler *sampler, pid_t pid, struct err *err)
{
	static const char *const programs[] = { "mode_sampled", NULL };
	static const char *const maps[] = { "mode_ticks", NULL };
	int code = kernel_part__open(programs, maps, &sampler->skel, err);

	if (code)
		return code;
	sampler->skel->rodata->cfg_bench_tgid = pid;
	sampler->skel->rodata->cfg_pidns_ino = procfs__own_pidns();
	return kernel_part__load(sampler->skel, err);
}

int mode_sampler__start(pid_t pid, uint64_t period_ns, struct mode_sampler **ret, struct err *err)
{
	struct mode_sampler *sampler = calloc(1, sizeof(*sampler));
	int code;

	if (!sampler)
		return err__set(err, -ENOMEM, "out of memory");
	sampler->n_cpus = max_of(libbpf_num_possible_cpus(), 1);
	sampler->by_cpu = calloc(sampler->n_cpus, sizeof(*sampler->by_cpu));
	sampler->links = calloc(sampler->n_cpus, sizeof(*sampler->links));
	code = sampler->by_cpu && sampler->links ? load(sampler, pid, err)
						 : err__set(err, -ENOMEM, "out of memory");
	for (int cpu = 0; !code && cpu < sampler->n_cpus; cpu++)
		code = cpu_clock__attach(sampler->skel->progs.mode_sampled, cpu, period_ns,
					 &sampler->links[cpu], NULL, err);
	if (code)
		mode_sampler__stop(sampler);
	else
		*ret = sampler;
	return code;
}

void mode_sampler__stop(struct mode_sampler *sampler)
{
	if (!sampler)
		return;
	for (int cpu = 0; sampler->links && cpu < sampler->n_cpus; cpu++)
		bpf_link__destroy(sampler->links[cpu]);
	braid_bpf__destroy(sampler->skel);
	free(sampler->links);
	free(sampler->by_cpu);
	free(sampler);
}

static uint64_t ticks_of(const struct mode_sampler *sampler, uint32_t mode)
{
	uint64_t ticks = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(sampler->skel->maps.mode_ticks), &mode,
				sampler->by_cpu))
		return 0;
	for (int cpu = 0; cpu < sampler->n_cpus; cpu++)
		ticks += sampler->by_cpu[cpu];
	return ticks;
}

struct mode_ticks mode_sampler__ticks(const struct mode_sampler *sampler)
{
	return (struct mode_ticks) { .user = ticks_of(sampler, BENCH_USER_TICKS),
				     .kernel = ticks_of(sampler, BENCH_KERNEL_TICKS) };
}

struct mode_ticks mode_sampler__since(const struct mode_sampler *sampler,
				      const struct mode_ticks *then)
{
	struct mode_ticks now = mode_sampler__ticks(sampler);

	return (struct mode_ticks) { .user = now.user - then->user,
				     .kernel = now.kernel - then->kernel };
}
