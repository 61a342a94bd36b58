/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_HALF_STATE_H
#define BRAID_KERNEL_HALF_STATE_H

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "core/kernel/chain.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/kernel_subset.h"

/* The private state of the kernel half. kernel_half.c loads and attaches it;
 * kernel_half_configure.c sizes it before. */

#define KERNEL_HALF_FOLLOWERS 3		 /* number of programs, for shadow stacks */
#define CALL_NODES	      (1U << 18) /* 12 MiB of call_stats, 20 MiB of call_nodes */

/* A map of a runtime, which has one element in the skeleton. It is created when the runtime is
 * found. Programs that are loaded before do not use it. */
struct late_map {
	const struct bpf_map *like; /* the skeleton's map */
	int runtime;		    /* index of the runtime */
	uint32_t entries;
};
#define LATE_MAPS_MAX (4 * WALKERS_MAX)

/* The skeleton contains all maps, the programs that follow processes, and the triggers of the first
 * type. Programs that only some sessions need are loaded beside it on demand, as the verifier takes
 * most of the start's time. These are other types, walkers of runtimes, and programs of probes. */
struct kernel_half {
	struct braid_bpf *skel; /* NULL: runs ... */
	bool on_host;
	struct kernel_half_opts opts;
	int n_cpus;	  /* possible CPUs */
	int n_slots_cpus; /* CPUs with slots of scratch memory, up to the highest online one */
	struct late_map late[LATE_MAPS_MAX];
	size_t n_late;
	struct kernel_subset_map created[LATE_MAPS_MAX + 1]; /* created maps among `late`; owned */
	size_t n_created;
	struct chains chains;
	uint32_t loaded;	   /* bit n: the walker of runtimes[n] is loaded */
	struct bpf_object *probes; /* NULL: the session has no probes */
	bool probes_tried;
	int probes_code; /* result of loading them */
	struct bpf_link *follower_links[KERNEL_HALF_FOLLOWERS];
};

/* Sizes maps and sets the constants of the session, before the load. Returns 0 or an error of
 * libbpf. */
int kernel_half__configure(struct kernel_half *half);

/* Returns the bytes of kernel memory of all full maps, including those of the runtimes @seen (bit
 * n: runtimes[n]). The half must be configured; it need not be loaded. */
uint64_t kernel_half__map_bytes(const struct kernel_half *half, uint32_t seen);

#endif
