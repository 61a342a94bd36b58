// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/kernel_half.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bpf/braid.skel.h"
#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "bpf/kept.h"
#include "bpf/lock_calls.h"
#include "bpf/outstanding.h"
#include "bpf/probe_rec.h"
#include "bpf/waiting.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/chain.h"
#include "core/kernel/kernel_part.h"
#include "core/kernel/libbpf_warning.h"
#include "core/kernel/maps.h"
#include "core/kernel/uprobe_multi.h"
#include <stdlib.h>

#define RING_BYTES	  (16U << 20)
#define RING_WAKEUP_BYTES (2U << 20)
#define CALL_NODES	  (1U << 18) /* 12 MiB of call_stats, 20 of call_nodes */

/* Attached as long as there may be shadow stacks: threads must not end unseen. */
static const char *const followers[] = { "shadow_on_fork", "shadow_on_exec", "shadow_on_exit",
					 NULL };

/* The skeleton has all maps, what follows processes, and what takes samples by the first type of
 * triggers. What only some sessions need is loaded beside it when the need shows, as most of a
 * start's time is the verifier's: other types, the walker of a runtime, the programs of probes. */
struct kernel_half {
	struct braid_bpf *skel; /* NULL: it is ... */
	bool on_host;
	struct kernel_half_opts opts;
	int n_cpus;
	struct chains chains;
	uint32_t loaded;	   /* bit n: the walker of runtimes[n] is */
	struct bpf_object *probes; /* NULL: none are wanted */
	bool probes_tried;
	int probes_code; /* of loading them */
	struct bpf_link *follower_links[ARRAY_SIZE(followers)];
};

