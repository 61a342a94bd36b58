/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_TABLES_H
#define BRAID_TESTS_UNIT_TABLES_H

/* The sampler with its maps, for one process whose tables and mappings a test makes. Include this
 * file last. */

#include "bpf/host/shim.h"

#include "bpf/sampler.bpf.c"
#include "bpf/unwind.bpf.c"

#define TGID  100
#define SPACE 7

static struct mm_struct sampler__memory;

static inline void sampler__open(void)
{
	static const struct proc_rec proc = { .space = SPACE };
	static const uint32_t tgid = TGID, space = SPACE;
	struct host_map *map;

	HOST_ARRAY(slot_owners, 1);
	HOST_ARRAY(scratches, SLOTS_MAX);
	HOST_ARRAY(counters, COUNTERS_N);
	HOST_ARRAY(copy_slots, SLOTS_MAX);
	HOST_ARRAY(cached_unwinds, SLOTS_MAX * CACHED_WAYS);
	HOST_HASH(targets, 8);
	HOST_HASH(image_files, 8);
	HOST_HASH(reported_images, 256);
	HOST_HASH(unmapped_reports, 64);
	bpf_map_update_elem(&targets, &tgid, &proc, 0);
	HOST_ARRAY_OF_MAPS(chunks, CHUNKS_MAX);
	map = HOST_HASH_OF_MAPS(mappings, 8);
	memcpy(map->entries[0].key, &space, sizeof(space));
	map->entries[0].value = calloc(1, sizeof(struct mappings_rec));
	map->n = 1;
	host.stages[STAGE_UNWIND] = unwind_stack;
	host__set(&cfg_tableless, 1U << WALKER_PYTHON | 1U << WALKER_RUBY);
	host.task.pid = host.task.tgid = TGID;
	host.task.mm = &sampler__memory;
	host.task.group_leader = &host.task;
}

static inline struct mappings_rec *sampler__mappings(void)
{
	return host_map__find(&mappings)->entries[0].value;
}

static inline void sampler__close(void)
{
	struct host_map *map = host_map__find(&chunks);

	for (uint32_t i = 0; i < map->n; i++)
		free(map->entries[i].value);
	free(sampler__mappings());
	host__done();
}

/* As table_arena__add(), but at @base. */
static inline void sampler__put_words(uint32_t base, const uint32_t *words, uint32_t n)
{
	struct host_map *map = host_map__find(&chunks);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = base + i;
		struct host_entry *entry = &map->entries[at >> CHUNK_WORDS_BITS];

		if (!entry->value)
			entry->value = calloc(1, sizeof(struct chunk));
		((struct chunk *)entry->value)->words[at & (CHUNK_WORDS - 1)] = words[i];
	}
}

/* Takes a sample with these user registers (in the order of DWARF). The sample is then in
 * host.sample. */
static inline void sampler__run(const uint64_t *regs)
{
	struct bpf_perf_event_data ctx = { 0 };

	host__set_regs(&ctx.regs, regs);
	on_sample(&ctx);
}

static inline uint64_t sample__ip(int i)
{
	return host.sample.words[host.sample.head.n_kernel + 2 * i];
}

static inline uint64_t sample__cfa(int i)
{
	return host.sample.words[host.sample.head.n_kernel + 2 * i + 1];
}

#endif
