// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/kernel_half_state.h"

#include <errno.h>
#include <string.h>

#include "bpf/cached_unwind.h"
#include "bpf/heap.h"
#include "bpf/lock_calls.h"
#include "bpf/outstanding.h"
#include "bpf/probe_rec.h"
#include "bpf/values.h"
#include "bpf/waiting.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/kernel_subset.h"

#define RING_BYTES	  (16U << 20)
#define RING_WAKEUP_BYTES (2U << 20)

static uint32_t slots_of(const struct kernel_half *half)
{
	return half->n_slots_cpus * max_of(half->chains.slots, 1U);
}

static int set_slot_map(struct kernel_half *half, const char *name, uint32_t per_slot)
{
	struct bpf_map *map = bpf_object__find_map_by_name(half->skel->obj, name);

	return map ? bpf_map__set_max_entries(map, slots_of(half) * per_slot) : -ENOENT;
}

/* Shrinks the named maps unless they are needed. */
static int size_maps(struct kernel_half *half, const char *const *names, bool needed)
{
	struct bpf_map *map;
	int err = 0;

	for (; !err && names && *names; names++) {
		map = bpf_object__find_map_by_name(half->skel->obj, *names);
		if (!map)
			err = -ENOENT;
		else if (!needed)
			err = kernel_subset__shrink(map);
	}
	return err;
}

/* Defers the creation of the map until the runtime is found. */
static int put_off(struct kernel_half *half, int i, const char *name)
{
	const struct runtime *runtime = half->opts.runtimes[i];
	struct bpf_map *map = bpf_object__find_map_by_name(half->skel->obj, name);
	bool by_slot =
		runtime__has(runtime, walker, slot_map) && !strcmp(name, runtime->walker->slot_map);

	if (!map)
		return -ENOENT;
	if (half->n_late == LATE_MAPS_MAX)
		return -E2BIG;
	half->late[half->n_late++] =
		(struct late_map) { map, i, by_slot ? slots_of(half) : bpf_map__max_entries(map) };
	return kernel_subset__shrink(map);
}

static const char *const *probe_maps_of(const struct kernel_half *half, int i)
{
	const struct runtime_probes *probes = half->opts.runtimes[i]->probes;

	return probes ? probes->maps : NULL;
}

/* Creates the maps of runtime @i later, except its records, which are written before the walker is
 * loaded. */
static int put_off_maps(struct kernel_half *half, int i)
{
	const struct runtime_walker *walker = half->opts.runtimes[i]->walker;
	int err = 0;

	for (const char *const *name = walker ? walker->maps : NULL; !err && name && *name; name++)
		if (strcmp(*name, walker->records) != 0)
			err = put_off(half, i, *name);
	for (const char *const *name = probe_maps_of(half, i); !err && name && *name; name++)
		err = half->opts.shadows ? put_off(half, i, *name) : 0;
	return err;
}

/* Defers the maps of an enabled runtime, or shrinks those of another one. */
static int configure_runtime(struct kernel_half *half, int i)
{
	const struct runtime_walker *walker = half->opts.runtimes[i]->walker;
	bool enabled = half->opts.enabled & 1U << i;
	int err = enabled ? put_off_maps(half, i)
			  : size_maps(half, walker ? walker->maps : NULL, false);

	return err || (enabled && half->opts.shadows)
		       ? err
		       : size_maps(half, probe_maps_of(half, i), false);
}

static int configure_runtimes(struct kernel_half *half)
{
	int i, err = 0;

	for (i = 0; !err && half->opts.runtimes[i]; i++)
		err = configure_runtime(half, i);
	return err;
}