static int set_slot_map(struct kernel_half *half, const char *name, uint32_t per_slot)
{
	struct bpf_map *map = bpf_object__find_map_by_name(half->skel->obj, name);

	return map ? bpf_map__set_max_entries(map, half->n_cpus * max_of(half->chains.slots, 1U) *
							   per_slot)
		   : -ENOENT;
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

/* Creates the maps of enabled runtimes, and of no other. */
static int configure_runtime(struct kernel_half *half, const struct runtime *runtime, bool enabled)
{
	int err = enable_maps(half, runtime->maps, enabled);

	if (!err)
		err = enable_maps(half, runtime->probe_maps, enabled && half->opts.shadows);
	return !err && enabled && runtime->slot_map ? set_slot_map(half, runtime->slot_map, 1)
						    : err;
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
	struct braid_bpf *skel = half->skel;
	uint32_t nodes = half->opts.calls ? CALL_NODES : 1;
	int err = enable_maps(half, maps, half->opts.shadows);

	skel->rodata->cfg_calls = half->opts.calls;
	skel->rodata->cfg_nodes = nodes;
	skel->rodata->cfg_shadows = half->opts.shadows;
	if (!err && half->opts.shadows)
		err = bpf_map__set_max_entries(skel->maps.shadows, half->opts.shadows);
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

/* Hooks of the unwinder that cost the verifier little; the others come with their walkers. */
static uint32_t hooks_at_start(const struct kernel_half *half)
{
	uint32_t later = 0;

	for (int i = 0; half->opts.runtimes[i]; i++)
		if (half->opts.runtimes[i]->tableless)
			later |= 1U << half->opts.runtimes[i]->walker;
	return ~later;
}

static int configure(struct kernel_half *half)
{
	struct braid_bpf *skel = half->skel;
	int err = chains__plan(&half->chains, skel->obj, &half->opts.events, hooks_at_start(half));

	skel->rodata->cfg_slots = max_of(half->chains.slots, 1U);
	memcpy((void *)skel->rodata->cfg_periods, half->opts.periods, sizeof(half->opts.periods));
	memcpy((void *)skel->rodata->cfg_values, half->opts.values, sizeof(half->opts.values));
	memcpy((void *)skel->rodata->cfg_minima, half->opts.minima, sizeof(half->opts.minima));
	memcpy((void *)skel->rodata->cfg_numbers, half->opts.numbers, sizeof(half->opts.numbers));
	skel->rodata->cfg_filtered = half->opts.filtered;
	skel->rodata->cfg_paired = half->opts.paired;
	skel->rodata->cfg_limited = half->opts.limited;
	skel->rodata->cfg_intervals = half->opts.intervals;
	skel->rodata->cfg_budget_permille = 10 * half->opts.budget_percent;
	skel->rodata->cfg_unwind = half->opts.unwind;
	skel->rodata->cfg_kept = 1;
	skel->rodata->cfg_known_sets = KNOWN_SETS;
	skel->rodata->cfg_ring_wakeup_bytes = RING_WAKEUP_BYTES;
	skel->rodata->cfg_pidns_ino = own_pidns();
	skel->rodata->cfg_locks = 1;
	skel->rodata->cfg_outstanding = half->opts.outstanding;
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.ring, half->opts.ring_bytes
									? half->opts.ring_bytes
									: RING_BYTES);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.slot_owners, half->n_cpus);
	if (!err)
		err = set_slot_map(half, "scratches", 1);
	if (!err)
		err = set_slot_map(half, "copy_slots", 1);
	if (!err)
		err = set_slot_map(half, "kept_stacks", KEPT_WAYS);
	if (!err && (half->opts.numbers[EVENT_OFF_CPU] || half->opts.numbers[EVENT_WALL] ||
		     half->opts.numbers[EVENT_WAKEUP]))
		err = bpf_map__set_max_entries(skel->maps.waiting, WAITING_MAX);
	if (!err && bpf_program__autoload(skel->progs.off_cpu_over))
		err = bpf_map__set_max_entries(skel->maps.waits_over, WAITS_OVER_MAX);
	if (!err && half->opts.numbers[EVENT_LOCK_HOLDER])
		err = bpf_map__set_max_entries(skel->maps.lock_waiters, WAITING_MAX);
	if (!err && half->opts.numbers[EVENT_LOCK_ORDER])
		err = bpf_map__set_max_entries(skel->maps.lock_edges, LOCK_EDGES_MAX);
	if (!err && half->opts.numbers[EVENT_LOCK_ORDER])
		err = bpf_map__set_max_entries(skel->maps.lock_lives, LOCK_LIVES_MAX);
	if (!err && half->opts.outstanding)
		err = bpf_map__set_max_entries(skel->maps.held, HELD_MAX);
	if (!err)
		err = configure_probes(half);
	return err ? err : configure_runtimes(half);
}

static int explain(int ret, struct err *err)
{
	uint32_t privileges = 1U << PRIVILEGE_LOAD | 1U << PRIVILEGE_EVENTS;

	if (ret == -EPERM || (ret == -EACCES && privilege__missing(privileges)))
		return privilege__explain(privileges, "to load BPF programs", err);
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return err__set(err, -ENOTSUP,
				"this kernel has no BTF (/sys/kernel/btf/vmlinux): braid needs "
				"Linux 6.1 or later built with CONFIG_DEBUG_INFO_BTF=y");
	return err__set(err, ret, "this kernel does not take the BPF programs: %s (%s)",
			strerror(-ret), libbpf_warning__last());
}

/* Not loaded yet: runtimes find their programs in it. */
static int open_probes(struct kernel_half *half)
{
	const struct kernel_part_map none = {};
	const char *const nothing[] = { "nothing", NULL };
	int ret = kernel_part__beside(half->skel->obj, nothing, &none, &half->probes);

	for (int i = 0; !ret && half->opts.runtimes[i]; i++) {
		const char *const *programs = half->opts.runtimes[i]->probe_programs;

		if (programs && half->opts.enabled & 1U << i)
			ret = kernel_part__select(half->probes, programs, true);
	}
	return ret ? ret : kernel_part__select(half->probes, followers, true);
}

/* Are its calls all that is probed? Other events have perf's links. */
static bool has_only_alloc(const struct kernel_half_opts *opts)
{
	uint32_t number = opts->numbers[EVENT_ALLOC];

	return number && opts->events.of_type[CHAIN_UPROBE] == 1U << number;
}

