// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel_half.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "bpf/braid.skel.h"
#include "bpf/probe_rec.h"
#include "core/breakpoint.h"
#include "core/cpu_clock.h"
#include "core/kernel_probes.h"
#include "core/libbpf_warning.h"
#include "core/privilege.h"
#include "core/procfs.h"
#include "core/util.h"

#define RING_BYTES	  (16U << 20)
#define RING_WAKEUP_BYTES (2U << 20)
#define CALL_NODES	  (1U << 18) /* 12 MiB of call_stats, 20 of call_nodes */

struct kernel_half {
	struct braid_bpf *skel;
	struct kernel_probes *probes; /* NULL: none are wanted */
	struct kernel_half_opts opts;
	int n_cpus;
	struct bpf_link **links; /* one per CPU that is online */
	int *event_fds;		 /* that these own; -1: none */
	struct breakpoints breakpoints;
};

static int set_cpu_map(struct kernel_half *half, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(half->skel->obj, name);

	return map ? bpf_map__set_max_entries(map, half->n_cpus) : -ENOENT;
}

/* NULL: the runtime has none. */
static struct bpf_program *walker_of(const struct kernel_half *half, const struct runtime *runtime)
{
	return runtime->program
		       ? bpf_object__find_program_by_name(half->skel->obj, runtime->program)
		       : NULL;
}

static int enable_maps(struct kernel_half *half, const char *const *names, bool enabled)
{
	struct bpf_map *map;

	for (; names && *names; names++) {
		map = bpf_object__find_map_by_name(half->skel->obj, *names);
		if (!map)
			return -ENOENT;
		bpf_map__set_autocreate(map, enabled);
	}
	return 0;
}

/* Loads the walkers of enabled runtimes, and creates the maps of no other. */
static int configure_runtime(struct kernel_half *half, const struct runtime *runtime, bool enabled)
{
	struct bpf_program *program = walker_of(half, runtime);
	int err = enable_maps(half, runtime->maps, enabled);

	if (runtime->program && !program)
		return -ENOENT;
	if (program)
		bpf_program__set_autoload(program, enabled && !half->opts.calls);
	if (!err)
		err = enable_maps(half, runtime->probe_maps, enabled && half->opts.shadows);
	if (err)
		return err;
	if (enabled && runtime->walker >= 0)
		half->skel->rodata->cfg_walkers |= 1U << runtime->walker;
	return enabled && runtime->cpu_map ? set_cpu_map(half, runtime->cpu_map) : 0;
}

static int configure_runtimes(struct kernel_half *half)
{
	int i, err = 0;

	for (i = 0; !err && half->opts.runtimes[i]; i++)
		err = configure_runtime(half, half->opts.runtimes[i], half->opts.enabled & 1U << i);
	return err;
}

static int configure_probes(struct kernel_half *half)
{
	static const char *const maps[] = { "shadows",	  "probe_recs", "probe_hits", "texts",
					    "call_nodes", "call_stats", NULL };
	static const char *const others[] = { "bench_ring", "bench_ring_state", NULL };
	struct braid_bpf *skel = half->skel;
	uint32_t nodes = half->opts.calls ? CALL_NODES : 1;
	int err = enable_maps(half, maps, half->opts.shadows);

	if (!err)
		err = enable_maps(half, others, false);
	skel->rodata->cfg_calls = half->opts.calls;
	skel->rodata->cfg_nodes = nodes;
	skel->rodata->cfg_shadows = half->opts.shadows;
	if (!err && half->opts.shadows)
		err = bpf_map__set_max_entries(skel->maps.shadows, half->opts.shadows);
	if (!err && half->opts.shadows)
		err = bpf_map__set_map_flags(skel->maps.shadows, BPF_F_MMAPABLE);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.call_nodes, nodes);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.call_stats, nodes);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.probe_recs, PROBE_SITES_MAX);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.probe_hits, PROBE_SITES_MAX);
	return err;
}

