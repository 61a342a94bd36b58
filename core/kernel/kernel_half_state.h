/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_HALF_STATE_H
#define BRAID_KERNEL_HALF_STATE_H

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "core/kernel/chain.h"
#include "core/kernel/kernel_half.h"

/* The kernel half from inside: kernel_half.c loads and attaches it, kernel_half_configure.c sizes
 * it before. */

#define KERNEL_HALF_FOLLOWERS 3		 /* programs, for shadow stacks */
#define CALL_NODES	      (1U << 18) /* 12 MiB of call_stats, 20 of call_nodes */

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
	struct bpf_link *follower_links[KERNEL_HALF_FOLLOWERS];
};

/* Sizes maps and sets what programs know of this session, before they are loaded. 0 or what libbpf
 * returns. */
int kernel_half__configure(struct kernel_half *half);

#endif