int kernel_half__load(const struct kernel_half_opts *opts, struct kernel_half **ret,
		      struct err *err)
{
	struct kernel_half *half = calloc(1, sizeof(*half));
	int rc;

	if (!half)
		return err__set(err, -ENOMEM, "out of memory");
	half->opts = *opts;
	half->opts.events.multi =
		!opts->outstanding && has_only_alloc(opts) && uprobe_multi__works();
	half->n_cpus = libbpf_num_possible_cpus();
	libbpf_warning__keep();
	half->skel = braid_bpf__open();
	if (!half->skel) {
		rc = explain(-errno, err);
		goto out;
	}
	rc = configure(half);
	if (!rc)
		rc = braid_bpf__load(half->skel);
	if (!rc)
		rc = chains__load(&half->chains);
	if (!rc && opts->shadows)
		rc = open_probes(half);
	if (rc)
		explain(rc, err);
out:
	if (rc)
		kernel_half__free(half);
	else
		*ret = half;
	return rc;
}

int kernel_half__on_host(struct kernel_half **ret)
{
	struct kernel_half *half = calloc(1, sizeof(*half));

	if (!half)
		return -ENOMEM;
	half->on_host = true;
	host_programs__open();
	*ret = half;
	return 0;
}

static int load_probes(struct kernel_half *half)
{
	const struct chain_stage walker = { "walk_shadow", WALKER_SHADOW };
	int ret = bpf_object__load(half->probes);

	if (!ret)
		ret = chains__add(&half->chains, &walker, 1, 0);
	for (size_t i = 0; !ret && followers[i]; i++) {
		half->follower_links[i] = bpf_program__attach(
			bpf_object__find_program_by_name(half->probes, followers[i]));
		ret = half->follower_links[i] ? 0 : -errno;
	}
	return ret;
}

int kernel_half__load_probes(struct kernel_half *half, struct err *err)
{
	if (!half->probes)
		return explain(-ENOTSUP, err);
	if (!half->probes_tried)
		half->probes_code = load_probes(half);
	half->probes_tried = true;
	return half->probes_code ? explain(half->probes_code, err) : 0;
}

static int load_runtime(struct kernel_half *half, int i, struct err *err)
{
	const struct runtime *runtime = half->opts.runtimes[i];
	const struct chain_stage stages[] = { { runtime->program, runtime->walker },
					      { "unwind_stack", STAGE_UNWIND } };
	int ret;

	if (!runtime->program || half->loaded & 1U << i)
		return 0;
	ret = chains__add(&half->chains, stages, runtime->tableless ? 2 : 1,
			  runtime->tableless ? 1U << runtime->walker : 0);
	if (ret)
		return explain(ret, err);
	half->loaded |= 1U << i;
	return 0;
}

int kernel_half__load_runtime(struct kernel_half *half, int i, struct err *err)
{
	return half->on_host ? 0 : load_runtime(half, i, err);
}

const struct bpf_program *kernel_half__trigger(const struct kernel_half *half, enum chain_type type,
					       uint32_t event)
{
	return chains__trigger(&half->chains, type, event);
}

const struct bpf_program *kernel_half__begin(const struct kernel_half *half, uint32_t event)
{
	return chains__begin(&half->chains, event);
}

const struct bpf_program *kernel_half__program(const struct kernel_half *half,
					       const struct chain_program *program)
{
	return chains__program(&half->chains, program);
}

int kernel_half__attach(struct kernel_half *half, struct err *err)
{
	half->skel->links.on_fork = bpf_program__attach(half->skel->progs.on_fork);
	half->skel->links.on_exec = bpf_program__attach(half->skel->progs.on_exec);
	half->skel->links.on_end = bpf_program__attach(half->skel->progs.on_end);
	if (!half->skel->links.on_fork || !half->skel->links.on_exec || !half->skel->links.on_end)
		return err__set(err, -errno, "cannot attach to process events: %s (%s)",
				strerror(errno), libbpf_warning__last());
	return 0;
}