static int configure(struct kernel_half *half)
{
	struct braid_bpf *skel = half->skel;
	int err;

	skel->rodata->cfg_unwind = half->opts.unwind;
	skel->rodata->cfg_ring_wakeup_bytes = RING_WAKEUP_BYTES;
	skel->rodata->cfg_pidns_ino = procfs__own_pidns();
	bpf_program__set_autoload(skel->progs.on_sample, !half->opts.calls);
	err = bpf_map__set_max_entries(skel->maps.ring,
				       half->opts.ring_bytes ? half->opts.ring_bytes : RING_BYTES);
	if (!err)
		err = set_cpu_map(half, "scratches");
	if (!err)
		err = set_cpu_map(half, "copy_slots");
	if (!err)
		err = configure_probes(half);
	return err ? err : configure_runtimes(half);
}

static int fill_walker(struct kernel_half *half, const struct runtime *runtime)
{
	struct bpf_program *program = walker_of(half, runtime);
	int fd = program ? bpf_program__fd(program) : -ENOENT;
	uint32_t slot = runtime->walker;

	if (fd < 0)
		return fd;
	return bpf_map_update_elem(bpf_map__fd(half->skel->maps.walkers), &slot, &fd, BPF_ANY)
		       ? -errno
		       : 0;
}

static int fill_walkers(struct kernel_half *half)
{
	int err = 0;

	for (int i = 0; !err && !half->opts.calls && half->opts.runtimes[i]; i++)
		if (half->opts.runtimes[i]->walker >= 0 && half->opts.enabled & 1U << i)
			err = fill_walker(half, half->opts.runtimes[i]);
	return err;
}

static int explain(int code, struct err *err)
{
	uint32_t privileges = 1U << PRIVILEGE_LOAD | 1U << PRIVILEGE_EVENTS;

	if (code == -EPERM || (code == -EACCES && privilege__missing(privileges)))
		return privilege__explain(privileges, "to load BPF programs", err);
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return err__set(err, -ENOTSUP,
				"this kernel has no BTF (/sys/kernel/btf/vmlinux): braid needs "
				"Linux 6.1 or later built with CONFIG_DEBUG_INFO_BTF=y");
	return err__set(err, code, "this kernel does not take the BPF programs: %s (%s)",
			strerror(-code), libbpf_warning__last());
}

int kernel_half__load(const struct kernel_half_opts *opts, struct kernel_half **ret,
		      struct err *err)
{
	struct kernel_half *half = calloc(1, sizeof(*half));
	int code;

	if (!half)
		return err__set(err, -ENOMEM, "out of memory");
	half->opts = *opts;
	half->n_cpus = libbpf_num_possible_cpus();
	libbpf_warning__keep();
	half->skel = braid_bpf__open();
	if (!half->skel) {
		code = explain(-errno, err);
		goto out;
	}
	code = configure(half);
	if (!code)
		code = braid_bpf__load(half->skel);
	if (!code)
		code = fill_walkers(half);
	if (!code && opts->shadows)
		code = kernel_probes__open(opts, half->skel->obj, &half->probes);
	if (code)
		explain(code, err);
out:
	if (code)
		kernel_half__free(half);
	else
		*ret = half;
	return code;
}

static uint64_t period_ns(uint32_t frequency_hz)
{
	return NSEC_PER_SEC / frequency_hz;
}

int kernel_half__load_probes(struct kernel_half *half, struct err *err)
{
	int code = half->probes ? kernel_probes__load(half->probes) : -ENOTSUP;

	return code ? explain(code, err) : 0;
}

int kernel_half__attach(struct kernel_half *half, struct err *err)
{
	int cpu, code = 0;

	half->skel->links.on_fork = bpf_program__attach(half->skel->progs.on_fork);
	half->skel->links.on_exec = bpf_program__attach(half->skel->progs.on_exec);
	half->skel->links.on_end = bpf_program__attach(half->skel->progs.on_end);
	if (!half->skel->links.on_fork || !half->skel->links.on_exec || !half->skel->links.on_end)
		return err__set(err, -errno, "cannot attach to process events: %s (%s)",
				strerror(errno), libbpf_warning__last());
	if (half->opts.calls || half->opts.triggered)
		return 0;
	half->links = calloc(half->n_cpus, sizeof(*half->links));
	half->event_fds = calloc(half->n_cpus, sizeof(*half->event_fds));
	if (!half->links || !half->event_fds)
		return err__set(err, -ENOMEM, "out of memory");
	memset(half->event_fds, -1, half->n_cpus * sizeof(*half->event_fds));
	for (cpu = 0; !code && cpu < half->n_cpus; cpu++)
		code = cpu_clock__attach(half->skel->progs.on_sample, cpu,
					 period_ns(half->opts.frequency_hz), &half->links[cpu],
					 &half->event_fds[cpu], err);
	return code;
}

