/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_SHADOW_HOST_H
#define BRAID_TESTS_UNIT_SHADOW_HOST_H

/* Shadow stacks and CPython's probes with their maps. Include this file last. */

#include "core/base/util.h"
#include "tests/tap.h"

#include "bpf/host/shim.h"

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_budget_permille = 0;
const volatile __u32 cfg_pidns_ino = 0;
const volatile __u32 cfg_slots = 1, cfg_slot_first = 0, cfg_slot_end = 1;
const volatile __u32 cfg_numbers[EVENT_SLOTS_N];
__u32 last_code = 0, rest_epoch = 0;

#include "bpf/shadow.bpf.c"
/* clang-format off: shadow.bpf.c must precede the next file, which uses its declarations */
#include "bpf/python_probes.bpf.c"
/* clang-format on */

#define SPACE	7
#define SHADOWS 32
#define NODES	4096

static struct rec_code_object last_rec;
static uint32_t n_codes;

static inline void keep_code(const struct rec_code_object *rec, size_t size)
{
	memcpy(&last_rec, rec, size);
	n_codes++;
}

static inline void shadow__open(void)
{
	HOST_ARRAY(slot_owners, 1);
	HOST_ARRAY(scratches, 1);
	HOST_ARRAY(counters, COUNTERS_N);
	HOST_ARRAY(shadows, SHADOWS);
	HOST_ARRAY(probe_recs, 4);
	HOST_HASH(call_nodes, NODES);
	HOST_ARRAY(call_stats, NODES);
	HOST_HASH(python_procs, 8);
	HOST_HASH(python_codes, 1024);
	HOST_HASH(texts, 1024);
	host__set(&cfg_shadows, SHADOWS);
	host__set(&cfg_nodes, NODES);
	host.on_code = keep_code;
	host.task.group_leader = &host.task;
	host.task.pid = host.task.tgid = 1000;
}

static inline uint64_t counted(enum counter counter)
{
	uint32_t key = counter;

	return *(uint64_t *)bpf_map_lookup_elem(&counters, &key);
}

/* Takes a sample of the thread. Its frames are then in host.sample. */
static inline void shadow__sample(uint64_t sp)
{
	struct bpf_perf_event_data ctx = { 0 };
	struct scratch *scratch = scratch__get();

	if (!scratch)
		return;
	memset(&scratch->sample, 0, sizeof(scratch->sample));
	scratch->sample.type = REC_SAMPLE;
	scratch->n_words = scratch->walkers_left = 0;
	scratch->interrupted[UNWIND_REG_RSP] = sp;
	walk_shadow(&ctx);
}

static inline uint32_t any(void)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005 + 1442695040888963407; /* generator of Knuth's MMIX */
	return seed >> 32;
}

static inline uint32_t any_below(uint32_t n)
{
	return any() % n;
}

#endif