void kernel_half__detach(struct kernel_half *half)
{
	if (!half)
		return;
	for (size_t i = 0; followers[i]; i++) {
		bpf_link__destroy(half->follower_links[i]);
		half->follower_links[i] = NULL;
	}
	if (half->skel)
		braid_bpf__detach(half->skel);
}

void kernel_half__free(struct kernel_half *half)
{
	if (!half)
		return;
	kernel_half__detach(half);
	if (half->on_host)
		host__done();
	bpf_object__close(half->probes);
	chains__done(&half->chains);
	braid_bpf__destroy(half->skel);
	free(half);
}

void kernel_half__sample_from(struct kernel_half *half, uint64_t time_ns)
{
	__atomic_store_n(&half->skel->bss->sample_from_ns, time_ns, __ATOMIC_RELEASE);
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

void kernel_half__take_calls(struct kernel_half *half, bool taken)
{
	__atomic_store_n(&half->skel->bss->calls_taken, taken, __ATOMIC_RELEASE);
}

volatile struct alloc_window *kernel_half__alloc_window(struct kernel_half *half)
{
	return (volatile struct alloc_window *)&half->skel->bss->alloc_window;
}

uint64_t kernel_half__sampled_until(const struct kernel_half *half, uint64_t now_ns)
{
	uint64_t until_ns = __atomic_load_n(&half->skel->bss->sample_until_ns, __ATOMIC_ACQUIRE);

	return until_ns && until_ns < now_ns ? until_ns : now_ns;
}

void kernel_half__end_probes(struct kernel_half *half)
{
	__atomic_store_n(&half->skel->bss->probes_over, 1, __ATOMIC_RELEASE);
}

int kernel_half__sampler_fd(const struct kernel_half *half)
{
	const struct bpf_program *program = NULL;

	for (int type = 0; !program && type < CHAIN_TYPES_N; type++)
		program = chains__trigger(&half->chains, type, 1);
	return program ? bpf_program__fd(program) : -ENOENT;
}

bool kernel_half__waits_without_rseq(const struct kernel_half *half)
{
	bool met = half->skel->bss->off_cpu_without_rseq == 1;

	if (met)
		half->skel->bss->off_cpu_without_rseq = 2;
	return met;
}

void kernel_half__economy(const struct kernel_half *half, struct kernel_half_economy *ret)
{
	struct budget_rec *budgets = calloc(half->n_cpus, sizeof(*budgets));
	uint32_t key = 0;

	*ret = (struct kernel_half_economy) { .below = half->skel->bss->waits_below,
					      .below_ns = half->skel->bss->waits_below_ns };
	if (budgets && !bpf_map_lookup_elem(bpf_map__fd(half->skel->maps.budgets), &key, budgets))
		for (int cpu = 0; cpu < half->n_cpus; cpu++) {
			ret->occurrences += budgets[cpu].intervals;
			ret->skipped += budgets[cpu].skipped;
			ret->period_ns = max_of(ret->period_ns, budgets[cpu].longest_ns);
			for (int i = 1; i <= EVENTS_MAX; i++)
				ret->unaccounted += budgets[cpu].carried[i];
		}
	free(budgets);
}

uint32_t kernel_half__take_codes(const struct kernel_half *half, uint32_t n)
{
	return __atomic_fetch_add(&half->skel->bss->last_code, n, __ATOMIC_RELAXED);
}

int kernel_half__beside(const struct kernel_half *half, const char *const *programs,
			struct bpf_object **ret)
{
	const struct kernel_part_map none = {};

	return kernel_part__beside(half->skel->obj, programs, &none, ret);
}

struct bpf_object *kernel_half__object(struct kernel_half *half)
{
	return half->probes ? half->probes : half->skel->obj;
}

int kernel_half__map_fd(const struct kernel_half *half, const char *name)
{
	return half->on_host ? maps__of_host(name)
			     : bpf_object__find_map_fd_by_name(half->skel->obj, name);
}

void kernel_half__set_plain(struct kernel_half *half, uint32_t image, bool plain)
{
	if (!half->on_host && image < IMAGE_FILES_MAX)
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
