/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_HALF_STATE_H
#define BRAID_KERNEL_HALF_STATE_H

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "core/kernel/chain.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/kernel_part.h"

/* The kernel half from inside: kernel_half.c loads and attaches it, kernel_half_configure.c sizes
 * it before. */

#define KERNEL_HALF_FOLLOWERS 3		 /* programs, for shadow stacks */
#define CALL_NODES	      (1U << 18) /* 12 MiB of call_stats, 20 of call_nodes */

/* A map of a runtime, which has one element in the skeleton. It is created when the runtime is met:
 * programs that are loaded before do not use it. */
struct late_map {
	const struct bpf_map *like; /* the skeleton's */
	int runtime;		    /* its index */
	uint32_t entries;
};
#define LATE_MAPS_MAX (4 * WALKERS_MAX)

/* The skeleton has all maps, what follows processes, and what takes samples by the first type of
 * triggers. What only some sessions need is loaded beside it when the need shows, as most of a
 * start's time is the verifier's: other types, the walker of a runtime, the programs of probes. */
struct kernel_half {
	struct braid_bpf *skel; /* NULL: it is ... */
	bool on_host;
	struct kernel_half_opts opts;
	int n_cpus;	  /* that there may be */
	int n_slots_cpus; /* with slots of scratch memory: up to the highest that is online */
	struct late_map late[LATE_MAPS_MAX];
	size_t n_late;
	struct kernel_part_map created[LATE_MAPS_MAX + 1]; /* of these; owned */
	size_t n_created;
	struct chains chains;
	uint32_t loaded;	   /* bit n: the walker of runtimes[n] is */
	struct bpf_object *probes; /* NULL: none are wanted */
	bool probes_tried;
	int probes_code; /* of loading them */
	struct bpf_link *follower_links[KERNEL_HALF_FOLLOWERS];
};

/* Sizes maps and sets what programs know of this session, before they are loaded. 0 or what libbpf
 * returns. */
int kernel_half__configure(struct kernel_half *half);

/* Bytes of kernel memory that all maps take once they are full, those of the runtimes of @met (bit
 * n: runtimes[n]) among them. The half is configured; it need not be loaded. */
uint64_t kernel_half__map_bytes(const struct kernel_half *half, uint32_t met);

#endif