static int configure_probes(struct kernel_half *half)
{
	static const char *const maps[] = { "shadows",	  "probe_recs", "probe_hits", "texts",
					    "call_nodes", "call_stats", NULL };
	struct braid_bpf *skel = half->skel;
	uint32_t nodes = half->opts.calls ? CALL_NODES : 1;
	int err = size_maps(half, maps, half->opts.shadows);

	skel->rodata->cfg_calls = half->opts.calls;
	skel->rodata->cfg_nodes = nodes;
	skel->rodata->cfg_shadows = half->opts.shadows;
	if (err || !half->opts.shadows)
		return err;
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

/* Returns the unwinder's hooks that are loaded at the start: those that cost the verifier little.
 * The others are loaded with their walkers. */
static uint32_t hooks_at_start(const struct kernel_half *half)
{
	uint32_t later = 0;

	for (int i = 0; half->opts.runtimes[i]; i++)
		if (runtime__has(half->opts.runtimes[i], walker, tableless))
			later |= 1U << half->opts.runtimes[i]->walker->slot;
	return ~later;
}

/* Limits with a scope: cgroups, processes with mappings of their own, and processes with one
 * runtime. */
#define SCOPE_VERDICTS_MAX 8192
#define SCOPE_SPACES_MAX   32768
#define SCOPE_RECORDS_MAX  4096

static int configure_scope(struct kernel_half *half)
{
	struct braid_bpf *skel = half->skel;
	uint32_t scope = half->opts.scope;
	int err = 0;

	skel->rodata->cfg_scope = scope;
	skel->rodata->cfg_scope_uid = half->opts.scope_uid;
	skel->rodata->cfg_scope_not = half->opts.scope_not;
	if (scope & SCOPE_NAME)
		bpf_program__set_autoload(skel->progs.on_rename, true);
	if (!err && scope & SCOPE_CGROUP)
		err = bpf_map__set_max_entries(skel->maps.scope_verdicts, SCOPE_VERDICTS_MAX);
	if (!err && scope)
		err = bpf_map__set_max_entries(skel->maps.mappings, SCOPE_SPACES_MAX);
	if (!err && scope)
		err = bpf_map__set_max_entries(skel->maps.contexts, SCOPE_RECORDS_MAX);
	for (int i = 0; !err && scope && half->opts.runtimes[i]; i++) {
		const struct runtime_walker *walker = half->opts.runtimes[i]->walker;

		if (walker)
			err = bpf_map__set_max_entries(
				bpf_object__find_map_by_name(skel->obj, walker->records),
				SCOPE_RECORDS_MAX);
	}
	return err;
}

static uint32_t cached_ways(const struct kernel_half *half)
{
	return max_of(min_of(CACHED_UNWINDS_MAX / slots_of(half), (uint32_t)CACHED_WAYS), 1U);
}

int kernel_half__configure(struct kernel_half *half)
{
	struct braid_bpf *skel = half->skel;
	int err = chains__plan(&half->chains, skel->obj, &half->opts.events, hooks_at_start(half));

	half->chains.instead = half->created;
	skel->rodata->cfg_slots = max_of(half->chains.slots, 1U);
	memcpy((void *)skel->rodata->cfg_periods, half->opts.periods, sizeof(half->opts.periods));
	memcpy((void *)skel->rodata->cfg_values, half->opts.values, sizeof(half->opts.values));
	memcpy((void *)skel->rodata->cfg_minima, half->opts.minima, sizeof(half->opts.minima));
	memcpy((void *)skel->rodata->cfg_numbers, half->opts.numbers, sizeof(half->opts.numbers));
	skel->rodata->cfg_filtered = half->opts.filtered;
	skel->rodata->cfg_paired = half->opts.paired;
	skel->rodata->cfg_valued = half->opts.valued;
	skel->rodata->cfg_limited = half->opts.limited;
	skel->rodata->cfg_intervals = half->opts.intervals;
	skel->rodata->cfg_measured = half->opts.measured;
	skel->rodata->cfg_budget_events = max_of(__builtin_popcount(half->opts.limited), 1);
	skel->rodata->cfg_budget_permille = 10 * half->opts.budget_percent;
	skel->rodata->cfg_unwind = half->opts.unwind;
	skel->rodata->cfg_cached = 1;
	skel->rodata->cfg_cached_ways = cached_ways(half);
	skel->rodata->cfg_sent_sets = half->opts.whole ? 0 : SENT_SETS;
	skel->rodata->cfg_ring_wakeup_bytes = RING_WAKEUP_BYTES;
	skel->rodata->cfg_pidns_ino = own_pidns();
	skel->rodata->cfg_targets_only = privilege__is_lent();
	skel->rodata->cfg_locks = 1;
	skel->rodata->cfg_outstanding = half->opts.outstanding;
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.ring, half->opts.ring_bytes
									? half->opts.ring_bytes
									: RING_BYTES);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.slot_owners, half->n_slots_cpus);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.budgets, half->n_slots_cpus);
	if (!err)
		err = set_slot_map(half, "scratches", 1);
	if (!err)
		err = set_slot_map(half, "copy_slots", 1);
	if (!err)
		err = set_slot_map(half, "cached_unwinds", cached_ways(half));
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
	if (!err && half->opts.numbers[EVENT_ALLOC] && !half->opts.outstanding)
		err = bpf_map__set_max_entries(skel->maps.alloc_codes, ALLOC_CODES_MAX);
	if (!err && half->opts.numbers[EVENT_ALLOC])
		err = bpf_map__set_max_entries(skel->maps.heap_sites, HEAP_SITES_MAX);
	if (!err && half->opts.valued)
		err = bpf_map__set_max_entries(skel->maps.value_lists, VALUE_LISTS_MAX);
	if (!err && half->opts.outstanding)
		err = bpf_map__set_max_entries(skel->maps.live_allocs, LIVE_ALLOCS_MAX);
	if (!err)
		err = configure_scope(half);
	if (!err)
		err = configure_probes(half);
	return err ? err : configure_runtimes(half);
}

/* --- memory --- */

/* Allocations of kernel/bpf/{hashtab,arraymap,ringbuf}.c: 48 bytes of overhead for an element of a
 * hash, and 16 bytes for its bucket. */
#define HASH_ELEMENT_BYTES 48
#define HASH_BUCKET_BYTES  16

static uint64_t element_bytes(const struct bpf_map *map, int n_cpus)
{
	uint64_t key = (bpf_map__key_size(map) + 7) / 8 * 8;
	uint64_t value = (bpf_map__value_size(map) + 7) / 8 * 8;

	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_RINGBUF:
		return 1;
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return value * n_cpus;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_HASH_OF_MAPS:
		return HASH_ELEMENT_BYTES + HASH_BUCKET_BYTES + key + value;
	case BPF_MAP_TYPE_TASK_STORAGE:
		return 0; /* allocated by thread */
	default:
		return value;
	}
}

uint64_t kernel_half__map_bytes(const struct kernel_half *half, uint32_t seen)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map (map, half->skel->obj)
		bytes += element_bytes(map, half->n_cpus) * bpf_map__max_entries(map);
	for (size_t i = 0; i < half->n_late; i++)
		if (seen & 1U << half->late[i].runtime)
			bytes += element_bytes(half->late[i].like, half->n_cpus) *
				 half->late[i].entries;
	return bytes;
}
