/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SLOTS_BPF_H
#define BRAID_SLOTS_BPF_H

/* The scratch memory that a running program may write. Each CPU has a few slots. A sample claims
 * one when it is triggered, the stages after it (unwinder, walkers) find it again, and the end of
 * the chain releases it. An index by CPU alone is not sufficient: a timer tick interrupts a program
 * of a uprobe, and such programs can be preempted, so that those of several tasks alternate on one
 * CPU. They do not migrate: the CPU is the same from the trigger to the end.
 *
 * Each BPF program type has slots of its own. So tasks that wait within programs of uprobes do not
 * prevent the sampling of ticks. Within a type a task's latest claim is its highest slot. A claim
 * is made above all others of the same task, and those are of programs that it interrupts. */

#include "bpf/kernel.h"
#include "bpf/shared.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define SLOT_NONE 0xffffffff

struct cpu_slots {
	__u64 owners[SLOTS_MAX]; /* SLOT_TAKEN and a thread id of the initial PID namespace; 0: free
				  */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of CPUs */
	__type(key, __u32);
	__type(value, struct cpu_slots);
} slot_owners __weak SEC(".maps");

/* Number of slots of one CPU. Every map with an entry per slot has CPUs * cfg_slots of them. */
extern const volatile __u32 cfg_slots;

/* Slots of this program's type, constants for the verifier. A type with one slot needs no
 * search. */
extern const volatile __u32 cfg_slot_first, cfg_slot_end;

static __always_inline struct cpu_slots *slots__here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&slot_owners, &cpu);
}

#define SLOT_TAKEN (1ULL << 32) /* idle tasks have the id 0 */

static __always_inline __u64 slots__me(void)
{
	return SLOT_TAKEN | (__u32)bpf_get_current_task_btf()->pid;
}

/* Returns the highest slot of this task, or SLOT_NONE. */
static __always_inline __u32 slots__mine(const struct cpu_slots *here, __u64 me)
{
	__u32 i, found = SLOT_NONE;

	for (i = 0; i < SLOTS_MAX; i++)
		if (i >= cfg_slot_first && i < cfg_slot_end &&
		    *(volatile __u64 *)&here->owners[i] == me)
			found = i;
	return found;
}

/* Claims a slot. Returns 1 if there was a free one. */
static __always_inline int slot__claim(void)
{
	struct cpu_slots *here = slots__here();
	__u64 me = slots__me();
	__u32 i, above;

	if (!here)
		return 0;
	above = slots__mine(here, me);
	for (i = 0; i < SLOTS_MAX; i++)
		if (i >= cfg_slot_first && i < cfg_slot_end && (above == SLOT_NONE || i > above) &&
		    !__sync_val_compare_and_swap(&here->owners[i], 0, me))
			return 1;
	return 0;
}

/* Returns the key of the running program's slot in maps with an entry per slot. If the program has
 * claimed no slot, returns SLOT_NONE, a key that no map has. */
static __always_inline __u32 slot__key(void)
{
	__u32 first = bpf_get_smp_processor_id() * cfg_slots, slot = cfg_slot_first;
	const struct cpu_slots *here;

	if (cfg_slot_end - cfg_slot_first == 1)
		return first + slot;
	here = slots__here();
	slot = here ? slots__mine(here, slots__me()) : SLOT_NONE;
	return slot == SLOT_NONE ? SLOT_NONE : first + slot;
}

/* Releases the running program's slot, which may not be used afterwards. */
static __noinline int slot__release(void)
{
	struct cpu_slots *here = slots__here();
	__u32 slot;

	if (!here)
		return 0;
	slot = slots__mine(here, slots__me());
	if (slot < SLOTS_MAX)
		*(volatile __u64 *)&here->owners[slot & (SLOTS_MAX - 1)] = 0;
	return 0;
}

#endif