int kernel_half__break_at(struct kernel_half *half, uint32_t pid, uint64_t address, struct err *err)
{
	return breakpoints__attach(&half->breakpoints, half->skel->progs.on_sample, pid, address,
				   err);
}

void kernel_half__detach(struct kernel_half *half)
{
	int cpu;

	if (!half)
		return;
	for (cpu = 0; half->links && cpu < half->n_cpus; cpu++)
		bpf_link__destroy(half->links[cpu]);
	free(half->links);
	free(half->event_fds);
	half->links = NULL;
	half->event_fds = NULL;
	breakpoints__detach(&half->breakpoints);
	kernel_probes__detach(half->probes);
	if (half->skel)
		braid_bpf__detach(half->skel);
}

void kernel_half__free(struct kernel_half *half)
{
	if (!half)
		return;
	kernel_half__detach(half);
	kernel_probes__free(half->probes);
	braid_bpf__destroy(half->skel);
	free(half);
}

int kernel_half__slow_down(struct kernel_half *half, uint32_t slowdown)
{
	uint64_t period = period_ns(half->opts.frequency_hz) * slowdown;
	int cpu, code = 0;

	for (cpu = 0; half->event_fds && cpu < half->n_cpus; cpu++)
		if (half->event_fds[cpu] >= 0 &&
		    ioctl(half->event_fds[cpu], PERF_EVENT_IOC_PERIOD, &period))
			code = -errno;
	return code;
}

void kernel_half__sample_until(struct kernel_half *half, uint64_t time_ns)
{
	__u64 *until_ns = &half->skel->bss->sample_until_ns;
	__u64 before = __atomic_load_n(until_ns, __ATOMIC_RELAXED);

	while ((!before || time_ns < before) &&
	       !__atomic_compare_exchange_n(until_ns, &before, time_ns, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

uint64_t kernel_half__sampled_until(const struct kernel_half *half, uint64_t now_ns)
{
	uint64_t until_ns = __atomic_load_n(&half->skel->bss->sample_until_ns, __ATOMIC_ACQUIRE);

	return until_ns && until_ns < now_ns ? until_ns : now_ns;
}

int kernel_half__sampler_fd(const struct kernel_half *half)
{
	return bpf_program__fd(half->skel->progs.on_sample);
}

struct bpf_object *kernel_half__object(struct kernel_half *half)
{
	return half->probes ? kernel_probes__object(half->probes) : half->skel->obj;
}

int kernel_half__map_fd(const struct kernel_half *half, const char *name)
{
	return bpf_object__find_map_fd_by_name(half->skel->obj, name);
}

void kernel_half__set_plain(struct kernel_half *half, uint32_t image, bool plain)
{
	if (image < IMAGE_FILES_MAX)
		half->skel->bss->plain_images[image] = plain;
}

void kernel_half__counters(const struct kernel_half *half, uint64_t ret_counters[COUNTERS_N])
{
	int fd = bpf_map__fd(half->skel->maps.counters), cpu;
	uint64_t *values = calloc(half->n_cpus, sizeof(*values));
	uint32_t key;

	for (key = 0; key < COUNTERS_N; key++) {
		ret_counters[key] = 0;
		if (!values || bpf_map_lookup_elem(fd, &key, values))
			continue;
		for (cpu = 0; cpu < half->n_cpus; cpu++)
			ret_counters[key] += values[cpu];
	}
	free(values);
}

uint32_t kernel_half__call_nodes(const struct kernel_half *half)
{
	return min_of(half->skel->bss->call_nodes_used, CALL_NODES - 1);
}

const char *counter__text(unsigned counter)
{
	static const char *const texts[] = {
#define X(id, text) [COUNT_##id] = text,
		COUNTERS(X)
#undef X
	};

	return counter < ARRAY_SIZE(texts) ? texts[counter] : "";
}
